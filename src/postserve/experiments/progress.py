"""How far a study is: rounds per second, and the time left."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class RoundsPerSecond(ProgressColumn):
    """Simulated rounds per second, over all processes."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} rounds/s" if task.speed else "", style="progress.data.speed")


def progress_bar(*, quiet: bool = False, console: Console | None = None) -> Progress:
    """One line per study, whose unit is a round."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        RoundsPerSecond(),
        TimeRemainingColumn(compact=True),
    )
    return Progress(*columns, console=console, disable=quiet)
