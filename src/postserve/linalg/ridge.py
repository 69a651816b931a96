"""Ridge regressions with one prior: the only gram, moment and inverse code.

The sums are the truth, and they never contain the prior:

    gram = sum u u^T,  moment = sum y u,  squares = sum y²,  pulls = n.

All else is a cache of sums + prior, A = gram + Lambda: A^{-1}, the weights A^{-1} moment and
log det A - log det Lambda. Rank-one updates keep it current; a Cholesky factorisation of the sums
renews it on a schedule, and when the updates since the last one may have lost too many digits. A model
with few rows keeps these in the place of their sums, and its cache is a number and a vector a row.

One object holds n_models regressions (the arms of a policy, or one map) with n_outputs each that
share a gram (the coordinates of z). How it stores them is its own affair (`forms.py`): it follows the
rows learnt, not their number.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.linalg import bulk, evidence, forms
from postserve.linalg.cholesky import factorise
from postserve.linalg.forms import scratch
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import (
    AGE,
    CACHE,
    DENSE_COUNT,
    LOG_DET,
    LOSS,
    MAX_LOSS,
    OWNER,
    PULLS,
    SQUARES,
    SUMS,
)
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Prior, Ridge
from postserve.validation import number, one_of

SMALLEST_RIDGE = 1e-50
FIRST_REFIT = 8
REFIT_GROWTH = 1.5
REFRESH_GROWTH = 17 / 16
"""Before the first refit p0 follows the moments: after every update for the first 17 rounds, and
then whenever a sixteenth more has come, which a moment's error of 1/sqrt(N) cannot tell apart."""
SCHEDULED_TOLERANCE, EXACT_TOLERANCE = 0.1, 1e-9
AT_ONCE = 2
"""So many times dim rows of one model go into its sums at once, with one factorisation after them; fewer
go in one by one, which costs less."""


class Projection(NamedTuple):
    """Of each row u under its model: w·u for every output, and ||u|| in the norm of A^{-1}."""

    means: FloatArray  # (rows, n_outputs)
    widths: FloatArray  # (rows,)


class Surroundings(NamedTuple):
    """Of each row u under its model: mean and width, and how they change where d is added to some blocks.

    w·(u + d) = mean + beta·d, and the square of the width at u + d is width² + 2 cross·d + d^T block d.
    """

    means: FloatArray  # (rows,)
    widths: FloatArray  # (rows,)
    beta: FloatArray  # (rows, size)
    cross: FloatArray  # (rows, size)
    block: FloatArray  # (rows, size, size)


class Ellipsoid(NamedTuple):
    """What the theory's radii ask of the ellipsoid that holds each row's weights."""

    log_det: FloatArray  # (rows,), of its matrix over that of the prior
    pulls: FloatArray  # (rows,), the rounds it has seen
    ridge: FloatArray  # (dim,), the diagonal of its prior
    stretch: float  # how much longer than u its rows are


