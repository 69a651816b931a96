"""Shared and own weights: the hybrid reward model of Li et al. (2010), section 3.2.

The weights of arm a are w_0 + delta_a with delta_a ~ N(0, sigma² Lambda_1^{-1}) and
w_0 ~ N(0, sigma² Lambda_0^{-1}), so that what one arm learns helps all of them as far as arms are alike.
Arm a's own level is the ridge regression of its own rounds, A_a = S_a + Lambda_1 and w_a = A_a^{-1} b_a: what
it would believe if w_0 were 0. The arms' own weights integrated out, w_0 has the precision and the moment

    A_0 = Lambda_0 + sum_a (Lambda_1 - Lambda_1 A_a^{-1} Lambda_1),  c = sum_a Lambda_1 w_a,

so the shared level is one more ridge regression, m_0 = A_0^{-1} c. Its rows are the arms' whitened
innovations: with v = A_a^{-1} u, gain = 1/(1 + u·v) and error = r - w_a·u, from before the round,
(u, r) adds the row sqrt(gain)·(Lambda_1 v, error). Nothing is ever subtracted. The two levels together:

    weights of arm a  w_a + F_a m_0,  their covariance  sigma² C_a,  C_a = A_a^{-1} + F_a A_0^{-1} F_a^T,

F_a = A_a^{-1} Lambda_1, which is the joint ridge regression with (K + 1)·dim weights, exactly.

When an arm is removed, its own weights go, but what it taught w_0 stays: the model is meant for catalogues
in which arms come and go. Its rows of the shared regression are kept as separate sums, as they were under the
Lambda_1 of that time, and `forget` multiplies them like all other sums.

With a frame (`frame.py`), u ends with a constant, and the shared weight of it is the level of all arms: its
prior is flat.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from postserve.changes import Effect, commit, replaced, shallow
from postserve.linalg import evidence, forms
from postserve.linalg.frame import Centring, Frame, HasFrame, Moments, moments, move, possible_gram
from postserve.linalg.hybrid_evidence import HybridObjective, both_levels
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import (
    AGE,
    CACHE,
    LOSS,
    MAX_LOSS,
    PULLS,
    REFACTORISE_EVERY,
    SQUARES,
    SUMS,
    UPDATES,
)
from postserve.linalg.prior import OWN_INTERCEPT, BlockPrior
from postserve.linalg.projections import Ellipsoid, LocalProjection, MovingProjection, Projection
from postserve.linalg.proof import check_caches
from postserve.linalg.regressions import Regressions, on_a_copy
from postserve.linalg.ridge import sums_of
from postserve.linalg.taught import Taught, plus, restored, shapes, taught_by
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Ridge

LEVELS = ("", "shared_")
"""Prefixes of the arrays of the own and of the shared level."""


class HybridModels(HasFrame):
    """n_models linear regressions with a common part of their weights: `own` regressions and a `shared` one.

    It has the methods of `RidgeModels`. The prior's blocks are those of the own weights and then those of the
    shared weights: a row of the joint regression is (u, u). `centring` is as in `RidgeModels`.

    >>> models = HybridModels(n_models=2, blocks={"x": 2}, ridge=1.0)
    >>> models.update(0, np.array([1.0, 0.0]), np.array([3.0]))
    >>> models.weights_of()[:, 0]  # the other arm has learnt half as much
    array([[2., 0.],
           [1., 0.]])
    """

    def __init__(
        self,
        n_models: int,
        blocks: Mapping[str, int],
        *,
        n_outputs: int = 1,
        ridge: Ridge = "evidence",
        centring: Mapping[str, Centring] | None = None,
    ) -> None:
        twice = {**blocks, **{f"shared {name}": size for name, size in blocks.items()}}
        if not isinstance(ridge, str):  # the same numbers for both levels
            ridge = np.tile(BlockPrior(blocks, ridge=ridge).block_ridge, 2).tolist()
        self.frame = None if centring is None else Frame(blocks, centring, n_outputs=n_outputs)
        flat, parts = self.frame is not None, None
        if flat:
            parts = np.full(2 * len(blocks), 2 * (len(blocks) - 1) / (1.0 - OWN_INTERCEPT))
            parts[len(blocks) - 1] = 1.0 / OWN_INTERCEPT
        self.prior = BlockPrior(twice, n_outputs=n_outputs, ridge=ridge, flat=flat, parts=parts)
        own, shared = np.split(self.prior.ridge, 2)
        self.own = Regressions(n_models, own, n_outputs=n_outputs)
        self.shared = Regressions(1, shared, n_outputs=n_outputs, most_rows=0)
        if self.frame is not None:
            self._take_frame(self.frame)
        self.dim, self._sizes = self.own.dim, list(blocks.values())
        self._departed = Taught(*map(np.zeros, shapes(self.own)))
        self._gone = np.zeros(2)  # the number of pulled arms that were removed, and the sum of their log det
        self._rows_since_renewal = 0  # of the shared sums
        self.take_prior()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.frame is not None:  # joblib stores each array by itself, and these must be one
            self.frame.array = self.own.storage.frame

    def _take_frame(self, frame: Frame) -> None:
        self.frame, self.own.storage = frame, self.own.storage._replace(frame=frame.array)

    @property
    def n_models(self) -> int:
        """How many regressions there are."""
        return self.own.n_models

    @property
    def updates(self) -> int:
        """How many rows were ever learnt, which forgetting does not lower."""
        return self.own.updates

    @property
    def pulls(self) -> FloatArray:
        """n of each."""
        return self.own.pulls

    @property
    def order_free(self) -> bool:
        """False with evidence after an arm is removed: what it taught was weighed by an earlier prior."""
        return not (self.prior.evidence and self._gone[0])

    # Reading

    def project(self, U: FloatArray, models: IntArray) -> Projection:
        """Means and widths, in the norm of C, of row i of U under models[i]."""
        own, shared = self.own, self.shared
        means, squares = own.average(U, models), np.empty(len(models))
        V, inverse = own.solve(U, models), shared.storage.symmetric[CACHE, 0]
        kernels.add_shared_level(own.ridge, inverse, shared.weights_of()[0], U, V, means, squares)
        return Projection(means, np.sqrt(squares, out=squares))

    def average(self, U: FloatArray, models: IntArray) -> FloatArray:
        """(w_a + F_a m_0)·u of row i of U under models[i], one column per output."""
        return self.project(U, models).means

    def score(self, U: FloatArray, models: IntArray, radius: FloatArray) -> FloatArray:
        """mean + radius · width of every row: the shared level allows no shortcut."""
        U = self.centred(U)
        means, widths = self.project(U, models)
        return np.asarray(means[:, 0] + radius * widths)

    def solve(self, U: FloatArray, models: IntArray) -> FloatArray:
        """C u of row i of U under models[i]."""
        V = self.own.solve(U, models)
        shared_part = (self.own.ridge * V) @ self.shared.inverse_of()[0]
        return V + self.own.solve(self.own.ridge * shared_part, models)

    def inverse_of(
        self, models: IntArray | None = None, rows: slice | None = None, columns: slice | None = None
    ) -> FloatArray:
        """C, or a block of it, of each, or of all models: (len(models), rows, columns)."""
        own = self.own
        F_rows, F_columns = (own.inverse_of(models, side) * own.ridge for side in (rows, columns))
        shared_part = F_rows @ self.shared.inverse_of()[0] @ F_columns.mT
        return np.asarray(own.inverse_of(models, rows, columns) + shared_part)

    def project_around(self, U: FloatArray, models: IntArray, starts: IntArray, size: int) -> LocalProjection:
        """As `Regressions.project_around`, in the norm of C."""
        (means, widths), weights = self.project(U, models), self.weights_of(models)[:, 0]
        solved, blocks = self.solve(U, models), [slice(start, start + size) for start in starts.tolist()]
        return LocalProjection(
            means[:, 0],
            widths,
            np.sum([weights[:, part] for part in blocks], axis=0),
            np.sum([solved[:, part] for part in blocks], axis=0),
            np.sum([self.inverse_of(models, i, j) for i in blocks for j in blocks], axis=0),
        )

    def project_moving(
        self, U: FloatArray, models: IntArray, starts: IntArray, variances: FloatArray, beta_0: FloatArray
    ) -> MovingProjection:
        """As `Regressions.project_moving`, in the norm of C."""
        means, widths, beta, _, block = self.project_around(U, models, starts, variances.shape[1])
        squares = widths**2 + (variances * np.diagonal(block, axis1=1, axis2=2)).sum(axis=1)
        return MovingProjection(means, squares, (variances * (beta + beta_0) ** 2).sum(axis=1))

    def weights_of(self, models: IntArray | None = None) -> FloatArray:
        """w_a + F_a m_0 of each, or of all models: (len(models), outputs, dim)."""
        carried = self.own.ridge * self.shared.weights_of()[0]
        return np.asarray(self.own.weights_of(models) + carried @ self.own.inverse_of(models))

    def ellipsoid(self, models: IntArray) -> Ellipsoid:
        """One ellipsoid of all weights (w_0, delta_1, …), removed arms' too: no arm has its own."""
        gone, their_log_det = self._gone
        log_det = np.full(len(models), self.own.log_det.sum() + self.shared.log_det[0] + their_log_det)
        ridge = np.concatenate([self.shared.ridge, np.tile(self.own.ridge, self.n_models + int(gone))])
        # A row of the joint regression is (u, …, u, …): u for w_0, and u for its arm.
        return Ellipsoid(log_det, np.full(len(models), self.shared.pulls[0]), ridge, np.sqrt(2.0))

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), w ~ N(w_hat, C) jointly over rows of different models: (size, rows).

        In draw m, moves[m, i] is added to row i in `block`. Shared weights are drawn once for all rows.
        """
        own_noise = rng.standard_normal(moves.shape[:2])
        V, own = self.own.solve(U, models), self.own.inverse_of(models)
        squares = np.vecdot(U, V) + 2.0 * np.vecdot(moves, V[:, block])
        squares += np.vecdot(np.einsum("mrb,rbc->mrc", moves, own[:, block, block]), moves)
        carried = self.own.ridge * self.shared.draws(len(moves), rng)  # F_a^T u·draw = A_a^{-1} u·carried
        common = carried @ V.T + np.einsum("mrb,rbd,md->mr", moves, own[:, block], carried, optimize=True)
        return np.asarray(own_noise * np.sqrt(np.maximum(squares, 0.0)) + common)

    # Learning

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """Learn a row on both levels, and then renew the prior if it is due."""
        prior = self.prior
        due = prior.evidence and prior.is_due(self, u, y)
        self._learn(model, u, y)
        if due:
            prior.renew(self)

    def update_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """As `update` row by row."""
        self.prior.update_batch(self, models, U, Y)

    def learn_rows(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """Learn row by row, under the present prior."""
        for model, u, y in zip(models.tolist(), U, Y, strict=True):
            self._learn(model, u, y)

    def _learn(self, model: int, u: FloatArray, y: FloatArray) -> None:
        if (effects := self._learning(model, u, y)) is not None:
            _, sound = commit(effects)[-1]
            if not sound:
                self.shared.refactorise_one(0)
            return
        # A row far outside of all earlier ones is only as accurate as A_a's condition allows: then what the
        # arm taught is recomputed from its sums.
        before = self._taught_by(model)
        q = self.own.learn(model, u, y)
        self._rows_since_renewal += 1
        # Sums of rows are as accurate as the caches the rows were made from, and do not drift. Renewing them
        # as often as every arm's cache is renewed costs no more.
        if not q >= 0.0 or self._rows_since_renewal >= REFACTORISE_EVERY * self.n_models:
            self._renew_shared_sums()
        else:
            after, shared = self._taught_by(model), self.shared
            _set_sums(
                shared,
                possible_gram(shared.gram_of()[0] + (after.gram - before.gram)),
                shared.moment_of()[0] + (after.moment - before.moment),
                np.maximum(shared.squares[0] + (after.squares - before.squares), 0.0),
                float(shared.pulls[0]) + 1.0,
            )

    def _learning(self, model: int, u: FloatArray, y: FloatArray) -> list[Effect] | None:
        """The effects of learning a row on both levels; None if a cache or shared sums must be renewed."""
        own, one, (row, value) = self.own, np.array([model]), self.framed(u, y)
        v, tally = own.solve(row[None], one)[0], own.storage.tally[model]
        q, rows = float(row @ v), self._rows_since_renewal + 1
        sound = q >= 0.0 and tally[LOSS] + q <= MAX_LOSS and tally[AGE] + 1.0 < REFACTORISE_EVERY
        if not sound or rows >= REFACTORISE_EVERY * self.n_models:
            return None
        root, errors = np.sqrt(1.0 / (1.0 + q)), value - own.weights_of(one)[0] @ row
        return [
            *own.learning(model, u, y),
            replaced(self, _rows_since_renewal=rows),
            *self.shared.learning(0, root * own.ridge * v, root * errors),
        ]

    def prepare(self, model: int, u: FloatArray, y: FloatArray) -> list[Effect]:
        """The effects of `update`; `settling` follows if the last one returns that a cache is lost."""
        prior, frame = self.prior, self.frame
        if (frame is None or frame.started) and not (prior.evidence and prior.is_due(self, u, y)):
            effects = self._learning(model, u, y)
            if effects is not None:
                return effects
        return on_a_copy(self, HybridModels.update, model, u, y)

    def prepare_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> list[Effect]:
        """The effects of `update_batch`."""
        return on_a_copy(self, HybridModels.update_batch, models, U, Y)

    def settling(self) -> list[Effect]:
        """The effects of renewing the caches that can no longer be trusted; none if all can."""
        return self.shared.settling()

    def beside(self) -> "HybridModels":
        """A copy that shares nothing that learning changes."""
        twin = shallow(self)
        twin.own, twin.shared, twin.prior = self.own.beside(), self.shared.beside(), self.prior.beside()
        twin._gone = self._gone.copy()
        if self.frame is not None:
            twin.frame = shallow(self.frame)
            twin.frame.array = twin.own.storage.frame
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> "HybridModels":
        return self.beside()

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1], removed arms' too; the prior is never forgotten."""
        if keep < 1.0:
            self._departed = Taught(*(keep * part for part in self._departed))
            self.own.forget(keep)
            self._renew_shared_sums()

    def merge(self, other: "HybridModels", models: IntArray | None = None) -> None:
        """Add the sums of its model i to models[i], by default i, and renew prior and both levels."""
        if self.frame is not None and other.frame is not None and other.frame.started:
            other = copy.deepcopy(other)
            assert other.frame is not None
            if self.frame.started:
                move(other.own.storage, other.frame.to(self.frame))
            else:
                self._take_frame(other.frame)
        self._departed = plus(self._departed, other._departed)
        self._gone += other._gone
        self.own.add_sums(other.own, models)
        if self.prior.evidence:
            self.prior.refit(self)
        else:
            self.take_prior()

    def add(self, n_models: int = 1) -> None:
        """Append models that have the shared weights only."""
        self.own.add(n_models)

    def adding(self) -> Effect:
        """The effect of `add`."""
        return self.own.adding()

    def remove(self, model: int) -> None:
        """Remove a model and its own weights; what it taught the shared ones stays."""
        if self.pulls[model]:
            self.own.refactorise_one(model)  # so that what stays is a function of the sums
        self._departed = plus(self._departed, self._taught_by(model))
        if self.pulls[model]:
            self._gone += (1.0, self.own.log_det[model])
        self.own.remove(model)

    # The shared level

    def _renew_shared_sums(self) -> None:
        """Recompute its sums from those of the arms."""
        total = self._departed
        for model in np.flatnonzero(self.pulls):
            total = plus(total, self._taught_by(int(model)))
        _set_sums(self.shared, total.gram, total.moment, total.squares, float(total.pulls[0]))
        self._rows_since_renewal = 0

    def _taught_by(self, model: int) -> Taught:
        return taught_by(self.own, model, self.prior.zero_inputs[: self.dim])

    # What the prior needs of its learner

    def moments(self) -> Moments:
        """The moments of all rounds, removed arms' too."""
        return moments(self.own.storage).plus(self._departed.moments())

    def move_frame(self, sums: Moments) -> evidence.Units:
        """Move the frame, if there is one, to the means; returns the units there."""
        if self.frame is not None:
            self._departed = self._departed.moved(self.frame.renew(sums))
            far = self.frame.far_offset(sums)
            if far is not None:
                move(self.own.storage, far)
                self.frame.move_origin(far)
                self._departed = self._departed.from_origin(far)
                sums = self.moments()
        return self.units(sums)

    def take_prior(self) -> None:
        """Renew every cache under the present prior, and the shared sums from the arms'."""
        self._set_priors()
        self.own.refactorise()
        self._renew_shared_sums()

    def _set_priors(self) -> None:
        prior = self.prior
        levels = zip(np.split(prior.ridge, 2), np.split(prior.zero_inputs, 2), strict=True)
        for level, (ridge, zero_inputs) in zip((self.own, self.shared), levels, strict=True):
            level.set_prior(ridge, zero_inputs)

    def units(self, sums: Moments) -> evidence.Units:
        """The units of rounds with these moments."""
        if self.frame is not None:
            return both_levels(self.frame.units(sums), flat=True)
        return both_levels(evidence.mean_squares(sums.u_squares, sums.y_squares, sums.rounds, self._sizes))

    def objective(self, units: evidence.Units, start: FloatArray | None) -> HybridObjective:
        """The evidence of all rounds."""
        gone = self._departed
        departed = evidence.Sums(gone.gram[None], gone.moment[None], gone.squares[None], gone.pulls)
        present = sums_of(self.own, np.flatnonzero(self.pulls))
        level = self.frame is not None
        columns = self.prior.columns[: self.dim] if level else None
        of_rounds = evidence.Units(units.blocks[: len(self._sizes)], units.outputs, columns)
        parts = self.prior.parts[: len(units.blocks)]
        return HybridObjective(present, departed, self._sizes, of_rounds, parts=parts, level=level)

    def arrays(self) -> Arrays:
        """Both levels, the prior, and what removed arms taught."""
        framed = {} if self.frame is None else {**self.frame.arrays(), "columns": self.prior.columns}
        return {
            **self.own.arrays(),
            **self.prior.arrays(self.updates, LEVELS),
            **framed,
            **{f"shared_{name}": array for name, array in self.shared.arrays().items()},
            **{f"departed_{name}": array for name, array in self._departed._asdict().items()},
            "shared_rows": np.array(self._rows_since_renewal, dtype=np.int64),
            "gone": self._gone,
        }

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape."""
        if self.frame is not None:
            self.frame.restore(stored)
            self.prior.columns = stored.take("columns", self.prior.columns.shape)
            stored.require(not (self.prior.columns < 0.0).any(), "columns", "no negative numbers")
        updates = self.prior.restore(stored, LEVELS)
        self.own.restore(stored, n_models)
        self.own.storage.counts[UPDATES] = updates
        self.shared.restore(stored.below("shared_"), 1)
        self._set_priors()
        check_caches(self.own, stored)
        check_caches(self.shared, stored.below("shared_"))
        self._departed = restored(stored.below("departed_"), self.own)
        self._gone = stored.take("gone", (2,))
        stored.require(not (self._gone < 0.0).any(), "gone", "no negative numbers")
        rows = stored.take("shared_rows", (), np.int64)
        stored.require(int(rows) >= 0, "shared_rows", "no negative number")
        self._rows_since_renewal = int(rows)


def _set_sums(
    model: Regressions, gram: FloatArray, moment: FloatArray, squares: FloatArray, pulls: float
) -> None:
    """Replace the sums of the only model."""
    storage = model.storage = forms.make_dense(model.storage, 0)
    storage.symmetric[SUMS, 0], storage.vectors[SUMS, 0] = forms.pack(gram), moment
    storage.tally[0, PULLS], storage.tally[0, SQUARES:] = pulls, squares
    model.refactorise()
