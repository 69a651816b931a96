"""Dask and Ray as joblib sees them, for `engines`."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import cloudpickle
from joblib import cpu_count
from joblib.parallel import ParallelBackendBase

from postserve.errors import InvalidInput, PostserveError

TIMEOUT = 30
"""Seconds for a cluster to answer and to show a worker; on a busy machine Ray's client takes ten."""

Call = Callable[[], Any]
Start = Callable[[Call], tuple[Any, Call]]
"""Send a call: its future, and what cancels it if it has not begun."""


class Cluster(ParallelBackendBase):
    """joblib on a cluster's futures.

    The backends of joblib 1.6 and Ray 2.60 are not enough: Dask's waits for ever when a worker dies; Ray's
    keeps all results to the end, and queues calls behind a long one while other workers idle; both stay in
    this process while the cluster shows one core.
    """

    supports_retrieve_callback = True  # so that joblib can hand results out as they come

    def __init__(self, start: Start, ahead: int | str) -> None:
        super().__init__()
        self._start = start
        self.ahead = ahead
        """How many calls joblib may send before the first result."""
        self._cancels: dict[Any, Call] = {}

    def effective_n_jobs(self, n_jobs: int) -> int:
        return n_jobs

    def submit(self, func: Call, callback: Callable[[Any], None] | None = None) -> Any:
        """Send a call; the callback gets its future once it is done."""
        future, cancel = self._start(func)
        self._cancels[future] = cancel
        if callback is not None:  # joblib always gives one
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """A future's result, or the function's own error."""
        self._cancels.pop(out, None)
        try:
            result, error = out.result()
        except Exception as lost:  # the function's own errors are results
            raise PostserveError(f"the cluster lost a call: {lost}") from lost
        if error is not None:
            raise error
        return result

    def abort_everything(self, ensure_ready: bool = True) -> None:
        for future in list(self._cancels):
            self._cancels.pop(future, lambda: None)()


def on_dask(spec: str, address: str, stack: ExitStack) -> Cluster:
    """The scheduler at the address, or one of our own on the loopback, with one process per core."""
    from distributed import Client, LocalCluster

    if address:
        _try_to_connect(spec, address, "from distributed import Client; Client({!r}).wait_for_workers(1)")
        client = stack.enter_context(Client(address, timeout=TIMEOUT, set_as_default=False))
    else:
        with _deaf_to_interrupts():
            cluster = LocalCluster(
                n_workers=cpu_count(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # None would take port 8787, and warn where it is taken
                scheduler_kwargs={"dashboard": False},
                silence_logs="CRITICAL",  # what goes wrong is raised here
            )
        client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
    load_and_call = _load_and_call()

    def start(call: Call) -> tuple[Any, Call]:
        future = client.submit(load_and_call, cloudpickle.dumps(call), pure=False)
        return future, future.cancel

    return Cluster(start, "all")


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that start in here ignore interrupts from the keyboard, which this one handles."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set it
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def on_ray(spec: str, address: str, stack: ExitStack) -> Cluster:
    """The cluster at the address, or one of our own on the loopback, with one process per core."""
    settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    environment = {"RAY_USAGE_STATS_ENABLED": "0"}
    if address:
        code = "import ray; ray.init({!r}, log_to_driver=False); ray.cluster_resources()['CPU']"
        _try_to_connect(spec, address, code)
    else:
        settings |= {"num_cpus": cpu_count(), "include_dashboard": False}
        # Keeps its ports on the loopback, as where clusters are not supported; Ray reads it when imported.
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    with patch.dict(os.environ, environment):
        import ray

        if ray.is_initialized():
            raise InvalidInput(f"engine is {spec!r}, but Ray runs here already, wanted ray.shutdown() first")
        stack.callback(ray.shutdown)
        ray.init(address or "local", **settings)
    remote = ray.remote(num_cpus=1)(_load_and_call())

    def start(call: Call) -> tuple[Any, Call]:
        ref = remote.remote(cloudpickle.dumps(call))
        return ref.future(), lambda: None

    # Ray 2.60 may abort this process when a call is cancelled just as it begins, and with force may end a
    # worker that is in another call by then. So nothing is cancelled, and little is sent ahead.
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return Cluster(start, 2 * max(1, int(resources["CPU"])))


def _load_and_call() -> Callable[[bytes], tuple[Any, Exception | None]]:
    # A nested function is pickled by value: a worker without postserve can load it and report what is
    # missing, instead of losing its connection. Errors come back as results, so that their types are kept.
    def load_and_call(call: bytes) -> tuple[Any, Exception | None]:
        import pickle
        import traceback

        try:
            return pickle.loads(call)(), None
        except Exception as error:
            error.add_note(f"On the worker: {traceback.format_exc()}")
            return None, error

    return load_and_call


def _try_to_connect(spec: str, address: str, code: str) -> None:
    """Connect in another process first: Dask and Ray retry for minutes where something else answers."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    command = [sys.executable, "-c", code.format(address)]
    try:
        where = (host.strip("[]"), int(port))
        socket.create_connection(where, TIMEOUT).close()  # fails at once if nothing is there
        subprocess.run(command, capture_output=True, check=True, text=True, timeout=TIMEOUT)
    except (OSError, OverflowError) as error:
        got = str(error)
    except subprocess.TimeoutExpired:
        got = f"it was not ready within {TIMEOUT} s"
    except subprocess.CalledProcessError as error:
        got = error.stderr.strip().rpartition("\n")[2]
    else:
        return
    raise InvalidInput(f"engine is {spec!r}, but {got}, wanted a cluster with workers")
