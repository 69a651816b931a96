"""The past pairs (x, z) that a map without sums must keep."""

import numpy as np

from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray
from postserve.validation import number


class Pairs:
    """The newest pairs, at most `capacity` of them (all where it is None), and how many still count.

    Forgetting shortens the window of pairs that count; every new pair widens it by one.
    """

    def __init__(self, dim_x: int, dim_z: int, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.seen = 0
        self.window = 0.0
        self._x = np.empty((0, dim_x))
        self._z = np.empty((0, dim_z))

    def append(self, x: FloatArray, z: FloatArray) -> None:
        """Keep one more pair, the oldest giving way where the room is full."""
        slot = self.seen if self.capacity is None else self.seen % self.capacity
        if slot >= len(self._x):
            room = (
                max(16, 2 * len(self._x)) if self.capacity is None else min(self.capacity, max(16, 2 * slot))
            )
            self._x = _grown(self._x, room)
            self._z = _grown(self._z, room)
        self._x[slot] = x
        self._z[slot] = z
        self.seen += 1
        self.window = min(self.window + 1.0, float(self.held))

    @property
    def held(self) -> int:
        """How many pairs are kept."""
        return self.seen if self.capacity is None else min(self.seen, self.capacity)

    def forget(self, keep: float) -> None:
        """Let only the newest share `keep`, in (0, 1], count from now on."""
        self.window *= number("keep", keep, above=0.0, most=1.0)

    def newest(self, back: IntArray) -> tuple[FloatArray, FloatArray]:
        """The pairs that came `back` rounds ago, 0 being the last one."""
        index = self.seen - 1 - back
        if self.capacity is not None:
            index %= self.capacity
        return self._x[index], self._z[index]

    def counting(self) -> int:
        """How many pairs count, at least one where there is any."""
        return min(self.held, max(1, int(np.ceil(self.window))))

    def arrays(self) -> Arrays:
        """The kept pairs, oldest first, and the counters."""
        x, z = self.newest(np.arange(self.held - 1, -1, -1, dtype=np.int64))
        return {
            "pairs_x": x,
            "pairs_z": z,
            "pairs_seen": np.array([self.seen]),
            "pairs_window": np.array([self.window]),
        }

    def restore(self, stored: Stored) -> None:
        """Take back what `arrays` gave."""
        self.seen = int(stored.take("pairs_seen", (1,), np.int64)[0])
        self.window = float(stored.take("pairs_window", (1,))[0])
        stored.require(self.seen >= 0, "pairs_seen", "a count")
        x = stored.take("pairs_x", (self.held, self._x.shape[1]))
        z = stored.take("pairs_z", (self.held, self._z.shape[1]))
        index = np.arange(self.seen - self.held, self.seen)
        if self.capacity is not None:
            index %= self.capacity
        self._x, self._z = np.empty_like(x), np.empty_like(z)
        self._x[index], self._z[index] = x, z


def _grown(array: FloatArray, room: int) -> FloatArray:
    larger = np.zeros((room, array.shape[1]))
    larger[: len(array)] = array
    return larger
