"""How long tests wait for other processes: until a condition holds, with a bound that only a hang reaches."""

import time
from collections.abc import Callable

PATIENCE = 600
"""Seconds. On a machine that is busy with other work, starting a cluster takes minutes."""


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE} s for it"
        time.sleep(0.02)
