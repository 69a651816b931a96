"""Regressions read as if announced rows, whose outputs are not known yet, had been learnt at their means.

A row that is learnt at its mean moves no mean, and narrows the widths as any row does. So means and weights
are read from the regressions themselves, and widths from a twin of them with the announced rows too: the
posterior covariance under the prior in force, also where models share weights or a level. When it is next
read, the twin follows what the regressions have learnt: a model that has changed is factorised anew, once for
all that it has learnt, from its sums and the sum of its announced rows, however many these are.
"""

import copy
import threading
from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from postserve.changes import shallow
from postserve.layered import Layered
from postserve.linalg import forms
from postserve.linalg.frame import Shift, moved
from postserve.linalg.hybrid import HybridModels
from postserve.linalg.kernels.models import PULLS, REFACTORISE_EVERY, SQUARES, SUMS
from postserve.linalg.projections import LocalProjection, MovingProjection, Projection
from postserve.linalg.regressions import Regressions
from postserve.linalg.ridge import RidgeModels
from postserve.linalg.taught import taught_by
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray

M = TypeVar("M", bound=RidgeModels | HybridModels)
FEW_DIGITS = 1e-3
"""A sum of squares that fell below this share of its peak has lost digits, and is summed anew."""


class RowSum:
    """The gram of rows that come and go; with a frame, of the rows less an origin near them, and a 1."""

    def __init__(self, mark: object = None, *, framed: bool) -> None:
        self.mark = mark  # of the one that may change it
        self.rows: Layered[bytes, int] = Layered()  # how often each is there
        self.count = 0
        self._framed = framed
        self._origin = self._gram = self._peak = np.empty(0)
        self._taken = 0

    def copy(self, mark: object) -> "RowSum":
        """One that may be changed apart from this one."""
        twin = shallow(self)
        twin.mark, twin.rows, twin._gram = mark, copy.copy(self.rows), self._gram.copy()
        return twin

    def add(self, u: FloatArray) -> None:
        """One more row."""
        key = _key(u)
        self.rows[key] = self.rows.get(key, 0) + 1
        self.count += 1
        if self.count == 1:
            self._renew()
        else:
            row = self._from_origin(u)
            self._gram += row[:, None] * row
            self._peak = np.maximum(self._peak, self._gram.diagonal())

    def add_all(self, U: FloatArray) -> None:
        """Many more rows, at the price of a matrix product."""
        few = len(U) <= self.count
        counts: MutableMapping[bytes, int] = self.rows if few else self.rows.as_dict()
        for key in _keys(U):
            counts[key] = counts.get(key, 0) + 1
        self.count += len(U)
        if few:
            rows = self._from_origin(U)
            self._gram += rows.T @ rows
            self._peak = np.maximum(self._peak, self._gram.diagonal())
        else:
            self.rows = Layered(dict(counts))
            self._renew()

    def take(self, u: FloatArray) -> None:
        """One row less. The sum is renewed once half of its rows are gone, so that errors cannot add up."""
        key, row = _key(u), self._from_origin(u)
        self.rows[key] -= 1
        if not self.rows[key]:
            del self.rows[key]
        self.count -= 1
        self._taken += 1
        self._gram -= row[:, None] * row
        lost = self._taken >= self.count or (self._gram.diagonal() < FEW_DIGITS * self._peak).any()
        if self.count and lost:
            self._renew()

    def take_all(self, U: FloatArray) -> None:
        """Many rows less, at the price of a matrix product of those that stay."""
        counts = self.rows.as_dict()
        for key in _keys(U):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
        self.rows, self.count = Layered(counts), self.count - len(U)
        if self.count:
            self._renew()

    def gram_at(self, centre: FloatArray | None) -> FloatArray:
        """The gram of the rows less a centre, of which the last entry is the constant's."""
        if centre is None:
            return self._gram.copy()
        dim = len(centre)
        shift = Shift(np.append(centre[:-1] - self._origin, 0.0), np.zeros(1))
        return moved(self._gram, np.zeros((1, dim)), np.zeros(1), shift)[0]

    def all(self) -> FloatArray:
        """Every row, as it was added; not for an empty sum."""
        counts = self.rows.as_dict()
        each = np.frombuffer(b"".join(counts)).reshape(len(counts), -1)
        return np.repeat(each, list(counts.values()), axis=0)

    def _renew(self) -> None:
        U = self.all()
        self._origin = U[0].copy()
        rows = self._from_origin(U)
        self._gram = rows.T @ rows
        self._peak, self._taken = self._gram.diagonal().copy(), 0

    def _from_origin(self, U: FloatArray) -> FloatArray:
        """One row or many."""
        if not self._framed:
            return U
        return np.concatenate([U - self._origin, np.ones((*U.shape[:-1], 1))], axis=-1)


