"""What the terminal shows of data sets: their terms, their places, and the progress of a download."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from postserve.data.fetching import fetch
from postserve.data.finding import find, read_checked
from postserve.data.registry import SETS, DataSet, data_set
from postserve.errors import InvalidInput
from postserve.terminal import say


def show(known: DataSet, console: Console) -> None:
    """Print title, terms and what to cite, wrapped at the terminal's width.

    >>> from postserve.data import data_set
    >>> show(data_set("hillstrom"), Console(width=60))  # doctest: +ELLIPSIS
    hillstrom
      Hillstrom's e-mail challenge: ...
      terms: No licence is stated; ...
      cite: K. Hillstrom, ...
    """
    console.print(known.name, style="bold", highlight=False)
    for text in (known.title, f"terms: {known.terms}", f"cite: {known.cite}"):
        lines = fill(text, max(console.width, 20), initial_indent="  ", subsequent_indent="    ")
        say(lines, console)


def show_sets(console: Console) -> None:
    """Every set, and where it is on this machine."""
    for known in SETS.values():
        show(known, console)
        say(f"  {whereabouts(known.name)}", console)


def fetch_and_show(names: list[str], folder: Path | None, console: Console) -> None:
    """State the terms of each set, then get it if it is not here."""
    for known in [data_set(name) for name in names]:
        show(known, console)
        with bar(known.name, console) as progress:
            file = fetch(known.name, folder=folder, progress=progress)
        say(f"  here: {file}", console)


def whereabouts(name: str) -> str:
    """Whether a set is here and where, or what is wrong with it.

    >>> whereabouts("hillstrom").split()[0] in ("here:", "not", "wrong:")
    True
    """
    try:
        file = find(name)
    except InvalidInput as error:
        return f"not here: {error}"
    try:
        read_checked(name)
    except InvalidInput as error:
        return f"wrong: {error}"
    return f"here: {file}"


@contextmanager
def bar(title: str, console: Console | None = None) -> Iterator[Callable[[int, int], None]]:
    """A progress bar: what `fetch` takes as `progress`.

    >>> with bar("hillstrom", Console(quiet=True)) as progress:
    ...     progress(10, 20)
    """
    console = console or Console()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    quiet = not console.is_terminal  # a transient line is of no use in a file
    with Progress(*columns, console=console, transient=True, disable=quiet) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total or None)
