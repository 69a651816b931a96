"""The base of maps that all arms share: checks, and one answer for every arm."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from postserve.changes import (
    Effect,
    Guarded,
    beside,
    commit,
    counted,
    learning,
    lost_a_cache,
    one_version,
    over,
    replaced_by,
)
from postserve.errors import InvalidInput
from postserve.protocols import ContextMap, HasSpread
from postserve.state import Persistent
from postserve.steps import HasSteps, general_way
from postserve.types import FloatArray
from postserve.validation import context, generator, integer, vector


def prepared(phi_hat: ContextMap, x: FloatArray, arm: int, z: FloatArray) -> list[Effect]:
    """The effects of `update`, ours or a user's, which is one that may fail: it must come first."""
    if isinstance(phi_hat, SharedMap) and phi_hat.answers_alike:
        return counted(phi_hat._guard, phi_hat._prepare(x, z))
    if isinstance(phi_hat, TaughtByArm) and phi_hat._keeps_update:
        return counted(phi_hat._guard, phi_hat._prepare_for(x, arm, z))
    count = counted(phi_hat._guard, ()) if isinstance(phi_hat, Guarded) else []
    return [partial(phi_hat.update, x, arm, z), *count]


def cannot_fail(phi_hat: ContextMap) -> bool:
    """Whether no update of a user's own is among the effects of learning a pair."""
    if isinstance(phi_hat, SharedMap):
        return phi_hat.answers_alike
    ours = isinstance(phi_hat, TaughtByArm) and phi_hat._keeps_update
    return ours and all(cannot_fail(part) for part in cast(TaughtByArm, phi_hat)._parts())


def commit_in(phi_hat: "SharedMap | TaughtByArm", effects: list[Effect]) -> None:
    """Carry out the effects of learning a pair."""
    try:
        if lost_a_cache(commit(counted(phi_hat._guard, effects))):
            _settle(phi_hat)
    except (
        BaseException
    ):  # an interrupt between the effects and what must follow them, or a user's map failed
        over(phi_hat)
        _settle(phi_hat)
        raise


def _settle(phi_hat: "SharedMap | TaughtByArm") -> None:
    """Renew the caches that can no longer be trusted."""
    if effects := phi_hat._settling():
        commit(counted(phi_hat._guard, effects))


class TaughtByArm(Persistent, abstract=True):
    """A map that learns differently for each arm."""

    dim_x: int
    dim_z: int
    _keeps_update: ClassVar[bool]
    """Whether `update` is that of the class whose `_prepare_for` is used, or of a base of it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        first = {
            name: next(i for i, base in enumerate(cls.__mro__) if name in vars(base))
            for name in ("_prepare_for", "update")
        }
        cls._keeps_update = first["_prepare_for"] <= first["update"]

    @learning
    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Learn that z followed x when this arm was served."""
        arm = integer("arm", arm, least=0)
        commit_in(self, self._prepare_for(vector("x", x, self.dim_x), arm, vector("z", z, self.dim_z)))

    @abstractmethod
    def _prepare_for(self, x: FloatArray, arm: int, z: FloatArray) -> list[Effect]:
        """The effects of learning that z followed x when this arm was served."""

    @general_way
    def _settling(self) -> list[Effect]:
        """The effects of renewing caches that can no longer be trusted; none if all can."""
        return []


