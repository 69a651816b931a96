"""Which map, without knowing: several learn side by side, and the best so far answers."""

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from postserve.changes import Effect, commit, lost_a_cache, one_version, replaced, replaced_by, shallow, whole
from postserve.context_maps.base import SharedMap, TaughtByArm, spread_of
from postserve.context_maps.features import check_probe, probe
from postserve.context_maps.members import MadeOfMaps
from postserve.context_maps.running_mean import RunningMean
from postserve.errors import InvalidInput
from postserve.protocols import ContextMap, ShapesBall
from postserve.state import Arrays, Persistent, Stored
from postserve.steps import fast_path
from postserve.types import FloatArray
from postserve.validation import (
    context,
    errors_as_invalid_input,
    generator,
    matrix,
    number,
    whole_numbers,
)


class BestMap(MadeOfMaps, SharedMap, TaughtByArm):
    """The best of several maps: all learn every pair, and the one that has predicted best answers.

    Best is the least sum of squared errors, each of a prediction made before its z was learnt, in units of
    the variance of each z; a prediction outside of the range of z so far counts as its nearest end. The
    constant, which predicts the mean of all z so far, takes part as the last one. Ties go to the first map. A
    pair costs what it costs in all maps together, and one prediction of each. Members are copies of `maps`:
    maps that all arms share, one map per arm (`PerArmMap`), or your own. For the best of several maps in each
    arm, use it as the template of a `PerArmMap`.

    >>> from postserve import RidgeMap
    >>> phi_hat = BestMap([RidgeMap(1, 1), RidgeMap(1, 1, features=lambda x: x**2)])
    >>> for x in (-2.0, -1.0, 1.0, 2.0, 3.0):
    ...     phi_hat.update([x], 0, [3 * x**2])
    >>> phi_hat.best is phi_hat.maps[1]
    True
    >>> phi_hat.predict([4.0]).round()
    array([[48.]])
    """

    def __init__(self, maps: Sequence[ContextMap]) -> None:
        self.maps = [copy.deepcopy(each) for each in _checked(maps)]
        super().__init__(self.maps[0].dim_x, self.maps[0].dim_z)
        # Then policies ask once for all arms, by rows; if not, arms may differ, and all verbs take them.
        alike = (isinstance(each, SharedMap) and each.answers_alike for each in self.maps)
        self.answers_alike = self._keeps_update and all(alike)
        self._mean = RunningMean(self.dim_x, self.dim_z)
        self._members: list[ContextMap] = [*self.maps, self._mean]
        self._errors = np.zeros((len(self._members), self.dim_z))
        self._range = np.zeros((2, self.dim_z))  # of z so far
        self._pairs = 0.0
        self._best = 0

    @property
    @one_version
    def best(self) -> ContextMap:
        """The map that answers now: one of `maps`, or the constant."""
        return self._members[self._best]

    @property
    @one_version
    def errors(self) -> FloatArray:
        """The mean squared error of each map, and last of the constant, in units of the variance of z."""
        return _relative(self._errors, self._mean.variance) / ((self._pairs or 1.0) * self.dim_z)

    @property
    def shift_free(self) -> bool:
        """Whether all maps are."""
        return all(bool(getattr(each, "shift_free", False)) for each in self.maps)

    @property
    def column_free(self) -> bool:
        """Whether all maps are."""
        return all(bool(getattr(each, "column_free", False)) for each in self.maps)

    @property
    def scale_free(self) -> bool:
        """Whether all maps are."""
        return all(bool(getattr(each, "scale_free", False)) for each in self.maps)

    @one_version
    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat_a(x) of the best map, one row per arm."""
        if self.answers_alike:
            return super().predict(x, arms)
        return self.best.predict(*_question(self, x, arms))

    @one_version
    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """e_a of the best map, one entry per arm."""
        if self.answers_alike:
            return super().radius(x, arms)
        return self.best.radius(*_question(self, x, arms))

    @one_version
    def spread(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The standard deviations of phi_a(x) of the best map, one row per arm."""
        if self.answers_alike:
            return super().spread(x, arms)
        return spread_of(self.best, *_question(self, x, arms))

    @one_version
    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """A draw of phi_a(x) by the best map, or `size` of them."""
        if self.answers_alike:
            return super().sample(x, arms, rng, size)
        return self.best.sample(*_question(self, x, arms), generator(rng), size)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Learn that z followed x when this arm was served."""
        if self.answers_alike:
            SharedMap.update(self, x, arm, z)
        else:
            TaughtByArm.update(self, x, arm, z)

    def is_taught(self, arm: int) -> bool:
        """Whether a z has come."""
        return self._mean.pairs > 0.0

    @one_version
    def ball_axes(self, arms: Sequence[int]) -> FloatArray | None:
        """Those of the best map."""
        return self.best.ball_axes(arms) if isinstance(self.best, ShapesBall) else None

    @whole
    def forget(self, keep: float) -> None:
        """Multiply what every map has learnt, and their errors, by keep, in (0, 1]."""
        keep = number("keep", keep, above=0.0, most=1.0)
        super().forget(keep)
        self._mean.forget(keep)
        self._errors = self._errors * keep
        self._pairs *= keep

    @one_version
    def squared_errors(self) -> tuple[FloatArray, float]:
        """Those of the best map, of predictions made before z was learnt, and the number of pairs."""
        return self._errors[self._best].copy(), self._pairs

    def _predict(self, X: FloatArray) -> FloatArray:
        return self.best.predict(X, range(len(X)))

    def _radius(self, X: FloatArray) -> FloatArray:
        return self.best.radius(X, range(len(X)))

    def _spread(self, X: FloatArray) -> FloatArray:
        return cast(SharedMap, self.best)._spread(X)

    def _deviations(self, X: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        return cast(SharedMap, self.best)._deviations(X, size, rng)

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        if lost_a_cache(commit(self._prepare_for(x, 0, z))):
            commit(self._settling())

    @fast_path
    def _prepare(self, x: FloatArray, z: FloatArray) -> list[Effect]:
        return self._prepare_for(x, 0, z)

    def _prepare_for(self, x: FloatArray, arm: int, z: FloatArray) -> list[Effect]:
        """Every map is judged by what it predicted, and then learns."""
        predicted = np.concatenate([_prediction(i, each, x, arm) for i, each in enumerate(self._members)])
        judged = self._mean.pairs > 0.0  # before the first z no map knows the level of z
        low, high = self._range if judged else (z, z)
        seen, errors = np.array([np.minimum(low, z), np.maximum(high, z)]), self._errors
        if judged:
            # Few pairs let a map predict what z never is, and one such error would outweigh all that follow.
            errors = errors + (np.clip(predicted, *seen) - z) ** 2
        mean = shallow(self._mean)
        mean._learn(x, z)
        best = int(_relative(errors, mean.variance).argmin())
        return [
            *self._effects(dict.fromkeys(range(len(self.maps)), (x, arm, z))),
            replaced_by(self._mean, mean),
            replaced(self, _range=seen, _errors=errors, _pairs=self._pairs + judged, _best=best),
        ]

    def _arrays(self) -> Arrays:
        mean = {f"mean_{name}": array for name, array in self._mean._arrays().items()}
        probes = {name: answer for name, _, answer in probes_of(self.maps)}
        sums = {"errors": self._errors, "pairs": np.array([self._pairs]), "range": self._range}
        return {**sums, **mean, **probes}

    def _restore(self, arrays: Stored) -> None:
        for name, what, answer in probes_of(self.maps):
            check_probe(what, answer, arrays.take(name, (None,)))
        self._mean._restore(arrays.below("mean_"))
        self._errors = arrays.take("errors", self._errors.shape)
        self._range = arrays.take("range", self._range.shape)
        arrays.require(not (self._errors < 0.0).any(), "errors", "no negative numbers")
        arrays.require(bool((self._range[0] <= self._range[1]).all()), "range", "least and most")
        self._pairs = float(arrays.take("pairs", (1,))[0])
        self._best = int(_relative(self._errors, self._mean.variance).argmin())


def _checked(maps: Sequence[ContextMap]) -> Sequence[ContextMap]:
    if isinstance(maps, str) or not isinstance(maps, Sequence) or not maps:
        raise InvalidInput(f"maps is {maps!r:.60}, wanted a list of at least one context map")
    for i, each in enumerate(maps):
        if not isinstance(each, ContextMap) or isinstance(each, type):
            raise InvalidInput(f"maps[{i}] is a {type(each).__name__}, wanted a context map")
        got, wanted = ((one.dim_x, one.dim_z) for one in (each, maps[0]))
        if got != wanted:
            raise InvalidInput(f"maps[{i}] has (dim_x, dim_z) = {got}, wanted {wanted} as maps[0] has")
    return maps


def _relative(errors: FloatArray, variance: FloatArray) -> FloatArray:
    """The sum of each row in units of the variances; a z that was constant so far distinguishes nothing."""
    units = np.where(variance > 0.0, variance, np.inf)
    return np.asarray((errors / units).sum(axis=1))


def _prediction(i: int, phi_hat: ContextMap, x: FloatArray, arm: int) -> FloatArray:
    """One row, checked: the map may be a user's own."""
    what = f"maps[{i}].predict(x)"
    with errors_as_invalid_input(f"{what} fails", "a map that predicts z from every x"):
        row = phi_hat.predict(x, (arm,))
    return matrix(what, row, 1, phi_hat.dim_z)


def _question(phi_hat: BestMap, x: npt.ArrayLike, arms: Sequence[int]) -> tuple[FloatArray, list[int]]:
    ids = whole_numbers("arms", arms).tolist()
    return context("x", x, phi_hat.dim_x, len(ids)), ids


def probes_of(maps: Sequence[ContextMap]) -> Iterator[tuple[str, str, FloatArray]]:
    """Array name, argument and answer of maps of a user's own, which are handed back on loading."""
    for i, each in enumerate(maps):
        if not isinstance(each, Persistent):
            yield f"probe_{i}", f"maps.{i}", probe(partial(each.predict, arms=(0,)), each.dim_x)
