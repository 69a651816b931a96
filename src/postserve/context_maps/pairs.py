"""Maps that keep pairs (x, z); their radius is Assumption 1's, and grows with the distance from the pairs."""

from abc import abstractmethod
from typing import Self

import numpy as np

from postserve import confidence
from postserve.changes import one_version, shallow, whole
from postserve.context_maps.base import SharedMap, lengths
from postserve.errors import InvalidInput
from postserve.linalg.ridge import one_regression
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray
from postserve.validation import number

ALL = 2**62
"""A capacity that is never reached."""
WINDOW = 1000
"""Distances are measured to so many of the newest pairs, so that a radius takes the same time at any t."""
SAMPLE = 64
"""The number of pairs whose distance from the others is taken to be usual."""
REACH = 2.0
"""So many times the usual distance is not far: contexts differ in their distance from the nearest other."""


class Pairs:
    """The newest pairs, at most `capacity` of them, numbered from 0 in order of arrival.

    Forgetting shortens the window of pairs that count; every new pair widens it by one.
    """

    def __init__(self, dim_x: int, dim_z: int, capacity: int = ALL) -> None:
        self.capacity = capacity
        self.seen = 0
        self.window = 0.0
        # One slot more than pairs: a pair is written where none counts, so that copies can share the arrays.
        self._slots = capacity + 1
        self._x = np.empty((0, dim_x))
        self._z = np.empty((0, dim_z))

    def append(self, x: FloatArray, z: FloatArray) -> None:
        """Keep one more pair, in place of the oldest if there are `capacity`."""
        slot = self.seen % self._slots
        if slot >= len(self._x):
            more = min(self._slots, max(16, 2 * slot)) - slot
            self._x, self._z = (np.pad(rows, ((0, more), (0, 0))) for rows in (self._x, self._z))
        self._x[slot] = x
        self._z[slot] = z
        self.seen += 1
        self.window = min(self.window + 1.0, float(self.n_kept))

    @property
    def n_kept(self) -> int:
        """The number of pairs kept."""
        return min(self.seen, self.capacity)

    @property
    def first(self) -> int:
        """The number of the oldest pair that counts."""
        return self.seen - self.counting()

    def forget(self, keep: float) -> None:
        """Let only the newest share `keep`, in (0, 1], count from now on."""
        self.window *= keep

    def at(self, numbers: IntArray) -> tuple[FloatArray, FloatArray]:
        """The pairs with these numbers."""
        slots = numbers % self._slots
        return self._x[slots], self._z[slots]

    def counting(self) -> int:
        """The number of pairs that count, at least one if there are any."""
        return min(self.n_kept, max(1, int(np.ceil(self.window))))

    def arrays(self) -> Arrays:
        """The kept pairs, oldest first, and the counters."""
        x, z = self.at(np.arange(self.seen - self.n_kept, self.seen))
        counters = {"pairs_seen": np.array([self.seen]), "pairs_window": np.array([self.window])}
        return {"pairs_x": x, "pairs_z": z, **counters}

    def restore(self, stored: Stored) -> None:
        """Take back what `arrays` gave."""
        self.seen = int(stored.take("pairs_seen", (1,), np.int64)[0])
        self.window = float(stored.take("pairs_window", (1,))[0])
        stored.require(self.seen >= 0, "pairs_seen", "a count")
        x = stored.take("pairs_x", (self.n_kept, self._x.shape[1]))
        z = stored.take("pairs_z", (self.n_kept, self._z.shape[1]))
        slots = np.arange(self.seen - self.n_kept, self.seen) % self._slots
        room = int(slots.max(initial=-1)) + 1
        self._x, self._z = np.zeros((room, x.shape[1])), np.zeros((room, z.shape[1]))
        self._x[slots], self._z[slots] = x, z