class _Twin(Generic[M]):
    """A copy of models that has learnt announced rows too, and what it has not learnt yet."""

    def __init__(self, models: M) -> None:
        own = _own(models)
        self.made: M = copy.deepcopy(models)
        self.ridge, self.pulls = own.ridge, own.pulls.copy()  # of the models, when it was made
        self.stale: set[int] = set()  # models that it has otherwise
        self.taught: dict[int, FloatArray] = {}  # what models taught the shared weights, once it is known
        self.renewals = 0
        self.outdated = self.unusable = False

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Twin[M]":
        twin = shallow(self)
        twin.made, twin.pulls = copy.deepcopy(self.made, memo), self.pulls.copy()
        twin.stale, twin.taught = set(self.stale), dict(self.taught)
        return twin


class PendingModels(Generic[M]):
    """The reading methods of `models`, with widths that count the announced rows.

    Call `follow` after rows were learnt, and `rebuild` after other changes. Several threads may read.

    >>> models = RidgeModels(n_models=1, blocks={"x": 1}, ridge=1.0)
    >>> pending = PendingModels(models)
    >>> pending.announce(0, np.array([1.0]))
    >>> pending.inverse_of()
    array([[[0.5]]])
    """

    def __init__(self, models: M) -> None:
        self.models = models
        self._sums: dict[int, RowSum] = {}  # of the models that have announced rows
        self._mark = object()  # on sums that no copy has too
        self._renewing = threading.RLock()  # a signal's handler may read in the middle of a renewal

    @cached_property
    def _cache(self) -> "_Twin[M]":
        """It follows from the models and the announced rows."""
        found = _Twin(self.models)
        found.stale, found.outdated = set(self._sums), bool(self._sums)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> "PendingModels[M]":
        with self._renewing: return self._copied(memo)  # noqa: E701 # fmt: skip # as `as_holder` explains

    def _copied(self, memo: dict[int, Any]) -> "PendingModels[M]":
        twin = shallow(self)
        twin._renewing = threading.RLock()
        twin.models, twin._cache = copy.deepcopy(self.models, memo), copy.deepcopy(self._cache, memo)
        twin._sums = dict(self._sums)
        self._mark, twin._mark = object(), object()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_renewing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _renewing=threading.RLock())

    @property
    def count(self) -> int:
        """How many rows are announced."""
        return sum(rows.count for rows in self._sums.values())

    def rows(self) -> tuple[IntArray, FloatArray]:
        """The model of every announced row, and the rows."""
        models = sorted(self._sums)
        rows = [self._sums[model].all() for model in models]
        return np.repeat(np.array(models, dtype=np.int64), list(map(len, rows))), np.concatenate(rows)

    # Reading: means from the models, widths from the twin

    def project(self, U: FloatArray, models: IntArray | None = None) -> Projection:
        """As `Regressions.project`."""
        at = np.zeros(len(U), dtype=np.int64) if models is None else models
        return Projection(self.models.average(U, at), self._twin.project(U, at).widths)

    def predict_with_widths(self, U: FloatArray) -> Projection:
        """As `RidgeModels.predict_with_widths`."""
        assert isinstance(self.models, RidgeModels)  # a hybrid regression has none
        return Projection(self.models.predict(U), self.project(self.models.centred(U)).widths)

    def score(self, U: FloatArray, models: IntArray, radius: FloatArray) -> FloatArray:
        """mean + radius · width of the first output, of every row."""
        means, widths = self.project(self.models.centred(U), models)
        return np.asarray(means[:, 0] + radius * widths)

    def project_around(self, U: FloatArray, models: IntArray, starts: IntArray, size: int) -> LocalProjection:
        """As `Regressions.project_around`."""
        local = self._twin.project_around(U, models, starts, size)
        weights = self.models.weights_of(models)[:, 0]
        beta = np.sum([weights[:, start : start + size] for start in starts.tolist()], axis=0)
        return local._replace(means=self.models.average(U, models)[:, 0], beta=beta)

    def project_moving(
        self, U: FloatArray, models: IntArray, starts: IntArray, variances: FloatArray, beta_0: FloatArray
    ) -> MovingProjection:
        """As `Regressions.project_moving`."""
        known = self.models.project_moving(U, models, starts, variances, beta_0)
        return known._replace(squares=self._twin.project_moving(U, models, starts, variances, beta_0).squares)

    def inverse_of(
        self, models: IntArray | None = None, rows: slice | None = None, columns: slice | None = None
    ) -> FloatArray:
        """As `Regressions.inverse_of`."""
        return self._twin.inverse_of(models, rows, columns)

    def solve(self, U: FloatArray, models: IntArray) -> FloatArray:
        """As `Regressions.solve`."""
        return self._twin.solve(U, models)

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """As `Regressions.deviations`."""
        return self._twin.deviations(U, models, block, moves, rng)

    def draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """As `Regressions.draws`."""
        twin = self._twin
        assert isinstance(twin, RidgeModels)  # a hybrid regression has none
        return twin.draws(size, rng)

    # Announced rows

    def announce(self, model: int, u: FloatArray) -> None:
        """A row of a model was served, and its output is out; u is not in the frame."""
        self._sum_to_change(model).add(u)
        self._cache.stale.add(model)
        self._cache.outdated = True

    def announce_all(self, models: IntArray, U: FloatArray) -> None:
        """As `announce` row by row."""
        for model in np.unique(models).tolist():
            self._sum_to_change(model).add_all(U[models == model])
            self._cache.stale.add(model)
            self._cache.outdated = True

    def has(self, model: int, u: FloatArray) -> bool:
        """Whether such a row is announced."""
        return model in self._sums and _key(u) in self._sums[model].rows

    def has_all(self, models: Sequence[int], U: FloatArray) -> bool:
        """Whether such rows are announced, each as often as it is asked for."""
        there = {model: rows.rows.as_dict() for model, rows in self._sums.items()}
        wanted: Counter[tuple[int, bytes]] = Counter()
        for each in zip(models, _keys(U), strict=True):  # in one call all threads would wait
            wanted[each] += 1
        return all(at in there and there[at].get(key, 0) >= n for (at, key), n in wanted.items())

    def withdraw(self, model: int, u: FloatArray) -> None:
        """A row that was announced is no more: it was learnt, or nothing will come of it."""
        self._sum_to_change(model).take(u)
        if not self._sums[model].count:
            del self._sums[model]
        self._cache.stale.add(model)
        self._cache.outdated = True

    def withdraw_all(self, models: IntArray, U: FloatArray) -> None:
        """As `withdraw` row by row."""
        for model in np.unique(models).tolist():
            self._sum_to_change(model).take_all(U[models == model])
            if not self._sums[model].count:
                del self._sums[model]
            self._cache.stale.add(model)
            self._cache.outdated = True

    def drop(self, model: int) -> None:
        """The model was removed, with what was announced of it; later ones moved down by one."""
        self._sums = {at - (at > model): rows for at, rows in self._sums.items() if at != model}
        self.rebuild()

    def _sum_to_change(self, model: int) -> RowSum:
        """The sum of a model's rows; one that a copy has too is copied first."""
        if model not in self._sums:
            self._sums[model] = RowSum(self._mark, framed=self.models.frame is not None)
        elif self._sums[model].mark is not self._mark:
            self._sums[model] = self._sums[model].copy(self._mark)
        return self._sums[model]

    # The twin

    def follow(self) -> None:
        """Rows were learnt: the twin is renewed before it is read again."""
        self._cache.outdated = True

    def rebuild(self) -> None:
        """The models have changed otherwise: the twin is made anew before it is read again."""
        self._cache.outdated = self._cache.unusable = True

    @property
    def _twin(self) -> M:
        if self._cache.outdated:
            with self._renewing: self._renew_all()  # noqa: E701 # fmt: skip
        return self._cache.made

    def _renew_all(self) -> None:
        """Renew the models that learnt rows, or all if the prior was renewed too."""
        if not self._cache.outdated:
            return  # another thread has renewed them
        own = _own(self.models)
        unusable = self._cache.unusable or self._cache.renewals >= REFACTORISE_EVERY * own.n_models
        self._cache.unusable = True  # if this is interrupted
        if unusable or own.ridge is not self._cache.ridge or own.n_models != len(self._cache.pulls):
            self._cache.made = copy.deepcopy(self.models)
            self._cache.ridge, self._cache.pulls, self._cache.renewals = own.ridge, own.pulls.copy(), 0
            self._cache.taught, self._cache.stale = {}, set(self._sums)
        for model in self._cache.stale.union(np.flatnonzero(own.pulls != self._cache.pulls).tolist()):
            self._renew(model)
        self._cache.stale = set()
        self._cache.outdated = self._cache.unusable = False

    def _renew(self, model: int) -> None:
        """Renew one model of the twin, from the sums of its rows, learnt and announced."""
        models, twin, one = _own(self.models), _own(self._cache.made), np.array([model])
        zero_inputs = self.models.prior.zero_inputs[: models.dim]
        hybrid = isinstance(self._cache.made, HybridModels)
        if hybrid and model not in self._cache.taught:
            self._cache.taught[model] = taught_by(twin, model, zero_inputs).gram
        storage = twin.storage = forms.make_dense(twin.storage, model)
        place, gram, count = storage.place[model], models.gram_of(one)[0], 0
        if model in self._sums:
            gram, count = gram + self._announced_gram(model), self._sums[model].count
        storage.symmetric[SUMS, place] = forms.pack(gram)
        storage.vectors[SUMS, place] = models.moment_of(one)[0]
        storage.tally[model, PULLS] = models.pulls[model] + count
        storage.tally[model, SQUARES:] = models.squares[model]
        twin.refactorise_one(model)
        if isinstance(self._cache.made, HybridModels):  # and what the model teaches the shared weights
            shared, before = self._cache.made.shared, self._cache.taught[model]
            shared.storage = forms.make_dense(shared.storage, 0)
            after = self._cache.taught[model] = taught_by(twin, model, zero_inputs).gram
            shared.storage.symmetric[SUMS, 0] += forms.pack(after - before)
            shared.refactorise_one(0)
        self._cache.pulls[model] = models.pulls[model]
        self._cache.renewals += 1

    def _announced_gram(self, model: int) -> FloatArray:
        """From the origin, as all sums are; inputs that were zero so far have width 0 and do not count."""
        frame, zero = self.models.frame, self.models.prior.zero_inputs[: _own(self.models).dim]
        gram = self._sums[model].gram_at(None if frame is None else frame.u.sum(axis=0))
        gram[zero] = gram[:, zero] = 0.0
        if frame is None:
            return gram
        back = Shift(-frame.offset.delta, np.zeros(1))
        return moved(gram, np.zeros((1, len(gram))), np.zeros(1), back)[0]


