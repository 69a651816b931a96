"""Sections run one after another, each in a fresh process with one thread; results kept as they come."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECTIONS = {
    "floor": "The floor of a select",
    "rounds": "One round over plain numpy",
    "against": "One round, ours and the peers'",
    "exactness": "Choices and weights of a direct solve",
    "batches": "Batches over the product they need",
    "scaling": "More arms, dimensions and rounds",
    "candidates": "100,000 candidates",
    "refits": "Learning the prior",
    "imports": "Starting",
    "studies": "Whole studies",
    "service": "The decision service",
}
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "NUMBA")}
COMPUTES_WITH = ("numpy", "scipy", "numba", "scikit-learn", "postserve")


def run(section: str, quick: bool) -> Iterator[tuple[str, Any]]:
    """The section's results as they come, and how it ended if it failed."""
    command = [sys.executable, "-m", "benchmarks.section", section, *(["--quick"] if quick else [])]
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            for line in child.stdout or ():
                name, value = json.loads(line)
                yield name, value
        except BaseException:
            child.terminate()
            raise
    if child.returncode:
        yield "failed", f"ended with {child.returncode}"


class Results:
    """All results so far, in one file that is rewritten with each new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.all.update(machine=machine(), versions=versions())
        self.all.setdefault("results", {})
        self.all.setdefault("quick", {})

    def begin(self, section: str, quick: bool) -> None:
        """Forget the earlier results of a section."""
        self.all["results"][section], self.all["quick"][section] = {}, quick

    def add(self, section: str, name: str, value: Any) -> None:
        self.all["results"][section][name] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        beside.write_text(json.dumps(self.all, indent=1) + "\n")
        beside.replace(self.path)


def machine() -> dict[str, Any]:
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ("".join(_lines(str(index / name))).strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            caches[f"L{level}"] = size
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "caches": caches,
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in COMPUTES_WITH}}


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
