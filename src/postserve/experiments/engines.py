"""The one seam to parallel execution: joblib, on local processes, a Dask cluster or a Ray cluster."""

import re
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import takewhile
from threading import Lock, RLock
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakSet

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from postserve.errors import InvalidInput, PostserveError

Item = TypeVar("Item")
Result = TypeVar("Result")

_ADDRESS = r"([\w.-]+|\[[\da-fA-F:.]+\]):[1-9]\d{0,4}"
_VALUES = {"local": r"[1-9]\d{0,2}", "dask": rf"((tcp|tls)://)?{_ADDRESS}", "ray": rf"(ray://)?{_ADDRESS}"}
_PACKAGES = {"local": "joblib", "dask": "distributed", "ray": "ray"}


class RunAll(Protocol):
    """Call the function on every item; results come as they finish, in that order."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]: ...


def check_engine(spec: str) -> tuple[str, str]:
    """The engine's name and the text after =, if it is spelt right and installed; nothing is started.

    >>> check_engine("local=4"), check_engine("local")
    (('local', '4'), ('local', ''))
    """
    name, equals, value = spec.partition("=") if isinstance(spec, str) else ("", "", "")
    if name not in _VALUES or (equals and not re.fullmatch(_VALUES[name], value, re.ASCII)):
        raise InvalidInput(f"engine is {spec!r}, wanted local, local=N, or dask or ray, alone or =HOST:PORT")
    if not find_spec(_PACKAGES[name]):
        missing = f"engine is {spec!r}, but {_PACKAGES[name]} is not installed"
        raise InvalidInput(f"{missing}, wanted: pip install 'postserve[{name}]'")
    return name, value


@contextmanager
def open_engine(spec: str) -> Iterator[RunAll]:
    """Processes here, or a cluster: one of our own, which ends with the block, or the one at the address.

    spec: "local" (one process per core), "local=N" (N of them; 1 is this one), "dask", "dask=HOST:PORT",
    "ray" or "ray=HOST:PORT". Runs that are not finished when the block ends are cancelled.

    >>> with open_engine("local=1") as run_all:
    ...     sorted(run_all(abs, [-1, -2]))
    [1, 2]
    """
    name, value = check_engine(spec)
    with ExitStack() as stack:
        backend: Any
        more: dict[str, Any] = {}
        if name == "local":
            # When a run is cancelled, loky (in joblib 1.6) fails on calls that its thread has not yet put in
            # its queue, which holds two per process and one more.
            backend, n_jobs, ahead = "loky", int(value or cpu_count()), "2*n_jobs"
            # This process handles interrupts from the keyboard.
            more["initializer"] = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
            stack.enter_context(_local_processes())
        else:
            from postserve.experiments import clusters

            start = clusters.on_dask if name == "dask" else clusters.on_ray
            # Any number but 1, for which joblib would stay in this process: the cluster knows its own size.
            backend, n_jobs = start(spec, value, stack), 2
            ahead = backend.ahead
        runs: WeakSet[Generator[Any, None, None]] = WeakSet()

        def run_all(function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
            items = list(items)
            parallel = Parallel(
                min(n_jobs, max(1, len(items))),
                backend=backend,
                return_as="generator_unordered",
                pre_dispatch=ahead,
                batch_size=1,
                **more,
            )
            run = _results(parallel, (delayed(_alone)(function, item) for item in items))
            runs.add(run)
            return run

        @stack.callback
        def close_runs() -> None:  # before the processes end
            for run in list(runs):
                run.close()

        yield run_all


_processes, _open = RLock(), 0


@contextmanager
def _local_processes() -> Iterator[None]:
    """For one thread at a time, as joblib's are shared; the last engine ends them, which joblib would not."""
    global _open
    with _processes:
        _open += 1
        try:
            yield
        finally:
            _open -= 1
            if not _open:
                get_reusable_executor(reuse=True).shutdown(kill_workers=True)


def _results(
    parallel: "Parallel[Literal['generator_unordered']]", calls: Iterable[Any]
) -> Generator[Any, None, None]:
    left = False
    results = parallel(takewhile(lambda _: not left, calls))
    try:
        for result in results:  # noqa: UP028 (`yield from` would close them first)
            yield result
    except TerminatedWorkerError as error:
        raise PostserveError("a process ended before its work, by a signal or out of memory") from error
    except GeneratorExit:
        left = True
        time.sleep(0.05)  # for loky's thread to queue what it was sent last, see above
        raise
    finally:
        with warnings.catch_warnings():  # joblib warns of results that were not fetched
            warnings.filterwarnings("ignore", r"-?\d+ tasks", UserWarning)
            results.close()


_lock, _limit, _running = Lock(), ExitStack(), 0


def _alone(function: Callable[[Item], Result], item: Item) -> Result:
    """One call on one core, however its worker was started: with more threads, sums end in other bits."""
    global _running
    with _lock:
        # BLAS has one limit per process, where a Dask worker may run several calls: the last one lifts it.
        # Each call sets it anew, since what was imported since may have brought another BLAS.
        _limit.enter_context(threadpool_limits(1, user_api="blas"))
        _running += 1
    try:
        # OpenMP's limit is the thread's. Nested joblib would go back to the cluster, and past these limits.
        with threadpool_limits(1, user_api="openmp"), parallel_config("sequential"):
            return function(item)
    finally:
        with _lock:
            _running -= 1
            if not _running:
                _limit.close()
