"""The floor of a select: the time that this machine takes to read half of the inverses once."""

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from benchmarks.streams import SCENARIOS
from benchmarks.timing import seconds

KILOBYTES = (32, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """GB/s of one thread by size, then microseconds per scenario. A compiled sum does the reading."""
    _total(np.zeros(16))
    speeds = {}
    for kilobytes in KILOBYTES:
        speeds[kilobytes] = _speed(1024 * kilobytes, 5 if quick else 15)
        yield f"reading {kilobytes} KB", {"gb_per_s": speeds[kilobytes]}
    for name, (n_arms, dim) in SCENARIOS.items():
        size = n_arms * dim * (dim + 1) // 2 * 8
        speed = _speed(size, 5 if quick else 15)
        yield f"floor {name}", {"kilobytes": size / 1024, "gb_per_s": speed, "us": size / speed / 1e3}


def _speed(size: int, repeats: int) -> float:
    values = np.ones(size // 8)
    times = max(1, 2**25 // size)
    return size * times / seconds(lambda: _repeated(values, times), repeats) / 1e9


@numba.njit(fastmath=True)
def _total(values: Any) -> float:
    total = 0.0
    for i in range(len(values)):  # reordered by fastmath, so that the sum does not wait for itself
        total += values[i]
    return total


@numba.njit()
def _repeated(values: Any, times: int) -> float:
    total = 0.0
    for i in range(times):
        values[0] = i  # or the compiler would merge the sums into one
        total += _total(values)
    return total
