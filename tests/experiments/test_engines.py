"""Every engine gives the same bits, one core a call, as they finish; what goes wrong is said, and ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.waiting import PATIENCE, wait_until
from threadpoolctl import threadpool_info, threadpool_limits

from postserve import InvalidInput, KernelMap, NetworkMap, PoLinUCB, RidgeMap, Study, SyntheticEnvironment
from postserve.experiments import clusters, engines
from postserve.experiments.engines import RunAll, check_engine, open_engine
from postserve.experiments.progress import progress_bar
from postserve.experiments.study import Cell, regret_cells, run_cells

OWN = ["local", "local=1", "local=2", "dask", "ray"]
FOREIGN = ["dask=", "ray="]
PACKAGES = {"dask": "distributed", "ray": "ray"}


@pytest.fixture(scope="module", params=[*OWN, *FOREIGN])
def run_all(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunAll]:
    skip_without(request.param)
    name = request.param.partition("=")[0]
    start = {"dask=": dask_cluster, "ray=": ray_cluster}.get(request.param)
    if start is None:
        with open_engine(request.param) as run:
            yield run
    else:
        with start(tmp_path_factory.mktemp("cluster")) as address, pytest.MonkeyPatch.context() as patch:
            patch.setattr(clusters, "TIMEOUT", PATIENCE)
            with open_engine(f"{name}={address}") as run:
                yield run


@contextmanager
def dask_cluster(folder: Path) -> Iterator[str]:
    """A scheduler, and a worker with two threads whose BLAS nobody limits."""
    address = f"tcp://127.0.0.1:{free_port()}"
    scheduler = ["scheduler", "--host", address, "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    worker = ["worker", address, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "2", "--no-dashboard"]
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    with running(["dask", *scheduler], folder, environment), running(["dask", *worker], folder, environment):
        wait_for_port(address)
        yield address


@contextmanager
def ray_cluster(folder: Path) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    head = ["ray", "start", "--head", "--block", "--num-cpus=2", "--include-dashboard=false"]
    port = ["--disable-usage-stats", f"--port={address.rpartition(':')[2]}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on the loopback only, here and there
        with running([*head, *port], folder, {**os.environ, "RAY_AUTH_MODE": "disabled"}) as log:
            wait_until(lambda: "Ray runtime started" in log.read_text())
            yield address


@contextmanager
def running(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    log = folder / f"{command[0]}-{command[1]}.log"
    program = str(Path(sys.executable).parent / command[0])
    with log.open("w") as file:
        process = subprocess.Popen(
            [program, *command[1:]], cwd=folder, env=environment, stdout=file, stderr=file
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(PATIENCE)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for_port(address: str) -> None:
    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(address.rpartition(":")[2]))) == 0

    wait_until(answers)


def functions(folder: Path) -> dict[str, Callable[[int], Any]]:
    """In here they are pickled by value: workers cannot import the tests."""

    def product(seed: int) -> tuple[int, bytes]:
        a = np.random.default_rng(seed).normal(size=(300, 300))
        return seed, (a @ a.T @ np.exp(a)).tobytes()

    def threads(item: int) -> int:
        time.sleep(0.02 * (item % 3))
        np.ones((2, 2)) @ np.ones((2, 2))
        return max(int(library["num_threads"]) for library in threadpool_info())

    def waits_for_the_first(item: int) -> tuple[int, bool]:
        seen, end = folder / "seen", time.monotonic() + PATIENCE
        while item == 2 and not seen.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return item, seen.exists()

    def nested(item: int) -> bool:
        from joblib import Parallel, delayed

        return set(Parallel()(delayed(os.getpid)() for _ in range(4))) == {os.getpid()}

    def fails(item: int) -> int:
        if item == 3:
            raise KeyError("three", item)
        return item

    def dies(item: int) -> None:
        os._exit(1)

    return {f.__name__: f for f in (product, threads, waits_for_the_first, nested, fails, dies)}


def test_bits_are_the_same_everywhere(run_all: RunAll, tmp_path: Path) -> None:
    product = functions(tmp_path)["product"]
    with threadpool_limits(1):
        assert sorted(run_all(product, range(6))) == [product(seed) for seed in range(6)]


def test_studies_are_the_same_everywhere(run_all: RunAll, study_here: Study) -> None:
    with progress_bar(quiet=True) as progress:
        assert run_cells(cells(), run_all, None, progress).runs.equals(study_here.runs)


@pytest.fixture(scope="module")
def study_here() -> Study:
    with threadpool_limits(1), progress_bar(quiet=True) as progress:
        return run_cells(cells(), map, None, progress)


def cells() -> list[Cell]:
    """Policies whose scores come out of BLAS and of compiled kernels, evidence and maps of every kind."""
    return regret_cells(
        {"polynomial": lambda seed: SyntheticEnvironment("polynomial", dim_x=40, seed=seed)},
        {
            "PoLinUCB": lambda env: PoLinUCB(
                env.n_arms, RidgeMap(env.dim_x, env.dim_z, features=env.features)
            ),
            "joint": lambda env: PoLinUCB(env.n_arms, KernelMap(env.dim_x, env.dim_z), optimism="joint"),
            "network": lambda env: PoLinUCB(env.n_arms, NetworkMap(env.dim_x, env.dim_z)),
        },
        horizon=150,
        seeds=[0, 1],
    )


def test_one_core_a_call(run_all: RunAll, tmp_path: Path) -> None:
    before = threadpool_info()
    assert set(run_all(functions(tmp_path)["threads"], range(12))) == {1}
    assert threadpool_info() == before
    assert all(run_all(functions(tmp_path)["nested"], range(2)))


def test_results_come_as_they_finish(run_all: RunAll, tmp_path: Path) -> None:
    results = run_all(functions(tmp_path)["waits_for_the_first"], range(3))
    first, _ = next(results)
    assert first != 2
    (tmp_path / "seen").touch()
    assert (2, True) in list(results)


def test_errors_are_the_functions_own_and_end_one_run_only(run_all: RunAll, tmp_path: Path) -> None:
    with pytest.raises(KeyError) as caught:
        list(run_all(functions(tmp_path)["fails"], range(6)))
    assert type(caught.value) is KeyError
    assert caught.value.args == ("three", 3)
    assert sorted(run_all(abs, range(5))) == list(range(5))
    assert list(run_all(abs, [])) == []


def test_a_run_may_be_left_early(run_all: RunAll) -> None:
    assert len(list(islice(run_all(abs, range(40)), 2))) == 2
    left = run_all(abs, range(40))
    next(left)
    assert sorted(run_all(abs, range(3))) == [0, 1, 2]
    del left


@pytest.mark.parametrize("spec", ["local=2", "dask"])  # a process can have one Ray; the fixture's is open
def test_an_engine_may_close_with_work_to_do(spec: str) -> None:
    skip_without(spec)
    with open_engine(spec) as run_all:
        left = run_all(time.sleep, [0, 0, 3600, 3600, 3600])
        next(left)
    assert list(left) == []


def test_a_worker_that_dies_is_an_error(tmp_path: Path) -> None:
    skip_without("dask")
    with open_engine("dask") as run_all, pytest.raises(Exception, match="load_and_call"):
        list(run_all(functions(tmp_path)["dies"], range(2)))


def test_what_a_worker_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without("dask")
    (tmp_path / "only_here.py").write_text("def double(x):\n    return 2 * x\n")
    with open_engine("dask") as run_all:
        monkeypatch.syspath_prepend(tmp_path)
        from only_here import double  # type: ignore[import-not-found]

        with pytest.raises(ModuleNotFoundError, match="only_here"):
            list(run_all(double, range(2)))


@pytest.mark.parametrize(
    "spec",
    [
        *("", "spark", "Local", "local=", "local=0", "local=x", "local=-1", "local=1.5", "local=²"),
        *("dask=", "dask=here", "dask=:8786", "dask=http://127.0.0.1:80", "dask=127.0.0.1:x", "dask=a b:1"),
        *("dask=127.0.0.1:0", "ray=", "ray=auto", "ray=tcp://127.0.0.1:6379", "ray=127.0.0.1:123456"),
    ],
)
def test_misspelt_engines(spec: str) -> None:
    with pytest.raises(InvalidInput, match=r"engine is .*, wanted local, local=N, or dask or ray"):
        check_engine(spec)
    with pytest.raises(InvalidInput), open_engine(spec):
        pass


@pytest.mark.parametrize("spec", ["dask", "dask=tcp://127.0.0.1:8786", "ray"])
def test_missing_packages(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"not installed, wanted: pip install 'postserve\[(dask|ray)\]'"):
        check_engine(spec)


@pytest.mark.parametrize(
    "spec", ["dask=tcp://127.0.0.1:1", "dask=127.0.0.1:1", "ray=127.0.0.1:1", "ray=ray://127.0.0.1:1"]
)
def test_nobody_answers(spec: str) -> None:
    skip_without(spec)
    with pytest.raises(InvalidInput, match="refused, wanted a cluster with workers"), open_engine(spec):
        pass


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_something_else_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without(name)
    monkeypatch.setattr(clusters, "TIMEOUT", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        spec = f"{name}=127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InvalidInput, match="not ready within 2 s, wanted a cluster"), open_engine(spec):
            pass


INTERRUPTED = """
import os, signal, sys, time
from functools import partial
from pathlib import Path
from joblib import cpu_count
from postserve.experiments.engines import open_engine

