"""Ridge regressions with a prior that may be learnt: the arms of a policy, or a map."""

from collections.abc import Iterable, Mapping

import numpy as np

from postserve.linalg import evidence, forms
from postserve.linalg.kernels.models import CACHE, DENSE_COUNT, OWNER, SUMS
from postserve.linalg.prior import BlockPrior
from postserve.linalg.regressions import Regressions
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Ridge


class RidgeModels(Regressions):
    """`Regressions` on u = (blocks) and their prior, which their joint evidence renews on a schedule.

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
    ) -> None:
        self.prior = prior = BlockPrior(blocks, n_outputs=n_outputs, ridge=ridge)
        super().__init__(n_models, prior.ridge, n_outputs=n_outputs, most_rows=most_rows)
        self.set_prior(prior.ridge, prior.zero_inputs)

    @property
    def order_free(self) -> bool:
        """True: everything learnt is a function of sums."""
        return True

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """Learn a row, and then renew the prior if it is due."""
        prior = self.prior
        prior.updates += 1
        due = prior.evidence and prior.is_due(u, y, len(self.storage.place))
        self.learn(model, u, y)
        if due:
            prior.renew(self)

    def update_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """As `update` row by row, up to rounding."""
        self.prior.update_batch(self, models, U, Y)

    def learn_sums(self, model: int, batches: Iterable[tuple[FloatArray, FloatArray]]) -> None:
        """Add the sums of many rows (U, Y) of a model, and then renew prior and cache once."""
        for U, Y in batches:
            self.add_rows(model, U, Y)
            self.prior.updates += len(U)
        if self.prior.evidence:
            self.prior.renew(self)
        else:
            self.refactorise_one(model)

    def merge(self, other: "RidgeModels") -> None:
        """Add the sums of another learner of the same shape, and renew prior and cache."""
        self.add_sums(other)
        self.prior.updates += other.prior.updates
        if self.prior.evidence:
            self.prior.refit(self)
        else:
            self.refactorise()

    # What the prior needs of its learner

    def take_prior(self) -> None:
        """Renew every cache under the present prior."""
        self.set_prior(self.prior.ridge, self.prior.zero_inputs)
        self.refactorise()

    def units(self) -> evidence.Units:
        """The units of all rounds."""
        return evidence.mean_squares(*second_moments(self), self.prior.sizes)

    def objective(self, start: FloatArray | None) -> evidence.Objective:
        """The evidence of all rounds; at the prior in force it is read from the caches."""
        models, units = self.storage.owner[: self.storage.counts[DENSE_COUNT]], self.units()
        objective = evidence.Objective(sums_of(self, models), self.prior.sizes, units, self._rows())
        if start is not None and start.all() and units.blocks.all() and units.outputs.all():
            objective.set_known_point(
                np.log(start / units.blocks),
                self.inverse_of(models),
                self.storage.vectors[CACHE, : len(models)],
                float(self.log_det[models].sum()),
            )
        return objective

    def _rows(self) -> evidence.Rows:
        """The rows of all models that are not dense."""
        storage, live = self.storage, forms.live_rows(self.storage)
        rounds = float(self.pulls[storage.place < 0].sum())
        u, y = storage.rows[SUMS, live], storage.values[SUMS, live]
        return evidence.Rows(storage.links[live, OWNER], u, y, rounds)

    def arrays(self) -> Arrays:
        """Sums, cache and prior."""
        return {**super().arrays(), **self.prior.arrays()}

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave, checked against this object's shape."""
        self.prior.restore(stored)
        super().restore(stored, n_models)
        self.set_prior(self.prior.ridge, self.prior.zero_inputs)


def one_regression(
    blocks: Mapping[str, int], *, n_outputs: int = 1, ridge: Ridge = "evidence"
) -> RidgeModels:
    """One regression for all arms, which is always dense.

    >>> model = one_regression({"x": 2}, ridge=4.0)
    >>> model.update(0, np.array([1.0, 0.0]), np.array([5.0]))
    >>> model.average(np.array([[1.0, 0.0], [2.0, 0.0]]))
    array([[1.],
           [2.]])
    """
    return RidgeModels(1, blocks, n_outputs=n_outputs, ridge=ridge, most_rows=0)


def second_moments(models: Regressions) -> tuple[FloatArray, FloatArray, float]:
    """The sums of u_k² and of y_o² over all models, and the number of rounds."""
    storage = models.storage
    dense = forms.diagonal(storage.symmetric[SUMS, : storage.counts[DENSE_COUNT]], models.dim)
    rows = storage.rows[SUMS, forms.live_rows(storage)]
    u = dense.sum(axis=0) + (rows**2).sum(axis=0)
    return u, models.squares.sum(axis=0), float(models.pulls.sum())


def sums_of(models: Regressions, at: IntArray) -> evidence.Sums:
    """The sums of the models at these indices."""
    return evidence.Sums(models.gram_of(at), models.moment_of(at), models.squares[at], models.pulls[at])