class SharedMap(HasSteps, abstract=True):
    """One map for all arms; subclasses predict, give a radius and learn, from checked arrays."""

    order_free: ClassVar[bool] = False
    """Whether the map is a function of sums, so that the order of updates does not matter."""
    answers_alike: bool = True
    """Whether all arms get the same answers, as they do unless the public methods are overridden: then
    policies ask once for all arms, by rows."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        verbs = ("predict", "radius", "update")
        cls.answers_alike = all(getattr(cls, verb) is getattr(SharedMap, verb) for verb in verbs)

    def __init__(self, dim_x: int, dim_z: int) -> None:
        self.dim_x = integer("dim_x", dim_x, least=1)
        self.dim_z = integer("dim_z", dim_z, least=1)

    @property
    def scale_free(self) -> bool:
        """Whether scaling x or z by a power of two scales predictions and radius exactly."""
        return False

    @property
    def column_free(self) -> bool:
        """Whether a power of two times one column changes nothing (x), or only its prediction (z)."""
        return False

    @property
    def shift_free(self) -> bool:
        """Whether adding a constant to every z adds it to predictions after the first pair, and no more."""
        return False

    @one_version
    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat(x), one row per arm; the rows are equal unless x has one row per arm."""
        return _for_each(arms, self._predict(context_rows(x, self.dim_x, arms)))

    @one_version
    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """e: the radius of the confidence ball around phi_hat(x)."""
        return _for_each(arms, self._radius(context_rows(x, self.dim_x, arms)))

    @one_version
    def spread(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The standard deviation of each coordinate of phi(x), one row per arm; as wide as the radius is."""
        return _for_each(arms, self._spread(context_rows(x, self.dim_x, arms)))

    @one_version
    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """A draw of phi(x), shaped as by `predict`; with `size`, that many along the first axis."""
        X, rng = context_rows(x, self.dim_x, arms), generator(rng)
        n = 1 if size is None else integer("size", size, least=0)
        rows = self._predict(X) + self._deviations(X, n, rng)
        drawn = np.repeat(rows, len(arms), axis=1) if len(X) != len(arms) else rows
        return np.asarray(drawn[0] if size is None else drawn)

    @learning
    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Learn that z followed x."""
        integer("arm", arm, least=0)
        commit_in(self, self._prepare(vector("x", x, self.dim_x), vector("z", z, self.dim_z)))

    @abstractmethod
    def _predict(self, X: FloatArray) -> FloatArray:
        """phi_hat of every row."""

    @abstractmethod
    def _radius(self, X: FloatArray) -> FloatArray:
        """e at every row."""

    @general_way
    def _ball(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """phi_hat and e of every row."""
        return self._predict(X), self._radius(X)

    @general_way
    def _predict_and_spread(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """phi_hat and its spread at every row."""
        return self._predict(X), self._spread(X)

    def _spread(self, X: FloatArray) -> FloatArray:
        """The standard deviation of each coordinate at every row; their squares sum to the squared radius."""
        return share_out(self._radius(X), np.zeros(self.dim_z))

    def _deviations(self, X: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws of phi - phi_hat at every row, (size, rows, dim_z), jointly over the rows."""
        return np.asarray(self._spread(X) * rng.standard_normal((size, 1, self.dim_z)))

    @abstractmethod
    def _learn(self, x: FloatArray, z: FloatArray) -> None: ...

    @general_way
    def _prepare(self, x: FloatArray, z: FloatArray) -> list[Effect]:
        """The effects of `_learn`."""
        if self._guard.beside:
            return [partial(self._learn, x, z)]
        twin = beside(self)
        twin._learn(x, z)
        return [replaced_by(self, twin)]

    @general_way
    def _settling(self) -> list[Effect]:
        """The effects of renewing caches that can no longer be trusted; none if all can."""
        return []

    @general_way
    def _learn_batch(self, X: FloatArray, Z: FloatArray) -> None:
        """`_learn`, pair after pair."""
        for x, z in zip(X, Z, strict=True):
            self._learn(x, z)


def context_rows(x: npt.ArrayLike, dim_x: int, arms: Sequence[int]) -> FloatArray:
    """x as rows: one for all arms, or one per arm."""
    if not hasattr(arms, "__len__") or isinstance(arms, str):
        raise InvalidInput(f"arms is {arms!r}, wanted a sequence of arm ids")
    rows = context("x", x, dim_x, len(arms))
    return rows[None] if rows.ndim == 1 else rows


def share_out(radius: FloatArray, noise: FloatArray) -> FloatArray:
    """Standard deviations proportional to each output's noise; their squares sum to the squared radius."""
    total = float(np.linalg.norm(noise))
    shares = noise / total if total > 0.0 else np.full(len(noise), 1.0 / np.sqrt(len(noise)))
    return np.asarray(radius[:, None] * shares)


def spread_of(phi_hat: ContextMap, x: npt.ArrayLike, arms: Sequence[int]) -> FloatArray:
    """A map's `spread`; one that has none has its radius in all directions alike."""
    if hasattr(phi_hat, "spread"):  # isinstance with a protocol takes as long as the spread of one arm
        return cast(HasSpread, phi_hat).spread(x, arms)
    return share_out(phi_hat.radius(x, arms), np.zeros(phi_hat.dim_z))


def lengths(rows: FloatArray) -> FloatArray:
    """The norm of each row, which may be too long to be squared."""
    with np.errstate(over="ignore"):
        found = np.asarray(np.linalg.norm(rows, axis=1))
    if not np.isinf(found).any():
        return found
    units = np.abs(rows).max(axis=1)
    units = np.where((units > 0.0) & np.isfinite(units), units, 1.0)
    return np.asarray(units * np.linalg.norm(rows / units[:, None], axis=1))


def axes_of(scales: FloatArray) -> FloatArray | None:
    """One row of half-axes in proportion to the scales, 1 in the root mean square; None if all are 0."""
    total = math.sqrt(np.vdot(scales, scales))
    return scales[None] * (math.sqrt(len(scales)) / total) if total > 0.0 else None


def _for_each(arms: Sequence[int], rows: FloatArray) -> FloatArray:
    return rows if len(rows) == len(arms) else np.repeat(rows, len(arms), axis=0)
