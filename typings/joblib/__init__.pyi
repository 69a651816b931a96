# joblib ships no types, and joblib-stubs lacks joblib.externals.
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any

from joblib.parallel import ParallelBackendBase

class Parallel:
    def __init__(
        self,
        n_jobs: int = ...,
        *,
        backend: str | ParallelBackendBase = ...,
        return_as: str = ...,
        pre_dispatch: str = ...,
        batch_size: int = ...,
        **backend_kwargs: Any,
    ) -> None: ...
    def __call__(self, iterable: Iterable[Any]) -> Generator[Any]: ...

def cpu_count() -> int: ...
def delayed(function: Callable[..., Any]) -> Callable[..., Any]: ...
def parallel_config(backend: str) -> AbstractContextManager[Any]: ...
