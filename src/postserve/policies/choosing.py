"""From scores to a choice: the verbs that select, with exact propensities."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from postserve.changes import TRIES, Guarded, one_version, with_patience
from postserve.errors import InvalidInput
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import UNDECIDED
from postserve.policies import open_rounds
from postserve.policies.arm_set import ArmSet
from postserve.policies.inputs import Inputs
from postserve.steps import general_way
from postserve.types import Context, Decision, Decisions, FloatArray, IntArray
from postserve.validation import generator


class ChoosesFromX(Guarded, ABC):
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
        if not isinstance(rng, np.random.Generator):
            generator(rng)  # which says what is wrong with it
        guard = self._guard
        for _ in range(TRIES):  # as `one_version` does, at half the price
            version, arm_set = guard.version, self._arm_set
            try:
                if arms is None and not arm_set.by_row and self._x.is_ready(x):  # the common case
                    seen, slots = cast(FloatArray, x), arm_set.all_slots
                else:
                    seen, slots = _context(self, x, arms)
                decision = arm_set.decision(slots, *self._pick(self._scores(seen, slots), rng))
            except Exception:
                if guard.begun == version:
                    raise
            else:
                if guard.begun == version:
                    decision.version = version
                    return decision
        decision, decision.version = with_patience(guard, _selected, self, x, rng, arms)
        return decision

    @one_version
    def propensities(self, x: Context, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms` at x, zero for arms that are not eligible."""
        x, slots = _context(self, x, arms)
        return self._arm_set.over_all(slots, self._chances(self._scores(x, slots)))

    @one_version
    def select_batch(
        self,
        X: Context,
        rng: np.random.Generator,
        arms: Sequence[int] | None = None,
        *,
        sequential: bool = False,
    ) -> Decisions:
        """Select in every round of a batch, without learning in between.

        If `sequential`, each round is chosen as if the ones before it had been announced by `expect`, so that
        a cohort spreads out; afterwards the policy is as before. It is copied for that: no other thread may
        learn or announce rounds meanwhile.
        """
        arm_set, rng = self._arm_set, generator(rng)
        slots = arm_set.eligible(arms)
        rounds = self._x.rounds(X, arm_set.rows_wanted(slots))
        if sequential:
            placed = [arm_set.place(x, slots, self._x.label) for x in rounds]
            return batch(_in_sequence(copy.deepcopy(self), placed, rng))
        if not isinstance(rounds, np.ndarray) or rounds.ndim == 3 or arm_set.by_row:
            placed = [arm_set.place(x, slots, self._x.label) for x in rounds]
            chosen = ((slots, *self._pick(self._scores(x, slots), rng)) for x, slots in placed)
            return batch(arm_set.decision(*each) for each in chosen)
        slots = np.sort(slots)
        indices, propensities = self._argmax_scores(rounds, slots), np.ones(len(rounds))
        for i in np.flatnonzero(indices == UNDECIDED):
            indices[i], propensities[i] = self._pick(self._scores(rounds[i], slots), rng)
        return Decisions(arm_set.ids[slots[indices]], propensities)

    @one_version
    def propensities_batch(self, X: Context, arms: Sequence[int] | None = None) -> FloatArray:
        """`propensities` in every round of a batch, one row per round; not for decision sets."""
        arm_set = self._arm_set
        if arm_set.by_row:
            raise InvalidInput("the policy has no arms, wanted `propensities` of one decision set at a time")
        slots = arm_set.eligible(arms)
        rounds = self._x.rounds(X, arm_set.rows_wanted(slots))
        if not isinstance(rounds, np.ndarray) or rounds.ndim == 3:
            placed = [arm_set.place(x, slots, self._x.label) for x in rounds]
            rows = [arm_set.over_all(slots, self._chances(self._scores(x, slots))) for x, slots in placed]
            return np.reshape(rows, (len(placed), len(arm_set.ids)))
        slots = np.sort(slots)
        indices = self._argmax_scores(rounds, slots)
        decided = np.flatnonzero(indices != UNDECIDED)
        chances = np.zeros((len(rounds), len(arm_set.ids)))
        chances[decided, slots[indices[decided]]] = 1.0
        for i in np.flatnonzero(indices == UNDECIDED):
            chances[i, slots] = self._chances(self._scores(rounds[i], slots))
        return chances

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


def _in_sequence(
    policy: ChoosesFromX, placed: list[tuple[FloatArray, IntArray]], rng: np.random.Generator
) -> Iterator[Decision]:
    """Each choice, announced before the next one is made."""
    for x, slots in placed:
        index, propensity = policy._pick(policy._scores(x, slots), rng)
        open_rounds.expect(policy, x if x.ndim == 1 else x[index], int(slots[index]))
        yield policy._arm_set.decision(slots, index, propensity)


def _selected(
    policy: ChoosesFromX, x: Context, rng: np.random.Generator, arms: Sequence[int] | None
) -> Decision:
    """`select`, without its short cut."""
    seen, slots = _context(policy, x, arms)
    return policy._arm_set.decision(slots, *policy._pick(policy._scores(seen, slots), rng))


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


def batch_propensities(policy: Any) -> Callable[..., FloatArray] | None:
    """The policy's `propensities_batch`, if it has one that cannot disagree with its `propensities`.

    A class that overrides `propensities` alone, or hands on to another policy what it lacks, is asked row by
    row.
    """
    verbs = ("propensities", "propensities_batch")
    at = [[i for i, base in enumerate(type(policy).__mro__) if verb in vars(base)] for verb in verbs]
    if not all(at) or at[1][0] > at[0][0] or "propensities" in getattr(policy, "__dict__", ()):
        return None
    found: Callable[..., FloatArray] = policy.propensities_batch
    return found


def batch(decisions: Iterable[Decision]) -> Decisions:
    """Many decisions as two arrays."""
    rows = list(decisions)
    return Decisions(
        np.array([decision.arm for decision in rows], dtype=np.int64),
        np.array([decision.propensity for decision in rows], dtype=np.float64),
    )
