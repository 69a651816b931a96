"""Ridge regressions with a prior that may be learnt: the arms of a policy, or a map."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from postserve.changes import Effect, shallow
from postserve.linalg import evidence, forms
from postserve.linalg.frame import Centring, Frame, HasFrame, Moments, moments, move
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import CACHE, DENSE_COUNT, OWNER, SUMS, UPDATES
from postserve.linalg.prior import BlockPrior
from postserve.linalg.projections import Projection
from postserve.linalg.proof import check_caches
from postserve.linalg.regressions import Regressions, on_a_copy
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Ridge


class RidgeModels(HasFrame, Regressions):
    """`Regressions` on u = (blocks) and their prior, which their joint evidence renews on a schedule.

    With `centring`, which names the blocks that are centred, rows are measured in a `Frame`, columns have
    their own units, and the last block is the constant that the frame appends to u. Its prior is flat: it is
    the level of the outputs. (`LevelModels` has a level that several regressions share.)

    >>> models = RidgeModels(n_models=2, blocks={"x": 2}, ridge=4.0)
    >>> models.update(0, np.array([1.0, 0.0]), np.array([5.0]))
    >>> models.weights_of()[0]
    array([[1., 0.]])
    """

    def __init__(
        self,
        n_models: int,
        blocks: Mapping[str, int],
        *,
        n_outputs: int = 1,
        ridge: Ridge = "evidence",
        most_rows: int | None = None,
        centring: Mapping[str, Centring] | None = None,
    ) -> None:
        self.frame = None if centring is None else Frame(blocks, centring, n_outputs=n_outputs)
        self.prior = prior = self._new_prior(blocks, n_outputs, ridge)
        super().__init__(n_models, prior.ridge, n_outputs=n_outputs, most_rows=most_rows)
        if self.frame is not None:
            self._take_frame(self.frame)
        self.set_prior(prior.ridge, prior.zero_inputs)

    def beside(self) -> Self:
        """A copy that shares nothing that learning changes."""
        twin = super().beside()
        twin.prior = self.prior.beside()
        if self.frame is not None:
            twin.frame = shallow(self.frame)
            twin.frame.array = twin.storage.frame
        return twin

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.frame is not None:  # joblib stores each array by itself, and these must be one
            self.frame.array = self.storage.frame

    def _take_frame(self, frame: Frame) -> None:
        self.frame, self.storage = frame, self.storage._replace(frame=frame.array)

    def _new_prior(self, blocks: Mapping[str, int], n_outputs: int, ridge: Ridge) -> BlockPrior:
        if self.frame is None:
            return BlockPrior(blocks, n_outputs=n_outputs, ridge=ridge)
        parts = evidence.equal_parts(len(blocks) - 1)
        return BlockPrior(blocks, n_outputs=n_outputs, ridge=ridge, flat=True, parts=np.append(parts, np.inf))

    @property
    def order_free(self) -> bool:
        """True: everything learnt is a function of sums."""
        return True

    def predict(self, U: FloatArray) -> FloatArray:
        """The outputs at each row, of the only model."""
        frame, storage = self.frame, self.storage
        if frame is None:
            return self.average(U)
        if len(U) == 1 and storage.place[0] >= 0:
            means = np.empty((1, self.n_outputs))
            kernels.predict_row(U, means, storage.where)
            return means
        return np.asarray((self.average(frame.rows(U)) + frame.y[1]) + frame.y[0])

    def predict_with_widths(self, U: FloatArray) -> Projection:
        """`predict`, and the width of each row."""
        frame, storage = self.frame, self.storage
        if frame is not None and len(U) == 1 and storage.place[0] >= 0:
            means, widths = np.empty((1, self.n_outputs)), np.empty(1)
            kernels.predict_row_and_width(U, means, widths, storage.where)
            return Projection(means, widths)
        means, widths = self.project(self.centred(U))
        return Projection(means if frame is None else (means + frame.y[1]) + frame.y[0], widths)

    # Learning

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """Learn a row, and then renew the prior if it is due."""
        prior, frame = self.prior, self.frame
        if frame is not None and not frame.started:
            frame.start(u, y)
        due = prior.evidence and prior.is_due(self, u, y)
        self.learn(model, u, y)
        if due:
            prior.renew(self)

    def prepare(self, model: int, u: FloatArray, y: FloatArray) -> list[Effect]:
        """The effects of `update`; `settling` follows if the last one returns that a cache is lost."""
        prior, frame = self.prior, self.frame
        if frame is None or frame.started:
            quiet = not prior.evidence or self.storage.counts.item(UPDATES) < prior.quiet_until
            if quiet or not prior.is_due(self, u, y):
                return self.learning(model, u, y)
        return on_a_copy(self, RidgeModels.update, model, u, y)

    def prepare_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> list[Effect]:
        """The effects of `update_batch`."""
        return on_a_copy(self, RidgeModels.update_batch, models, U, Y)

    def update_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """As `update` row by row, up to rounding."""
        self.prior.update_batch(self, models, U, Y)

    def learn_sums(self, model: int, batches: Iterable[tuple[FloatArray, FloatArray]]) -> None:
        """Add the sums of many rows (U, Y) of a model, and then renew prior and cache once."""
        for U, Y in batches:
            if self.frame is not None and not self.frame.started:
                self.frame.start(U[0], Y[0])
            self.add_rows(model, U, Y)
        if self.prior.evidence:
            self.prior.renew(self)
        else:
            self.refactorise_one(model)

    def merge(self, other: "RidgeModels") -> None:
        """Add the sums of another learner of the same shape, and renew prior and cache."""
        if self.frame is not None and other.frame is not None and other.frame.started:
            other = copy.deepcopy(other)
            assert other.frame is not None
            if self.frame.started:
                move(other.storage, other.frame.to(self.frame))
            else:
                self._take_frame(other.frame)
        self.add_sums(other)
        if self.prior.evidence:
            self.prior.refit(self)
        else:
            self.refactorise()

    # What the prior needs of its learner

    def moments(self) -> Moments:
        """The moments of all rounds."""
        return moments(self.storage)

    def move_frame(self, sums: Moments) -> evidence.Units:
        """Move the frame, if there is one, to the means; returns the units there."""
        if self.frame is not None:
            self.frame.renew(sums)
            sums = self._with_digits(sums)
        return self.units(sums)

    def keep_digits(self) -> None:
        """Move the origin if it is far from the rows, of which the first may be no more.

        Caches do not change.
        """
        if self.frame is not None:
            self._with_digits(self.moments())

    def _with_digits(self, sums: Moments) -> Moments:
        """The moments after `keep_digits`, given those before it."""
        assert self.frame is not None
        far = self.frame.far_offset(sums)
        if far is None:
            return sums
        move(self.storage, far)
        self.frame.move_origin(far)
        return self.moments()

    def take_prior(self) -> None:
        """Renew every cache under the present prior."""
        self.set_prior(self.prior.ridge, self.prior.zero_inputs)
        self.refactorise()

    def units(self, sums: Moments) -> evidence.Units:
        """The units of rounds with these moments, of the blocks that have a lambda to learn."""
        if self.frame is None:
            return evidence.mean_squares(sums.u_squares, sums.y_squares, sums.rounds, self.prior.sizes)
        units = self.frame.units(sums)
        if not self.prior.flat or units.columns is None:
            return units
        return units._replace(blocks=units.blocks[:-1], columns=units.columns[:-1])

    def objective(self, units: evidence.Units, start: FloatArray | None) -> evidence.Objective:
        """The evidence of all rounds; at a start in force it is read from the caches."""
        models = self.storage.owner[: self.storage.counts[DENSE_COUNT]]
        if units.columns is not None:  # not the present mean squares, but those in force
            units = units._replace(columns=self.prior.columns[: len(units.columns)])
        sizes, parts = self.prior.sizes[: len(units.blocks)], self.prior.parts[: len(units.blocks)]
        objective = evidence.Objective(
            sums_of(self, models), sizes, units, self._rows(), parts=parts, level=self.frame is not None
        )
        known = not self.prior.flat and bool(units.blocks.all() and units.outputs.all())
        if known and start is not None and start.all():
            inverse = super().inverse_of(models)
            objective.set_known_point(
                np.log(start / units.blocks),
                inverse,
                self.storage.vectors[CACHE, : len(models)],
                float(self.log_det[models].sum()),
            )
        return objective

    def _rows(self) -> evidence.Rows:
        """The rows of all models that are not dense."""
        storage, live = self.storage, forms.live_rows(self.storage)
        rounds = float(self.pulls[storage.place < 0].sum())
        u, y = storage.rows[SUMS, live], storage.values[SUMS, live]
        if self.frame is not None:
            (delta, epsilon), ones = self.frame.offset, u[:, -1:]
            u, y = u - delta * ones, y - epsilon * ones
        return evidence.Rows(storage.links[live, OWNER], u, y, rounds)

    def arrays(self) -> Arrays:
        """Sums, cache, prior and frame."""
        framed = {} if self.frame is None else {**self.frame.arrays(), "columns": self.prior.columns}
        return {**super().arrays(), **self.prior.arrays(self.updates), **framed}

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape."""
        if self.frame is not None:
            self.frame.restore(stored)
            self.prior.columns = stored.take("columns", self.prior.columns.shape)
            stored.require(not (self.prior.columns < 0.0).any(), "columns", "no negative numbers")
        updates = self.prior.restore(stored)
        super().restore(stored, n_models)
        self.storage.counts[UPDATES] = updates
        self.set_prior(self.prior.ridge, self.prior.zero_inputs)
        check_caches(self, stored)


def one_regression(
    blocks: Mapping[str, int],
    *,
    n_outputs: int = 1,
    ridge: Ridge = "evidence",
    centring: Mapping[str, Centring] | None = None,
) -> RidgeModels:
    """One regression for all arms, which is always dense.

    >>> model = one_regression({"x": 2}, ridge=4.0)
    >>> model.update(0, np.array([1.0, 0.0]), np.array([5.0]))
    >>> model.average(np.array([[1.0, 0.0], [2.0, 0.0]]))
    array([[1.],
           [2.]])
    """
    return RidgeModels(1, blocks, n_outputs=n_outputs, ridge=ridge, most_rows=0, centring=centring)


def sums_of(models: Regressions, at: IntArray) -> evidence.Sums:
    """The sums of the models at these indices."""
    return evidence.Sums(*models.centred_sums(at), models.pulls[at])
