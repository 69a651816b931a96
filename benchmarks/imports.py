"""Importing, as a ratio to importing numpy (fresh interpreters in turn, warm caches, medians)."""

import statistics
import subprocess
import sys
import time

REPEATS = 15


def measure() -> dict[str, float]:
    """Medians over interleaved runs."""
    statements = {
        "import numpy": "import numpy",
        "import postserve": "import postserve",
        "import numpy, postserve": "import numpy, postserve",
        "from postserve import PoLinUCB (numba comes along)": "from postserve import PoLinUCB",
    }
    times: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(REPEATS):
        for name, code in statements.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times[name].append(time.perf_counter() - start)
    reference = statistics.median(times.pop("import numpy"))
    return {name: statistics.median(values) / reference for name, values in times.items()}
