"""Ridge regressions under a given prior: the only gram, moment and inverse code.

The sums are the truth, and they never contain the prior:

    gram = sum u u^T,  moment = sum y u,  squares = sum y²,  pulls = n.

All else is a cache of sums + prior, A = gram + Lambda: A^{-1}, the weights A^{-1} moment and log det A - log
det Lambda. Rank-one updates keep it current; a Cholesky factorisation of the sums renews it on a schedule,
and when updates may have lost too many digits. A model with few rows keeps the rows instead of their sums,
and its cache is a number and a vector per row (`forms.py`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np

from postserve.changes import Effect, commit, replaced, replaced_by, shallow
from postserve.linalg import bulk, forms, reading
from postserve.linalg.cholesky import factorise, factorise_all
from postserve.linalg.frame import Shift, moved, parts_of, possible_moment
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
    REFACTORISE_EVERY,
    SQUARES,
    SUMS,
    UNDECIDED,
    UPDATES,
    Storage,
)
from postserve.linalg.projections import Ellipsoid, LocalProjection, MovingProjection, Projection
from postserve.linalg.reading import has_no_rows, present
from postserve.state import Arrays, Stored
from postserve.types import BoolArray, FloatArray, IntArray

AT_ONCE = 2
"""From this many times dim rows of one model on, it is faster to add them to its sums and factorise once."""
FACTORISED_AT_ONCE = 64
"""Models with full matrices in memory at once."""
_work = np.empty(0)
"""Scratch for one kernel at a time: kernels hold the interpreter's lock."""