class PairsMap(SharedMap, abstract=True):
    """A map from kept pairs: e = C0 (dim_x/(ridge + t))^map_rate log(t/delta) + L far(x)^b.

    The first part is Assumption 1's for an x like those of the t pairs, where ||x||²_{X^{-1}} is about
    dim_x/t. C0 is the root mean square error of the map at each x before it learnt z. The second part is for
    other x: far(x) is by how much x is further from the newest pairs than twice their usual distance from one
    another, and L the spread of z in these pairs. Over a distance like the spread of x, phi may change by so
    much (docs/theory/ellipsoid.md).

    Subclasses predict and learn z relative to the first z, whose own error is 0: so a constant added to every
    z changes nothing else.
    """

    _holder: float = 1.0
    """b, the exponent of the distance."""

    def __init__(
        self, dim_x: int, dim_z: int, *, ridge: float, map_rate: float, delta: float, radius_scale: float
    ) -> None:
        super().__init__(dim_x, dim_z)
        self.ridge = number("ridge", ridge, above=0.0)
        self.map_rate = number("map_rate", map_rate, above=0.0, most=0.5)
        self.delta = number("delta", delta, above=0.0, below=1.0)
        self.radius_scale = number("radius_scale", radius_scale, least=0.0)
        self._errors = one_regression({"x": self.dim_x}, n_outputs=self.dim_z, ridge=self.ridge)
        self._pairs = Pairs(self.dim_x, self.dim_z)
        self._first: FloatArray | None = None  # the first z; 0 if z is learnt as it is
        # How far pairs usually are from the nearest other one. None: the radius has no part for distances,
        # as in states of earlier versions.
        self._usual: float | None = 0.0

    @property
    def shift_free(self) -> bool:
        """True."""
        return True

    def is_taught(self, arm: int) -> bool:
        """Whether it has learnt a pair; a map that learns z as it is starts at 0."""
        return self._pairs.seen > 0 or not self.shift_free

    def _copy_to_change(self) -> Self:
        twin = shallow(self)
        twin._errors, twin._pairs = self._errors.beside(), shallow(self._pairs)
        return twin

    @whole
    def forget(self, keep: float) -> None:
        """Learn from only the newest share `keep`, in (0, 1], of the pairs that counted so far."""
        keep = number("keep", keep, above=0.0, most=1.0)
        self._pairs.forget(keep)
        self._errors.forget(keep)

    @one_version
    def squared_errors(self) -> tuple[FloatArray, float]:
        """The sum over the pairs of the squared errors made before z was learnt, and their number."""
        return self._error_squares().copy(), float(self._errors.pulls[0])

    def _error_squares(self) -> FloatArray:
        """The sum of the squared errors of each output."""
        return np.asarray(self._errors.squares[0])

    def _predict(self, X: FloatArray) -> FloatArray:
        rows = self._predict_relative(X)
        return rows if self._first is None else rows + self._first

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        before = first = self._first
        if first is None:
            self._first = first = z.copy() if self.shift_free else np.zeros(self.dim_z)
        try:
            self._learn_relative(x, z - first)
        except InvalidInput:  # a regressor may refuse a pair
            self._first = before
            raise

    @abstractmethod
    def _predict_relative(self, X: FloatArray) -> FloatArray:
        """phi_hat of every row, relative to the first z; 0 before it."""

    @abstractmethod
    def _learn_relative(self, x: FloatArray, z: FloatArray) -> None:
        """Learn a pair, z relative to the first one."""

    def _errors_at(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """z - phi_hat(x) of every row, z relative to the first one."""
        assert self._first is not None  # there is a pair
        return np.asarray(Z - (self._predict(X) - self._first))

    def _keep(self, x: FloatArray, z: FloatArray, error: FloatArray) -> None:
        """Keep a pair, and the error z - phi_hat(x) from before z was learnt."""
        self._errors.update(0, x, error)
        self._pairs.append(x, z)
        if self._usual is not None and self._pairs.seen.bit_count() == 1:  # twice as many as last time
            self._usual = self._usual_distance()

    def _radius(self, X: FloatArray) -> FloatArray:
        """e at every row; zero before the first pair."""
        pairs = float(self._errors.pulls[0])
        if self._usual is None:
            widths = self._errors.project(X).widths
        else:
            widths = np.full(len(X), np.sqrt(self.dim_x / (self.ridge + pairs)))
        radius = confidence.map_radius_assumption(
            width=widths,
            pairs=pairs,
            noise_scale=np.sqrt(self._error_squares() / max(pairs, 1.0)),
            delta=self.delta,
            map_rate=self.map_rate,
        )
        if self._usual is not None and pairs > 0.0:
            near, z = self._newest()
            far = np.maximum(0.0, self._distances(X, near) - REACH * self._usual)
            radius = radius + confidence.map_radius_distance(
                distance=far, spread=(z - z[0]).std(axis=0), smoothness=self._holder
            )
        return self.radius_scale * radius

    def _newest(self) -> tuple[FloatArray, FloatArray]:
        """The newest pairs that count, at most WINDOW of them."""
        return self._pairs.at(np.arange(max(self._pairs.first, self._pairs.seen - WINDOW), self._pairs.seen))

    def _distances(self, X: FloatArray, near: FloatArray) -> FloatArray:
        """How far each row is from the nearest of these contexts, in units of their spread."""
        units = one_over_spread(near)
        return np.array([lengths((near - x) * units).min() for x in X])

    def _usual_distance(self) -> float:
        """The median distance of the newest pairs from the nearest other one; 0 with less than two pairs."""
        near, _ = self._newest()
        if len(near) < 2:
            return 0.0
        units, last = one_over_spread(near), range(max(0, len(near) - SAMPLE), len(near))
        nearest = [np.delete(lengths((near - near[i]) * units), i).min() for i in last]
        return float(np.median(nearest))

    def _arrays(self) -> Arrays:
        errors = {f"learnability_{name}": array for name, array in self._errors.arrays().items()}
        first = np.empty((0, self.dim_z)) if self._first is None else self._first[None]
        usual = {} if self._usual is None else {"usual_distance": np.array([self._usual])}
        return {**self._pairs.arrays(), **errors, "first_z": first, **usual}

    def _restore(self, arrays: Stored) -> None:
        self._pairs.restore(arrays)
        self._errors.restore(arrays.below("learnability_"), 1)
        self._first = np.zeros(self.dim_z)  # states of earlier versions hold z as it is
        if arrays.has("first_z"):
            first = arrays.take("first_z", (None, self.dim_z))
            sound = len(first) == 1 or len(first) == self._pairs.seen == 0
            arrays.require(sound, "first_z", "the first z of the pairs")
            self._first = first[0] if len(first) else None
        self._usual = None  # states of earlier versions go on as they did
        if arrays.has("usual_distance"):
            self._usual = float(arrays.take("usual_distance", (1,))[0])
            arrays.require(self._usual >= 0.0, "usual_distance", "a distance")


def one_over_spread(X: FloatArray) -> FloatArray:
    """1/s of each column, so that distances between rows are root mean squares over the columns.

    s is the standard deviation; where the column is constant, its size, or 1 if it is 0.

    >>> one_over_spread(np.array([[0.0, 0.5, 0.0, 1.0], [4.0, 0.5, 0.0, 3.0]]))
    array([0.25, 1.  , 0.5 , 0.5 ])
    """
    spread = (X - X[0]).std(axis=0)  # exactly 0 where all are equal
    spread = np.where(spread > 0.0, spread, np.abs(X[0]))
    return np.asarray(1.0 / (np.where(spread > 0.0, spread, 1.0) * np.sqrt(X.shape[1])))
