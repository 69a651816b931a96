"""The verbs every policy has: checks at the public edges, arms that come and go, two-stage feedback.

A policy holds no pending decision. Whoever decides keeps (x, arm) and brings z and the reward when
they come, in any order and at any time; waiting for them is the caller's job (docs/recipes.md).
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.linalg.kernels.models import UNDECIDED
from postserve.policies.choice import choose, distribution
from postserve.policies.inputs import Inputs
from postserve.state import Arrays, Persistent, Stored, refuse_other_settings
from postserve.types import Context, Decision, Decisions, FloatArray, IntArray, MissingZ
from postserve.validation import (
    arm_ids,
    generator,
    integer,
    number,
    one_of,
    reward_value,
    vector,
    whole_numbers,
)

NO_Z = np.empty(0)
"""Stands for z where it is not used."""


class BasePolicy(Persistent, abstract=True):
    """Arms by id, and the learning verbs; subclasses learn from checked arrays."""

    def __init__(
        self,
        n_arms: int | None,
        dim_x: int | None,
        dim_z: int | None,
        missing_z: MissingZ = "raise",
        *,
        x_features: Features | None = None,
        z_features: Features | None = None,
    ) -> None:
        self.dim_x = dim_x  # of the features of x, if there are any; None where x is not looked at
        self.dim_z = dim_z  # of the features of z, if there are any; None where z is not used
        self.x_features, self.z_features = x_features, z_features
        self._x, self._z = Inputs("x", dim_x, x_features), Inputs("z", dim_z, z_features)
        self.missing_z = one_of("missing_z", missing_z, ("raise", "impute", "drop"))
        self._by_row = n_arms is None  # the arms of a round are the rows of its decision set
        self._next_arm = 0 if n_arms is None else integer("n_arms", n_arms, least=1)
        self._settings = {"n_arms": None}
        self._set_arms(np.arange(self._next_arm))

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
        """The ids of the present arms, in rising order; an id is never given twice.

        None where decision sets take the place of arms.
        """
        return tuple(self._ids.tolist())

    @property
    def n_arms(self) -> int:
        """How many arms there are now."""
        return len(self._ids)

    def add_arm(self) -> int:
        """Add an arm that knows nothing; returns its id."""
        self._refuse_by_row()
        arm = self._next_arm
        self._next_arm += 1
        self._add_arm()
        self._set_arms(np.append(self._ids, arm))
        return arm

    def remove_arm(self, arm: int) -> None:
        """Remove an arm and what it learnt; feedback for it is refused from then on."""
        self._refuse_by_row()
        slot = self._slot(arm)
        if self.n_arms == 1:
            raise InvalidInput(f"arm {arm} is the only arm, wanted at least one to remain")
        self._remove_arm(slot)
        self._set_arms(np.delete(self._ids, slot))

    # Learning

    def update(self, x: Context, arm: int, z: Context | None, reward: float) -> None:
        """z and the reward came: what `observe` and `credit` would learn."""
        x, slot, z = self._check_round(x, arm, z)
        self._update(x, slot, z, reward_value(reward))

    def observe(self, x: Context, arm: int, z: Context | None) -> FloatArray | None:
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
        x: Context,
        arm: int,
        z: Context | None,
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
        self, X: Context, arms: npt.ArrayLike, Z: Context | None, rewards: npt.ArrayLike
    ) -> None:
        """Row after row as `update` would; all rows are checked before the first is learnt."""
        rewards = vector("rewards", rewards, None)
        n = len(rewards)
        X = self._x.many(X, n)
        ids = whole_numbers("arms", arms)
        if len(ids) != n:
            raise InvalidInput(f"arms has shape ({len(ids)},), wanted ({n},)")
        slots = self._slots_of(ids)
        if self.dim_z is None:
            Z = None
        elif Z is not None:
            Z = self._z.many(Z, n)
        elif n and self.missing_z == "raise":
            self._refuse_missing_z()
        if n:
            self._try_rows(X, slots)
            self._update_batch(X, slots, Z, rewards)

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
        if reason := other._why_not_merge():
            raise InvalidInput(f"cannot merge the other {type(self).__name__}: {reason}")
        if not np.array_equal(other._ids, self._ids):
            mine, theirs = _listed(self._ids), _listed(other._ids)
            raise InvalidInput(f"cannot merge arms {theirs} into {mine}, wanted the same arms")
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

    def _try_rows(self, X: FloatArray, slots: IntArray) -> None:
        """Raise if a row cannot be learnt from, features of x being a caller's own function."""

    def _add_arm(self) -> None: ...

    def _remove_arm(self, slot: int) -> None: ...

    def _forget(self, arms: float, map: float) -> None: ...

    def _why_not_merge(self) -> str | None:
        """Why what is learnt depends on its order, None where it does not."""
        return "it learns nothing"

    def _merge(self, other: Any) -> None: ...

    # The ways in

    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        """`_update`, row after row."""
        for i, slot in enumerate(slots.tolist()):
            self._update(X[i], slot, None if Z is None else Z[i], float(rewards[i]))

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
        self._credit(x, slot, NO_Z if z is None else z, reward, z_hat)

    def _refuse_missing_z(self) -> None:
        raise InvalidInput(
            f"z is None, wanted ({self.dim_z},), or a policy with missing_z='impute' or 'drop'"
        )

    def _check_round(
        self, x: Context, arm: int, z: Context | None
    ) -> tuple[FloatArray, int, FloatArray | None]:
        seen = cast(FloatArray, x) if self._x.is_ready(x) else self._x.one(x)
        slot = self._slot(arm)
        if z is None or self.dim_z is None:
            return seen, slot, None
        return seen, slot, cast(FloatArray, z) if self._z.is_ready(z) else self._z.one(z)

    def _slot(self, arm: int) -> int:
        """Where an arm's model stands; a row of a decision set is its own slot."""
        if type(arm) is int and 0 <= arm < self._ids_that_are_slots:
            return arm
        arm = integer("arm", arm, least=0)
        if self._by_row:
            return arm
        slot = int(np.searchsorted(self._ids, arm))
        if slot == len(self._ids) or self._ids[slot] != arm:
            removed = " (it was removed)" if arm < self._next_arm else ""
            raise InvalidInput(f"arm is {arm}{removed}, wanted one of {_listed(self._ids)}")
        return slot

    def _eligible(self, arms: Sequence[int] | None) -> IntArray:
        """The slots of an eligible subset, in the order in which it is given."""
        if arms is None:
            return self._all_slots
        self._refuse_by_row()
        return self._slots_of(arm_ids("arms", arms))

    def _slots_of(self, arms: IntArray) -> IntArray:
        """Where the models of many arms stand."""
        if not self._by_row and len(arms):
            slots = np.minimum(np.searchsorted(self._ids, arms), len(self._ids) - 1)
            known = self._ids[slots] == arms
        else:
            slots, known = arms, arms >= 0
        if not known.all():
            self._slot(int(arms[known.argmin()]))  # which says what is wrong with it
        return slots

    def _context(self, x: Context, arms: Sequence[int] | None) -> tuple[FloatArray, IntArray]:
        """x as the models see it, and the slots to choose from."""
        slots = self._eligible(arms)
        return self._placed(self._x.one_or_rows(x, self._rows_wanted(slots)), slots)

    def _rows_wanted(self, slots: IntArray) -> int | None:
        """How many rows x has if it has any; None where it may be any number."""
        return None if self._by_row else len(slots)

    def _placed(
        self, x: FloatArray, slots: IntArray, what: Inputs | None = None
    ) -> tuple[FloatArray, IntArray]:
        """x and slots in rising order: if x has rows, one a slot; in a decision set they are the slots."""
        if self._by_row:
            if x.ndim != 2 or not len(x):
                wanted = f"(n, {x.shape[-1]}): a row a candidate"
                raise InvalidInput(f"{(what or self._x).label} has shape {x.shape}, wanted {wanted}")
            return x, np.arange(len(x), dtype=np.int64)
        if x.ndim == 2 and len(x) != len(slots):
            wanted = f"({len(slots)}, {x.shape[1]}): a row an arm"
            raise InvalidInput(f"{(what or self._x).label} has shape {x.shape}, wanted {wanted}")
        if slots is self._all_slots:
            return x, slots
        order = np.argsort(slots)  # in which order arms are named is no matter
        return x if x.ndim == 1 else x[order], slots[order]

    def _id_of(self, slot: int) -> int:
        return int(slot if self._by_row else self._ids[slot])

    def _ids_of(self, slots: IntArray) -> list[int]:
        ids: list[int] = (slots if self._by_row else self._ids[slots]).tolist()
        return ids

    def _decision(self, slots: IntArray, choice: tuple[int, float]) -> Decision:
        """The slot at a chosen index as a decision."""
        index, propensity = choice
        return Decision(self._id_of(slots[index]), propensity)

    def _over_all_arms(self, slots: IntArray, chances: FloatArray) -> FloatArray:
        """The probability of each of all arms, given that of each of these slots."""
        if self._by_row:
            return chances
        everyone = np.zeros(self.n_arms)
        everyone[slots] = chances
        return everyone

    def _refuse_by_row(self) -> None:
        if self._by_row:
            raise InvalidInput("n_arms is None: the candidates are the arms, wanted a policy with n_arms")

    def _set_arms(self, ids: IntArray) -> None:
        self._ids = ids  # rising
        none_is_gone = len(ids) > 0 and int(ids[-1]) == len(ids) - 1
        self._ids_that_are_slots = len(ids) if none_is_gone else 0
        self._all_slots = np.arange(len(ids))
        if not self._by_row:
            self._settings["n_arms"] = len(self._ids)

    def _arrays(self) -> Arrays:
        return {"arms": self._ids, "next_arm": np.array([self._next_arm])}

    def _restore(self, arrays: Stored) -> None:
        self._next_arm = int(arrays.take("next_arm", (1,), np.int64)[0])
        ids = arrays.take("arms", (None,), np.int64)
        known = self._by_row == (len(ids) == 0)
        arrays.require(known and bool((np.diff(ids, prepend=-1) > 0).all()), "arms", "ids in rising order")
        arrays.require(self._next_arm > ids.max(initial=-1), "next_arm", "an id not yet given")
        self._set_arms(ids)


