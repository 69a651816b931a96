"""From names to figures: run, draw, judge, write."""

import json
import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress

from postserve.data.finding import read_checked
from postserve.errors import InvalidInput
from postserve.experiments import report, style
from postserve.experiments.cells import kept_cells, parquet
from postserve.experiments.engines import RunAll, check_engine, open_engine
from postserve.experiments.figure import Figure, Row, Size
from postserve.experiments.figures import FIGURES
from postserve.experiments.progress import progress_bar
from postserve.experiments.study import Study, run_cells
from postserve.files import locked, write_together
from postserve.validation import integer

PACKAGES = ("postserve", "numpy", "scipy", "numba", "scikit-learn", "joblib", "polars", "matplotlib")
LEAST_HORIZON = 20
"""Growth is measured over the last nine tenths, which needs some rounds."""
MOST_HORIZON, MOST_SEEDS = 10_000_000, 10_000


class Plan(NamedTuple):
    """A figure, its size, and the folder of real data."""

    figure: Figure
    size: Size
    data: Path | None = None

    @property
    def command(self) -> str:
        horizon, seeds, quick = self.size
        words = ["postserve", "reproduce", self.figure.name, "--horizon", str(horizon), "--seeds", str(seeds)]
        words += ["--quick"] if quick else []
        return shlex.join([*words, *(["--data", str(self.data)] if self.figure.data and self.data else [])])

    @property
    def given(self) -> tuple[Any, ...]:
        """What the figure's cells and settings are made from."""
        return (self.size, self.data) if self.figure.data else (self.size,)


def plan(
    names: Sequence[str],
    *,
    seeds: int | None = None,
    horizon: int | None = None,
    quick: bool = False,
    data: Path | None = None,
) -> list[Plan]:
    """The named figures in the given size; "all" is every one whose data are there and undamaged."""
    unknown = [name for name in names if name not in (*FIGURES, "all")]
    if unknown or not names:
        got = ", ".join(map(repr, unknown)) or "no name"
        raise InvalidInput(f"there is no figure {got}, wanted 'all' or some of {', '.join(FIGURES)}")
    plans = []
    for figure in FIGURES.values():
        missing = lacks_data(figure, data)
        if figure.name in names and missing:
            raise InvalidInput(missing)  # before any work
        if figure.name in names or ("all" in names and not missing):
            size = figure.quick if quick else figure.full
            if seeds is not None:
                size = size._replace(seeds=_within("seeds", seeds, 2, MOST_SEEDS))
            if horizon is not None:
                size = size._replace(horizon=_within("horizon", horizon, LEAST_HORIZON, MOST_HORIZON))
            plans.append(Plan(figure, size, data))
    return plans


def lacks_data(figure: Figure, data: Path | None) -> str | None:
    """Why a figure's data cannot be used, if so."""
    try:
        for name in figure.data:
            read_checked(name, data)
    except InvalidInput as missing:
        return str(missing)
    return None


def _within(name: str, value: int, least: int, most: int) -> int:
    if value > most:
        raise InvalidInput(f"{name} is {value}, wanted at most {most:,}: no machine would finish")
    return integer(name, value, least=least)


class Result(NamedTuple):
    """What was written of a figure: the rows of summary.json, and its headline if it has one."""

    planned: Plan
    summary: list[Row]
    headline: str | None


def reproduce(
    plans: Sequence[Plan], out: Path, *, engine: str = "local", console: Console | None = None
) -> Iterator[Result]:
    """Run each figure and write its folder and the report; yields each result as it is written.

    `out/NAME` then has summary.json, runs.parquet, figure.png and figure.pdf (some have an overview.png too)
    and the finished cells, which are not run again; `out/report.html` has every figure in `out`.
    """
    check_engine(engine)
    for planned in plans:
        check_folder(out / planned.figure.name)
    with open_engine(engine) as run_all, progress_bar(console=console) as progress:
        for planned in plans:
            yield _reproduce_one(planned, out, run_all, progress)


def _reproduce_one(planned: Plan, out: Path, run_all: RunAll, progress: Progress) -> Result:
    figure = planned.figure
    folder = out / figure.name
    cells = figure.cells(*planned.given)
    with kept_cells(folder / "cells") as kept:
        study = run_cells(cells, run_all, kept, progress, title=figure.name, measure=figure.measure)
        summary = [{"figure": figure.name, **NO_REGRET, **row} for row in figure.summary(study)]
        with locked(folder, wait=True):
            write_together(folder, _files(planned, study, summary))
    with locked(out, wait=True):  # another run may have another figure for the same page
        write_together(out, {"report.html": report.render(out).encode()})
    return Result(planned, summary, _headline(planned, study))


NO_REGRET = dict.fromkeys(
    ("environment", "policy", "horizon", "seeds", "final_regret_mean", "final_regret_se")
)
"""Every row has these, in this order; they are None in figures without regret."""


def _files(planned: Plan, study: Study, summary: list[Row]) -> dict[str, bytes]:
    figure, size = planned.figure, planned.size
    section = {
        "title": figure.title + (" (--quick)" if size.quick else ""),
        "headline": _headline(planned, study),
        "about": figure.about,
        # A small world with few seeds cannot settle anything.
        "claims": [
            (claim._replace(held=None) if size.quick else claim)._asdict() for claim in figure.claims(study)
        ],
        "settings": {
            "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds",
            **figure.settings(*planned.given),
        },
        "command": planned.command,
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]
        ),
    }
    pictures = style.encoded(figure.draw(study))
    if figure.overview:
        pictures |= style.encoded(figure.overview(study), "overview")
    files = {"runs.parquet": parquet(study.runs), "summary.json": _json(summary), **pictures}
    return {
        **files,
        report.SECTION: _json(section),
    }  # the last to be renamed: where it is, the figure is whole


def _headline(planned: Plan, study: Study) -> str | None:
    if planned.figure.headline is None:
        return None
    found = planned.figure.headline(study)
    small = f"In a run too small to settle anything (--quick): {found[0].lower()}{found[1:]}"
    return small if planned.size.quick else found


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written, before any work and without making it."""
    nearest = out
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InvalidInput(f"out is {str(out)!r} and {nearest} is a file, wanted a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidInput(f"out is {str(out)!r} and {nearest} cannot be written, wanted a folder that can")
