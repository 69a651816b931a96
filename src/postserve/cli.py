"""The command line: arguments only."""

from pathlib import Path
from typing import Annotated, Any

from postserve.extras import refuse_without_extra

try:
    import typer
    from rich.console import Console
except ModuleNotFoundError as missing:
    refuse_without_extra(missing)

from postserve import __version__
from postserve.terminal import errors_in_one_line, replace_unprintable, say

ABOUT = "Contextual bandits that learn from follow-ups: what is seen only after an arm was served."
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=ABOUT,
)
data_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Real data sets: what there is, and getting it."
)
app.add_typer(data_app, name="data")

FIGURES = "Figures, by their names in `postserve list`, or all."
ENGINE = "Where cells run: local, local=N, dask, dask=HOST:PORT, ray or ray=HOST:PORT."
DATA = "The folder of the real data sets."
DATA_DEFAULT = "$POSTSERVE_DATA, or where `postserve data fetch` keeps them"
OUT = "The folder for results; finished cells there are not run again."
OWN = "each figure's own, see `postserve list`"
ESTIMATOR = "dr_followups, dr, switch_dr, ips, snips, dm or replay."


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help=FIGURES)],
    seeds: Annotated[int | None, typer.Option(help="How many seeds; at least 2.", show_default=OWN)] = None,
    horizon: Annotated[
        int | None, typer.Option(help="How many rounds; at least 20.", show_default=OWN)
    ] = None,
    engine: Annotated[str, typer.Option(help=ENGINE)] = "local",
    out: Annotated[Path | None, typer.Option(help=OUT, show_default="out, or out/quick")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small world, few rounds and seeds.")] = False,
    data: Annotated[Path | None, typer.Option(help=DATA, show_default=DATA_DEFAULT)] = None,
) -> None:
    """Run figures; write pictures, tables and one report."""
    console = Console()
    with errors_in_one_line(resumes=True):
        from postserve.experiments.reproduce import plan
        from postserve.experiments.showing import run_and_show, show_left_out

        plans = plan(names, seeds=seeds, horizon=horizon, quick=quick, data=data)
        if "all" in names:
            show_left_out(data, console)
        run_and_show(plans, out or Path("out/quick" if quick else "out"), engine, console)


@app.command()
def evaluate(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="A Parquet file of decisions, or a folder of them.")
    ],
    policy: Annotated[list[Path], typer.Option(help="A saved policy; again for each one more.")],
    arm: Annotated[
        list[str] | None,
        typer.Option(help="The policies' arms, in order.", show_default="those of the log, in rising order"),
    ] = None,
    estimator: Annotated[str, typer.Option(help=ESTIMATOR)] = "dr_followups",
    interval: Annotated[str, typer.Option(help="normal or bootstrap.")] = "normal",
    level: Annotated[float, typer.Option(help="With which probability an interval holds.")] = 0.95,
    learns: Annotated[
        bool, typer.Option("--learns", help="Let them learn from the log on their way.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for the table and the picture.")] = Path(
        "out/evaluation"
    ),
) -> None:
    """Compare saved policies on a log: what each would have earned, with intervals."""
    with errors_in_one_line():
        from postserve.evaluation.saved import evaluate_and_show

        options: Any = {"estimator": estimator, "interval": interval, "level": level, "learns": learns}
        evaluate_and_show(log, policy, arm or (), out, **options)


@app.command()
def diagnose(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="A Parquet file of decisions, or a folder of them.")
    ],
    rows: Annotated[int, typer.Option(help="How many rounds to look at, at random.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of all that is random.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for the page and the numbers.")] = Path(
        "out/diagnosis"
    ),
) -> None:
    """Say whether follow-ups will help on a log, how, and what argues against it."""
    with errors_in_one_line():
        from postserve.diagnosis.showing import diagnose_and_show

        diagnose_and_show(log, rows, seed, out, Console())


@app.command()
def serve(
    experiment: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment's file, in TOML.")],
    init: Annotated[bool, typer.Option("--init", help="Write a file that runs as it stands.")] = False,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make an API key and its hash.")] = False,
) -> None:
    """Decide over HTTP, remember every decision, and learn when feedback comes."""
    with errors_in_one_line():
        from postserve.service.serving import serve_or_prepare

        serve_or_prepare(experiment, init=init, new_key=new_key)


