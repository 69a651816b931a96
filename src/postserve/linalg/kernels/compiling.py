"""When kernels are compiled: who listens, and what waits meanwhile."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

COMPILE = "numba:compile"
PACKAGE = __name__.rpartition(".")[0]


class Compilations(event.Listener):
    """The names of our kernels that were compiled, in the order in which that began."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: event.Event) -> None:
        """Note a kernel of ours."""
        if is_ours(event):
            self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        """Nothing: it was noted when it began."""


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of the kernels that are compiled meanwhile, not of those that the cache has."""
    listener = Compilations()
    with event.install_listener(COMPILE, listener):
        yield listener.names


class WithoutCollection(event.Listener):
    """Garbage collection rests while a kernel of ours is compiled, which then takes a tenth less.

    Compiling holds a lock of Numba's: no two threads are here at once.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._was_on = False

    def on_start(self, event: event.Event) -> None:
        """Let it rest."""
        if is_ours(event):
            if self._depth == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """Go on as before."""
        if is_ours(event):
            self._depth -= 1
            if self._depth == 0 and self._was_on:
                gc.enable()


def is_ours(event: Any) -> bool:
    """Whether it is one of our kernels: users may have kernels of their own."""
    module: str | None = event.data["dispatcher"].py_func.__module__
    return module is not None and module.startswith(PACKAGE)


event.register(COMPILE, WithoutCollection())
