"""What happened, in the order in which it is kept: the log of the service.

An event has all that the fold needs of it, so that a later change of the experiment's file changes nothing of
the past. Times are seconds since 1970, by the clock of the server; the order is that of the log.
"""

from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from postserve.service.values import Values


class _Event(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind", tag=str.lower):
    time: float
    id: str = ""
    """Of the decision it belongs to; empty if to none."""


class Decided(_Event, frozen=True, kw_only=True):
    """An arm was chosen at x; z is waited for until `z_due` and the reward until `due`.

    Its fields are such that the garbage collector need not look at them: very many may be open.
    """

    x: Values
    eligible: tuple[str, ...]
    arm: str
    propensities: tuple[float, ...]
    """Of the eligible arms, in their order."""
    version: int
    """The last event that the deciding model had learnt."""
    z_due: float
    due: float
    deferred: bool = False
    """It counts only once it is activated."""
    named: bool = True
    """The caller said which arms are eligible, rather than all that there are."""
    shadow: tuple[float, ...] = ()
    """What the policy that only looks on would have done, if there is one."""

    @property
    def asked(self) -> dict[str, Any]:
        """What the caller said."""
        return {"x": self.x, "eligible": self.eligible if self.named else None, "deferred": self.deferred}

    @property
    def propensity(self) -> float:
        """With which the arm was chosen."""
        return self.propensities[self.eligible.index(self.arm)]


class Activated(_Event, frozen=True):
    """What was decided was shown."""


class Followed(_Event, frozen=True, kw_only=True):
    """Some fields of z came, or all."""

    z: Values


class Rewarded(_Event, frozen=True, kw_only=True):
    """A reward came; unless `final`, the one that counts is settled when the round expires."""

    reward: float
    final: bool = True
    key: str = ""


class Expired(_Event, frozen=True, kw_only=True):
    """A wait is over: for z, or for the reward, which then is what came until now, a default, or none."""

    z: bool = False
    reward_over: bool = False
    reward: float | None = None


class Erased(_Event, frozen=True):
    """Somebody wants the decision forgotten: nothing more comes of it, and its events go."""


class ArmAdded(_Event, frozen=True, kw_only=True):
    """An arm can be served from now on; one that was retired, again."""

    arm: str


class ArmRetired(_Event, frozen=True, kw_only=True):
    """An arm is served no more; what comes of its rounds is still learnt."""

    arm: str


class Snapshot(_Event, frozen=True):
    """The model is saved, and goes on as it is loaded: a restart cannot tell the difference."""

    erasing: bool = False
    """It is saved so that events can go; it takes the place of the one of the erasure before it."""


class Promoted(_Event, frozen=True, kw_only=True):
    """The model of an earlier snapshot takes the place of the present one."""

    snapshot: int


Event: TypeAlias = (
    Decided | Activated | Followed | Rewarded | Expired | Erased | ArmAdded | ArmRetired | Snapshot | Promoted
)


class Logged(NamedTuple):
    """An event with its place in the log."""

    seq: int
    event: Event


_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Event)
encode = msgspec.json.Encoder().encode


def decode(body: bytes | str) -> Event:
    """An event from its JSON."""
    found: Event = _decoder.decode(body)
    return found
