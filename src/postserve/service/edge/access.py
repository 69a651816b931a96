"""Who may ask for what, and how often."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Sequence

from postserve.errors import PostserveError
from postserve.service.experiment import Key, Role


class Unauthorised(PostserveError):
    """The caller has no key that is known."""


class Forbidden(PostserveError):
    """The caller's key is not for this."""


class TooMany(PostserveError):
    """The caller asks too often."""


def new_key() -> tuple[str, str]:
    """A key, and the hash of it that goes into the experiment's file."""
    key = secrets.token_urlsafe(32)
    return key, hash_of(key)


def hash_of(key: str) -> str:
    """Keys are long and random, so that a plain hash tells nothing of them."""
    return hashlib.sha256(key.encode()).hexdigest()


class Gate:
    """Checks keys, and lets each through at its rate; without keys, everybody is let in."""

    def __init__(
        self, keys: Sequence[Key], rate: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys, self._rate, self._clock = list(keys), rate, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def admit(self, header: str | None, role: Role) -> None:
        """Raise unless the key in an Authorization header has the role, and has not asked too often."""
        self._limit(self._name(header, role))

    def _name(self, header: str | None, role: Role) -> str:
        if not self._keys:
            return ""
        scheme, _, given = (header or "").partition(" ")
        digest, found = hash_of(given.strip()), None
        for key in self._keys:  # all of them, so that time tells nothing
            if hmac.compare_digest(key.hash, digest):
                found = key
        if found is None or scheme.lower() != "bearer":
            raise Unauthorised("there is no key that is known, wanted Authorization: Bearer KEY")
        if role not in found.roles and "admin" not in found.roles:
            raise Forbidden(f"key {found.name!r} has no role {role}, wanted a key that has")
        return found.name

    def _limit(self, name: str) -> None:
        """A bucket that fills at the rate and holds a second's worth, or one request if that is more."""
        if self._rate is None:
            return
        now, most = self._clock(), max(1.0, self._rate)
        level, then = self._levels.get(name, (most, now))
        level = min(most, level + (now - then) * self._rate)
        if level < 1.0:
            self._levels[name] = level, now
            raise TooMany(f"more than {self._rate:g} requests per second, wanted fewer")
        self._levels[name] = level - 1.0, now
