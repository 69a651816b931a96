"""One map per arm, for follow-ups that depend on what was served."""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from postserve.changes import Effect, commit, counted, learning, one_version, replaced, whole
from postserve.context_maps.base import SharedMap, TaughtByArm, context_rows, lengths, prepared, spread_of
from postserve.context_maps.best import BestMap
from postserve.context_maps.running_mean import RunningMean
from postserve.context_maps.sklearn import SklearnMap
from postserve.context_maps.staged import StagedMap
from postserve.errors import InvalidInput
from postserve.linalg.prior import FIRST_REFIT
from postserve.protocols import (
    ContextMap,
    Forgets,
    HasUntaught,
    MeasuresErrors,
    Merges,
    RefitsPrior,
    ShapesBall,
)
from postserve.state import Arrays, Persistent, Stored, arrays_of, restore_all, to_merge
from postserve.types import FloatArray
from postserve.validation import generator, integer, number, whole_numbers

PAIRS_PER_INPUT = 4.0
"""An arm with fewer z than this times the inputs of a regression on x cannot know its error: it is new."""


class PerArmMap(TaughtByArm):
    """phi_a for each arm a (section "Action-dependent contexts"), each a copy of one template.

    An arm's copy is made when its first z comes; until then the template answers for it, or, if that has
    learnt nothing and cannot say where z lies, the mean of all z so far. A map with few z cannot know its own
    error, so until an arm of such a template has four z per input it is no surer than the variance of all z
    allows (`widened`). For arms that are alike, `HybridMap` is better.

    >>> from postserve import RidgeMap
    >>> phi_hat = PerArmMap(RidgeMap(dim_x=1, dim_z=1, ridge=1.0))
    >>> phi_hat.update([1.0], 7, [4.0])
    >>> phi_hat.predict([1.0], arms=[7, 8])
    array([[2.],
           [0.]])
    """

    def __init__(self, template: ContextMap) -> None:
        if not isinstance(template, ContextMap) or isinstance(template, type):
            raise InvalidInput(f"template is a {type(template).__name__}, wanted a context map")
        self.template = copy.deepcopy(template)
        self.dim_x, self.dim_z = self.template.dim_x, self.template.dim_z
        self._maps: dict[int, ContextMap] = {}
        self._mean, self._pools = RunningMean(self.dim_x, self.dim_z), True
        self._pairs: dict[int, float] | None = {}  # the number of z of each arm that has a map

    @property
    def shift_free(self) -> bool:
        """As the template is."""
        return bool(getattr(self.template, "shift_free", False))

    @property
    def column_free(self) -> bool:
        """As the template is."""
        return bool(getattr(self.template, "column_free", False))

    @property
    def scale_free(self) -> bool:
        """As the template is."""
        return bool(getattr(self.template, "scale_free", False))

    @property
    def order_free(self) -> bool:
        """As the template is."""
        return isinstance(self.template, Merges) and self.template.order_free

    @one_version
    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat_a(x), one row per arm; x may have one row per arm too."""
        same = np.ndim(x) == 1  # then arms without their own map share one answer
        of_template: FloatArray | None = None
        rows = [np.empty((0, self.dim_z))]
        for own, own_x, arm in self._each(x, arms):
            untaught = same and arm not in self._maps
            if untaught and of_template is not None:
                row = of_template
            elif isinstance(own, SharedMap) and own.answers_alike:
                row = own._predict(own_x[None])
            else:
                row = own.predict(own_x, (arm,))
            of_template = row if untaught else of_template
            rows.append(row)
        return np.concatenate(rows)

    @one_version
    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """e_a, one entry per arm."""
        radii = [
            lengths(self._spread(own, own_x, arm)) if self._is_new(arm) else own.radius(own_x, (arm,))
            for own, own_x, arm in self._each(x, arms)
        ]
        return np.concatenate([np.empty(0), *radii])

    @one_version
    def spread(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The standard deviation of each coordinate of phi_a(x), one row per arm."""
        rows = [self._spread(own, own_x, arm) for own, own_x, arm in self._each(x, arms)]
        return np.concatenate([np.empty((0, self.dim_z)), *rows])

    @one_version
    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """A draw of phi_a(x), or `size` of them, independent from arm to arm."""
        rng, size = generator(rng), None if size is None else integer("size", size, least=0)
        none = np.empty((0, self.dim_z) if size is None else (size, 0, self.dim_z))
        rows = [none]
        for own, own_x, arm in self._each(x, arms):
            if self._is_new(arm):
                noise = rng.standard_normal((1, self.dim_z) if size is None else (size, 1, self.dim_z))
                rows.append(own.predict(own_x, (arm,)) + self._spread(own, own_x, arm) * noise)
            else:
                rows.append(own.sample(own_x, (arm,), rng, size))
        return np.concatenate(rows, axis=-2)

    def _parts(self) -> Iterable[ContextMap]:
        return (self.template,)

    def _changed_within(self) -> Iterable[ContextMap]:
        return (self.template, *self._maps.values())

    def _is_new(self, arm: int) -> bool:
        """Whether an arm has too few z for its map to know its error, and nothing else says it."""
        if self._pairs is None or _is_taught(self.template):
            return False
        return self._pairs.get(arm, 0.0) < PAIRS_PER_INPUT * (self.dim_x + 1)

    def _spread(self, own: ContextMap, x: FloatArray, arm: int) -> FloatArray:
        """The standard deviation of each coordinate of an arm's phi(x), (1, dim_z)."""
        spread = spread_of(own, x, (arm,))
        if self._pairs is None or not self._is_new(arm):
            return spread
        return widened(spread, self._mean.variance, self._pairs.get(arm, 0.0), self.dim_x)

    def _each(self, x: npt.ArrayLike, arms: Sequence[int]) -> Iterator[tuple[ContextMap, FloatArray, int]]:
        """Each arm with its map and its context."""
        ids = whole_numbers("arms", arms).tolist()
        rows = context_rows(x, self.dim_x, ids)
        for i, arm in enumerate(ids):
            yield self._of(arm), rows[i if len(rows) > 1 else 0], arm

    def _prepare_for(self, x: FloatArray, arm: int, z: FloatArray) -> list[Effect]:
        if arm in self._maps:
            effects = prepared(self._maps[arm], x, arm, z)
        else:
            own = copy.deepcopy(self.template)
            own.update(x, arm, z)
            effects = [partial(self._maps.__setitem__, arm, own)]
        if self._pools:
            effects += self._mean._prepare(x, z)
        if self._pairs is not None:
            effects.append(partial(self._pairs.__setitem__, arm, self._pairs.get(arm, 0.0) + 1.0))
        return effects

    def _settling(self) -> list[Effect]:
        ours = (own for own in self._maps.values() if isinstance(own, SharedMap | TaughtByArm))
        return [effect for own in ours for effect in own._settling()]

    def is_taught(self, arm: int) -> bool:
        """Whether a z has come, of this or of another arm, or the template says where z lies."""
        return self._mean.pairs > 0.0 or arm in self._maps or _is_taught(self.template)

    @one_version
    def ball_axes(self, arms: Sequence[int]) -> FloatArray | None:
        """Those of each arm's map."""
        own = (self._mean if self._is_new(arm) else self._of(arm) for arm in arms)
        rows = [each.ball_axes((0,)) if isinstance(each, ShapesBall) else None for each in own]
        if all(row is None for row in rows):
            return None
        return np.concatenate([np.ones((1, self.dim_z)) if row is None else row for row in rows])

    @learning
    def remove_arm(self, arm: int) -> None:
        """Drop what was learnt about an arm."""
        maps, pairs = (
            {one: value for one, value in each.items() if one != arm}
            for each in (self._maps, self._pairs or {})
        )
        left = {"_maps": maps} if self._pairs is None else {"_maps": maps, "_pairs": pairs}
        commit(counted(self._guard, [replaced(self, **left)]))

    @whole
    def refit_prior(self) -> None:
        """Refit the prior of every arm's map that has one."""
        for own in self._maps.values():
            if isinstance(own, RefitsPrior):
                own.refit_prior()

    @whole
    def forget(self, keep: float) -> None:
        """Multiply what every arm's map has learnt by keep, in (0, 1]."""
        if not isinstance(self.template, Forgets):
            raise InvalidInput(f"{self.template!r} cannot forget, wanted a map that does")
        keep = number("keep", keep, above=0.0, most=1.0)
        for own in (self.template, *self._maps.values(), self._mean):
            if isinstance(own, Forgets):
                own.forget(keep)
        if self._pairs is not None:
            self._pairs = {arm: keep * pairs for arm, pairs in self._pairs.items()}

    @whole
    def merge(self, other: "PerArmMap") -> None:
        """Add what another such map has learnt, arm by arm."""
        other = to_merge(self, other)
        if not self.order_free:
            raise InvalidInput(f"cannot merge maps per arm of {self.template!r}, wanted ones made of sums")
        merged = {arm: copy.deepcopy(self._maps.get(arm, self.template)) for arm in other._maps}
        for arm, own in merged.items():
            if isinstance(own, Merges):
                own.merge(other._maps[arm])
        self._maps.update(merged)
        self._mean.merge(other._mean)
        if self._pairs is not None and other._pairs is not None:
            both = self._pairs.keys() | other._pairs.keys()
            self._pairs = {arm: self._pairs.get(arm, 0.0) + other._pairs.get(arm, 0.0) for arm in both}
        else:
            self._pairs = None

    @one_version
    def squared_errors(self) -> tuple[FloatArray, float]:
        """The sums over the maps of all arms, as far as they know them."""
        known = [own.squared_errors() for own in self._maps.values() if isinstance(own, MeasuresErrors)]
        return sum((squares for squares, _ in known), np.zeros(self.dim_z)), sum(pairs for _, pairs in known)

    def _of(self, arm: int) -> ContextMap:
        return self._maps.get(arm, self.template if _is_taught(self.template) else self._mean)

    def _arrays(self) -> Arrays:
        mean = {f"mean_{name}": array for name, array in self._mean._arrays().items() if self._pools}
        found: Arrays = {"arms": np.array(sorted(self._maps), dtype=np.int64), **mean}
        if self._pairs is not None:
            found["arm_pairs"] = np.array([self._pairs[arm] for arm in sorted(self._maps)])
        for arm, own in self._maps.items():
            if not isinstance(own, Persistent) or not _is_made_of_arrays(own):
                raise InvalidInput(f"{own!r} cannot be saved for each arm, wanted a map made of arrays")
            found.update({f"maps.{arm}.{name}": array for name, array in arrays_of(own).items()})
        return found

    def _restore(self, arrays: Stored) -> None:
        self._pools = arrays.has("mean_pairs")  # in states of earlier versions arms start at 0
        if self._pools:
            self._mean._restore(arrays.below("mean_"))
        arms = arrays.take("arms", (None,), np.int64).tolist()
        arrays.require(len(set(arms)) == len(arms), "arms", "each arm once")
        self._pairs = None  # in states of earlier versions arms are as sure as their maps
        if self._pools and arrays.has("arm_pairs"):
            pairs = arrays.take("arm_pairs", (len(arms),))
            arrays.require(not (pairs < 0.0).any(), "arm_pairs", "no negative numbers")
            self._pairs = dict(zip(arms, pairs.tolist(), strict=True))
        for arm in arms:
            own = copy.deepcopy(self.template)
            assert isinstance(own, Persistent)
            restore_all(own, arrays.below(f"maps.{arm}."))
            self._maps[arm] = own


