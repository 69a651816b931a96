"""Rounds that were announced to a `StagedMap`, and the inputs at which their stages count."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from postserve.state import Arrays, Stored
from postserve.types import BoolArray, FloatArray


class RoundOut(NamedTuple):
    """An arm was served at x, and z is known as far as it came, NaN elsewhere."""

    x: FloatArray
    arm: int
    z: FloatArray
    completed: FloatArray
    """z with what was expected in place of NaN when the round was announced."""
    counted: BoolArray
    """Of each stage, whether the round counts in the widths of its map."""

    def inputs(self, dim: int) -> FloatArray:
        """Those of a map with so many inputs."""
        return np.concatenate([self.x, self.completed])[:dim]


class RoundsOut:
    """Announced rounds by x, arm and what is known of z, the oldest first."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[bytes, int, bytes], tuple[RoundOut, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __iter__(self) -> Iterator[RoundOut]:
        return iter([one for rounds in self._by_key.values() for one in rounds])

    def __deepcopy__(self, memo: dict[int, Any]) -> "RoundsOut":
        twin = RoundsOut()
        twin._by_key = dict(self._by_key)  # rounds are never changed
        return twin

    def add(self, one: RoundOut) -> None:
        """One more."""
        key = _key(one.x, one.arm, one.z)
        self._by_key[key] = (*self._by_key.get(key, ()), one)

    def take(self, x: FloatArray, arm: int, z: FloatArray) -> RoundOut | None:
        """The oldest such round, which is then no longer here; None if there is none."""
        oldest, *others = self._by_key.pop(key := _key(x, arm, z), (None,))
        if others:
            self._by_key[key] = tuple(one for one in others if one is not None)
        return oldest


def arrays(rounds: RoundsOut) -> Arrays:
    """All rounds as named arrays; none if there are none."""
    if not rounds:
        return {}
    x, arms, z, completed, counted = (np.array(column) for column in zip(*rounds, strict=True))
    found = {"out_x": x, "out_arms": arms, "out_completed": completed, "out_counted": counted}
    return {**found, "out_known": ~np.isnan(z)}


def restored(stored: Stored, dim_x: int, dim_z: int, n_stages: int) -> RoundsOut:
    """Take back what `arrays` gave."""
    rounds = RoundsOut()
    if not stored.has("out_arms"):
        return rounds
    arms = stored.take("out_arms", (None,), np.int64)
    n = len(arms)
    stored.require(n > 0 and bool((arms >= 0).all()), "out_arms", "ids of arms")
    x, completed = stored.take("out_x", (n, dim_x)), stored.take("out_completed", (n, dim_z))
    known = stored.take("out_known", (n, dim_z), np.bool_)
    counted = stored.take("out_counted", (n, n_stages), np.bool_)
    z = np.where(known, completed, np.nan)
    for one in zip(x, arms.tolist(), z, completed, counted, strict=True):
        rounds.add(RoundOut(*one))
    return rounds


def _key(x: FloatArray, arm: int, z: FloatArray) -> tuple[bytes, int, bytes]:
    return (x + 0.0).tobytes(), arm, (z + 0.0).tobytes()  # -0 is 0
