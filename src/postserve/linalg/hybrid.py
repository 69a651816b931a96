"""Shared and own weights: the hybrid reward model of Li et al. (2010), section 3.2.

The weights of arm a are w_0 + delta_a with delta_a ~ N(0, sigma² Lambda_1^{-1}) and
w_0 ~ N(0, sigma² Lambda_0^{-1}), so that what one arm learns helps all of them as far as arms are alike.
The sums of each arm are those of `RidgeModels`, and they are the truth. So is A_a = S_a + Lambda_1 with
its A_a^{-1} and w_a = A_a^{-1} b_a, the own level: what the arm would believe if w_0 were 0. The arms'
own weights integrated out, w_0 has the precision and the moment

    A_0 = Lambda_0 + sum_a (Lambda_1 - Lambda_1 A_a^{-1} Lambda_1),  c = sum_a Lambda_1 w_a,

so the shared level is one more ridge regression, m_0 = A_0^{-1} c. Its rows are the arms' whitened
innovations: with v = A_a^{-1} u, gain = 1/(1 + u·v) and error = r - w_a·u, from before the round,
(u, r) adds the row sqrt(gain)·(Lambda_1 v, error). Nothing is ever subtracted. The two levels together:

    weights of arm a  w_a + F_a m_0,  their covariance  sigma² C_a,  C_a = A_a^{-1} + F_a A_0^{-1} F_a^T,

F_a = A_a^{-1} Lambda_1, which is the joint ridge regression with (K + 1)·dim weights, exactly.

An arm that is removed takes its own weights along, but what it taught w_0 stays: catalogues in which
arms come and go are what the model is for. Its rows of the shared regression are kept as sums of their
own, as they were under the Lambda_1 of that day, and `forget` fades them like all other sums.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from postserve.linalg import evidence
from postserve.linalg.hybrid_evidence import HybridObjective, both_levels, taught
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import LOSS, MAX_LOSS, REFACTORISE_EVERY, UNDECIDED
from postserve.linalg.ridge import Ellipsoid, Projection, RidgeModels, Surroundings
from postserve.linalg.shared import SharedModel
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Prior, Ridge


class Taught(NamedTuple):
    """What arms taught w_0, as sums of rows of its regression, and the squares those came from."""

    gram: FloatArray  # (d, d)
    moment: FloatArray  # (outputs, d)
    squares: FloatArray  # (outputs,), of the innovations
    pulls: FloatArray  # (1,)
    u_squares: FloatArray  # (d,), sum u_j² of the rounds themselves: the units
    y_squares: FloatArray  # (outputs,), sum y²


class HybridModels(RidgeModels):
    """n_models linear regressions whose weights have a common part.

    >>> models = HybridModels(n_models=2, blocks={"x": 2}, ridge=1.0)
    >>> models.update(0, np.array([1.0, 0.0]), np.array([3.0]))
    >>> models.weights_of(np.array([0, 1]))[:, 0]  # the other arm has learnt half as much
    array([[2., 0.],
           [1., 0.]])
    """

    def __init__(
        self, n_models: int, blocks: Mapping[str, int], *, n_outputs: int = 1, ridge: Ridge = "evidence"
    ) -> None:
        super().__init__(n_models, blocks, n_outputs=n_outputs, ridge=ridge)
        self.shared = SharedModel(blocks, n_outputs=n_outputs, ridge=self._block_ridge.tolist())
        self._departed = Taught(*(np.zeros(shape) for shape in self._taught_shapes().values()))
        self._gone = np.zeros(2)  # how many taught arms departed, and the sum of their log det
        self._shared_rows = 0  # of the shared sums since they were last renewed
        self._renew_shared()

    @property
    def prior(self) -> Prior:
        """The prior in force; the shared weights' blocks are named "shared x" and so on."""
        noise, own = super().prior
        return Prior(noise, {**own, **{f"shared {name}": r for name, r in self.shared.prior.ridge.items()}})

    @property
    def order_free(self) -> bool:
        """Not with evidence once an arm is gone: what it taught was weighed by the prior of that day."""
        return not (self.evidence and self._gone[0])

    # Reading

    def project(self, U: FloatArray, models: IntArray) -> Projection:
        """Means and widths, in the norm of C, of row i of U under models[i]."""
        means, squares = super().average(U, models), np.empty(len(models))
        V, shared = super().solve(U, models), self.shared
        kernels.through_shared(self.ridge, shared.packed_inverse(), shared.weights[0], U, V, means, squares)
        return Projection(means, np.sqrt(squares, out=squares))

    def average(self, U: FloatArray, models: IntArray) -> FloatArray:
        """(w_a + F_a m_0)·u of row i of U under models[i], an output a column."""
        return self.project(U, models).means

    def score(self, U: FloatArray, models: IntArray, radius: FloatArray) -> FloatArray:
        """mean + radius · width: all of them, as the shared level has none that could be spared."""
        means, widths = self.project(U, models)
        return np.asarray(means[:, 0] + radius * widths)

    def leaders(self, U: FloatArray, models: IntArray, radius: FloatArray) -> IntArray:
        """All of them undecided: each is asked for by itself."""
        return np.full(len(U), UNDECIDED)

    def solve(self, U: FloatArray, models: IntArray, block: slice | None = None) -> FloatArray:
        """C u of row i of U under models[i], or a block of it."""
        V = super().solve(U, models)
        through_shared = (self.ridge * V) @ self.shared.inverse[0]
        solved = V + super().solve(self.ridge * through_shared, models)
        return solved if block is None else solved[:, block]

    def inverse_blocks(self, models: IntArray, rows: slice, columns: slice) -> FloatArray:
        """That block of each model's C."""
        own, F_rows, F_columns = (
            super(HybridModels, self).inverse_blocks(models, *pair)
            for pair in ((rows, columns), (rows, slice(0, self.dim)), (columns, slice(0, self.dim)))
        )
        F_rows, F_columns = F_rows * self.ridge, F_columns * self.ridge
        return np.asarray(own + F_rows @ self.shared.inverse[0] @ F_columns.mT)

    def surround(self, U: FloatArray, models: IntArray, starts: IntArray, size: int) -> Surroundings:
        """As in the base class, in the norm of C."""
        (means, widths), weights = self.project(U, models), self.weights_of(models)[:, 0]
        solved, blocks = self.solve(U, models), [slice(start, start + size) for start in starts.tolist()]
        return Surroundings(
            means[:, 0],
            widths,
            np.sum([weights[:, part] for part in blocks], axis=0),
            np.sum([solved[:, part] for part in blocks], axis=0),
            np.sum([self.inverse_blocks(models, i, j) for i in blocks for j in blocks], axis=0),
        )

    def weights_of(self, models: IntArray) -> FloatArray:
        """w_a + F_a m_0 of each model, (len(models), outputs, dim)."""
        carried = self.ridge * self.shared.weights[0]
        return np.asarray(super().weights_of(models) + carried @ self._own_inverse(models))

    def ellipsoid(self, models: IntArray) -> Ellipsoid:
        """That of all weights (w_0, delta_1, …) at once, departed arms' too: no arm has one of its own."""
        gone, their_log_det = self._gone
        log_det = np.full(len(models), self.log_det.sum() + self.shared.log_det[0] + their_log_det)
        ridge = np.concatenate([self.shared.ridge, np.tile(self.ridge, self.n_models + int(gone))])
        # A row of the joint regression is (u, …, u, …): u for w_0, and u for its arm.
        return Ellipsoid(log_det, np.full(len(models), self.shared.pulls[0]), ridge, np.sqrt(2.0))

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), w ~ N(w_hat, C) jointly over rows of different models: (size, rows).

        Draw m takes row i at U[i] with moves[m, i] added in `block`. Own weights vary independently;
        what the arms share varies once a draw, for all rows alike.
        """
        own_noise = rng.standard_normal(moves.shape[:2])
        V = super().solve(U, models)
        squares = np.vecdot(U, V) + 2.0 * np.vecdot(moves, V[:, block])
        own = self._own_inverse(models)
        squares += np.vecdot(np.einsum("mrb,rbc->mrc", moves, own[:, block, block]), moves)
        carried = self.ridge * self.shared.draws(len(moves), rng)  # F_a^T u·draw = A_a^{-1} u·carried
        common = carried @ V.T + np.einsum("mrb,rbd,md->mr", moves, own[:, block], carried, optimize=True)
        return np.asarray(own_noise * np.sqrt(np.maximum(squares, 0.0)) + common)

    # Learning

    def _learn(self, model: int, u: FloatArray, y: FloatArray, v: FloatArray | None = None) -> float:
        one = np.array([model])
        errors = y - super().weights_of(one)[0] @ u
        # A row far outside of all that came before is only as good as A_a's condition: then what the arm
        # taught is taken anew, from its sums.
        lost = self._held.tally[model, LOSS] + float(super().project(u[None], one).widths[0]) ** 2
        before = None if lost <= MAX_LOSS else self._taught_by(model)
        v = np.empty(self.dim)
        q = super()._learn(model, u, y, v)
        self._shared_rows += 1
        # A row is as good as the cache it was made from, and so are sums of rows: unlike a cache they
        # do not drift. Renewing them as often as every arm's cache is renewed costs no more than those.
        if not q >= 0.0 or self._shared_rows >= REFACTORISE_EVERY * self.n_models:
            self._renew_shared()
        elif before is None:
            root = np.sqrt(1.0 / (1.0 + q))
            self.shared.update(0, root * self.ridge * v, root * errors)
        else:
            self._teach_anew(before, self._taught_by(model))
        return q

    def _teach_anew(self, before: Taught, after: Taught) -> None:
        """Put what an arm teaches after one more row in the place of what it taught."""
        shared = self.shared
        shared.set_sums(
            shared.gram[0] + (after.gram - before.gram),
            shared.moment[0] + (after.moment - before.moment),
            shared.squares[0] + (after.squares - before.squares),
            float(shared.pulls[0]) + 1.0,
        )
        shared.updates += 1

    def learn_sums(self, model: int, batches: Iterable[tuple[FloatArray, FloatArray]]) -> None:
        """Many rows (U, Y) of a model: their sums, and then prior and both levels anew, once."""
        super().learn_sums(model, batches)
        if not self.evidence:  # with evidence the prior has renewed them
            self._renew_shared()

    def _learn_rows(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        for model, u, y in zip(models.tolist(), U, Y, strict=True):
            self._learn(model, u, y)

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1], those of departed arms too; the prior is never forgotten."""
        if keep < 1.0:
            self._departed = Taught(*(keep * part for part in self._departed))
        super().forget(keep)

    def merge(self, other: RidgeModels) -> None:
        """Add the sums of another learner of the same shape."""
        assert isinstance(other, HybridModels)  # the policies compare settings first
        self._departed = _plus(self._departed, other._departed)
        self._gone += other._gone
        super().merge(other)

    def remove(self, model: int) -> None:
        """Drop a model and its own weights; what it taught the shared ones stays."""
        if self.pulls[model]:
            self._refactorise(model)  # so that what stays depends on the sums alone
        self._departed = _plus(self._departed, self._taught_by(model))
        if self.pulls[model]:
            self._gone += (1.0, self.log_det[model])
        super().remove(model)

    # The shared level

    def refactorise(self) -> None:
        """Renew every cache from sums and prior, and the shared sums from the arms'."""
        super().refactorise()
        self._renew_shared()

    def _renew_shared(self) -> None:
        total = self._departed
        for model in np.flatnonzero(self.pulls):
            total = _plus(total, self._taught_by(int(model)))
        self.shared._silent = self._silent.copy()
        self.shared.set_sums(total.gram, total.moment, total.squares, float(total.pulls[0]))
        self._shared_rows = 0

    def _taught_by(self, model: int) -> Taught:
        one = np.array([model])
        own, moment, weights = self.gram_of(one)[0], self.moment_of(one)[0], super().weights_of(one)[0]
        gram = taught(own, self._own_inverse(one)[0], self.ridge)
        gram[self._mute] = 0.0
        return Taught(
            gram,
            self.ridge * weights,
            np.maximum(self.squares[model] - np.vecdot(moment, weights), 0.0),
            self.pulls[model : model + 1].copy(),
            np.diagonal(own),
            self.squares[model].copy(),
        )

    def _own_inverse(self, models: IntArray) -> FloatArray:
        """A_a^{-1} of each."""
        return super().inverse_blocks(models, slice(0, self.dim), slice(0, self.dim))

    def _taught_shapes(self) -> dict[str, tuple[int, ...]]:
        dim, outputs = self.dim, self.n_outputs
        shapes = [(dim, dim), (outputs, dim), (outputs,), (1,), (dim,), (outputs,)]
        return dict(zip(Taught._fields, shapes, strict=True))

    # The prior

    def _units(self) -> evidence.Units:
        """Those of all rounds: what departed arms taught is judged in the units of theirs."""
        u, y, rounds = self._second_moments()
        gone = self._departed
        return evidence.mean_squares(
            u + gone.u_squares, y + gone.y_squares, rounds + float(gone.pulls[0]), self._sizes
        )

    def _centre(self) -> evidence.Fit:
        return evidence.centre(both_levels(self._units()))

    def _fit(self, tolerance: float, start: FloatArray | None = None) -> evidence.Fit:
        gone = self._departed
        departed = evidence.Sums(gone.gram[None], gone.moment[None], gone.squares[None], gone.pulls)
        sums = self._sums(np.flatnonzero(self.pulls))
        objective = HybridObjective(sums, departed, self._sizes, self._units())
        if start is not None:
            start = np.concatenate([start, np.where(self._silent, 0.0, self.shared._block_ridge)])
        return evidence.maximise(objective, tolerance=tolerance, start=start)

    def _adopt(self, fit: evidence.Fit) -> None:
        own, self.shared._block_ridge = np.split(fit.ridge, 2)
        super()._adopt(fit._replace(ridge=own, silent=fit.silent[: len(own)]))

    # State

    def arrays(self) -> Arrays:
        """As in the base class, and the shared level and what departed arms taught it."""
        return {
            **super().arrays(),
            **{f"shared_{name}": array for name, array in self.shared.arrays().items()},
            **{f"departed_{name}": array for name, array in self._departed._asdict().items()},
            "shared_rows": np.array(self._shared_rows, dtype=np.int64),
            "gone": self._gone,
        }

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape."""
        super().restore(stored, n_models)
        self.shared.restore(stored.below("shared_"))
        departed = stored.below("departed_")
        self._departed = Taught(*(departed.take(*item) for item in self._taught_shapes().items()))
        for name, values in self._departed._asdict().items():
            if name != "moment":
                checked = np.diagonal(values) if name == "gram" else values
                departed.require(not (checked < 0.0).any(), name, "no negative numbers")
        self._gone = stored.take("gone", (2,))
        stored.require(not (self._gone < 0.0).any(), "gone", "no negative numbers")
        rows = stored.take("shared_rows", (), np.int64)
        stored.require(int(rows) >= 0, "shared_rows", "no negative number")
        self._shared_rows = int(rows)


def _plus(one: Taught, other: Taught) -> Taught:
    return Taught(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))
