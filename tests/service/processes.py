"""`postserve serve` in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.service.playing import FILE
from tests.service.wires import PATIENCE, Wire

COMMAND = "from postserve.cli import main; main()"
FORKS = "from tests.service.processes import fork_services; fork_services()"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Service:
    """A running service."""

    def __init__(self, folder: Path, more: str = "", file: str = FILE) -> None:
        self.port = free_port()
        self.file, self.log, self.output = (
            folder / "experiment.toml",
            folder / "log.sqlite",
            folder / "output.txt",
        )
        server = f'[store]\npath = "log.sqlite"\nsnapshot_every = 200\n[server]\nport = {self.port}\n'
        self.file.write_text(f"{file}{server}most_bytes = 10000\n{more}", encoding="utf-8")
        self.start()

    def start(self) -> None:
        self.launch()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                assert self.is_running(), self.output.read_text()
                time.sleep(0.02)
        raise TimeoutError("the service did not start")

    def launch(self) -> None:
        command = [sys.executable, "-c", COMMAND, "serve", str(self.file)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        wire = Wire(self.port)
        try:
            got = wire.ask(method, path, body, f"Authorization: Bearer {key}\r\n" if key else "")
        finally:
            wire.close()
        return got.status, got.json

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Until it has ended, and how it did."""
        return self.process.wait(PATIENCE)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()


class Forked(Service):
    """A service that starts quickly: a process that has imported and compiled everything forks it."""

    parent: "subprocess.Popen[str] | None" = None

    def launch(self) -> None:
        if self.parent is None:
            command = [sys.executable, "-c", FORKS, str(self.file), str(self.output)]
            root, environment = Path(__file__).parents[2], {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.parent = subprocess.Popen(command, cwd=root, env=environment, text=True, bufsize=1, **pipes)  # type: ignore[call-overload]
        self.pid = int(self._ask_parent("start"))

    def is_running(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().split()[2] != "Z"  # it ends when it is waited for

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(int(self._ask_parent("wait")))

    def close(self) -> None:
        """End all of it."""
        if self.parent is not None:
            self.parent.communicate(timeout=PATIENCE)

    def _ask_parent(self, verb: str) -> str:
        assert self.parent is not None
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        print(verb, file=self.parent.stdin, flush=True)
        return self.parent.stdout.readline()


def fork_services() -> None:
    """The process that forks services: one at a time, as it is told on its standard input."""
    from postserve import cli
    from postserve.service.engine import Engine
    from postserve.service.experiment import read_experiment
    from postserve.service.log.stores.memory import MemoryStore

    file, output = sys.argv[1:]
    Engine(read_experiment(Path(file)), MemoryStore())._warm_up()
    child = 0
    for line in sys.stdin:
        if line.strip() == "wait":
            print(os.waitpid(child, 0)[1], flush=True)
            child = 0
        elif child := os.fork():
            print(child, flush=True)
        else:
            log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.argv = ["postserve", "serve", file]
            cli.main()
            return
    if child:
        os.kill(child, signal.SIGKILL)
