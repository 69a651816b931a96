"""One picture per question, drawn from the numbers of its finding."""

import base64
import io
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from postserve.diagnosis.findings import Finding, unit_of
from postserve.diagnosis.gains import SUGGESTED, WITHOUT, Gain
from postserve.diagnosis.predicting import WIDTH as INTERVAL

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "postserve",  # the same page for the same numbers
    "text.parse_math": False,  # names may have dollar signs
}
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"
WIDTH, ROW = 4.8, 0.42
"""In inches: a phone shows letters of this size, 10 points, as about 10 pixels."""
MOST_ROWS = 12
"""More rows than that are left to the JSON file."""


def _figure(height: float, panels: int = 1) -> Any:
    from matplotlib.figure import Figure

    made = Figure(figsize=(WIDTH, height), layout="constrained")
    return made, made.subplots(panels, 1, squeeze=False)[:, 0]


def _svg(made: Any) -> str:
    """The figure as a data address."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a sign that the font lacks: the browser has others
        made.savefig(file, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def _intervals(
    axes: Any, shown: Sequence[Mapping[str, float]], colour: str, label: str, shift: float
) -> None:
    at = [row + shift for row in range(len(shown))]
    values = [each["value"] for each in shown]
    ends = [
        [each["value"] - each["low"] for each in shown],
        [each["high"] - each["value"] for each in shown],
    ]
    axes.errorbar(values, at, xerr=ends, fmt="o", markersize=4, capsize=2, color=colour, label=label)


def _as_shares(axes: Any) -> None:
    """Percent at few ticks, with as many digits as tell these apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ticks = axes.get_xticks()
    digits = max(0, -math.floor(math.log10(100.0 * (ticks[1] - ticks[0])) + 1e-9))
    form = FuncFormatter(lambda share, _: f"{round(share, digits + 2) + 0.0:.{digits}%}")  # not "-0%"
    axes.xaxis.set_major_formatter(form)


def _rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _name_below(made: Any, label: str) -> None:
    """Say what the axis is, below the whole picture: long names of rows leave its axes little room."""
    made.supxlabel(label, fontsize=STYLE["font.size"])


def _label(name: str, most: int = 24) -> str:
    """A name that fits beside a picture, without signs that cannot be drawn."""
    short = name if len(name) <= most else name[: most - 1] + "…"
    return "".join(sign if sign.isprintable() else "?" for sign in short)


def _shares(rows: Mapping[str, Mapping[str, Any]], kinds: Mapping[str, str], label: str) -> Any:
    names = list(rows)[:MOST_ROWS]
    made, (axes,) = _figure(1.1 + ROW * len(names))
    for i, (kind, title) in enumerate(kinds.items()):
        shift = 0.22 * (i - (len(kinds) - 1) / 2)
        _intervals(axes, [rows[name][kind] for name in names], (BLUE, ORANGE, GREY)[i], title, shift)
    _rows(axes, [_label(name) for name in names])
    axes.axvline(0.0, color=GREY, linewidth=1)
    _name_below(made, label)
    _as_shares(axes)
    made.legend(loc="outside upper left", ncols=len(kinds))
    return made


def _predictability(numbers: Mapping[str, Any]) -> Any:
    kinds = {"line": "a line", "flexible": "products or bumps", "forest": "a forest"}
    return _shares(numbers["columns"], kinds, "share of z that x explains, on held-out rounds")


def _worth(numbers: Mapping[str, Any]) -> Any:
    kinds = {"x": "x", "x and z": "x and z"}
    return _shares(numbers["arms"], kinds, "share of the reward explained, on held-out rounds")


def _follows(numbers: Mapping[str, Any]) -> Any:
    errors = numbers["errors"]
    found = [
        (abs(off) / error, f"{_label(column, 14)} after {_label(arm, 14)}", off, INTERVAL * error)
        for column, arms in numbers["differences"].items()
        for (arm, off), error in zip(arms.items(), errors[column].values(), strict=True)
    ]
    least = sorted((each[0] for each in found), reverse=True)[:MOST_ROWS][-1]
    found = [each for each in found if each[0] >= least][:MOST_ROWS]  # the clearest, in their order
    made, (axes,) = _figure(0.9 + 0.7 * ROW * len(found))
    shown = [{"value": off, "low": off - width, "high": off + width} for _, _, off, width in found]
    _intervals(axes, shown, BLUE, "", 0.0)
    _rows(axes, [name for _, name, _, _ in found])
    axes.axvline(0.0, color=GREY, linewidth=1)
    _name_below(made, "mean of the arm less that of the others, in deviations")
    return made