class RidgeModels:
    """n_models linear regressions on u = (blocks), cached inverses, one prior.

    Where rows U go with models, row i is of models[i]; one row alone is of all of them.

    >>> models = RidgeModels(n_models=2, blocks={"x": 2}, ridge=4.0)
    >>> models.update(0, np.array([1.0, 0.0]), np.array([5.0]))
    >>> models.weights[0]
    array([[1., 0.]])
    >>> models.project(np.array([[0.0, 1.0]]), np.array([1])).widths  # cold: ||u||/sqrt(ridge)
    array([0.5])
    """

    def __init__(
        self, n_models: int, blocks: Mapping[str, int], *, n_outputs: int = 1, ridge: Ridge = "evidence"
    ) -> None:
        self.blocks = dict(blocks)
        self.evidence = isinstance(ridge, str)
        if self.evidence:
            one_of("ridge", ridge, ("evidence",))
        self._sizes = list(self.blocks.values())
        self._block_ridge = np.ones(len(blocks)) if self.evidence else _block_ridges(ridge, list(blocks))
        self._silent = np.full(len(blocks), self.evidence)
        self.noise_variance = np.zeros(n_outputs)
        self.updates = 0  # raw count: forgetting does not lower it, so the schedule goes on
        self._fitted_at = 0
        self._followed_at = 0
        self.evaluations = 0
        dim = sum(self._sizes)
        self.n_outputs = n_outputs  # how many numbers each predicts
        self._packed_size = dim * (dim + 1) // 2
        self._held = forms.empty(dim, n_outputs)
        self._unheard = self.evidence  # whether an output or a block has had no value yet
        self._set_prior()
        self.add(n_models)

    # The shape of things

    @property
    def dim(self) -> int:
        """Length of u."""
        return len(self._held.prior)

    @property
    def n_models(self) -> int:
        """How many regressions there are."""
        return len(self._held.place)

    @property
    def ridge(self) -> FloatArray:
        """The diagonal of Lambda."""
        return np.repeat(self._block_ridge, self._sizes)

    @property
    def prior(self) -> Prior:
        """The prior in force; with a numeric ridge the noise variance is not learnt and is 0."""
        ridge = {name: float(r) for name, r in zip(self.blocks, self._block_ridge, strict=True)}
        return Prior(self.noise_variance.copy(), ridge)

    @property
    def order_free(self) -> bool:
        """Whether all that is learnt depends on the sums alone, whatever their order."""
        return True

    def block(self, name: str) -> slice:
        """Where a block of u stands."""
        start = 0
        for other, size in self.blocks.items():
            if other == name:
                return slice(start, start + size)
            start += size
        raise KeyError(name)

    # The sums and the cache of all models, in full

    @property
    def pulls(self) -> FloatArray:
        """n of each."""
        return self._held.tally[:, PULLS]

    @property
    def squares(self) -> FloatArray:
        """sum y² of each, (n_models, n_outputs)."""
        return self._held.tally[:, SQUARES:]

    @property
    def log_det(self) -> FloatArray:
        """log det A - log det Lambda of each."""
        return self._held.tally[:, LOG_DET]

    @property
    def gram(self) -> FloatArray:
        """sum u u^T of each, (n_models, dim, dim)."""
        return self.gram_of(self._everyone())

    @property
    def moment(self) -> FloatArray:
        """sum y u of each, (n_models, n_outputs, dim)."""
        return self.moment_of(self._everyone())

    @property
    def inverse(self) -> FloatArray:
        """A^{-1} of each, (n_models, dim, dim)."""
        return RidgeModels.inverse_blocks(self, self._everyone(), slice(0, self.dim), slice(0, self.dim))

    @property
    def weights(self) -> FloatArray:
        """A^{-1} moment of each, (n_models, n_outputs, dim)."""
        return RidgeModels.weights_of(self, self._everyone())

    # Reading

    def project(self, U: FloatArray, models: IntArray) -> Projection:
        """Means and widths of row i of U under models[i]."""
        means, squares = np.empty((len(models), self.n_outputs)), np.empty(len(models))
        kernels.project(U, models, scratch(self._packed_size), means, squares, *self._present(models))
        return Projection(means, np.sqrt(squares, out=squares))

    def average(self, U: FloatArray, models: IntArray) -> FloatArray:
        """The means of `project` alone, of shape (rows, n_outputs)."""
        means = np.empty((len(models), self.n_outputs))
        kernels.average(U, models, scratch(len(models)), means, *self._present(models))
        return means

    def score(self, U: FloatArray, models: IntArray, radius: FloatArray) -> FloatArray:
        """mean + radius · width of the first output; where that cannot be the best, a number below the best.

        `radius` has an entry for each model, or one for all.
        """
        n = len(models)
        scores = np.empty(n)
        held, work = self._present(models), scratch(3 * n + self._packed_size)
        kernels.score(U, models, radius, work, scores, *held)
        return scores

    def leaders(self, U: FloatArray, models: IntArray, radius: FloatArray) -> IntArray:
        """For each row of U the index of the best of these models' scores, UNDECIDED at a near tie."""
        return bulk.leaders(self._present(models), U, models, radius)

    def solve(self, U: FloatArray, models: IntArray, block: slice | None = None) -> FloatArray:
        """A^{-1} u of row i of U under models[i], or a block of it."""
        start, stop = (0, self.dim) if block is None else (block.start, block.stop)
        solved = np.empty((len(models), stop - start))
        kernels.solve(U, models, start, stop, solved, *self._present(models))
        return solved

    def surround(self, U: FloatArray, models: IntArray, starts: IntArray, size: int) -> Surroundings:
        """`project` of the first output, and its change where d of that size is added to u at the starts."""
        n = len(models)
        means, widths, beta, cross = np.empty((n, 1)), np.empty(n), np.empty((n, size)), np.empty((n, size))
        block, packed = np.empty((n, size, size)), scratch(self._packed_size)
        held = self._present(models)
        kernels.surround(U, models, starts, packed, means, widths, beta, cross, block, *held)
        return Surroundings(means[:, 0], widths, beta, cross, block)

    def weights_of(self, models: IntArray) -> FloatArray:
        """w of each, (len(models), n_outputs, dim)."""
        return self._vectors_of(CACHE, models)

    def moment_of(self, models: IntArray) -> FloatArray:
        """sum y u of each, (len(models), n_outputs, dim)."""
        return self._vectors_of(SUMS, models)

    def inverse_blocks(self, models: IntArray, rows: slice, columns: slice) -> FloatArray:
        """A block of A^{-1} of each, (len(models), rows, columns)."""
        return self._matrices_of(CACHE, models, rows, columns)

    def gram_of(self, models: IntArray) -> FloatArray:
        """sum u u^T of each, (len(models), dim, dim)."""
        return self._matrices_of(SUMS, models, slice(0, self.dim), slice(0, self.dim))

    def ellipsoid(self, models: IntArray) -> Ellipsoid:
        """What the radius of each one's confidence set depends on."""
        return Ellipsoid(self.log_det[models], self.pulls[models], self.ridge, 1.0)

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), w ~ N(w_hat, A^{-1}), of each row under its model, (size, rows).

        In draw m, moves[m, i] is added to row i in that block. Models are independent of each other.
        """
        solved = self.solve(U, models)
        within = np.matmul(moves[:, :, None], self.inverse_blocks(models, block, block))[:, :, 0]
        squares = np.vecdot(U, solved) + np.vecdot(moves, 2.0 * solved[:, block] + within)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)) * rng.standard_normal(moves.shape[:2]))

    def _present(self, models: IntArray) -> kernels.Held:
        """What is held, if it has all of these models, which rise: another thread may have removed some."""
        held = self._held
        if len(models) and models[-1] >= len(held.place):
            raise RuntimeError("an arm was removed while this was read, wanted arms that stay")
        return held

    def _vectors_of(self, plane: int, models: IntArray) -> FloatArray:
        found = np.empty((len(models), self.n_outputs, self.dim))
        kernels.vectors(plane, models, found, *self._present(models))
        return found

    def _matrices_of(self, plane: int, models: IntArray, rows: slice, columns: slice) -> FloatArray:
        found = np.empty((len(models), rows.stop - rows.start, columns.stop - columns.start))
        kernels.matrices(plane, models, rows.start, columns.start, found, *self._present(models))
        return found

    def _everyone(self) -> IntArray:
        return np.arange(self.n_models)

    # Learning

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """One more row: the sums first, then the cache, then the prior if it is due."""
        self.updates += 1
        due = self.evidence and self._prior_is_due(u, y)
        self._learn(model, u, y)
        if due:
            self._renew_prior()

    def _learn(self, model: int, u: FloatArray, y: FloatArray, v: FloatArray | None = None) -> float:
        """Sums and cache after one more row; returns q = u^T A^{-1} u from before it, and v = A^{-1} u."""
        held = self._held
        if held.place[model] < 0:
            held = self._held = self._with_room(model)
        q, sound = kernels.learn(model, u, y, scratch(len(u)) if v is None else v, *held)
        if not sound:
            self._refactorise(model)
        return q

    def _with_room(self, model: int, rows: int = 1) -> kernels.Held:
        """Room for more rows of a model that is not dense, or is not to be any longer."""
        if self._held.tally[model, AGE] + rows > self._most_rows:
            return forms.make_dense(self._held, model)
        return forms.with_room_for_rows(self._held, rows)

    @property
    def _most_rows(self) -> int:
        """With more rows than this, they and their cache take more room than the sums and theirs."""
        return self.dim // 2

    def update_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """As `update` row after row; what comes between two refits of the prior is learnt at once."""
        done = 0
        while done < len(models):
            until = min(len(models), done + self._rows_before_due())
            if until > done:
                self._learn_rows(models[done:until], U[done:until], Y[done:until])
                self.updates += until - done
                done = until
            if done < len(models):
                self.update(int(models[done]), U[done], Y[done])
                done += 1

    def learn_sums(self, model: int, batches: Iterable[tuple[FloatArray, FloatArray]]) -> None:
        """Many rows (U, Y) of a model: their sums, and then prior and cache anew, once."""
        self._held = forms.make_dense(self._held, model)
        for U, Y in batches:
            self._add_rows(model, U, Y)
            self.updates += len(U)
        if self.evidence:
            self._renew_prior()
        else:
            self._refactorise(model)

    def _learn_rows(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """Rows of any models under one prior: many of one model as matrix products, few of each in turn."""
        order = np.argsort(models, kind="stable")
        owners, starts, sizes = np.unique(models[order], return_index=True, return_counts=True)
        few = np.ones(len(models), dtype=bool)
        for model, start, size in zip(owners.tolist(), starts.tolist(), sizes.tolist(), strict=True):
            if self._held.place[model] < 0:
                self._held = self._with_room(model, size)
            if size >= AT_ONCE * self.dim and self._held.place[model] >= 0:
                rows = order[start : start + size]
                few[rows] = False
                self._add_rows(model, U[rows], Y[rows])
                self._refactorise(model)
        if few.any():
            self._held = forms.with_room_for_rows(self._held, int(few.sum()))
            work = scratch(self.dim)
            for model in kernels.learn_rows(models[few], U[few], Y[few], work, *self._held):
                self._refactorise(int(model))

    def _add_rows(self, model: int, U: FloatArray, Y: FloatArray) -> None:
        """Add to a dense model's sums alone."""
        held, place = self._held, self._held.place[model]
        held.symmetric[SUMS, place] += forms.pack(U.T @ U)
        held.vectors[SUMS, place] += Y.T @ U
        held.tally[model, PULLS] += len(U)
        held.tally[model, SQUARES:] += (Y**2).sum(axis=0)

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]; the prior is never forgotten."""
        if keep < 1.0:
            held = self._held
            held.symmetric[SUMS] *= keep
            held.vectors[SUMS] *= keep
            held.rows[SUMS] *= np.sqrt(keep)
            held.values[SUMS] *= np.sqrt(keep)
            held.tally[:, PULLS] *= keep
            held.tally[:, SQUARES:] *= keep
            self.refactorise()

    def merge(self, other: "RidgeModels") -> None:
        """Add the sums of another learner of the same shape."""
        theirs = other._held
        pulls, squares = self.pulls + other.pulls, self.squares + other.squares
        for place, model in enumerate(theirs.owner[: theirs.counts[DENSE_COUNT]].tolist()):
            self._held = forms.make_dense(self._held, model)
            mine = self._held.place[model]
            self._held.symmetric[SUMS, mine] += theirs.symmetric[SUMS, place]
            self._held.vectors[SUMS, mine] += theirs.vectors[SUMS, place]
        for row in forms.live_rows(theirs):
            model = int(theirs.links[row, OWNER])
            RidgeModels._learn(self, model, theirs.rows[SUMS, row], theirs.values[SUMS, row])
        self._held.tally[:, PULLS] = pulls  # rows that were forgotten count for less than one each
        self._held.tally[:, SQUARES:] = squares
        self.updates += other.updates
        if self.evidence:
            self.refit_prior()
        else:
            self.refactorise()

    def add(self, n_models: int = 1) -> None:
        """Append models that know nothing."""
        self._held = forms.add_cold(self._held, n_models)

    def remove(self, model: int) -> None:
        """Drop a model and all it learnt; later ones move down by one."""
        self._held = forms.remove(self._held, model)

    # The cache

    def refactorise(self) -> None:
        """Renew every cache from sums and prior."""
        self._set_prior()
        kernels.whiten_all(scratch(self.dim), *self._held)
        for model in np.flatnonzero((self._held.place < 0) & (self._held.tally[:, LOSS] > MAX_LOSS)):
            self._held = forms.make_dense(self._held, int(model))
        for model in self._held.owner[: self._held.counts[DENSE_COUNT]].tolist():
            self._refactorise(model)

    def _refactorise(self, model: int) -> None:
        """Renew one, in the dense form: rows that lost digits would lose them again."""
        held = self._held = forms.make_dense(self._held, model)
        place, one = held.place[model], np.array([model])
        factor = factorise(self.gram_of(one)[0], self.ridge, held.vectors[SUMS, place])
        factor.inverse[self._mute] = 0.0
        held.symmetric[CACHE, place] = forms.pack(factor.inverse)
        held.vectors[CACHE, place] = factor.solution
        tally = held.tally[model]
        tally[LOG_DET] = max(factor.log_det - float(np.log(self.ridge).sum()), 0.0)
        tally[LOSS] = tally[AGE] = 0.0

    def _set_prior(self) -> None:
        """Lambda^{-1}, the inverse before the first row: to the last bit what a factorisation makes of it."""
        self._held.prior[:] = np.where(self._mute, 0.0, (1.0 / np.sqrt(self.ridge)) ** 2)

    @property
    def _mute(self) -> npt.NDArray[np.bool_]:
        """Coordinates without a unit: with evidence, those of blocks that were zero so far.

        Their lambda of 1 would be one of the caller's units, so their width counts as nothing
        until the first value wakes them.
        """
        return np.repeat(self._silent, self._sizes)

    # The prior

    def refit_prior(self) -> None:
        """Learn the prior now, from a cold start: the result depends on the sums alone."""
        if self.evidence:
            self._adopt(self._fit(EXACT_TOLERANCE))
            self._fitted_at = self.updates

    def _prior_is_due(self, u: FloatArray, y: FloatArray) -> bool:
        """Whether this row, already counted, brings a refit, or p0 at new moments before the first."""
        return self.updates >= self._due_at() or (self._unheard and self._wakes(u, y))

    def _due_at(self) -> float:
        """How many updates bring the next refit, or the next p0."""
        if self._fitted_at:
            return REFIT_GROWTH * self._fitted_at
        return min(self._first_refit(), REFRESH_GROWTH * self._followed_at)

    def _first_refit(self) -> int:
        return max(FIRST_REFIT, self.n_models)

    def _rows_before_due(self) -> int:
        """How many more rows bring nothing but themselves."""
        if not self.evidence:
            return sys.maxsize
        return 0 if self._unheard else max(0, math.ceil(self._due_at()) - 1 - self.updates)

    def _renew_prior(self) -> None:
        if self._fitted_at == 0 and self.updates < self._first_refit():
            self._adopt(self._centre())
            self._followed_at = self.updates
        else:
            start = np.where(self._silent, 0.0, self._block_ridge) if self._fitted_at else None
            self._adopt(self._fit(SCHEDULED_TOLERANCE, start))
            self._fitted_at = self.updates

    def _centre(self) -> evidence.Fit:
        return evidence.centre(self._units())

    def _fit(self, tolerance: float, start: FloatArray | None = None) -> evidence.Fit:
        models, units = self._held.owner[: self._held.counts[DENSE_COUNT]], self._units()
        objective = evidence.Objective(self._sums(models), self._sizes, units, self._rows())
        if start is not None and start.all() and units.blocks.all() and units.outputs.all():
            full = slice(0, self.dim)
            objective.know(
                evidence.log_ridge_in_units(start, units.blocks),
                self._matrices_of(CACHE, models, full, full),
                self._vectors_of(CACHE, models),
                float(self.log_det[models].sum()),
            )
        return evidence.maximise(objective, tolerance=tolerance, start=start)

    def _units(self) -> evidence.Units:
        return evidence.mean_squares(*self._second_moments(), self._sizes)

    def _second_moments(self) -> tuple[FloatArray, FloatArray, float]:
        """The sums of u_k² and of y_o² over all models, and of how many rounds."""
        held = self._held
        dense = forms.diagonal(held.symmetric[SUMS, : held.counts[DENSE_COUNT]], self.dim)
        rows = held.rows[SUMS, forms.live_rows(held)]
        u = dense.sum(axis=0) + (rows**2).sum(axis=0)
        return u, self.squares.sum(axis=0), float(self.pulls.sum())

    def _wakes(self, u: FloatArray, y: FloatArray) -> bool:
        """Whether an output or a block that was zero until now has its first value.

        Until then it has no unit: waiting for the schedule would judge it in the caller's.
        """
        if np.any((self.noise_variance == 0.0) & (y * y > evidence.TINY_SQUARE)):
            return True
        return bool((self._silent & (self._block_sums(u * u) > evidence.TINY_SQUARE)).any())

    def _adopt(self, fit: evidence.Fit) -> None:
        self._block_ridge = fit.ridge
        self.noise_variance = fit.noise_variance
        self.evaluations = fit.evaluations
        self._silent = fit.silent
        self._unheard = bool(self._silent.any() or (self.noise_variance == 0.0).any())
        self.refactorise()

    def _block_sums(self, values: FloatArray) -> FloatArray:
        return np.array([values[self.block(name)].sum() for name in self.blocks])

    def _sums(self, models: IntArray) -> evidence.Sums:
        """The sums of some, in full."""
        return evidence.Sums(
            self.gram_of(models), self.moment_of(models), self.squares[models], self.pulls[models]
        )

    def _rows(self) -> evidence.Rows:
        """The rows of all that are not dense."""
        held, live = self._held, forms.live_rows(self._held)
        rounds = float(self.pulls[held.place < 0].sum())
        return evidence.Rows(held.links[live, OWNER], held.rows[SUMS, live], held.values[SUMS, live], rounds)

    # State

    def arrays(self) -> Arrays:
        """Sums, cache and prior; the cache too, so that a loaded learner goes on bit by bit."""
        return {
            **forms.arrays(self._held),
            "block_ridge": self._block_ridge,
            "noise_variance": self.noise_variance,
            "silent": self._silent,
            "counts": np.array([self.updates, self._fitted_at, self._followed_at], dtype=np.int64),
        }

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape."""
        self._block_ridge = stored.take("block_ridge", (len(self.blocks),))
        self.noise_variance = stored.take("noise_variance", (self.n_outputs,))
        self._silent = stored.take("silent", (len(self.blocks),), np.bool_)
        counts = stored.take("counts", (3,), np.int64)
        self.updates, self._fitted_at, self._followed_at = (int(count) for count in counts)
        for name, values in (("noise_variance", self.noise_variance), ("counts", counts)):
            stored.require(not (values < 0).any(), name, "no negative numbers")
        stored.require(bool((self._block_ridge > 0.0).all()), "block_ridge", "positive numbers")
        self._held = forms.restored(stored, n_models, self.dim, self.n_outputs)
        self._unheard = self.evidence and bool(self._silent.any() or (self.noise_variance == 0.0).any())
        self._set_prior()


def _block_ridges(ridge: Ridge, blocks: list[str]) -> FloatArray:
    """One positive number a block, from one number or one a block."""
    if isinstance(ridge, np.ndarray):
        ridge = ridge.tolist()
    if isinstance(ridge, list | tuple):
        if len(ridge) != len(blocks):
            names = ", ".join(blocks)
            raise InvalidInput(f"ridge has {len(ridge)} numbers, wanted one or {len(blocks)} ({names})")
        return np.array([_positive(part) for part in ridge])
    return np.full(len(blocks), _positive(ridge))


def _positive(ridge: Any) -> float:
    """Large enough for its inverse, and that times a context, to be numbers."""
    return number("ridge", ridge, above=0.0, least=SMALLEST_RIDGE)
