"""A figure's summary as tables, for the terminal and for the report."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from postserve.experiments.statistics import Interval, Slope

NO_BREAK = "\u00a0"
MANY = 5
"""More environments than this are rows, not columns."""


FIRST_COLUMN = {"regret": "policy", "error": "map", "value": "quantity", "ratio": "setting"}
"""What is named there, by what was measured."""


Detail = Literal["all", "errors", "means"]
"""Means with errors, ratios and slopes, with errors only, or alone."""


class Table(NamedTuple):
    """Texts in rows; the first column names the row, or the first of a group."""

    title: str
    header: list[str]
    rows: list[list[str]]


def tables(summary: Sequence[dict[str, Any]], detail: Detail = "all") -> list[Table]:
    """One per horizon: policies against environments, or the other way round where those are many.

    Where hardly any policy is in more than one environment, each has a row of its own, grouped by these. Rows
    that name a `table` are in one of that title. Less detail takes less room.
    """
    found = []
    kinds: dict[tuple[str | None, int], list[dict[str, Any]]] = {}
    for row in summary:
        kinds.setdefault((row.get("table"), row["horizon"]), []).append(row)
    for (table, horizon), rows in kinds.items():
        policies, places = (
            list(dict.fromkeys(row[key] for row in rows)) for key in ("policy", "environment")
        )
        if len(places) > MANY:  # there is no room for more than the means
            rows = [{**row, "ratio_to_oracle": None} for row in rows]
        texts = {(row["policy"], row["environment"]): _text(row, detail) for row in rows}
        measure = _measure(rows[0])
        length = f"{horizon:,} pairs" if measure == "error" else f"T = {horizon:,}"
        seeds = sorted({row["seeds"] for row in rows})
        count = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
        title = f"{length}, {count}: {_legend(rows, detail)}"
        first = FIRST_COLUMN[measure]
        if table is not None:
            title, first = f"{table}. {title}", rows[0].get("names", "policy")
        if 2 * len(rows) < len(policies) * len(places):
            body = []
            for place in places:
                inside = [["", name, texts[name, place]] for name in policies if (name, place) in texts]
                inside[0][0] = place  # named once, or the eye finds nothing else
                body += inside
            found.append(Table(title, ["of", first, measure], body))
        elif len(places) <= MANY:
            body = [[name, *(texts.get((name, place), "") for place in places)] for name in policies]
            found.append(Table(title, [first, *places], body))
        else:
            body = [[place, *(texts.get((name, place), "") for name in policies)] for place in places]
            found.append(Table(title, ["environment", *policies], body))
    return found


def _legend(rows: Sequence[dict[str, Any]], detail: Detail) -> str:
    if detail == "means":
        return f"mean final {_measure(rows[0])}"
    if "low" in rows[0]:
        width = "two standard errors" if _measure(rows[0]) == "ratio" else "95% interval"
        return f"mean {_measure(rows[0])} [{width}]"
    words = [f"mean final {_measure(rows[0])} ± standard error"]
    if detail == "errors":
        return words[0]
    if any(row["ratio_to_oracle"] is not None for row in rows):
        words.append("(ratio to the oracle's, paired)")
    slopes = [_slope(row) for row in rows if "slope" in row]
    if slopes:
        words.append("and slope with its 95% interval")
    if not all(slope.informative for slope in slopes):
        words.append("(none where that is wider than 1: too little data)")
    return " ".join(words)


def _text(row: dict[str, Any], detail: Detail) -> str:
    measure = _measure(row)
    if detail == "means":
        return _number(row[f"final_{measure}_mean"])
    if "low" in row:
        interval = Interval(row[f"final_{measure}_mean"], row["low"], row["high"])
        return interval.rounded().replace(" ", NO_BREAK)
    words = [f"{_number(row[f'final_{measure}_mean'])} ± {_number(row[f'final_{measure}_se'])}"]
    if detail == "all" and row["ratio_to_oracle"] is not None:
        words.append(f"({row['ratio_to_oracle']:.2f})")
    if detail == "all" and "slope" in row and _slope(row).informative:
        words.append(f"slope {_slope(row)}")
    return " ".join(word.replace(" ", NO_BREAK) for word in words)


def _slope(row: dict[str, Any]) -> Slope:
    return Slope(row["slope"], row["slope_low"], row["slope_high"])


def _measure(row: dict[str, Any]) -> str:
    """What the row has a final mean of."""
    return next(measure for measure in FIRST_COLUMN if row.get(f"final_{measure}_mean") is not None)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 or value == 0.0 else f"{value:.2g}"
