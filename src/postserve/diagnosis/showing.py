"""The command `postserve diagnose`."""

from pathlib import Path

from rich.console import Console

from postserve.data.log import DecisionLog
from postserve.diagnosis.diagnosing import diagnose
from postserve.diagnosis.pictures import why_not_drawn
from postserve.terminal import say


def diagnose_and_show(log: Path, rows: int, seed: int, out: Path, console: Console) -> None:
    """Diagnose a log in files, print the answer, and write its page and its numbers."""
    decisions = DecisionLog.read(log)
    with console.status("checking the log"):
        decisions.check()
    doing = "asking the log, and playing in worlds made of it: a minute or two for a usual log"
    if not console.is_terminal:  # where a status cannot be seen
        Console(stderr=True).print(doing)
    with console.status(doing):
        found = diagnose(decisions, rows=rows, seed=seed)
        page = found.write(out)
    say(repr(found))
    if lacks := why_not_drawn():
        say(lacks)
    say(f"written: {page}, {page.with_suffix('.json')}")
