"""Evaluations as a table, for the terminal and for notebooks, and as a forest plot."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "axes.titlesize": 10,
}
COLOUR, REFERENCE = "#0072b2", "#777777"
INTERVALS = {
    "normal": "normal intervals",
    "bootstrap": "bootstrap intervals",
    "bernstein": "empirical Bernstein intervals",
    "sequence": "confidence sequences",
}
NEED_ROUNDS = ("normal", "bootstrap")
"""Intervals that hold in long logs only."""
ENOUGH, ENOUGH_COMPLETED = 90, 470
"""With so many effective rounds they held; the second where missing rewards are completed."""


def text(evaluations: Sequence[Any], differences: Mapping[str, Any], to: str) -> str:
    """A table in plain text, below a line that says how it was made."""
    rows = _rows(evaluations, differences, to)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([_caption(evaluations), *lines, *_doubts(evaluations)])


def html(evaluations: Sequence[Any], differences: Mapping[str, Any], to: str) -> str:
    """The same as an HTML table."""
    header, *rows = _rows(evaluations, differences, to)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    doubts = "".join(f"<p>{escape(doubt)}</p>" for doubt in _doubts(evaluations))
    caption = f"<caption>{escape(_caption(evaluations))}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{doubts}"


def forest(evaluations: Sequence[Any], differences: Mapping[str, Any], to: str, path: Any) -> Any:
    """A matplotlib figure with values on the left and differences on the right, rows from the top down."""
    try:
        import matplotlib as mpl  # here: it is in an extra
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        got = f"a forest plot needs {missing.name}, which is not installed"
        wanted = "pip install 'postserve[experiments]'"
        raise ModuleNotFoundError(f"{got}, wanted: {wanted}", name=missing.name) from missing

    with mpl.rc_context(STYLE):
        made = Figure(figsize=(8.4, 1.2 + 0.3 * len(evaluations)), layout="constrained")
        values, gains = made.subplots(1, 2, sharey=True)
        for row, each in enumerate(reversed(evaluations)):
            colour = REFERENCE if each.name == to else COLOUR
            _draw(values, row, each, colour)
            if each.name in differences:
                _draw(gains, row, differences[each.name], colour)
        gains.axvline(0.0, color=REFERENCE, linewidth=1)
        values.set_yticks(range(len(evaluations)), [each.name for each in reversed(evaluations)])
        values.set_ylim(-0.6, len(evaluations) - 0.4)
        values.set_xlabel("reward per round")
        gains.set_xlabel(f"more than {to}, paired")
        for axes in (values, gains):
            axes.tick_params(axis="y", length=0)
        made.suptitle(_caption(evaluations), fontsize=9)
        if path is not None:
            made.savefig(path, dpi=130)
    return made


def _draw(axes: Any, row: int, shown: Any, colour: str) -> None:
    ends = [[shown.value - shown.low], [shown.high - shown.value]]
    axes.errorbar(shown.value, row, xerr=ends, color=colour, marker="o", markersize=4, capsize=2)


def _rows(evaluations: Sequence[Any], differences: Mapping[str, Any], to: str) -> list[list[str]]:
    header = ["policy", "value", "error", "interval", "effective rounds"]
    if differences:
        header.append(f"more than {to}")
    rows = []
    for each in evaluations:
        row = [
            each.name,
            _number(each.value),
            _number(each.error),
            _interval(each),
            f"{each.support.effective_rounds:,.0f}",
        ]
        if differences:
            gain = differences.get(each.name)
            row.append("" if gain is None else f"{_number(gain.value)} {_interval(gain)}")
        rows.append(row)
    return [header, *rows]


def _caption(evaluations: Sequence[Any]) -> str:
    first = evaluations[0]
    missing = f", {first.support.missing:,} rewards missing" if first.support.missing else ""
    percent = f"{100.0 * first.settings.level:.6g}%"
    how = f"{first.settings.estimator}, {percent} {INTERVALS[first.settings.interval]}"
    return f"{how}, {first.support.rounds:,} rounds{missing}"


def _doubts(evaluations: Sequence[Any]) -> list[str]:
    doubts = [f"{each.name}: {each.support.doubt}" for each in evaluations if each.support.doubt]
    first = evaluations[0]
    if first.settings.interval in NEED_ROUNDS:
        completes = first.support.missing and first.settings.counts_missing
        needed = ENOUGH_COMPLETED if completes else ENOUGH
        if few := [each.name for each in evaluations if each.support.effective_rounds < needed]:
            got = f"fewer than {needed} effective rounds ({', '.join(few)})"
            doubts.append(f"{got}: {INTERVALS[first.settings.interval]} may hold too rarely")
    return doubts


def _interval(shown: Any) -> str:
    return f"[{_number(shown.low)}, {_number(shown.high)}]"


def _number(value: float) -> str:
    return f"{value:.4g}"