class Regressions:
    """n_models linear regressions on u, their cached inverses, and one diagonal prior Lambda = diag(ridge).

    n_outputs regressions share each gram (the coordinates of z). Row i of U goes with models[i], and a single
    row with all of them; with models None, all rows go with the only model. A model keeps at most `most_rows`
    rows before it keeps their sums.

    >>> models = Regressions(2, np.array([4.0, 4.0]))
    >>> models.learn(0, np.array([1.0, 0.0]), np.array([5.0]))
    0.25
    >>> models.weights_of()[0]
    array([[1., 0.]])
    >>> models.project(np.array([[0.0, 1.0]]), np.array([1])).widths  # cold: ||u||/sqrt(ridge)
    array([0.5])
    """

    def __init__(
        self, n_models: int, ridge: FloatArray, *, n_outputs: int = 1, most_rows: int | None = None
    ) -> None:
        self.dim, self.n_outputs = len(ridge), n_outputs
        # With more rows than half of dim, they and their cache take more room than the sums and theirs.
        self.most_rows = self.dim // 2 if most_rows is None else most_rows
        self._packed_size = self.dim * (self.dim + 1) // 2
        self.learning_size = 3 * self.dim + 2 * n_outputs
        self.storage = forms.empty(self.dim, n_outputs)
        self.set_prior(ridge)
        self.add(n_models)

    @property
    def n_models(self) -> int:
        """How many regressions there are."""
        return len(self.storage.place)

    @property
    def updates(self) -> int:
        """How many rows were ever learnt, which forgetting does not lower."""
        return self.storage.counts.item(UPDATES)

    @property
    def pulls(self) -> FloatArray:
        """n of each."""
        return self.storage.tally[:, PULLS]

    @property
    def squares(self) -> FloatArray:
        """sum y² of each, (n_models, n_outputs)."""
        return self.storage.tally[:, SQUARES:]

    @property
    def log_det(self) -> FloatArray:
        """log det A - log det Lambda of each."""
        return self.storage.tally[:, LOG_DET]

    # Reading

    def project(self, U: FloatArray, models: IntArray | None = None) -> Projection:
        """Means and widths of row i of U under models[i]."""
        if models is None:
            storage = self.storage
            if len(U) == 1 and storage.place[0] >= 0:  # few arguments: half the time
                means, widths = np.empty((1, self.n_outputs)), np.empty(1)
                kernels.project_row(U, means, widths, storage.where)
                return Projection(means, widths)
            models = _only_model(len(U))
        shape, storage = (len(models), self.n_outputs), present(self.storage, models)
        if has_no_rows(storage) and not storage.prior.any():  # with evidence, before the first value
            return Projection(np.zeros(shape), np.zeros(len(models)))
        means, squares = np.empty(shape), np.empty(len(models))
        kernels.project(U, models, np.empty(self._packed_size), means, squares, storage.where)
        return Projection(means, np.sqrt(squares, out=squares))

    def average(self, U: FloatArray, models: IntArray | None = None) -> FloatArray:
        """The means of `project` alone, of shape (rows, n_outputs)."""
        if models is None:
            storage = self.storage
            if len(U) == 1 and storage.place[0] >= 0:
                means = np.empty((1, self.n_outputs))
                kernels.average_row(U, means, storage.where)
                return means
            models = _only_model(len(U))
        storage = present(self.storage, models)
        if has_no_rows(storage):
            return np.zeros((len(models), self.n_outputs))
        means = np.empty((len(models), self.n_outputs))
        kernels.average(U, models, np.empty(len(models)), means, storage.where)
        return means

    def score(self, U: FloatArray, models: IntArray, radius: FloatArray) -> FloatArray:
        """mean + radius · width of the first output, or any lower number if that cannot be the best.

        `radius` has one entry per model, or one for all; models are in rising order.
        """
        n, storage = len(models), self.storage
        if n and models.item(-1) >= len(storage.place):
            present(storage, models)  # raises and says why
        scores, size = np.empty(n), 4 * n + self.dim + self._packed_size
        work = _work
        if len(work) < size:
            work = _more_work(size)
        if kernels.score(U, models, radius, work, scores, storage.where) == UNDECIDED:
            kernels.score_some(self.centred(U), models, radius, work, scores, storage.where)
        return scores

    def centred(self, U: FloatArray) -> FloatArray:
        """Rows in the frame; here there is none."""
        return U

    def argmax_scores(self, U: FloatArray, models: IntArray, radius: FloatArray) -> IntArray:
        """For each row of U the index of the model with the best score, UNDECIDED at a near tie."""
        return bulk.argmax_scores(present(self.storage, models), U, models, radius)

    def solve(self, U: FloatArray, models: IntArray) -> FloatArray:
        """A^{-1} u of row i of U under models[i]."""
        solved = np.empty((len(models), self.dim))
        kernels.solve(U, models, 0, self.dim, solved, present(self.storage, models).where)
        return solved

    def project_around(self, U: FloatArray, models: IntArray, starts: IntArray, size: int) -> LocalProjection:
        """`project` of the first output, and its change if d of that size is added to u at the starts."""
        n = len(models)
        means, widths, beta, cross = np.empty((n, 1)), np.empty(n), np.empty((n, size)), np.empty((n, size))
        block, packed = np.empty((n, size, size)), np.empty(self._packed_size)
        storage = present(self.storage, models)
        kernels.project_around(U, models, starts, packed, means, widths, beta, cross, block, storage.where)
        return LocalProjection(means[:, 0], widths, beta, cross, block)

    def project_moving(
        self, U: FloatArray, models: IntArray, starts: IntArray, variances: FloatArray, beta_0: FloatArray
    ) -> MovingProjection:
        """`project` of the first output if a random d is added to u in the blocks at the starts.

        `variances`, of d, has one row per model or one for all; `beta_0` is added to the blocks' weights.
        """
        n = len(models)
        means, squares, moved = np.empty((n, 1)), np.empty(n), np.empty(n)
        scratch, storage = np.empty(self._packed_size), present(self.storage, models)
        kernels.project_moving(
            U, models, starts, variances, beta_0, scratch, means, squares, moved, storage.where
        )
        return MovingProjection(means[:, 0], squares, moved)

    def weights_of(self, models: IntArray | None = None) -> FloatArray:
        """A^{-1} moment of each, or of all models: (len(models), n_outputs, dim)."""
        return reading.vectors(self.storage, CACHE, models)

    def moment_of(self, models: IntArray | None = None) -> FloatArray:
        """sum y u of each, or of all models: (len(models), n_outputs, dim)."""
        return reading.vectors(self.storage, SUMS, models)

    def inverse_of(
        self, models: IntArray | None = None, rows: slice | None = None, columns: slice | None = None
    ) -> FloatArray:
        """A^{-1}, or a block of it, of each, or of all models: (len(models), rows, columns)."""
        return reading.matrices(self.storage, CACHE, models, rows, columns)

    def gram_of(self, models: IntArray | None = None) -> FloatArray:
        """sum u u^T of each, or of all models: (len(models), dim, dim)."""
        return reading.matrices(self.storage, SUMS, models)

    def centred_sums(self, models: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gram, moment and squares of rows less the offset of their frame, of which the caches are."""
        sums = self.gram_of(models), self.moment_of(models), self.squares[models]
        (_, delta), (_, epsilon) = parts_of(self.storage.frame, self.n_outputs)
        if not (delta.any() or epsilon.any()):
            return sums
        gram, moment, squares = moved(*sums, Shift(delta, epsilon))
        return gram, possible_moment(gram, moment, squares), squares

    def ellipsoid(self, models: IntArray) -> Ellipsoid:
        """What the radius of each confidence set depends on."""
        return Ellipsoid(self.log_det[models], self.pulls[models], self.ridge, 1.0)

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), w ~ N(w_hat, A^{-1}), of each row under its model, (size, rows).

        In draw m, moves[m, i] is added to row i in that block. Models are independent of each other.
        """
        solved = Regressions.solve(self, U, models)  # its own part, where a level adds another
        within = np.matmul(moves[:, :, None], Regressions.inverse_of(self, models, block, block))[:, :, 0]
        squares = np.vecdot(U, solved) + np.vecdot(moves, 2.0 * solved[:, block] + within)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)) * rng.standard_normal(moves.shape[:2]))

    def draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws of w - w_hat ~ N(0, A^{-1}) of the first model, (size, dim)."""
        gram, moment, _ = self.centred_sums(np.zeros(1, dtype=np.int64))
        factor = factorise(gram[0], self.ridge, moment[0])
        off = rng.standard_normal((size, self.dim)) @ factor.root
        off[:, self._zero_inputs] = 0.0
        return np.asarray(off)

    # Learning

    def beside(self) -> Self:
        """A copy that shares nothing that learning changes."""
        twin = shallow(self)
        twin.storage = Storage._make(array.copy() for array in self.storage)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.beside()

    def learn(self, model: int, u: FloatArray, y: FloatArray, work: FloatArray | None = None) -> float:
        """Add a row to sums and cache; returns q = u^T A^{-1} u from before it.

        Scratch of `learning_size` begins with A^{-1} u then. A row without its constant, here and below, is
        not in the frame yet.
        """
        q, sound = commit(self.learning(model, u, y, work))[-1]
        if not sound:
            self.refactorise_one(model)
        return float(q)

    def learning(
        self, model: int, u: FloatArray, y: FloatArray, work: FloatArray | None = None
    ) -> list[Effect]:
        """The effects of `learn` without a factorisation.

        The last one returns q, and whether the cache can be trusted. Room for the row is made beside what is
        there: copies and files show the form that a model has.
        """
        storage = self.storage
        if storage.place[model] < 0:
            storage = _with_room(storage, model, 1, self.most_rows)
        if work is None:
            work = _work
            if len(work) < self.learning_size:
                work = _more_work(self.learning_size)
        learns = partial(kernels.learn, model, u, y, work, storage.where)
        return [learns] if storage is self.storage else [replaced(self, storage=storage), learns]

    def settling(self) -> list[Effect]:
        """The effects of renewing the caches that can no longer be trusted; none if all can."""
        tally = self.storage.tally
        lost = np.flatnonzero((tally[:, LOSS] > MAX_LOSS) | (tally[:, AGE] >= REFACTORISE_EVERY))
        if not len(lost):
            return []
        twin = self.beside()
        for model in lost.tolist():
            twin.refactorise_one(model)
        return [replaced_by(self, twin)]

    def learn_rows(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """Learn rows of any models: many rows of one model by matrix products, few in turn."""
        order = np.argsort(models, kind="stable")
        owners, starts, sizes = np.unique(models[order], return_index=True, return_counts=True)
        few = np.ones(len(models), dtype=bool)
        for model, start, size in zip(owners.tolist(), starts.tolist(), sizes.tolist(), strict=True):
            if self.storage.place[model] < 0:
                self.storage = _with_room(self.storage, model, size, self.most_rows)
            if size >= AT_ONCE * self.dim and self.storage.place[model] >= 0:
                rows = order[start : start + size]
                few[rows] = False
                self.add_rows(model, U[rows], Y[rows])
                self.refactorise_one(model)
        if few.any():
            self.storage = forms.with_room_for_rows(self.storage, int(few.sum()))
            work = np.empty(self.learning_size)
            for model in kernels.learn_rows(models[few], U[few], Y[few], work, self.storage.where):
                self.refactorise_one(int(model))

    def add_rows(self, model: int, U: FloatArray, Y: FloatArray) -> None:
        """Add to a model's sums only: its cache must then be renewed."""
        storage = self.storage = forms.make_dense(self.storage, model)
        place = storage.place[model]
        if U.shape[1] < self.dim:
            (origin, _), (y_origin, _) = parts_of(storage.frame, self.n_outputs)
            U, Y = np.column_stack([U - origin[:-1], np.ones(len(U))]), Y - y_origin
        storage.counts[UPDATES] += len(U)
        storage.symmetric[SUMS, place] += forms.pack(U.T @ U)
        storage.vectors[SUMS, place] += Y.T @ U
        storage.tally[model, PULLS] += len(U)
        storage.tally[model, SQUARES:] += (Y**2).sum(axis=0)

    def add_sums(self, other: "Regressions", models: IntArray | None = None) -> None:
        """Add the sums of its model i to models[i], by default i: caches must then be renewed."""
        theirs, models = other.storage, np.arange(other.n_models) if models is None else models
        pulls, squares, updates = self.pulls.copy(), self.squares.copy(), self.updates + other.updates
        pulls[models] += other.pulls
        squares[models] += other.squares
        for place, model in enumerate(models[theirs.owner[: theirs.counts[DENSE_COUNT]]].tolist()):
            self.storage = forms.make_dense(self.storage, model)
            mine = self.storage.place[model]
            self.storage.symmetric[SUMS, mine] += theirs.symmetric[SUMS, place]
            self.storage.vectors[SUMS, mine] += theirs.vectors[SUMS, place]
        for row in forms.live_rows(theirs):
            model = int(models[theirs.links[row, OWNER]])
            self.learn(model, theirs.rows[SUMS, row], theirs.values[SUMS, row])
        self.storage.tally[:, PULLS] = pulls  # rows that were forgotten count for less than one each
        self.storage.tally[:, SQUARES:] = squares
        self.storage.counts[UPDATES] = updates

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]; the prior is never forgotten."""
        if keep < 1.0:
            storage = self.storage
            storage.symmetric[SUMS] *= keep
            storage.vectors[SUMS] *= keep
            storage.rows[SUMS] *= np.sqrt(keep)
            storage.values[SUMS] *= np.sqrt(keep)
            storage.tally[:, PULLS] *= keep
            storage.tally[:, SQUARES:] *= keep
            self.refactorise()

    def add(self, n_models: int = 1) -> None:
        """Append models without rows."""
        self.storage = forms.add_cold(self.storage, n_models)

    def adding(self) -> Effect:
        """The effect of `add`."""
        return replaced(self, storage=forms.add_cold(self.storage, 1))

    def remove(self, model: int) -> None:
        """Remove a model; later ones move down by one."""
        self.storage = forms.remove(self.storage, model)

    # The cache

    def set_prior(self, ridge: FloatArray, zero_inputs: BoolArray | None = None) -> None:
        """Set Lambda: caches must then be renewed. The zero inputs have width 0."""
        self.ridge = ridge
        self._zero_inputs = np.zeros(self.dim, dtype=np.bool_) if zero_inputs is None else zero_inputs
        # Lambda^{-1}, the inverse before the first row, with the bits that a factorisation gives.
        self.storage.prior[:] = np.where(self._zero_inputs, 0.0, (1.0 / np.sqrt(ridge)) ** 2)

    def refactorise(self) -> None:
        """Renew every cache from sums and prior."""
        kernels.whiten_all(np.empty(2 * self.dim), self.storage.where)
        for model in np.flatnonzero((self.storage.place < 0) & (self.storage.tally[:, LOSS] > MAX_LOSS)):
            self.storage = forms.make_dense(self.storage, int(model))
        dense = self.storage.owner[: self.storage.counts[DENSE_COUNT]]
        for start in range(0, len(dense), FACTORISED_AT_ONCE):
            self._factorise(dense[start : start + FACTORISED_AT_ONCE])

    def refactorise_one(self, model: int) -> None:
        """Renew one in the dense form: rows that lost digits would lose them again."""
        self.storage = forms.make_dense(self.storage, model)
        self._factorise(np.array([model]))

    def _factorise(self, models: IntArray) -> None:
        """Renew the caches of dense models."""
        storage, (grams, moments, _) = self.storage, self.centred_sums(models)
        place, inverse, weights, log_det = storage.place[models], *factorise_all(grams, self.ridge, moments)
        inverse[:, self._zero_inputs] = 0.0
        storage.symmetric[CACHE, place] = forms.pack(inverse)
        storage.vectors[CACHE, place] = weights
        storage.tally[models, LOG_DET] = np.maximum(log_det - np.log(self.ridge).sum(), 0.0)
        storage.tally[models, LOSS] = storage.tally[models, AGE] = 0.0

    def arrays(self) -> Arrays:
        """Sums, and the cache, so that loaded regressions continue with the same bits."""
        return forms.arrays(self.storage)

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape; the prior stays."""
        prior, frame = self.storage.prior, self.storage.frame
        storage = forms.restored(stored, n_models, self.dim, self.n_outputs)
        self.storage = storage._replace(prior=prior, frame=frame)


def on_a_copy(models: Any, step: Callable[..., None], *args: Any) -> list[Effect]:
    """The effects of a step of regressions: a copy takes it, and then their place."""
    twin = models.beside()
    step(twin, *args)
    return [replaced_by(models, twin)]


def _more_work(size: int) -> FloatArray:
    global _work
    work = _work = np.empty(size)  # another thread may replace _work, not this array
    return work


_THE_ONLY = np.zeros(1, dtype=np.int64)


def _only_model(rows: int) -> IntArray:
    """The only model, for every row."""
    return _THE_ONLY if rows == 1 else np.zeros(rows, dtype=np.int64)


def _with_room(storage: Storage, model: int, rows: int, most_rows: int) -> Storage:
    """Storage with room for more rows of a model, in the dense form if they are too many."""
    if storage.tally[model, AGE] + rows > most_rows:
        return forms.make_dense(storage, model)
    return forms.with_room_for_rows(storage, rows)