def announce(widths: M | PendingModels[M], model: int, u: FloatArray) -> PendingModels[M]:
    """Where widths are read from after a row was announced."""
    pending = widths if isinstance(widths, PendingModels) else PendingModels(widths)
    pending.announce(model, u)
    return pending


def announce_all(widths: M | PendingModels[M], models: IntArray, U: FloatArray) -> M | PendingModels[M]:
    """As `announce` row by row."""
    if not len(models):
        return widths
    pending = widths if isinstance(widths, PendingModels) else PendingModels(widths)
    pending.announce_all(models, U)
    return pending


def withdraw(widths: M | PendingModels[M], model: int, u: FloatArray) -> M | PendingModels[M]:
    """Where widths are read from after an announced row was taken back: the models, if it was the last."""
    assert isinstance(widths, PendingModels)  # a row was announced
    if widths.count == 1:
        return widths.models
    widths.withdraw(model, u)
    return widths


def withdraw_all(widths: M | PendingModels[M], models: IntArray, U: FloatArray) -> M | PendingModels[M]:
    """As `withdraw` row by row."""
    if not len(models):
        return widths
    assert isinstance(widths, PendingModels)  # rows were announced
    widths.withdraw_all(models, U)
    return widths if widths.count else widths.models


def dropped(widths: M | PendingModels[M], model: int) -> M | PendingModels[M]:
    """Where widths are read from after a model was removed: the models, if nothing else is announced."""
    if isinstance(widths, PendingModels):
        widths.drop(model)
        return widths if widths.count else widths.models
    return widths


def arrays(widths: M | PendingModels[M]) -> Arrays:
    """The announced rows as named arrays; none if there are none."""
    if not isinstance(widths, PendingModels):
        return {}
    models, rows = widths.rows()
    return {"pending_models": models, "pending_rows": rows}


def restored(models: M, stored: Stored, dim: int) -> M | PendingModels[M]:
    """The models, with the rows that `arrays` gave."""
    if not stored.has("pending_rows"):
        return models
    at = stored.take("pending_models", (None,), np.int64)
    known = bool(((at >= 0) & (at < models.n_models)).all())
    stored.require(known and len(at) > 0, "pending_models", "models that there are")
    return announce_all(models, at, stored.take("pending_rows", (len(at), dim)))


def _key(u: FloatArray) -> bytes:
    return (u + 0.0).tobytes()  # -0 is 0


def _keys(U: FloatArray) -> Iterator[bytes]:
    """The `_key` of every row."""
    return map(bytes, U + 0.0)


def _own(models: RidgeModels | HybridModels) -> Regressions:
    """The regressions that rows go to."""
    return models.own if isinstance(models, HybridModels) else models
