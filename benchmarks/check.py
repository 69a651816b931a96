"""Whether our own ratios are still what was committed: `python -m benchmarks.check [--commit]`.

Runs the quick form of rounds, batches, refits and candidates. A ratio may exceed the committed one by the
tolerance that benchmarks/committed.json states; what exceeds it is measured up to twice more, since
machines are noisy, and fails if it exceeds it every time. `--commit` writes the file, from medians of three.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.running import run

COMMITTED = Path(__file__).with_name("committed.json")
CHECKED = ("rounds", "batches", "refits", "candidates")
TOLERANCE, ATTEMPTS = 0.35, 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check")
    parser.add_argument("--commit", action="store_true", help="write the ratios of now")
    asked = parser.parse_args()
    if asked.commit:
        commit()
    else:
        sys.exit(check())


def ratios(section: str) -> dict[str, float]:
    """Every ratio of a section, by a name that says which."""
    found: dict[str, float] = {}
    for name, value in run(section, quick=True):
        ratio = value.get("ratio") if isinstance(value, dict) else value
        if isinstance(ratio, dict):
            found.update({f"{section}: {name}, {what}": number for what, number in ratio.items()})
        elif isinstance(ratio, int | float) and not (section == "refits" and "share" not in name):
            found[f"{section}: {name}"] = float(ratio)
        elif name == "failed":
            sys.exit(f"{section} {value}")
    return found


def exceeding(found: dict[str, float], committed: dict[str, float], tolerance: float) -> list[str]:
    """The names of ratios above committed·(1 + tolerance), and of those that are missing."""
    return [
        name for name, limit in committed.items() if found.get(name, float("inf")) > limit * (1.0 + tolerance)
    ]


def check() -> int:
    kept: dict[str, Any] = json.loads(COMMITTED.read_text())
    failed: list[str] = []
    for section in CHECKED:
        left = {name: value for name, value in kept["ratios"].items() if name.startswith(f"{section}: ")}
        found: dict[str, float] = {}
        for _ in range(ATTEMPTS):
            again = ratios(section)
            found = {name: min(again[name], found.get(name, again[name])) for name in again}
            left = {name: left[name] for name in exceeding(found, left, kept["tolerance"])}
            if not left:
                break
        failed += [f"{name}: {_said(found.get(name))}, committed {left[name]:.3g}" for name in left]
        print(f"{section}: {len(found)} ratios, {len(left)} beyond what was committed", flush=True)
    for word in failed:
        print(f"slower: {word}")
    return 1 if failed else 0


def commit() -> None:
    runs = [{name: value for section in CHECKED for name, value in ratios(section).items()} for _ in range(3)]
    medians = {name: float(f"{statistics.median(run[name] for run in runs):.3g}") for name in runs[0]}
    COMMITTED.write_text(json.dumps({"tolerance": TOLERANCE, "ratios": medians}, indent=1) + "\n")
    print(f"{len(medians)} ratios written to {COMMITTED.name}")


def _said(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3g}"


if __name__ == "__main__":
    main()
