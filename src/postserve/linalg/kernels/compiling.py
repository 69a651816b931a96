"""While kernels are compiled: their names are noted, and garbage collection is off."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

COMPILE = "numba:compile"
PACKAGE = __name__.rpartition(".")[0]


class Compilations(event.Listener):
    """The names of our kernels that were compiled, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: event.Event) -> None:
        """Note the name of one of our kernels."""
        if is_ours(event):
            self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        """Do nothing: it was noted at the start."""


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of the kernels that are compiled inside, without those found in the cache."""
    listener = Compilations()
    with event.install_listener(COMPILE, listener):
        yield listener.names


class WithoutCollection(event.Listener):
    """No garbage collection while one of our kernels is compiled, which then takes a tenth less.

    Numba's compiler lock keeps other threads out.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._was_on = False

    def on_start(self, event: event.Event) -> None:
        """Turn it off."""
        if is_ours(event):
            if self._depth == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """Turn it on again, if it was on."""
        if is_ours(event):
            self._depth -= 1
            if self._depth == 0 and self._was_on:
                gc.enable()


def is_ours(event: Any) -> bool:
    """Whether it is one of our kernels, not a user's."""
    module: str | None = event.data["dispatcher"].py_func.__module__
    return module is not None and module.startswith(PACKAGE)


event.register(COMPILE, WithoutCollection())
