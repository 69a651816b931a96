"""One style for every picture: mean, band of standard error, final values, colours for every eye."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from postserve.experiments.contenders import Contender
from postserve.experiments.statistics import Slope, mean_and_error
from postserve.experiments.study import Study
from postserve.types import FloatArray, IntArray

REFERENCE = "#777777"
RC: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,
}


@contextmanager
def picture(
    rows: int, columns: int, *, height: float = 2.9, width: float = 4.2
) -> Iterator[tuple[Picture, Any]]:
    """A grid of panels in our style."""
    with mpl.rc_context(RC):
        made = Picture(figsize=(columns * width, rows * height), layout="constrained")
        yield made, made.subplots(rows, columns, squeeze=False)


def draw_curves(
    axes: Axes,
    study: Study,
    environment: str,
    contenders: Sequence[Contender],
    horizon: int,
    top: float | None = None,
) -> None:
    """Mean curves with bands of one standard error, the value at the horizon at their ends.

    Where the panel has a `top`, a curve that ends above it is named there.
    """
    shown = study.rounds <= horizon
    ends = []
    for contender in contenders:
        curves = study.curves(environment, contender)[:, shown]
        draw_band(axes, study.rounds[shown], curves, label=contender.name, **contender.line)
        end = float(curves[:, -1].mean())
        if top is None or end <= top:
            ends.append((end, contender.colour))
        else:
            where: Any = {"transform": axes.transAxes, "ha": "right", "va": "top", "fontsize": 8}
            axes.text(0.99, 0.98, f"{contender.label} ends at {end:,.0f}", color=contender.colour, **where)
    axes.set(xlim=(0, horizon), xlabel="round")
    axes.set_ylim(bottom=0, top=top)
    label_ends(axes, ends)


def draw_band(axes: Axes, rounds: IntArray, curves: FloatArray, **line: Any) -> None:
    """One mean over seeds, with its standard error around it."""
    mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    (drawn,) = axes.plot(rounds, mean, **line)
    axes.fill_between(rounds, mean - error, mean + error, color=drawn.get_color(), alpha=0.2, linewidth=0)


def draw_points(
    axes: Axes,
    x: Sequence[float],
    columns: Sequence[FloatArray],
    contender: Contender,
    *,
    errors: float = 1.0,
    **line: Any,
) -> None:
    """Means over seeds, joined, with so many standard errors; ridge 1 has crosses."""
    means, spread = zip(*map(mean_and_error, columns), strict=True)
    drawn = {"label": contender.name, "marker": contender.marker, "markersize": 4, **contender.line, **line}
    axes.errorbar(x, means, yerr=errors * np.array(spread), **drawn)


def draw_growth(
    axes: Axes,
    study: Study,
    environment: str,
    slopes: Mapping[Contender, Slope],
    rates: Sequence[tuple[float, str]],
    bound: tuple[FloatArray, str] | None = None,
) -> None:
    """Curves on logarithmic axes, each named with its slope, rates as lines of that slope, and a bound."""
    both_priors = len({contender.label for contender in slopes}) < len(slopes)
    for contender, slope in slopes.items():
        label = f"{contender.name if both_priors else contender.label}: {slope.text}"
        draw_band(axes, study.rounds, study.curves(environment, contender), label=label, **contender.line)
    ends = {contender: float(study.final(environment, contender).mean()) for contender in slopes}
    late = study.rounds[study.rounds >= study.horizon // 10]
    for (power, text), dashes in zip(rates, (":", "-.", "--"), strict=False):
        line = min(ends.values()) / 3.0 * (late / study.horizon) ** power
        axes.plot(late, line, color=REFERENCE, linestyle=dashes, linewidth=1, label=text)
    if bound is not None:
        axes.plot(study.rounds, bound[0], color=REFERENCE, linestyle="-.", linewidth=1.4, label=bound[1])
    axes.set(xscale="log", yscale="log", xlabel="round")
    first = max(1, study.horizon // 500)  # earlier rounds say nothing of growth
    axes.set_xlim(first, study.horizon)
    heights = np.concatenate(
        [np.asarray(line.get_ydata())[np.asarray(line.get_xdata()) >= first] for line in axes.get_lines()]
    )
    heights = heights[heights > 0.0]
    axes.set_ylim(heights.min() / 1.4, heights.max() * 1.4)
    label_ends(axes, [(end, contender.colour) for contender, end in ends.items()])
    legend_below(axes)


def legend_below(axes: Axes, columns: int = 1) -> None:
    """Below the panel, where it covers no curve, with lines long enough to show their dashes."""
    place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
    axes.legend(fontsize=7, ncols=columns, handlelength=3.0, **place)


def label_ends(axes: Axes, ends: Sequence[tuple[float, str]], form: str = "{:,.0f}") -> None:
    """Final values to the right of the panel, moved apart where they would overlap."""
    step = 0.075
    to_panel = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    wanted = sorted((float(to_panel.transform((x, value))[1]), value, colour) for value, colour in ends)
    places: list[float] = []
    for place, _, _ in wanted:
        places.append(max(place, places[-1] + step) if places else place)
    over = max(0.0, places[-1] - 1.0)
    for i in range(len(places) - 1, -1, -1):  # and back down, where they were pushed out at the top
        top = places[i + 1] - step if i + 1 < len(places) else places[i] - over
        places[i] = min(places[i], top)
    for place, (end, value, colour) in zip(places, wanted, strict=True):
        drawn: Any = {"transform": axes.transAxes, "color": colour}
        axes.plot([1.0, 1.03], [end, place], linewidth=0.6, clip_on=False, **drawn)
        axes.text(1.035, place, form.format(value), va="center", fontsize=8, **drawn)


def draw_differences(
    axes: Axes,
    study: Study,
    environment: str,
    reference: Contender,
    contenders: Sequence[Contender],
    horizon: int,
) -> None:
    """Each contender's regret minus the reference's, seed by seed: the mean and two standard errors."""
    for row, contender in enumerate(reversed(contenders)):
        mean, error = study.difference(environment, contender, reference, horizon)
        axes.errorbar(
            mean, row, xerr=2.0 * error, color=contender.colour, marker="o", markersize=4, capsize=2
        )
    axes.axvline(0.0, color=REFERENCE, linewidth=1)
    axes.set_xscale("symlog", linthresh=100.0)
    axes.set_xlabel(f"regret minus that of {reference}, paired (symlog)")
    name_rows(axes, contenders)


def draw_interval(
    axes: Axes, row: float, interval: tuple[float, float, float], *, size: float = 4, **line: Any
) -> None:
    """A mean with both ends of its interval, as a point in a row."""
    mean, low, high = interval
    drawn = {"markersize": size, "capsize": 2, **line}
    axes.errorbar(mean, row, xerr=[[mean - low], [high - mean]], **drawn)


def name_rows(axes: Axes, names: Sequence[Any]) -> None:
    """Rows from the top down; no lines between them."""
    axes.set_yticks(range(len(names)), [str(name) for name in reversed(names)], fontsize=7.5)
    axes.grid(axis="y", visible=False)


def name_values(axes: Axes, values: Sequence[float], label: str) -> None:
    """Ticks at the values that were run, and nowhere else."""
    axes.set_xlabel(label)
    axes.set_xticks(values, [f"{value:,g}" for value in values])
    axes.minorticks_off()


def legend(
    made: Picture, axes: Sequence[Axes], columns: int, labels: Mapping[str, str] | None = None
) -> None:
    """One legend for the picture; with `labels`, names that have the same label there are shown once."""
    found: dict[str, Any] = {}
    for panel in axes:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault((labels or {}).get(name, name), handle)
    made.legend(list(found.values()), list(found), loc="outside upper center", ncols=columns)


def encoded(made: Picture, name: str = "figure") -> dict[str, bytes]:
    """The picture as PNG and PDF, the same bytes whenever it is drawn."""
    files = {}
    for kind, metadata in (
        ("png", {"Software": None}),
        ("pdf", {"CreationDate": None, "Producer": None, "Creator": None}),
    ):
        stream = io.BytesIO()
        with mpl.rc_context(RC):
            made.savefig(stream, format=kind, dpi=130, metadata=metadata)
        files[f"{name}.{kind}"] = stream.getvalue()
    return files
