"""How threads that compute give way to those that answer: only one of them can hold Python's lock at a time.

An answer takes the lock about ten times, since each statement of a store lets it go. Beside a thread that
computes, each time it waits until that one is made to let go, by default after 5 ms.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SWITCH = 1e-4
"""Seconds after which threads switch while one has long work to do; it would be too dear for all the time."""
EVENTS = 4
"""Events that are learnt between two pauses."""
PAUSE = 5e-4
"""Seconds of a pause, where nobody waits for what is learnt; otherwise it is as short as can be, 0.1 ms."""

_lock = threading.Lock()
_working = 0
_before = sys.getswitchinterval(), True


@contextmanager
def giving_way() -> Iterator[None]:
    """A block of long work, or, as a decorator, a function that is one.

    Threads switch often, and the garbage collector rests: it would look through all that is made, again and
    again, while all others wait.
    """
    global _working, _before
    with _lock:
        if not _working:
            _before = sys.getswitchinterval(), gc.isenabled()
            sys.setswitchinterval(SWITCH)
            gc.disable()
        _working += 1
    try:
        yield
    finally:
        with _lock:
            _working -= 1
            if not _working:
                interval, collects = _before
                sys.setswitchinterval(interval)
                if collects:
                    gc.enable()


def pauses(hurries: Callable[[], bool] = lambda: True) -> Callable[[int], None]:
    """To be called after some events, with their number: now and then it sleeps, shortly if it hurries."""
    learnt = 0

    def pause(events: int) -> None:
        nonlocal learnt
        learnt += events
        if learnt >= EVENTS:
            learnt = 0
            time.sleep(0.0 if hurries() else PAUSE)

    return pause