def pid_then_sleep(folder, processes, item):
    (folder / f"{os.getpid()}.up").touch()
    while len(list(folder.glob("*.up"))) < processes:  # one that still starts would hear the interrupt
        time.sleep(0.01)
    time.sleep(0 if item < processes else 3600)
    return os.getpid()

if __name__ == "__main__":
    # A suite that a shell runs in the background ignores interrupts, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        spec, pause = sys.argv[1:]
        processes = int(spec.partition("=")[2] or cpu_count())
        with open_engine(spec) as run_all:
            for pid in run_all(partial(pid_then_sleep, Path.cwd(), processes), range(4 * processes)):
                print(pid, flush=True)
                time.sleep(float(pause))
    except KeyboardInterrupt:
        sys.exit(3)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals a process group")
@pytest.mark.parametrize(  # while it waits for a result, or between two
    ("spec", "pause"), [("local=2", "0"), ("local=2", "3600"), ("dask", "0"), ("ray", "3600")]
)
def test_an_interrupt_leaves_nothing_behind(spec: str, pause: str, tmp_path: Path) -> None:
    skip_without(spec)
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "interrupted.py", spec, pause],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (3, "")
    wait_until(lambda: not alive(worker))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def skip_without(spec: str) -> None:
    package = PACKAGES.get(spec.partition("=")[0], "joblib")
    if not find_spec(package):  # no importorskip: Ray must not be imported before its engine is
        pytest.skip(f"{package} is not installed")
