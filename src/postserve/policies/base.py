"""The verbs every policy has: checks at the public edges, arms that come and go, two-stage feedback.

A policy holds no pending decision. Whoever decides keeps (x, arm) and brings z and the reward when
they come, in any order and at any time; waiting for them is the caller's job (docs/recipes.md).
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.policies.choice import choose, distribution
from postserve.state import Arrays, Persistent, Stored, refuse_other_settings
from postserve.types import Decision, Decisions, FloatArray, IntArray, MissingZ
from postserve.validation import (
    arm_ids,
    generator,
    integer,
    matrix,
    number,
    one_of,
    reward_value,
    vector,
    whole_numbers,
)


class BasePolicy(Persistent, abstract=True):
    """Arms by id, and the learning verbs; subclasses learn from checked arrays."""

    def __init__(
        self, n_arms: int, dim_x: int | None, dim_z: int | None, missing_z: MissingZ = "raise"
    ) -> None:
        self.dim_x = dim_x  # None where x is not looked at
        self.dim_z = dim_z  # None where z is not used
        self.missing_z = one_of("missing_z", missing_z, ("raise", "impute", "drop"))
        self._next_arm = integer("n_arms", n_arms, least=1)
        self._settings = {}
        self._set_arms(range(self._next_arm))

    # What it promises

    @property
    def scale_free(self) -> bool:
        """Whether scaling rewards, x or z by a power of two changes no choice."""
        return False

    @property
    def order_free(self) -> bool:
        """Whether updates may come in any order, and learners be merged, with the same result."""
        return self._why_not_merge() is None

    # Arms

    @property
    def arms(self) -> tuple[int, ...]:
        """The ids of the present arms, in rising order; an id is never given twice."""
        return tuple(self._ids.tolist())

    @property
    def n_arms(self) -> int:
        """How many arms there are now."""
        return len(self._ids)

    def add_arm(self) -> int:
        """Add an arm that knows nothing; returns its id."""
        arm = self._next_arm
        self._next_arm += 1
        self._add_arm()
        self._set_arms([*self.arms, arm])
        return arm

    def remove_arm(self, arm: int) -> None:
        """Remove an arm and what it learnt; feedback for it is refused from then on."""
        slot = self._slot(arm)
        if self.n_arms == 1:
            raise InvalidInput(f"arm {arm} is the only arm, wanted at least one to remain")
        self._remove_arm(slot)
        self._set_arms([other for other in self.arms if other != arm])

    # Learning

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None, reward: float) -> None:
        """z and the reward came: `observe`, then `credit`."""
        x, slot, z = self._check_round(x, arm, z)
        self._update(x, slot, z, reward_value(reward))

    def observe(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None) -> FloatArray | None:
        """z came: the map learns; returns its prediction from before, which `credit` may want back.

        None where there is no map.
        """
        x, slot, z = self._check_round(x, arm, z)
        if self.dim_z is None:
            return None
        if z is None:
            raise InvalidInput(f"z is None, wanted ({self.dim_z},)")
        return self._observe(x, slot, z)

    def credit(
        self,
        x: npt.ArrayLike,
        arm: int,
        z: npt.ArrayLike | None,
        reward: float,
        *,
        z_hat: npt.ArrayLike | None = None,
    ) -> None:
        """The reward came: the arm learns from it and from z, or as `missing_z` says without."""
        x, slot, z = self._check_round(x, arm, z)
        reward = reward_value(reward)
        used = z_hat is not None and self.dim_z is not None
        self._settle(x, slot, z, reward, vector("z_hat", z_hat, self.dim_z) if used else None)

    def update_batch(
        self, X: npt.ArrayLike, arms: npt.ArrayLike, Z: npt.ArrayLike | None, rewards: npt.ArrayLike
    ) -> None:
        """Row after row as `update` would; all rows are checked before the first is learnt."""
        rewards = vector("rewards", rewards, None)
        n = len(rewards)
        X = matrix("X", X, n, self.dim_x)
        ids = whole_numbers("arms", arms)
        if len(ids) != n:
            raise InvalidInput(f"arms has shape ({len(ids)},), wanted ({n},)")
        slots = [self._slot(arm) for arm in ids.tolist()]
        if self.dim_z is None:
            Z = None
        elif Z is not None:
            Z = matrix("Z", Z, n, self.dim_z)
        elif n and self.missing_z == "raise":
            self._refuse_missing_z()
        for x, slot in zip(X, slots, strict=True):
            self._try_row(x, slot)
        for i, slot in enumerate(slots):
            self._update(X[i], slot, None if Z is None else Z[i], float(rewards[i]))

    def forget(self, *, arms: float = 1.0, map: float = 1.0) -> None:
        """Multiply what the arms and the map have learnt by these factors, in (0, 1]."""
        keep_arms = number("arms", arms, above=0.0, most=1.0)
        keep_map = number("map", map, above=0.0, most=1.0)
        self._forget(keep_arms, keep_map)

    def refit_prior(self) -> None:
        """Learn every prior from the evidence now; nothing to do where the ridge is a number."""

    def merge(self, other: Any) -> None:
        """Add what another policy of the same settings and arms has learnt from other rounds.

        With evidence the prior is then learnt anew. Rounds that both have learnt, as after starting
        from one checkpoint, count twice.
        """
        if reason := self._why_not_merge():
            raise InvalidInput(f"{type(self).__name__} cannot merge: {reason}")
        refuse_other_settings(self, other)
        if other.arms != self.arms:
            raise InvalidInput(f"cannot merge arms {other.arms} into {self.arms}, wanted the same arms")
        self._merge(other)

    # What subclasses fill in

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        return None

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """The arm in that slot learns; z is empty where it is not used."""

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        raise InvalidInput(f"{type(self).__name__} has no map to impute z with, wanted z")

    def _try_row(self, x: FloatArray, slot: int) -> None:
        """Raise if x cannot be learnt from, features of it being a caller's own function."""

    def _add_arm(self) -> None: ...

    def _remove_arm(self, slot: int) -> None: ...

    def _forget(self, arms: float, map: float) -> None: ...

    def _why_not_merge(self) -> str | None:
        """Why what is learnt depends on its order, None where it does not."""
        return "it learns nothing"

    def _merge(self, other: Any) -> None: ...

    # The ways in

    def _update(self, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
        z_hat = None if z is None else self._observe(x, slot, z)
        self._settle(x, slot, z, reward, z_hat)

    def _settle(
        self, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Credit the arm, after deciding what to do about a z that never came."""
        if z is None and self.dim_z is not None:
            if self.missing_z == "raise":
                self._refuse_missing_z()
            if self.missing_z == "drop":
                return
            z = z_hat = self._impute(x, slot) if z_hat is None else z_hat
        self._credit(x, slot, np.empty(0) if z is None else z, reward, z_hat)

    def _refuse_missing_z(self) -> None:
        raise InvalidInput(
            f"z is None, wanted ({self.dim_z},), or a policy with missing_z='impute' or 'drop'"
        )

    def _check_round(
        self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None
    ) -> tuple[FloatArray, int, FloatArray | None]:
        x = vector("x", x, self.dim_x)
        slot = self._slot(arm)
        used = z is not None and self.dim_z is not None
        return x, slot, vector("z", z, self.dim_z) if used else None

    def _slot(self, arm: int) -> int:
        """Where an arm's model stands."""
        slot = self._slots.get(integer("arm", arm, least=0))
        if slot is None:
            removed = " (it was removed)" if arm < self._next_arm else ""
            raise InvalidInput(f"arm is {arm}{removed}, wanted one of {_listed(self.arms)}")
        return slot

    def _eligible(self, arms: Sequence[int] | None) -> IntArray:
        """The slots of an eligible subset, in rising order of the arms."""
        if arms is None:
            return self._all_slots
        return np.array([self._slot(arm) for arm in arm_ids("arms", arms).tolist()], dtype=np.int64)

    def _decide(self, slots: IntArray, scores: FloatArray, rng: np.random.Generator) -> Decision:
        """The best of these slots."""
        index, propensity = choose(scores, rng)
        return Decision(int(self._ids[slots[index]]), propensity)

    def _chances(self, slots: IntArray, scores: FloatArray) -> FloatArray:
        """The probability with which `_decide` takes each of all arms."""
        chances = np.zeros(self.n_arms)
        chances[slots] = distribution(scores)
        return chances

    def _set_arms(self, ids: Sequence[int]) -> None:
        self._ids = np.array(ids, dtype=np.int64)
        self._slots = {arm: slot for slot, arm in enumerate(ids)}
        self._all_slots = np.arange(len(self._ids), dtype=np.int64)
        self._settings["n_arms"] = len(self._ids)

    def _arrays(self) -> Arrays:
        return {"arms": self._ids, "next_arm": np.array([self._next_arm])}

    def _restore(self, arrays: Stored) -> None:
        self._next_arm = int(arrays.take("next_arm", (1,), np.int64)[0])
        ids = arrays.take("arms", (None,), np.int64)
        rising = len(ids) > 0 and ids[0] >= 0 and bool((np.diff(ids) > 0).all())
        arrays.require(rising, "arms", "ids in rising order")
        arrays.require(self._next_arm > ids[-1], "next_arm", "an id not yet given")
        self._set_arms(ids.tolist())


class ChoosesFromX(BasePolicy, abstract=True):
    """Scores every arm from x alone and takes the best; ties are broken at random."""

    @abstractmethod
    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """One score a slot."""

    def select(
        self, x: npt.ArrayLike, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decision:
        """Choose an arm for x, of the eligible ones; changes nothing but rng."""
        x = vector("x", x, self.dim_x)
        slots, rng = self._eligible(arms), generator(rng)
        return self._decide(slots, self._scores(x, slots), rng)

    def propensities(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms` at x, zero where it is not eligible."""
        x = vector("x", x, self.dim_x)
        slots = self._eligible(arms)
        return self._chances(slots, self._scores(x, slots))

    def select_batch(
        self, X: npt.ArrayLike, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decisions:
        """Row after row as `select` would, nothing being learnt in between."""
        X = matrix("X", X, None, self.dim_x)
        slots, rng = self._eligible(arms), generator(rng)
        return batch(self._decide(slots, self._scores(x, slots), rng) for x in X)


def batch(decisions: Iterable[Decision]) -> Decisions:
    """Many decisions as two arrays."""
    rows = list(decisions)
    return Decisions(
        np.array([decision.arm for decision in rows], dtype=np.int64),
        np.array([decision.propensity for decision in rows], dtype=np.float64),
    )


def _listed(arms: tuple[int, ...]) -> str:
    return ", ".join(map(str, arms[:8])) + (f", … ({len(arms)} in all)" if len(arms) > 8 else "")