def widened(spread: FloatArray, variance: FloatArray, pairs: float, dim_x: int) -> FloatArray:
    """The deviations of phi for an arm with few z, in proportion to those of all z.

    They are the arm's own on average, in units of s, s² the `variance` of all z so far, or if these are less,
    what n = `pairs` z can tell. s² bounds how far phi varies and the noise of z, so before the first z it is
    s². A regression on p = dim_x + 1 inputs whose prior and whose noise have variance s² is left with
    s² p/(n + p), and one that starts from the mean of its own z with s² (1 + 1/n) p/(n + p). Before it has
    learnt how large the noise is, it follows its z closely: at a new x it then has the noise of z times
    n/(p - n) for n < p and p/(n - p) for n > p, roughly, where in place of a difference d we take d + 1.

    >>> [widened(np.array([[0.0, 0.1]]), np.array([1.0, 4.0]), n, dim_x=3).round(2).tolist() for n in (0, 9)]
    [[[1.0, 2.0]], [[0.58, 1.17]]]
    """
    inputs = dim_x + 1.0
    own_level = 1.0 / max(pairs, 1.0) if pairs else 0.0
    least = (1.0 + own_level) * inputs / (pairs + inputs)
    if pairs < max(FIRST_REFIT, inputs + 1.0):
        least = max(least, min(pairs, inputs) / (abs(pairs - inputs) + 1.0))
    scale = np.sqrt(variance)
    with np.errstate(over="ignore"):  # so far from all pairs nothing is known
        own = lengths(spread / np.where(scale > 0.0, scale, np.inf)) / math.sqrt(len(variance))
        return np.asarray(np.maximum(own, math.sqrt(least))[:, None] * scale)


def _is_taught(phi_hat: ContextMap) -> bool:
    """Whether a map says where z lies."""
    return not isinstance(phi_hat, HasUntaught) or phi_hat.is_taught(0)


def _is_made_of_arrays(phi_hat: ContextMap) -> bool:
    if isinstance(phi_hat, BestMap | StagedMap):
        return all(map(_is_made_of_arrays, phi_hat.maps))
    return isinstance(phi_hat, Persistent) and not (isinstance(phi_hat, SklearnMap) and phi_hat.incremental)
