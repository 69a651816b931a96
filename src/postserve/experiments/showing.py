"""Figures in a terminal: the list of them, and a run with its progress, its tables and its report."""

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from postserve.experiments import tables
from postserve.experiments.figures import FIGURES
from postserve.experiments.reproduce import Plan, Result, lacks_data, reproduce
from postserve.terminal import say


def show_list(console: Console) -> None:
    """One row per figure."""
    shown = Table("name", "figure", "rounds × seeds", "--quick")
    for figure in FIGURES.values():
        title = figure.title + (f" (data: {', '.join(figure.data)})" if figure.data else "")
        sizes = (f"{size.horizon:,} × {size.seeds}" for size in (figure.full, figure.quick))
        shown.add_row(figure.name, title, *sizes)
    console.print(shown)


def show_left_out(data: Path | None, console: Console) -> None:
    """The figures whose data are missing or damaged."""
    for figure in FIGURES.values():
        if missing := lacks_data(figure, data):
            say(f"{figure.name} is left out: {missing}", console)


def run_and_show(plans: list[Plan], out: Path, engine: str, console: Console) -> None:
    """Run figures; show the tables of each, its headline, and in the end where the report is."""
    for result in reproduce(plans, out, engine=engine, console=console):
        console.print(f"[bold]{result.planned.figure.title}[/bold]")
        for table in _fitting(result, console):
            console.print(table)
        if result.headline is not None:
            console.print(result.headline, markup=False, highlight=False)
    say(f"report: {out / 'report.html'}", console)


def _fitting(result: Result, console: Console) -> Iterable[Table]:
    """Each table with as much detail as fits the terminal."""
    unbounded = console.options.update(max_width=10_000)
    for texts in zip(
        *(tables.tables(result.summary, detail) for detail in get_args(tables.Detail)), strict=True
    ):
        found = [_table(each) for each in texts]
        fits = (t for t in found if Measurement.get(console, unbounded, t).maximum <= console.width)
        yield next(fits, found[-1])


def _table(texts: tables.Table) -> Table:
    table = Table(title=Text(texts.title), title_justify="left")  # in a Text, brackets are no markup
    for column, name in enumerate(texts.header):
        table.add_column(Text(name), overflow="fold", justify="left" if column == 0 else "right")
    for row in texts.rows:
        table.add_row(*map(Text, row))
    return table
