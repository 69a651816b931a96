"""Every benchmark: `python -m benchmarks [--quick] [--out DIR] [--only NAME ...]`.

Findings go to DIR/results.json as they come, so that an interrupted run keeps what it has; a section that
is run again takes the place of what was there. At the end results.md, results.png and scaling.png are drawn.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.running import SECTIONS, Results, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and sizes: under 3 minutes")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument(
        "--only", nargs="*", choices=list(SECTIONS), metavar="NAME", help="of " + ", ".join(SECTIONS)
    )
    parser.add_argument("--page", type=Path, help="a page whose tables and pictures to fill, at the end")
    asked = parser.parse_args()
    sections = list(SECTIONS) if asked.only is None else asked.only
    results, console = Results(asked.out / "results.json"), Console()
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    ended = 0
    try:
        with Progress(*columns, console=console) as progress:
            whole = progress.add_task("benchmarks", total=len(sections))
            for section in sections:
                progress.update(whole, description=SECTIONS[section])
                results.begin(section, asked.quick)
                for name, value in run(section, asked.quick):
                    results.add(section, name, value)
                    progress.console.print(
                        f"[bold]{section}[/] {name}: {report.line(value)}", highlight=False
                    )
                progress.advance(whole)
    except KeyboardInterrupt:
        console.print("interrupted; what was found is kept")
        ended = 130
    written = report.write(results.all, asked.out)
    if asked.page:
        written += report.fill(results.all, asked.page)
    for path in written:
        console.print(f"wrote {path}")
    sys.exit(ended)


if __name__ == "__main__":
    main()
