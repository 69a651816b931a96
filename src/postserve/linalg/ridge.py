"""Ridge regressions with one prior: the only gram, moment and inverse code.

The sums are the truth, and they never contain the prior:

    gram = sum u u^T,  moment = sum y u,  squares = sum y²,  pulls = n.

All else is a cache of sums + prior, A = gram + Lambda: A^{-1}, the weights A^{-1} moment and
log det A - log det Lambda. Rank-one updates keep it current; a Cholesky factorisation of the sums
renews it on a schedule, and when the updates since the last one may have lost too many digits.

One object holds n_models regressions (the arms of a policy, or one map) with n_outputs each that
share a gram (the coordinates of z). How it stores them is its own affair.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.linalg import evidence, kernels
from postserve.linalg.cholesky import factorise
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Prior, Ridge
from postserve.validation import number, one_of

REFACTORISE_EVERY = 4096
"""Rank-one updates of a model after which its inverse is computed anew."""
MAX_LOSS = 1e6
"""A rank-one update costs the new direction a relative error of eps·q, q = u^T A^{-1} u: their sum
since the last factorisation is the drift, free of units. At this much it is 2e-10."""
SMALLEST_RIDGE = 1e-50
FIRST_REFIT = 8
REFIT_GROWTH = 1.5
REFRESH_GROWTH = 17 / 16
"""Before the first refit p0 follows the moments: after every update for the first 17 rounds, and
then whenever a sixteenth more has come, which a moment's error of 1/sqrt(N) cannot tell apart."""
SCHEDULED_TOLERANCE, EXACT_TOLERANCE = 0.1, 1e-9


class Projection(NamedTuple):
    """Of each row u under its model: w·u for every output, and ||u|| in the norm of A^{-1}."""

    means: FloatArray  # (rows, n_outputs)
    widths: FloatArray  # (rows,)


class Ellipsoid(NamedTuple):
    """What the theory's radii ask of the ellipsoid that holds each row's weights."""

    log_det: FloatArray  # (rows,), of its matrix over that of the prior
    pulls: FloatArray  # (rows,), the rounds it has seen
    ridge: FloatArray  # (dim,), the diagonal of its prior
    stretch: float  # how much longer than u its rows are