class ChoosesFromX(BasePolicy, abstract=True):
    """Scores every arm from x alone and takes the best; ties are broken at random."""

    @abstractmethod
    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """One score a slot; x is one for all, or has a row a slot."""

    def select(self, x: Context, rng: np.random.Generator, arms: Sequence[int] | None = None) -> Decision:
        """Choose an arm for x, of the eligible ones; changes nothing but rng.

        x is one context, or has a row for each of `arms` (by default of `self.arms`), in that order.
        """
        if arms is None and not self._by_row and self._x.is_ready(x):  # the common case, at half the price
            index, propensity = self._choose(cast(FloatArray, x), self._all_slots, generator(rng))
            return Decision(int(self._ids[index]), propensity)
        seen, slots = self._context(x, arms)
        return self._decision(slots, self._choose(seen, slots, generator(rng)))

    def propensities(self, x: Context, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms` at x, zero where it is not eligible."""
        x, slots = self._context(x, arms)
        return self._over_all_arms(slots, self._chances(x, slots))

    def select_batch(
        self, X: Context, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decisions:
        """Round after round as `select` would, nothing being learnt in between."""
        slots, rng = self._eligible(arms), generator(rng)
        rounds = self._x.rounds(X, self._rows_wanted(slots))
        if isinstance(rounds, np.ndarray) and rounds.ndim == 2 and not self._by_row:
            return self._choose_batch(rounds, np.sort(slots), rng)
        placed = [self._placed(x, slots) for x in rounds]
        return batch(self._decision(slots, self._choose(x, slots, rng)) for x, slots in placed)

    def _choose_batch(self, X: FloatArray, slots: IntArray, rng: np.random.Generator) -> Decisions:
        """`_choose` for one context a row: all rows at once where they have a clear leader."""
        indices, propensities = self._leaders(X, slots), np.ones(len(X))
        for i in np.flatnonzero(indices == UNDECIDED):
            indices[i], propensities[i] = self._choose(X[i], slots, rng)
        return Decisions(self._ids[slots[indices]], propensities)

    def _leaders(self, X: FloatArray, slots: IntArray) -> IntArray:
        """For each row the index of the slot that `_choose` would take, UNDECIDED where it must be asked."""
        return np.full(len(X), UNDECIDED)

    def _choose(self, x: FloatArray, slots: IntArray, rng: np.random.Generator) -> tuple[int, float]:
        """The index of the slot to serve, and its probability."""
        return choose(self._scores(x, slots), rng)

    def _chances(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """The probability with which `_choose` takes each slot."""
        return distribution(self._scores(x, slots))


def batch(decisions: Iterable[Decision]) -> Decisions:
    """Many decisions as two arrays."""
    rows = list(decisions)
    return Decisions(
        np.array([decision.arm for decision in rows], dtype=np.int64),
        np.array([decision.propensity for decision in rows], dtype=np.float64),
    )


def _listed(arms: IntArray) -> str:
    return ", ".join(map(str, arms[:8].tolist())) + (f", … ({len(arms)} in all)" if len(arms) > 8 else "")
