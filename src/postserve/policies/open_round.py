"""An announced round, and which of several the feedback is of."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from postserve.errors import InvalidInput
from postserve.layered import Layered
from postserve.types import BoolArray, FloatArray
from postserve.validation import text

Key: TypeAlias = str | tuple[bytes, int]
"""An id, or x and an arm."""
MANY = 1_000
"""From so many new rounds on, all are put in order anew."""


@dataclass(eq=False, frozen=True, slots=True)
class OpenRound:
    """An arm was served at x; z, and what was predicted before it, once it came."""

    x: FloatArray
    arm: int
    z: FloatArray | None = None
    z_hat: FloatArray | None = None
    part: FloatArray | None = None
    """What is known of z before all of it came, NaN elsewhere."""
    rows: tuple[FloatArray | None, ...] = ()
    """The row that counts in the widths of each of the policy's regressions; None if there is none yet."""
    round_id: str | None = None
    """What its feedback names it by, if it was announced with a name."""

    @property
    def z_so_far(self) -> FloatArray | None:
        """z, or what is known of it; None before anything of it came."""
        return self.part if self.z is None else self.z


class OpenRounds:
    """Open rounds by their id, and those without one by x and arm, the oldest first."""

    def __init__(self, rounds: Iterable[OpenRound] = ()) -> None:
        by_key: dict[Key, list[OpenRound]] = {}
        for one in rounds:
            by_key.setdefault(_key(one), []).append(one)
        self._by_key = Layered(by_key)

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __iter__(self) -> Iterator[OpenRound]:
        return iter([each for rounds in self._by_key.as_dict().values() for each in rounds])

    def __deepcopy__(self, memo: dict[int, Any]) -> "OpenRounds":
        twin = OpenRounds()
        twin._by_key = copy.copy(self._by_key)  # lists and rounds are replaced, never changed
        return twin

    def add(self, one: OpenRound) -> None:
        """One more."""
        key = _key(one)
        self._by_key[key] = [*self._by_key.get(key, ()), one]

    def add_all(self, rounds: Sequence[OpenRound]) -> None:
        """As `add` one by one."""
        if len(rounds) < MANY:
            for one in rounds:
                self.add(one)
        else:
            self._by_key = OpenRounds([*self, *rounds])._by_key

    def replace(self, one: OpenRound, **values: Any) -> OpenRound:
        """Another in its place, with new values; returns it."""
        key, new = _key(one), replace(one, **values)
        self._by_key[key] = [new if each is one else each for each in self._by_key[key]]
        return new

    def remove(self, one: OpenRound) -> None:
        """One less."""
        key = _key(one)
        self._by_key[key] = [each for each in self._by_key[key] if each is not one]
        if not self._by_key[key]:
            del self._by_key[key]

    def has(self, round_id: str) -> bool:
        """Whether a round with this id is open."""
        return round_id in self._by_key

    def oldest(
        self, x: FloatArray, arm: int, round_id: str | None, taken: Sequence[OpenRound] = ()
    ) -> OpenRound | None:
        """The first that was announced and is not taken already."""
        return next((one for one in self._of(x, arm, round_id) if one not in taken), None)

    def without_z(
        self,
        x: FloatArray,
        arm: int,
        z: FloatArray,
        round_id: str | None,
        taken: Sequence[OpenRound] = (),
    ) -> OpenRound | None:
        """The round that z, or a part of it, is of; None if no round was announced.

        It is not taken already, and its z is out: the first of which this z repeats a part, else the first of
        which no entry of it is known.
        """
        rounds = self._of(x, arm, round_id)
        out = [one for one in rounds if one.z is None and one not in taken]
        if out and all(one.part is None for one in out):
            return out[0]
        known = [_overlap(one.part, z) for one in out]
        repeats = [one for one, at in zip(out, known, strict=True) if at.any() and _agrees(one.part, z)]
        new = [one for one, at in zip(out, known, strict=True) if not at.any()]
        if found := repeats or new:
            return found[0]
        if out:
            got, wanted = f"z is {z}, which contradicts a part that came: {out[0].part}", "the same numbers"
            raise InvalidInput(f"{got}, wanted {wanted} in every part")
        if rounds:
            got = f"z of arm {arm} at this x is known already"
            raise InvalidInput(f"{got}, wanted one z per announced round: {len(rounds)} of them")
        return None

    def credited(
        self, x: FloatArray, arm: int, z: FloatArray | None, round_id: str | None
    ) -> OpenRound | None:
        """The first with this z, else the first whose z is out; without z, the first."""
        rounds = self._of(x, arm, round_id)
        if z is None or not rounds:
            return next(iter(rounds), None)
        bits = (z + 0.0).tobytes()
        same = (one for one in rounds if one.z is not None and (one.z + 0.0).tobytes() == bits)
        out = (one for one in rounds if one.z is None and _agrees(one.part, z))
        if (found := next(chain(same, out), None)) is not None:
            return found
        came = rounds[0].part if rounds[0].z is None else rounds[0].z
        raise InvalidInput(f"z is {z}, which contradicts what came: {came}, wanted the same numbers, or None")

    def _of(self, x: FloatArray, arm: int, round_id: str | None) -> list[OpenRound]:
        """The rounds that feedback may be of: with an id, the one that has it."""
        if round_id is None:
            return self._by_key.get(_at(x, arm), [])
        rounds, got = self._by_key.get(text("round_id", round_id), []), f"round_id is {round_id!r:.60}"
        if not rounds:
            raise InvalidInput(f"{got}, which is not open, wanted one that expect() announced")
        one = rounds[0]
        if _at(x, arm) != _at(one.x, one.arm):
            wanted = f"arm {one.arm} and x {one.x}, as it was announced"
            raise InvalidInput(f"{got} with arm {arm} and x {x}, wanted {wanted}")
        return rounds


def _overlap(part: FloatArray | None, z: FloatArray) -> BoolArray:
    """Where both are known."""
    return np.zeros(len(z), dtype=np.bool_) if part is None else ~(np.isnan(part) | np.isnan(z))


def _agrees(part: FloatArray | None, z: FloatArray) -> bool:
    """Whether both are the same wherever both are known."""
    at = _overlap(part, z)
    return part is None or bool((part[at] == z[at]).all())


def _key(one: OpenRound) -> Key:
    return _at(one.x, one.arm) if one.round_id is None else one.round_id


def _at(x: FloatArray, arm: int) -> tuple[bytes, int]:
    return (x + 0.0).tobytes(), arm  # -0 is 0
