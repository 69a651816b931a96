"""One benchmark in its own process: `python -m benchmarks.section NAME [--quick]`, one line per result."""

import importlib
import json
import sys


def main() -> None:
    found = importlib.import_module(f"benchmarks.{sys.argv[1]}").measure("--quick" in sys.argv)
    for name, value in found.items() if isinstance(found, dict) else found:
        print(json.dumps([name, value]), flush=True)


if __name__ == "__main__":
    main()
