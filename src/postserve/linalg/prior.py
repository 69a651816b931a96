"""The prior of ridge regressions: Lambda and the noise, given or learnt, and when they are learnt again.

With evidence, p0 follows the moments of the rounds until the first refit; then there is a refit each time the
rounds have grown by half. The learner gives the units of its rounds and their evidence.
"""

import math
import sys
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from postserve.errors import InvalidInput
from postserve.linalg import evidence
from postserve.state import Arrays, Stored
from postserve.types import BoolArray, FloatArray, IntArray, Prior, Ridge
from postserve.validation import number, one_of

SMALLEST_RIDGE = 1e-50
"""Large enough that its inverse times a context is finite."""
FIRST_REFIT = 8
REFIT_GROWTH = 1.5
REFRESH_GROWTH = 17 / 16
"""Before the first refit p0 follows the moments: after every update for 17 rounds, and then each time the
rounds have grown by a sixteenth, which is less than a moment's error of 1/sqrt(N)."""
SCHEDULED_TOLERANCE, EXACT_TOLERANCE = 0.1, 1e-9
ZERO_BLOCKS = "silent"
"""The name of `zero_blocks` in saved states, which must stay as it is."""


class Learner(Protocol):
    """Regressions whose prior is learnt."""

    @property
    def n_models(self) -> int: ...

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None: ...

    def learn_rows(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """Learn rows under the present prior."""

    def units(self) -> evidence.Units: ...

    def objective(self, start: FloatArray | None) -> evidence.Objective:
        """The evidence of what was learnt; the search starts at `start`, one lambda per block."""

    def take_prior(self) -> None:
        """Renew what follows from the prior, which has changed."""


class BlockPrior:
    """lambda_j of each block of u and sigma² of each output; the prior variance of a weight is their ratio.

    >>> BlockPrior({"x": 2, "z": 1}, ridge=[4.0, 1.0]).ridge
    array([4., 4., 1.])
    """

    def __init__(self, blocks: Mapping[str, int], *, n_outputs: int = 1, ridge: Ridge = "evidence") -> None:
        self.blocks = dict(blocks)
        self.sizes = list(self.blocks.values())
        self.evidence = isinstance(ridge, str)
        if self.evidence:
            one_of("ridge", ridge, ("evidence",))
        self.block_ridge = np.ones(len(blocks)) if self.evidence else _block_ridges(ridge, list(blocks))
        self.noise_variance = np.zeros(n_outputs)  # 0 if it is not learnt, or not yet
        self.zero_blocks = np.full(len(blocks), self.evidence)  # blocks whose inputs were all zero so far
        self.updates = 0  # forgetting does not lower it, so that the schedule goes on
        self.fitted_at = 0
        self.followed_at = 0
        self.evaluations = 0
        self._waits_for_units = self.evidence  # whether an output or a block has no value yet

    @property
    def ridge(self) -> FloatArray:
        """The diagonal of Lambda."""
        return np.repeat(self.block_ridge, self.sizes)

    @property
    def zero_inputs(self) -> BoolArray:
        """The coordinates of zero blocks, whose widths count as 0.

        Until their first value their lambda of 1 would depend on the caller's units.
        """
        return np.repeat(self.zero_blocks, self.sizes)

    @property
    def in_force(self) -> Prior:
        """The prior by the names of its blocks; with a numeric ridge the noise variance is 0."""
        ridge = {name: float(r) for name, r in zip(self.blocks, self.block_ridge, strict=True)}
        return Prior(self.noise_variance.copy(), ridge)

    def block(self, name: str) -> slice:
        """The place of a block in u."""
        place = list(self.blocks).index(name)
        start = sum(self.sizes[:place])
        return slice(start, start + self.sizes[place])

    def is_due(self, u: FloatArray, y: FloatArray, n_models: int) -> bool:
        """Whether this row, already counted, brings a refit, or before the first one a new p0."""
        return self.updates >= self._due_at(n_models) or (self._waits_for_units and self._has_first(u, y))

    def _due_at(self, n_models: int) -> float:
        """How many updates bring the next refit, or the next p0."""
        if self.fitted_at:
            return REFIT_GROWTH * self.fitted_at
        return min(_first_refit(n_models), REFRESH_GROWTH * self.followed_at)

    def _has_first(self, u: FloatArray, y: FloatArray) -> bool:
        """Whether an output or a block that was zero so far has its first value, and so a unit."""
        if np.any((self.noise_variance == 0.0) & (y * y > evidence.TINY_SQUARE)):
            return True
        squares = np.add.reduceat(u * u, np.cumsum([0, *self.sizes[:-1]]))
        return bool((self.zero_blocks & (squares > evidence.TINY_SQUARE)).any())

    def rows_before_due(self, n_models: int) -> int:
        """How many more rows bring no refit and no new p0."""
        if not self.evidence:
            return sys.maxsize
        return 0 if self._waits_for_units else max(0, math.ceil(self._due_at(n_models)) - 1 - self.updates)

    def update_batch(self, learner: Learner, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """As `learner.update` row by row; rows between two refits are learnt at once."""
        done = 0
        while done < len(models):
            until = min(len(models), done + self.rows_before_due(learner.n_models))
            if until > done:
                learner.learn_rows(models[done:until], U[done:until], Y[done:until])
                self.updates += until - done
                done = until
            if done < len(models):
                learner.update(int(models[done]), U[done], Y[done])
                done += 1

    def renew(self, learner: Learner) -> None:
        """Refit, starting from the prior in force; before the first refit, take p0 at the present moments."""
        if self.fitted_at == 0 and self.updates < _first_refit(learner.n_models):
            self._adopt(evidence.centre(learner.units()), learner)
            self.followed_at = self.updates
        else:
            start = np.where(self.zero_blocks, 0.0, self.block_ridge) if self.fitted_at else None
            self._fit(learner, SCHEDULED_TOLERANCE, start)

    def refit(self, learner: Learner) -> None:
        """Learn it now, from a cold start, so that it depends on the sums alone."""
        if self.evidence:
            self._fit(learner, EXACT_TOLERANCE, None)

    def _fit(self, learner: Learner, tolerance: float, start: FloatArray | None) -> None:
        self._adopt(evidence.maximise(learner.objective(start), tolerance=tolerance, start=start), learner)
        self.fitted_at = self.updates

    def _adopt(self, fit: evidence.Fit, learner: Learner) -> None:
        self.block_ridge, self.noise_variance, self.zero_blocks, self.evaluations = fit
        self._update_waits_for_units()
        learner.take_prior()

    def _update_waits_for_units(self) -> None:
        unknown = bool(self.zero_blocks.any() or (self.noise_variance == 0.0).any())
        self._waits_for_units = self.evidence and unknown

    def arrays(self, levels: tuple[str, ...] = ("",)) -> Arrays:
        """Everything, as named arrays; those of blocks have one prefix per level."""
        found: Arrays = {
            "noise_variance": self.noise_variance,
            "counts": np.array([self.updates, self.fitted_at, self.followed_at], dtype=np.int64),
        }
        for name, values in (("block_ridge", self.block_ridge), (ZERO_BLOCKS, self.zero_blocks)):
            parts = np.split(values, len(levels))
            found.update({level + name: part for level, part in zip(levels, parts, strict=True)})
        return found

    def restore(self, stored: Stored, levels: tuple[str, ...] = ("",)) -> None:
        """Take back what `arrays` gave, checked."""
        shape = (len(self.blocks) // len(levels),)
        ridges = {level + "block_ridge": stored.take(level + "block_ridge", shape) for level in levels}
        for name, ridge in ridges.items():
            stored.require(bool((ridge > 0.0).all()), name, "positive numbers")
        self.block_ridge = np.concatenate(list(ridges.values()))
        zero_blocks = [stored.take(level + ZERO_BLOCKS, shape, np.bool_) for level in levels]
        self.zero_blocks = np.concatenate(zero_blocks)
        self.noise_variance = stored.take("noise_variance", self.noise_variance.shape)
        counts = stored.take("counts", (3,), np.int64)
        self.updates, self.fitted_at, self.followed_at = (int(count) for count in counts)
        for name, values in (("noise_variance", self.noise_variance), ("counts", counts)):
            stored.require(not (values < 0).any(), name, "no negative numbers")
        self._update_waits_for_units()


def as_given(ridge: Ridge) -> Ridge:
    """A ridge as plain numbers, or "evidence"."""
    plain: Ridge = ridge if isinstance(ridge, str) else np.asarray(ridge, dtype=np.float64).tolist()
    return plain


def _first_refit(n_models: int) -> int:
    return max(FIRST_REFIT, n_models)


def _block_ridges(ridge: Ridge, blocks: list[str]) -> FloatArray:
    """One positive number per block, from one number or one per block."""
    ridge = ridge.tolist() if isinstance(ridge, np.ndarray) else ridge
    parts = ridge if isinstance(ridge, list | tuple) else [ridge] * len(blocks)
    if len(parts) != len(blocks):
        names = ", ".join(blocks)
        raise InvalidInput(f"ridge has {len(parts)} numbers, wanted one or {len(blocks)} ({names})")
    return np.array([number("ridge", part, above=0.0, least=SMALLEST_RIDGE) for part in parts])