def _sharing(numbers: Mapping[str, Any]) -> Any:
    titles = {"slopes": "of z, by own\nslopes of x", "worth": "of the reward, by\nown weights of z"}
    shown = [name for name in titles if name in numbers]
    made, (axes,) = _figure(0.9 + ROW * len(shown))
    _intervals(axes, [numbers[name] for name in shown], BLUE, "", 0.0)
    axes.set_yticks(range(len(shown)), [titles[name] for name in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.axvline(0.0, color=GREY, linewidth=1)
    _name_below(made, "share explained beyond what arms have in common")
    _as_shares(axes)
    return made


def _lateness(numbers: Mapping[str, Any]) -> Any:
    made, (axes,) = _figure(2.4)
    shown = [name for name in ("z", "reward") if f"{name}_quantiles" in numbers]
    unit, size = unit_of(max(abs(numbers[f"{name}_delay_90"]) for name in shown))
    for name in shown:
        quantiles = [days / size for days in numbers[f"{name}_quantiles"]]
        shares = [i / (len(quantiles) - 1) for i in range(len(quantiles))]
        axes.plot(quantiles, shares, color={"z": BLUE, "reward": ORANGE}[name], label=name)
    axes.set_xlabel(f"{unit} after the decision")
    axes.set_ylabel("share that had come")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    made.legend(loc="outside upper left", ncols=len(shown))
    return made


DRAWN: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "predictability": _predictability,
    "worth": _worth,
    "follows": _follows,
    "sharing": _sharing,
    "lateness": _lateness,
}


def why_not_drawn() -> str:
    """Which library is missing; nothing if there are pictures."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as missing:
        got = f"pictures need {missing.name}, which is not installed"
        return f"not drawn: {got}, wanted: pip install 'postserve[experiments]'"
    return ""


def _has_something(finding: Finding) -> bool:
    numbers = finding.numbers
    return {
        "predictability": bool(numbers.get("columns")),
        "worth": bool(numbers.get("arms")),
        "follows": any(numbers.get("errors", {}).values()),
        "sharing": "slopes" in numbers or "worth" in numbers,
        "lateness": "z_quantiles" in numbers or "reward_quantiles" in numbers,
    }[finding.name]


def picture(finding: Finding) -> str | None:
    """The finding's picture as a data address; None if there is nothing to draw."""
    import matplotlib as mpl  # here: it is in an extra

    if not _has_something(finding):
        return None
    # Matplotlib's font has few scripts: other names are left to the browser's fonts.
    fonts: Any = {} if str(finding.numbers).isascii() else {"svg.fonttype": "none"}
    with mpl.rc_context({**STYLE, **fonts}):
        return _svg(DRAWN[finding.name](finding.numbers))


def picture_of_gains(gains: Mapping[str, Gain]) -> str:
    """Mean regret over rounds, with z and rewards at once, and late."""
    import matplotlib as mpl

    titles = {"now": "z and rewards at once", "late": "rewards late"}
    with mpl.rc_context(STYLE):
        made, panels = _figure(2.4 * len(gains), len(gains))
        for axes, (name, found) in zip(panels, gains.items(), strict=True):
            for title, colour in ((WITHOUT, GREY), (SUGGESTED, BLUE)):
                label = "poLinUCB" if title == SUGGESTED else title
                axes.plot(found.rounds, found.curves[title], color=colour, label=label)
            axes.set_title(titles[name], fontsize=10)
            axes.set_ylabel("mean regret so far")
            axes.set_ylim(bottom=0.0)
        panels[-1].set_xlabel("round")
        panels[0].legend(loc="upper left")
        return _svg(made)
