"""The verbs every policy has: checks at the public edges, two-stage feedback, and from scores to a choice.

A policy holds no pending decision. The caller keeps (x, arm) and hands in z and the reward when they come,
in any order and at any time (docs/recipes.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import UNDECIDED
from postserve.policies.arm_set import ArmSet
from postserve.policies.describing import Description
from postserve.policies.inputs import Inputs
from postserve.state import Arrays, Stored, refuse_other_settings
from postserve.steps import HasSteps, general_way
from postserve.types import Context, Decision, Decisions, FloatArray, IntArray, MissingZ
from postserve.validation import generator, number, one_of, reward_value, vector, whole_numbers

NO_Z = np.empty(0)
"""Stands for z where it is not used."""


class BasePolicy(HasSteps, abstract=True):
    """Arms by id, and the learning verbs; subclasses learn in steps, from checked arrays."""

    _settings_from: ClassVar[tuple[str, ...]] = ("_arm_set",)

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
        self.dim_x, self.dim_z = dim_x, dim_z  # lengths of the features, if any; None for an ignored input
        self.x_features, self.z_features = x_features, z_features
        self._x, self._z = Inputs("x", dim_x, x_features), Inputs("z", dim_z, z_features)
        self.missing_z = one_of("missing_z", missing_z, ("raise", "impute", "drop"))
        self._arm_set = ArmSet(n_arms)

    @property
    def scale_free(self) -> bool:
        """Whether scaling rewards, x or z by a power of two changes no choice."""
        return False

    @property
    def column_free(self) -> bool:
        """Whether scaling any single column of x or z by a power of two changes no choice."""
        return False

    @property
    def shift_free(self) -> bool:
        """Whether adding a constant to all rewards, or to all z, changes no choice."""
        return False

    @property
    def order_free(self) -> bool:
        """Whether updates may come in any order, and learners be merged, with the same result."""
        return self._why_not_merge() is None

    def describe(
        self, x_names: Sequence[str] | None = None, z_names: Sequence[str] | None = None
    ) -> Description:
        """What was learnt, by the names of the inputs; `print` it, or let a notebook show it.

        The names are those of x and z: without features their columns, with a transformer its inputs, with
        another callable its outputs. A transformer fitted on a DataFrame knows them.
        """
        return Description(type(self).__name__, self.n_arms)

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    @property
    def arms(self) -> tuple[int, ...]:
        """The ids of the arms in rising order, none of them ever reused; empty with decision sets."""
        return tuple(self._arm_set.ids.tolist())

    @property
    def n_arms(self) -> int:
        """How many arms there are now."""
        return len(self._arm_set.ids)

    def add_arm(self) -> int:
        """Add an untrained arm; returns its id."""
        self._arm_set.refuse_rows()
        self._add_arm()
        return self._arm_set.add()

    def remove_arm(self, arm: int) -> None:
        """Remove an arm and what it learnt; feedback for it is refused from then on."""
        self._arm_set.refuse_rows()
        slot = self._arm_set.slot(arm)
        if self.n_arms == 1:
            raise InvalidInput(f"arm {arm} is the only arm, wanted at least one to remain")
        self._remove_arm(slot)
        self._arm_set.remove(slot)

    def update(self, x: Context, arm: int, z: Context | None, reward: float) -> None:
        """z and the reward came: what `observe` and `credit` would learn."""
        x, slot, z = _checked_round(self, x, arm, z)
        self._update(x, slot, z, reward_value(reward))

    def observe(self, x: Context, arm: int, z: Context | None) -> FloatArray | None:
        """z came: the map learns. Returns its earlier prediction for `credit`, None without a map."""
        x, slot, z = _checked_round(self, x, arm, z)
        if self.dim_z is None:
            return None
        if z is None:
            raise InvalidInput(f"z is None, wanted ({self.dim_z},)")
        return self._observe(x, slot, z)

    def credit(
        self, x: Context, arm: int, z: Context | None, reward: float, *, z_hat: npt.ArrayLike | None = None
    ) -> None:
        """The reward came: the arm learns from it and z; without z, as `missing_z` says."""
        x, slot, z = _checked_round(self, x, arm, z)
        reward = reward_value(reward)
        used = z_hat is not None and self.dim_z is not None
        self._fill_z_and_credit(x, slot, z, reward, vector("z_hat", z_hat, self.dim_z) if used else None)

    def update_batch(
        self, X: Context, arms: npt.ArrayLike, Z: Context | None, rewards: npt.ArrayLike
    ) -> None:
        """Update row by row; all rows are checked before the first is learnt."""
        rewards = vector("rewards", rewards, None)
        n = len(rewards)
        X = self._x.many(X, n)
        ids = whole_numbers("arms", arms)
        if len(ids) != n:
            raise InvalidInput(f"arms has shape ({len(ids)},), wanted ({n},)")
        slots = self._arm_set.slots(ids)
        if self.dim_z is None:
            Z = None
        elif Z is not None:
            Z = self._z.many(Z, n)
        elif n and self.missing_z == "raise":
            _refuse_missing_z(self)
        if n:
            self._try_rows(X, slots)
            self._update_batch(X, slots, Z, rewards)

    def forget(self, *, arms: float = 1.0, map: float = 1.0) -> None:
        """Multiply what the arms and the map have learnt by these factors, in (0, 1]."""
        self._forget(number("arms", arms, above=0.0, most=1.0), number("map", map, above=0.0, most=1.0))

    def refit_prior(self) -> None:
        """Learn every prior from the evidence now; does nothing if the ridge is a number."""

    def merge(self, other: Any) -> None:
        """Add what another policy with the same settings and arms has learnt from other rounds.

        With evidence the prior is learnt again. Rounds that both have learnt count twice.
        """
        if reason := self._why_not_merge():
            raise InvalidInput(f"{type(self).__name__} cannot merge: {reason}")
        refuse_other_settings(self, other)
        if reason := other._why_not_merge():
            raise InvalidInput(f"cannot merge the other {type(self).__name__}: {reason}")
        if other.arms != self.arms:
            theirs, mine = other._arm_set, self._arm_set
            raise InvalidInput(f"cannot merge arms {theirs} into {mine}, wanted the same arms")
        self._merge(other)

    # The steps that subclasses fill in

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        return None

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """The arm in that slot learns; z is empty where it is not used."""

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        raise InvalidInput(f"{type(self).__name__} has no map to impute z with, wanted z")

    def _try_rows(self, X: FloatArray, slots: IntArray) -> None:
        """Raise if a row cannot be learnt from: features of x may be a caller's own function."""

    def _add_arm(self) -> None: ...

    def _remove_arm(self, slot: int) -> None: ...

    def _forget(self, arms: float, map: float) -> None: ...

    def _why_not_merge(self) -> str | None:
        """Why the order of updates matters, or None."""
        return "it learns nothing"

    def _merge(self, other: Any) -> None: ...

    # How the verbs take the steps

    @general_way
    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        """`_update`, row after row."""
        for i, slot in enumerate(slots.tolist()):
            self._update(X[i], slot, None if Z is None else Z[i], float(rewards[i]))

    @general_way
    def _update(self, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
        z_hat = None if z is None else self._observe(x, slot, z)
        self._fill_z_and_credit(x, slot, z, reward, z_hat)

    def _fill_z_and_credit(
        self, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Refuse, impute or drop a missing z, as `missing_z` says; then credit the arm."""
        if z is None and self.dim_z is not None:
            if self.missing_z == "raise":
                _refuse_missing_z(self)
            if self.missing_z == "drop":
                return
            z = z_hat = self._impute(x, slot) if z_hat is None else z_hat
        self._credit(x, slot, NO_Z if z is None else z, reward, z_hat)

    def _arrays(self) -> Arrays:
        return self._arm_set.arrays()

    def _restore(self, arrays: Stored) -> None:
        self._arm_set.restore(arrays)


def _checked_round(
    policy: BasePolicy, x: Context, arm: int, z: Context | None
) -> tuple[FloatArray, int, FloatArray | None]:
    seen = cast(FloatArray, x) if policy._x.is_ready(x) else policy._x.one(x)
    slot = policy._arm_set.slot(arm)
    if z is None or policy.dim_z is None:
        return seen, slot, None
    return seen, slot, cast(FloatArray, z) if policy._z.is_ready(z) else policy._z.one(z)


def _refuse_missing_z(policy: BasePolicy) -> None:
    wanted = f"({policy.dim_z},), or a policy with missing_z='impute' or 'drop'"
    raise InvalidInput(f"z is None, wanted {wanted}")


class ChoosesFromX(ABC):
    """Selection: scores every arm from x alone and takes the best, breaking ties at random."""

    _arm_set: ArmSet
    _x: Inputs

    @abstractmethod
    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """One score per slot; x is one context for all slots, or has one row per slot."""

    def select(self, x: Context, rng: np.random.Generator, arms: Sequence[int] | None = None) -> Decision:
        """Choose an eligible arm for x; changes nothing but rng.

        x is one context, or has one row per arm in the order of `arms` (by default `self.arms`).
        """
        arm_set = self._arm_set
        if arms is None and not arm_set.by_row and self._x.is_ready(x):  # the common case, at half the price
            seen, slots = cast(FloatArray, x), arm_set.all_slots
        else:
            seen, slots = _context(self, x, arms)
        if not isinstance(rng, np.random.Generator):
            generator(rng)  # which says what is wrong with it
        return arm_set.decision(slots, *self._pick(self._scores(seen, slots), rng))

    def propensities(self, x: Context, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms` at x, zero for arms that are not eligible."""
        x, slots = _context(self, x, arms)
        return self._arm_set.over_all(slots, self._chances(self._scores(x, slots)))

    def select_batch(
        self, X: Context, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decisions:
        """Select in every round of a batch, without learning in between."""
        arm_set, rng = self._arm_set, generator(rng)
        slots = arm_set.eligible(arms)
        rounds = self._x.rounds(X, arm_set.rows_wanted(slots))
        if not isinstance(rounds, np.ndarray) or rounds.ndim == 3 or arm_set.by_row:
            placed = [arm_set.place(x, slots, self._x.label) for x in rounds]
            chosen = ((slots, *self._pick(self._scores(x, slots), rng)) for x, slots in placed)
            return batch(arm_set.decision(*each) for each in chosen)
        slots = np.sort(slots)
        indices, propensities = self._argmax_scores(rounds, slots), np.ones(len(rounds))
        for i in np.flatnonzero(indices == UNDECIDED):
            indices[i], propensities[i] = self._pick(self._scores(rounds[i], slots), rng)
        return Decisions(arm_set.ids[slots[indices]], propensities)

    @general_way
    def _argmax_scores(self, X: FloatArray, slots: IntArray) -> IntArray:
        """For each row the index that `_pick` would take, or UNDECIDED: then `_pick` decides."""
        return np.full(len(X), UNDECIDED)

    def _pick(self, scores: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
        """The index of the slot to serve, and its probability."""
        return choose(scores, rng)

    def _chances(self, scores: FloatArray) -> FloatArray:
        """The probability with which `_pick` takes each slot."""
        return distribution(scores)


def _context(policy: ChoosesFromX, x: Context, arms: Sequence[int] | None) -> tuple[FloatArray, IntArray]:
    """x as the models see it, and the eligible slots."""
    arm_set, inputs = policy._arm_set, policy._x
    slots = arm_set.eligible(arms)
    return arm_set.place(inputs.one_or_rows(x, arm_set.rows_wanted(slots)), slots, inputs.label)


def choose(scores: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """Index of the best score and its propensity; rng is used only for ties.

    >>> choose(np.array([1.0, 3.0, 2.0]), np.random.default_rng(0))
    (1, 1.0)
    """
    best, ties = kernels.best(scores)
    if ties == 1:
        return best, 1.0
    if ties == 0:
        raise ArithmeticError("a score is NaN, wanted numbers")
    return kernels.nth(scores, scores[best], int(rng.random() * ties)), 1.0 / ties


def distribution(scores: FloatArray) -> FloatArray:
    """The probability with which `choose` takes each index.

    >>> distribution(np.array([3.0, 3.0, 2.0]))
    array([0.5, 0.5, 0. ])
    """
    best = scores == scores.max()
    return np.asarray(best / best.sum())


def draw(chances: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """An index drawn with these probabilities, and its own.

    >>> draw(np.array([0.0, 1.0]), np.random.default_rng(0))
    (1, 1.0)
    """
    ends = np.cumsum(chances)
    # Scaling by the last end, not by 1, keeps rounding from falling off the edge.
    index = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return index, float(chances[index])


def batch(decisions: Iterable[Decision]) -> Decisions:
    """Many decisions as two arrays."""
    rows = list(decisions)
    return Decisions(
        np.array([decision.arm for decision in rows], dtype=np.int64),
        np.array([decision.propensity for decision in rows], dtype=np.float64),
    )
