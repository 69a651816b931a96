"""The prior of ridge regressions: Lambda and the noise, given or learnt, and when they are learnt again.

With evidence, p0 follows the moments of the rounds until the first refit; then there is a refit each time the
rounds have grown by half. The learner gives the units of its rounds and their evidence. Where rows have a
frame (`frame.py`), it moves first, and columns have their own units: the prior precision of a column is
lambda_j times its mean square about its centre.
"""

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from postserve.changes import shallow
from postserve.errors import InvalidInput
from postserve.linalg import evidence
from postserve.linalg.frame import Moments
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
OWN_INTERCEPT = 0.1
"""The share of the variance that p0 gives to the arms' own intercepts, beside a common level."""
FLAT = 1e-12
"""The precision of a level with a flat prior, relative to one row's: far below any that is learnt."""
SCHEDULED_TOLERANCE, EXACT_TOLERANCE = 0.1, 1e-9
ZERO_BLOCKS = "silent"
"""The name of `zero_blocks` in saved states, which must stay as it is."""


class Learner(Protocol):
    """Regressions whose prior is learnt."""

    @property
    def n_models(self) -> int: ...

    @property
    def updates(self) -> int:
        """How many rows were ever learnt: forgetting does not lower it, so that the schedule goes on."""

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None: ...

    def framed(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A row and its output in the frame, if there is one."""

    def all_framed(self, U: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for many rows."""

    def learn_rows(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """Learn rows under the present prior."""

    def moments(self) -> Moments:
        """The moments of all rounds, from the frame's origin."""

    def units(self, sums: Moments) -> evidence.Units:
        """The units of rounds with these moments, in the frame in force."""

    def objective(self, units: evidence.Units, start: FloatArray | None) -> evidence.Objective:
        """The evidence of what was learnt.

        At `start`, the lambda of each block if given, it is in the caches.
        """

    def move_frame(self, sums: Moments) -> evidence.Units:
        """Move the frame, if there is one, to the means.

        Returns the units there. `take_prior` follows.
        """

    def take_prior(self) -> None:
        """Renew what follows from the prior, which has changed."""


class BlockPrior:
    """lambda_j of each block of u and sigma² of each output; the prior variance of a weight is their ratio.

    >>> BlockPrior({"x": 2, "z": 1}, ridge=[4.0, 1.0]).ridge
    array([4., 4., 1.])
    """

    def __init__(
        self,
        blocks: Mapping[str, int],
        *,
        n_outputs: int = 1,
        ridge: Ridge = "evidence",
        flat: bool = False,
        parts: FloatArray | None = None,
    ) -> None:
        self.blocks = dict(blocks)
        self.sizes = list(self.blocks.values())
        self.evidence = isinstance(ridge, str)
        if self.evidence:
            one_of("ridge", ridge, ("evidence",))
        self.block_ridge = np.ones(len(blocks)) if self.evidence else _block_ridges(ridge, list(blocks))
        self.flat = flat  # whether the last block is a level with a flat prior: it has no lambda to learn
        if flat:
            self.block_ridge[-1] = FLAT
        self.parts = evidence.equal_parts(len(blocks)) if parts is None else parts
        self.noise_variance = np.zeros(n_outputs)  # 0 if it is not learnt, or not yet
        self.zero_blocks = np.full(len(blocks), self.evidence)  # blocks whose inputs were all zero so far
        self.columns = np.ones(sum(self.sizes))  # their mean squares, where they have their own units
        self.fitted_at = 0
        self.followed_at = 0
        self.evaluations = 0
        self._update_waits_for_units()

    @property
    def ridge(self) -> FloatArray:
        """The diagonal of Lambda."""
        columns = np.where(self.columns > 0.0, self.columns, 1.0)
        return np.repeat(self.block_ridge, self.sizes) * columns

    @property
    def zero_inputs(self) -> BoolArray:
        """The coordinates that were zero so far, whose widths count as 0.

        Until their first value their lambda of 1 would depend on the caller's units.
        """
        return np.asarray(np.repeat(self.zero_blocks, self.sizes) | (self.columns == 0.0))

    @property
    def in_force(self) -> Prior:
        """The prior by the names of its blocks; with a numeric ridge the noise variance is 0.

        A flat prior has a lambda of 0.
        """
        ridge = {name: float(r) for name, r in zip(self.blocks, self.block_ridge, strict=True)}
        if self.flat:
            ridge[list(self.blocks)[-1]] = 0.0
        return Prior(self.noise_variance.copy(), ridge)

    def block(self, name: str) -> slice:
        """The place of a block in u."""
        place = list(self.blocks).index(name)
        start = sum(self.sizes[:place])
        return slice(start, start + self.sizes[place])

    def is_due(self, learner: Learner, u: FloatArray, y: FloatArray) -> bool:
        """Whether this row, which is next, brings a refit, or before the first one a new p0."""
        due_at = REFIT_GROWTH * self.fitted_at or self._first_due_at(learner.n_models)
        if learner.updates + 1 >= due_at:
            return True
        return self._waits_for_units and self._has_first(*learner.framed(u, y))

    def _first_due_at(self, n_models: int) -> float:
        """How many updates bring the first refit, or the next p0 before it."""
        return min(_first_refit(n_models), REFRESH_GROWTH * self.followed_at)

    def _has_first(self, u: FloatArray, y: FloatArray) -> bool:
        """Whether an output or a column that was zero so far has its first value, and so a unit."""
        return bool(self._first_values(u[None], y[None])[0])

    def _first_values(self, U: FloatArray, Y: FloatArray) -> BoolArray:
        """`_has_first` of each row; the columns of a hybrid's shared weights are those of its own."""
        columns = self._zero_columns[self._zero_columns < U.shape[1]]
        values = np.concatenate([U[:, columns], Y[:, self.noise_variance == 0.0]], axis=1)
        return np.asarray((values * values > evidence.TINY_SQUARE).any(axis=1))

    def rows_before_due(self, learner: Learner, U: FloatArray, Y: FloatArray) -> int:
        """How many of these rows, the first of which is next, bring no refit and no new p0."""
        if not self.evidence:
            return len(U)
        due_at = REFIT_GROWTH * self.fitted_at or self._first_due_at(learner.n_models)
        quiet = min(len(U), max(0, math.ceil(due_at) - 1 - learner.updates))
        if not self._waits_for_units or quiet == 0:
            return quiet
        first = self._first_values(U[:quiet], Y[:quiet])
        return int(np.argmax(first)) if first.any() else quiet

    def update_batch(self, learner: Learner, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """As `learner.update` row by row; rows between two refits are learnt at once."""
        done = 0
        while done < len(models):
            until = done + self.rows_before_due(learner, *learner.all_framed(U[done:], Y[done:]))
            if until > done:
                learner.learn_rows(models[done:until], U[done:until], Y[done:until])
                done = until
            if done < len(models):
                learner.update(int(models[done]), U[done], Y[done])
                done += 1

    def renew(self, learner: Learner) -> None:
        """Refit, starting from the prior in force; before the first refit, take p0 at the present moments."""
        if self.fitted_at == 0 and learner.updates < _first_refit(learner.n_models):
            units = self._take_columns(learner.move_frame(learner.moments()))
            self._adopt(evidence.centre(units, self._learnt(self.parts)), learner)
            self.followed_at = learner.updates
        else:
            self._fit(learner, SCHEDULED_TOLERANCE, warm=self.fitted_at > 0)

    def refit(self, learner: Learner) -> None:
        """Learn it now, from a cold start, so that it depends on the sums alone."""
        if self.evidence:
            self._fit(learner, EXACT_TOLERANCE, warm=False)

    def _fit(self, learner: Learner, tolerance: float, *, warm: bool) -> None:
        """Fit, and move the frame: last where caches hold the evidence at a warm start, else first."""
        start = self._learnt(np.where(self.zero_blocks, 0.0, self.block_ridge)) if warm else None
        sums = learner.moments()
        units = learner.units(sums)
        in_force = warm and not self._waits_for_units and self._still_fits(units)
        if not in_force:
            units = self._take_columns(learner.move_frame(sums))
        objective = learner.objective(units, start if in_force else None)
        fit = evidence.maximise(objective, tolerance=tolerance, start=start)
        if in_force:
            self._take_columns(learner.move_frame(sums))
        self.fitted_at = learner.updates
        self._adopt(fit, learner)

    def _still_fits(self, units: evidence.Units) -> bool:
        """Whether no column's unit has changed so much that its lambda would not fit the new one."""
        if units.columns is None:
            return True
        before = self.columns[: len(units.columns)]
        known = before > 0.0
        ratio = units.columns[known] / before[known]
        return bool(((ratio > 0.5) & (ratio < 2.0)).all())

    def _take_columns(self, units: evidence.Units) -> evidence.Units:
        """Keep the mean squares of columns with their own units until the prior is renewed again."""
        if units.columns is not None:
            self.columns[: len(units.columns)] = units.columns
        return units

    def _learnt(self, values: FloatArray) -> FloatArray:
        """The entries of the blocks that have a lambda to learn."""
        return values[:-1] if self.flat else values

    def _adopt(self, fit: evidence.Fit, learner: Learner) -> None:
        ridge, self.noise_variance, zero_blocks, self.evaluations = fit
        self.block_ridge = np.append(ridge, FLAT) if self.flat else ridge
        self.zero_blocks = np.append(zero_blocks, False) if self.flat else zero_blocks
        self._update_waits_for_units()
        learner.take_prior()

    def _update_waits_for_units(self) -> None:
        self._zero_columns = np.flatnonzero(self.zero_inputs)
        unknown = bool(len(self._zero_columns) or (self.noise_variance == 0.0).any())
        self._waits_for_units = self.evidence and unknown
        # Up to so many updates nothing is due, which needs no call to be known.
        self.quiet_until = 0.0 if self._waits_for_units else REFIT_GROWTH * self.fitted_at - 1.0

    def beside(self) -> "BlockPrior":
        """A copy that shares nothing that learning changes."""
        twin = shallow(self)
        twin.columns = self.columns.copy()
        return twin

    def arrays(self, updates: int, levels: tuple[str, ...] = ("",)) -> Arrays:
        """Everything, as named arrays; those of blocks have one prefix per level."""
        found: Arrays = {
            "noise_variance": self.noise_variance,
            "counts": np.array([updates, self.fitted_at, self.followed_at], dtype=np.int64),
        }
        for name, values in (("block_ridge", self.block_ridge), (ZERO_BLOCKS, self.zero_blocks)):
            parts = np.split(values, len(levels))
            found.update({level + name: part for level, part in zip(levels, parts, strict=True)})
        return found

    def restore(self, stored: Stored, levels: tuple[str, ...] = ("",)) -> int:
        """Take back what `arrays` gave, checked; returns the number of updates."""
        shape = (len(self.blocks) // len(levels),)
        ridges = {level + "block_ridge": stored.take(level + "block_ridge", shape) for level in levels}
        for name, ridge in ridges.items():
            stored.require(bool((ridge > 0.0).all()), name, "positive numbers")
        self.block_ridge = np.concatenate(list(ridges.values()))
        zero_blocks = [stored.take(level + ZERO_BLOCKS, shape, np.bool_) for level in levels]
        self.zero_blocks = np.concatenate(zero_blocks)
        self.noise_variance = stored.take("noise_variance", self.noise_variance.shape)
        counts = stored.take("counts", (3,), np.int64)
        updates, self.fitted_at, self.followed_at = (int(count) for count in counts)
        for name, values in (("noise_variance", self.noise_variance), ("counts", counts)):
            stored.require(not (values < 0).any(), name, "no negative numbers")
        self._update_waits_for_units()
        return updates


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
