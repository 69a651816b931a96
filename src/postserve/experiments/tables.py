"""A figure's summary as tables, for the terminal and for the report."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from postserve.experiments.statistics import Slope

NO_BREAK = "\u00a0"
MANY = 5
"""More environments than this are rows, not columns."""


class Table(NamedTuple):
    """Texts in rows; the first column names the row."""

    title: str
    header: list[str]
    rows: list[list[str]]


def tables(summary: Sequence[dict[str, Any]]) -> list[Table]:
    """One a horizon: policies against environments, or the other way round where those are many."""
    found = []
    for horizon in sorted({row["horizon"] for row in summary}):
        rows = [row for row in summary if row["horizon"] == horizon]
        policies, places = (
            list(dict.fromkeys(row[key] for row in rows)) for key in ("policy", "environment")
        )
        if len(places) > MANY:  # there is no room for more than the means
            rows = [{**row, "ratio_to_oracle": None} for row in rows]
        texts = {(row["policy"], row["environment"]): _text(row) for row in rows}
        regret = rows[0]["final_regret_mean"] is not None
        length = f"T = {horizon:,}" if regret else f"{horizon:,} pairs"
        title = f"{length}, {rows[0]['seeds']} seeds: {_legend(rows)}"
        if len(places) <= MANY:
            body = [[name, *(texts.get((name, place), "") for place in places)] for name in policies]
            found.append(Table(title, ["policy" if regret else "map", *places], body))
        else:
            body = [[place, *(texts.get((name, place), "") for name in policies)] for place in places]
            found.append(Table(title, ["environment", *policies], body))
    return found


def _legend(rows: Sequence[dict[str, Any]]) -> str:
    words = ["mean final regret" if rows[0]["final_regret_mean"] is not None else "mean final error"]
    words[0] += " ± standard error"
    if any(row["ratio_to_oracle"] is not None for row in rows):
        words.append("(ratio to the oracle's, paired)")
    if "slope" in rows[0]:
        words.append("and slope with its 95% interval")
    return " ".join(words)


def _text(row: dict[str, Any]) -> str:
    measure = "regret" if row["final_regret_mean"] is not None else "error"
    words = [f"{_number(row[f'final_{measure}_mean'])} ± {_number(row[f'final_{measure}_se'])}"]
    if row["ratio_to_oracle"] is not None:
        words.append(f"({row['ratio_to_oracle']:.2f})")
    if "slope" in row:
        words.append(f"slope {Slope(row['slope'], row['slope_low'], row['slope_high'])}")
    return " ".join(word.replace(" ", NO_BREAK) for word in words)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 or value == 0.0 else f"{value:.2g}"