class RidgeModels:
    """n_models linear regressions on u = (blocks), cached inverses, one prior.

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
        self.noise_variance = np.zeros(n_outputs)
        self.updates = 0  # raw count: forgetting does not lower it, so the schedule goes on
        self._fitted_at = 0
        self._followed_at = 0
        self.evaluations = 0
        dim = sum(self._sizes)
        self.gram = np.zeros((0, dim, dim))
        self.moment = np.zeros((0, n_outputs, dim))
        self.squares = np.zeros((0, n_outputs))
        self.pulls = np.zeros(0)
        self.inverse = np.zeros((0, dim, dim))
        self.weights = np.zeros((0, n_outputs, dim))
        self.log_det = np.zeros(0)
        self._loss = np.zeros(0)
        self._age = np.zeros(0, dtype=np.int64)
        self._v = np.empty(dim)
        self._silent = np.full(len(blocks), self.evidence)
        self.add(n_models)

    # The shape of things

    @property
    def dim(self) -> int:
        """Length of u."""
        return self.gram.shape[1]

    @property
    def n_models(self) -> int:
        """How many regressions there are."""
        return self.gram.shape[0]

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

    # Reading

    def project(self, U: FloatArray, models: IntArray) -> Projection:
        """Means and widths of row i of U under models[i]."""
        means = np.empty((len(models), self.weights.shape[1]))
        squares = np.empty(len(models))
        kernels.project(self.inverse, self.weights, models, U, means, squares)
        return Projection(means, np.sqrt(squares))

    def average(self, U: FloatArray, models: IntArray) -> FloatArray:
        """The means of `project` alone, of shape (rows, n_outputs)."""
        means = np.empty((len(models), self.weights.shape[1]))
        kernels.average(self.weights, models, U, means)
        return means

    def solve(self, U: FloatArray, models: IntArray) -> FloatArray:
        """A^{-1} u of row i of U under models[i]."""
        solved = np.empty(U.shape)
        kernels.solve(self.inverse, models, U, solved)
        return solved

    def weights_of(self, models: IntArray) -> FloatArray:
        """w of each, (len(models), n_outputs, dim)."""
        return self.weights[models]

    def inverse_blocks(self, models: IntArray, rows: slice, columns: slice) -> FloatArray:
        """A block of A^{-1} of each, (len(models), rows, columns)."""
        return self.inverse[models, rows, columns]

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

    # Learning

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """One more row: the sums first, then the cache, then the prior if it is due."""
        self.pulls[model] += 1.0
        self.updates += 1
        if self.evidence and self._prior_is_due(u, y):
            kernels.add_row(self.gram[model], self.moment[model], self.squares[model], u, y)
            self._renew_prior()
        else:
            self._learn(model, u, y)

    def _learn(self, model: int, u: FloatArray, y: FloatArray) -> float:
        """Sums and cache after one more row; returns q = u^T A^{-1} u and leaves A^{-1} u from before it."""
        q = kernels.learn(
            self.gram, self.moment, self.squares, self.inverse, self.weights, model, u, y, self._v
        )
        self._age[model] += 1
        self._loss[model] += abs(q)
        if q >= 0.0 and self._loss[model] <= MAX_LOSS and self._age[model] < REFACTORISE_EVERY:
            self.log_det[model] += np.log1p(q)
        else:  # NaN lands here too: a cache that broke is replaced from the sums
            self._refactorise(model)
        return q

    def update_batch(self, model: int, batches: Iterable[tuple[FloatArray, FloatArray]]) -> None:
        """Many rows (U, Y) at once: their sums, and then prior and cache anew."""
        for U, Y in batches:
            self.gram[model] += U.T @ U
            self.moment[model] += Y.T @ U
            self.squares[model] += (Y**2).sum(axis=0)
            self.pulls[model] += len(U)
            self.updates += len(U)
        if self.evidence:
            self._renew_prior()
        else:
            self._refactorise(model)

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]; the prior is never forgotten."""
        if keep < 1.0:
            for sums in (self.gram, self.moment, self.squares, self.pulls):
                sums *= keep
            self.refactorise()

    def merge(self, other: "RidgeModels") -> None:
        """Add the sums of another learner of the same shape."""
        self.gram += other.gram
        self.moment += other.moment
        self.squares += other.squares
        self.pulls += other.pulls
        self.updates += other.updates
        if self.evidence:
            self.refit_prior()
        else:
            self.refactorise()

    def add(self, n_models: int = 1) -> None:
        """Append models that know nothing."""
        dim, outputs = self.dim, self.weights.shape[1]
        cold = np.repeat(self._cold_inverse()[None], n_models, axis=0)
        self.gram = np.concatenate([self.gram, np.zeros((n_models, dim, dim))])
        self.moment = np.concatenate([self.moment, np.zeros((n_models, outputs, dim))])
        self.squares = np.concatenate([self.squares, np.zeros((n_models, outputs))])
        self.pulls = np.concatenate([self.pulls, np.zeros(n_models)])
        self.inverse = np.concatenate([self.inverse, cold])
        self.weights = np.concatenate([self.weights, np.zeros((n_models, outputs, dim))])
        self.log_det = np.concatenate([self.log_det, np.zeros(n_models)])
        self._loss = np.concatenate([self._loss, np.zeros(n_models)])
        self._age = np.concatenate([self._age, np.zeros(n_models, dtype=np.int64)])

    def remove(self, model: int) -> None:
        """Drop a model and all it learnt; later ones move down by one."""
        for name in ("gram", "moment", "squares", "pulls", "inverse", "weights", "log_det", "_loss", "_age"):
            setattr(self, name, np.delete(getattr(self, name), model, axis=0))

    # The cache

    def refactorise(self) -> None:
        """Renew every cache from sums and prior."""
        for model in range(self.n_models):
            self._refactorise(model)

    def _refactorise(self, model: int) -> None:
        ridge = self.ridge
        if self.pulls[model] == 0.0:
            self.inverse[model] = self._cold_inverse()
            self.weights[model] = 0.0
            self.log_det[model] = 0.0
        else:
            factor = factorise(self.gram[model], ridge, self.moment[model])
            self.inverse[model] = factor.inverse
            self.inverse[model, self._mute] = 0.0
            self.weights[model] = factor.solution
            self.log_det[model] = max(factor.log_det - float(np.log(ridge).sum()), 0.0)
        self._loss[model] = 0.0
        self._age[model] = 0

    def _cold_inverse(self) -> FloatArray:
        """A^{-1} before the first row: Lambda^{-1}."""
        diagonal = 1.0 / self.ridge
        diagonal[self._mute] = 0.0
        return np.diag(diagonal)

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
        if self._awaits_first_refit:
            return self.updates >= REFRESH_GROWTH * self._followed_at or self._wakes(u, y)
        return self.updates >= REFIT_GROWTH * self._fitted_at or self._wakes(u, y)

    @property
    def _awaits_first_refit(self) -> bool:
        return self._fitted_at == 0 and self.updates < max(FIRST_REFIT, self.n_models)

    def _renew_prior(self) -> None:
        if self._awaits_first_refit:
            self._adopt(self._centre())
            self._followed_at = self.updates
        else:
            start = np.where(self._silent, 0.0, self._block_ridge) if self._fitted_at else None
            self._adopt(self._fit(SCHEDULED_TOLERANCE, start))
            self._fitted_at = self.updates

    def _centre(self) -> evidence.Fit:
        return evidence.centre(self._units())

    def _fit(self, tolerance: float, start: FloatArray | None = None) -> evidence.Fit:
        return evidence.refit(self._sums(), self._sizes, tolerance=tolerance, start=start)

    def _units(self) -> evidence.Units:
        return evidence.measure_units(self._sums(), self._sizes)

    def _wakes(self, u: FloatArray, y: FloatArray) -> bool:
        """Whether an output or a block that was zero until now has its first value.

        Until then it has no unit: waiting for the schedule would judge it in the caller's.
        """
        if np.any((self.noise_variance == 0.0) & (y * y > evidence.TINY_SQUARE)):
            return True
        return bool(self._silent.any()) and bool(
            (self._silent & (self._block_sums(u * u) > evidence.TINY_SQUARE)).any()
        )

    def _adopt(self, fit: evidence.Fit) -> None:
        self._block_ridge = fit.ridge
        self.noise_variance = fit.noise_variance
        self.evaluations = fit.evaluations
        self._silent = self._silent_blocks()
        self.refactorise()

    def _silent_blocks(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._units().blocks == 0.0)

    def _block_sums(self, values: FloatArray) -> FloatArray:
        return np.array([values[self.block(name)].sum() for name in self.blocks])

    def _sums(self) -> evidence.Sums:
        return evidence.Sums(self.gram, self.moment, self.squares, self.pulls)

    # State

    def arrays(self) -> Arrays:
        """Sums, cache and prior; the cache too, so that a loaded learner goes on bit by bit."""
        return {
            "gram": self.gram,
            "moment": self.moment,
            "squares": self.squares,
            "pulls": self.pulls,
            "inverse": self.inverse,
            "weights": self.weights,
            "log_det": self.log_det,
            "loss": self._loss,
            "age": self._age,
            "block_ridge": self._block_ridge,
            "noise_variance": self.noise_variance,
            "silent": self._silent,
            "counts": np.array([self.updates, self._fitted_at, self._followed_at], dtype=np.int64),
        }

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape."""
        dim, outputs = self.dim, self.weights.shape[1]
        self.gram = stored.take("gram", (n_models, dim, dim))
        self.moment = stored.take("moment", (n_models, outputs, dim))
        self.squares = stored.take("squares", (n_models, outputs))
        self.pulls = stored.take("pulls", (n_models,))
        self.inverse = stored.take("inverse", (n_models, dim, dim))
        self.weights = stored.take("weights", (n_models, outputs, dim))
        self.log_det = stored.take("log_det", (n_models,))
        self._loss = stored.take("loss", (n_models,))
        self._age = stored.take("age", (n_models,), np.int64)
        self._block_ridge = stored.take("block_ridge", (len(self.blocks),))
        self.noise_variance = stored.take("noise_variance", (outputs,))
        self._silent = stored.take("silent", (len(self.blocks),), np.bool_)
        counts = stored.take("counts", (3,), np.int64)
        self.updates, self._fitted_at, self._followed_at = (int(count) for count in counts)
        diagonal = np.diagonal(self.gram, axis1=1, axis2=2)
        for name, values in (
            ("gram", diagonal),
            ("squares", self.squares),
            ("pulls", self.pulls),
            ("noise_variance", self.noise_variance),
            ("counts", counts),
        ):
            stored.require(not (values < 0).any(), name, "no negative numbers")
        stored.require(bool((self._block_ridge > 0.0).all()), "block_ridge", "positive numbers")


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