@app.command()
def rebuild(
    experiment: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment's file, in TOML.")],
) -> None:
    """Learn a service's log from its beginning, and compare with the snapshots."""
    console = Console()
    with errors_in_one_line():
        from postserve.service.serving import rebuild_and_show

        if not rebuild_and_show(experiment, console):
            raise typer.Exit(1)


@app.command()
def export(
    experiment: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment's file, in TOML.")],
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="NAME.parquet, NAME.dsjson, or NAME.jsonl for raw events."),
    ],
    after: Annotated[str | None, typer.Option(help="A place in the log, or a time in ISO 8601.")] = None,
    before: Annotated[str | None, typer.Option(help="The same.")] = None,
) -> None:
    """Write a service's log to a file that `evaluate` and `diagnose` read; the service may be running."""
    with errors_in_one_line():
        from postserve.service.serving import export_and_show

        export_and_show(experiment, target, after, before, Console())


@app.command("simulate-traffic")
def simulate_traffic(
    experiment: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment's file, in TOML.")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "--environment",
            help="actg175, hillstrom, linear, polynomial or periodic.",
            show_default="a made-up world with the file's fields",
        ),
    ] = None,
    init: Annotated[bool, typer.Option("--init", help="Write a file that fits --data.")] = False,
    url: Annotated[str | None, typer.Option(help="Of the service.", show_default="the file's")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How many decisions.")] = 1000,
    delay: Annotated[float, typer.Option(min=0.0, help="Rounds until feedback comes, on average.")] = 20.0,
    parts: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of z that comes in parts.")] = 0.3,
    lost: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of feedback that never comes.")] = 0.05,
    twice: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of what is sent again.")] = 0.1,
    deferred: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of deferred decisions.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Of the world and all that is random.")] = 0,
) -> None:
    """Play visitors against a running service, and compare what it learnt with the library."""
    console = Console()
    with errors_in_one_line():
        from postserve.service.traffic.playing import Habits
        from postserve.service.traffic.showing import play_and_show, prepare

        if init:
            prepare(experiment, data)
            return
        habits = Habits(delay, parts, lost, twice, deferred)
        if not play_and_show(experiment, url, data, rounds, habits, seed, console):
            raise typer.Exit(1)


@app.command()
def backup(
    experiment: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment's file, in TOML.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The copy, a file that is not there yet.")],
) -> None:
    """Copy a service's log, also while it runs."""
    with errors_in_one_line():
        from postserve.service.serving import backup as copy_log

        copy_log(experiment, target)


@app.command("list")
def list_figures() -> None:
    """Name the figures that can be reproduced."""
    with errors_in_one_line():
        from postserve.experiments.showing import show_list

        show_list(Console())


@app.command("warm-up")
def warm_up() -> None:
    """Compile the usual policies before their first rounds."""
    with errors_in_one_line():
        from postserve.warming import show_warm_up

        show_warm_up(Console())


@data_app.command("list")
def list_data() -> None:
    """Name the data sets, their terms, and where they are on this machine."""
    with errors_in_one_line():
        from postserve.data.showing import show_sets

        show_sets(Console())


@data_app.command("fetch")
def fetch_data(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="Data sets, by their names in `postserve data list`."),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where to put them.", show_default="$POSTSERVE_DATA, $POSTSERVE_CACHE or the user's cache"
        ),
    ] = None,
) -> None:
    """State the terms of data sets, then download those that are not here from their publishers."""
    with errors_in_one_line():
        from postserve.data.showing import fetch_and_show

        fetch_and_show(names, folder, Console())


@app.callback(invoke_without_command=True, help=ABOUT)
def about(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    """What can be said without a command."""
    if version:
        say(f"postserve {__version__}")
        raise typer.Exit()


def main() -> None:
    """The command `postserve`."""
    replace_unprintable()
    try:
        app()
    except ModuleNotFoundError as missing:
        refuse_without_extra(missing)
