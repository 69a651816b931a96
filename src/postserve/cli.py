"""The command line: arguments only."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"{missing.name} is not installed, wanted: pip install 'postserve[experiments]'"
    ) from missing

from postserve import __version__
from postserve.errors import PostserveError

INTERRUPTED, REFUSED = 130, 2

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Contextual bandits with post-serving contexts.",
)

data_app = typer.Typer(no_args_is_help=True, help="Real data sets: what there is, and getting it.")
app.add_typer(data_app, name="data")

Seeds = Annotated[int | None, typer.Option(help="How many seeds; at least 2.")]
Engine = Annotated[
    str, typer.Option(help="Where cells run: local, local=N, dask, dask=HOST:PORT, ray or ray=HOST:PORT.")
]
DATA = r"The folder of the real data sets. \[default: $POSTSERVE_DATA, or what `postserve data fetch` keeps]"
OUT = "The folder for results; finished cells there are not run again."


@app.command()
def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Figures, as `postserve list` names them, or all.")
    ],
    seeds: Seeds = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds; at least 20.")] = None,
    engine: Engine = "local",
    out: Annotated[Path | None, typer.Option(help=rf"{OUT} \[default: out, or out/quick]")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small world, few rounds and seeds.")] = False,
    data: Annotated[Path | None, typer.Option(help=DATA)] = None,
) -> None:
    """Run figures of the paper and write their pictures, tables and one report."""
    console = Console()
    with told_errors():
        from postserve.experiments.figures import FIGURES
        from postserve.experiments.reproduce import lacks_data, plan, reproduce
        from postserve.experiments.tables import tables

        plans = plan(names, seeds=seeds, horizon=horizon, quick=quick, data=data)
        for figure in FIGURES.values() if "all" in names else ():
            if missing := lacks_data(figure, data):
                console.print(f"{figure.name} is left out: {missing}", soft_wrap=True, markup=False)
        out = out or Path("out/quick" if quick else "out")
        for planned, summary in reproduce(plans, out, engine=engine, console=console):
            console.print(f"[bold]{planned.figure.title}[/bold]")
            for texts in tables(summary):
                shown = Table(title=texts.title, title_justify="left")
                for name in texts.header:
                    shown.add_column(name, overflow="fold")
                for row in texts.rows:
                    shown.add_row(*row)
                console.print(shown)
        console.print(f"report: {out / 'report.html'}", soft_wrap=True, markup=False, highlight=False)


@app.command("list")
def list_figures() -> None:
    """Name the figures that can be reproduced."""
    with told_errors():
        from postserve.experiments.figures import FIGURES

        shown = Table("name", "figure", "rounds", "seeds", "with --quick")
        for figure in FIGURES.values():
            size, quick = figure.size, figure.quick
            few = f"{quick.horizon:,} rounds, {quick.seeds} seeds"
            title = figure.title + (f" (data: {', '.join(figure.data)})" if figure.data else "")
            shown.add_row(figure.name, title, f"{size.horizon:,}", str(size.seeds), few)
        Console().print(shown)


@app.command()
def tune(
    seeds: Annotated[int, typer.Option(help="How many seeds; at least 2.")] = 12,
    engine: Engine = "local",
    out: Annotated[Path, typer.Option(help=OUT)] = Path("out"),
) -> None:
    """Run the study that the defaults come from, in worlds that no figure is judged on."""
    console = Console()
    with told_errors():
        from postserve.experiments.tuning import tune

        console.print(tune(out, seeds=seeds, engine=engine, console=console), markup=False, soft_wrap=True)
        console.print(f"tables: {out / 'tuning' / 'tuning.md'}", soft_wrap=True, markup=False)


@app.command("warm-up")
def warm_up_usual() -> None:
    """Compile what the usual policies need, so that their first rounds need not wait for it."""
    console = Console()
    with told_errors():
        from postserve.warming import USUAL, cache_folder, warm_up

        for name, make in USUAL.items():
            with console.status(name):
                compiled, seconds = warm_up(make())
            done = f"kernels compiled: {len(set(compiled))}" if compiled else "nothing to compile"
            console.print(f"{name}: {done}, {seconds:.1f} s", soft_wrap=True, markup=False, highlight=False)
            if compiled:
                console.print(f"  {', '.join(sorted(set(compiled)))}", markup=False, highlight=False)
        console.print(f"cache: {cache_folder()}", soft_wrap=True, markup=False, highlight=False)


@data_app.command("list")
def list_data() -> None:
    """Name the data sets, their terms, and where they are on this machine."""
    console = Console()
    with told_errors():
        from postserve.data.registry import SETS
        from postserve.data.showing import show, whereabouts

        for known in SETS.values():
            show(known, console)
            console.print(f"  {whereabouts(known.name)}", soft_wrap=True, markup=False, highlight=False)


@data_app.command("fetch")
def fetch_data(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Data sets, as `postserve data list` names them.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where to put them, instead of $POSTSERVE_DATA, $POSTSERVE_CACHE or the user's cache."
        ),
    ] = None,
) -> None:
    """State the terms of data sets, then get from their publishers what is not here."""
    console = Console()
    with told_errors():
        from postserve.data import data_set, fetch
        from postserve.data.showing import bar, show

        for known in [data_set(name) for name in names]:
            show(known, console)
            with bar(known.name, console) as progress:
                file = fetch(known.name, folder=folder, progress=progress)
            console.print(f"  here: {file}", soft_wrap=True, markup=False, highlight=False)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    """Contextual bandits with post-serving contexts."""
    if version:
        print(f"postserve {__version__}")
        raise typer.Exit()


@contextmanager
def told_errors() -> Iterator[None]:
    """Say in one line what a user can mend, and leave with status 2; 130 where it was interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it may go on later, too
    ended = threading.Event()
    sys.unraisablehook = partial(_send_again, ended)
    try:
        yield
    except (PostserveError, OSError) as error:
        told = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            told = f"{error.strerror}: {error.filename}"
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            told += ", wanted more room; finished cells are kept"
        _tell(f"postserve: {told}")
        raise typer.Exit(REFUSED) from error
    except KeyboardInterrupt as interrupt:
        _tell("postserve: interrupted; the same command goes on from here")
        raise typer.Exit(INTERRUPTED) from interrupt
    finally:
        ended.set()
        sys.unraisablehook = sys.__unraisablehook__


def _send_again(ended: threading.Event, lost: Any) -> None:
    """An interrupt that fell where Python cannot raise it is not lost: it comes again a second later."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return

    def interrupt() -> None:
        if not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    later = threading.Timer(1.0, interrupt)
    later.daemon = True
    later.start()


def _tell(text: str) -> None:
    Console(stderr=True).print(text, soft_wrap=True, markup=False, highlight=False)


def main() -> None:
    """The command `postserve`; a terminal that cannot show a sign gets another in its place."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
