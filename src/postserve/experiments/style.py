"""One style for every picture: mean, band of standard error, final values, colours that all can tell."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    DISJOINT,
    FLOORED,
    HYBRID,
    JOINT,
    MAP_PER_ARM,
    MISSPECIFIED,
    ON_FEATURES,
    ON_X_FEATURES,
    ONE_MAP,
    ORACLE,
    ORACLE_ON_FEATURES,
    POLINUCB,
    RANDOM,
    ROBUST,
    SHARED,
    THOMPSON,
    WITHOUT_FEATURES,
    X_AND_FEATURES,
    X_INTERCEPT,
    X_ONLY,
)
from postserve.experiments.statistics import Slope
from postserve.experiments.study import Study
from postserve.types import FloatArray, IntArray

# The palette of Okabe and Ito, with grey and wine; dashes tell apart what prints alike.
LOOKS: dict[str, tuple[str, Any]] = {
    RANDOM: ("#999999", "-"),
    X_ONLY: ("#E69F00", "-"),
    X_INTERCEPT: ("#D55E00", (0, (1, 1))),
    X_AND_FEATURES: ("#D55E00", (0, (4, 2))),
    MISSPECIFIED: ("#CC79A7", (0, (4, 2))),
    BEFORE: ("#0072B2", "-"),
    AFTER: ("#56B4E9", (0, (4, 2))),
    POLINUCB: ("#009E73", "-"),
    JOINT: ("#009E73", (0, (1, 1))),
    ROBUST: ("#661100", (0, (1, 1))),
    ORACLE: ("#000000", (0, (1, 1))),
    THOMPSON: ("#882255", (0, (4, 2))),
    FLOORED: ("#56B4E9", "-"),
    MAP_PER_ARM: ("#009E73", "-"),
    ONE_MAP: ("#CC79A7", (0, (4, 2))),
    HYBRID: ("#009E73", "-"),
    DISJOINT: ("#0072B2", (0, (4, 2))),
    SHARED: ("#CC79A7", (0, (1, 1))),
    WITHOUT_FEATURES: ("#CC79A7", (0, (4, 2))),
    ON_FEATURES: ("#009E73", "-"),
    ON_X_FEATURES: ("#0072B2", (0, (4, 2))),
    ORACLE_ON_FEATURES: ("#000000", (0, (1, 1))),
}
SPARE = ("#332288", "#117733", "#AA4499", "#882255", "#44AA99", "#999933")
"""For names that are not in the list: Tol's muted colours."""
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


def look(policy: str) -> tuple[str, Any]:
    """Colour and dashes of a policy, the same in every figure and for both of its forms."""
    name = policy.removesuffix(", evidence")
    return LOOKS.get(name) or (SPARE[crc32(name.encode()) % len(SPARE)], "-")


def weight(policy: str) -> float:
    """Lines with the learnt prior are heavier than those with ridge 1."""
    return 1.9 if policy.endswith(", evidence") else 1.1


def draw_curves(axes: Axes, study: Study, environment: str, policies: Sequence[str], horizon: int) -> None:
    """Mean curves with bands of one standard error, the value at the horizon at their ends."""
    shown = study.rounds <= horizon
    ends = []
    for policy in policies:
        colour, dashes = look(policy)
        curves = study.curves(environment, policy)[:, shown]
        draw_band(axes, study.rounds[shown], curves, colour, dashes, policy, weight(policy))
        ends.append((float(curves[:, -1].mean()), colour))
    axes.set_xlim(0, horizon)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("round")
    label_ends(axes, ends)


def draw_band(
    axes: Axes, rounds: IntArray, curves: FloatArray, colour: str, dashes: Any, label: str, width: float = 1.6
) -> None:
    """One mean over seeds, with its standard error around it."""
    mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    axes.plot(rounds, mean, color=colour, linestyle=dashes, linewidth=width, label=label)
    axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def draw_points(
    axes: Axes,
    x: Sequence[float],
    values: Sequence[tuple[float, float]],
    policy: str,
    errors: float = 1.0,
    label: str | None = None,
) -> None:
    """Means with their standard errors, joined; ridge 1 is thin, with crosses."""
    colour, dashes = look(policy)
    means, spread = zip(*values, strict=True)
    axes.errorbar(
        x,
        means,
        yerr=errors * np.array(spread),
        color=colour,
        linestyle=dashes,
        linewidth=weight(policy),
        marker="o" if weight(policy) > 1.5 else "x",
        markersize=4,
        label=label or policy,
    )


def draw_growth(
    axes: Axes,
    study: Study,
    environment: str,
    slopes: Mapping[str, Slope],
    rates: Sequence[tuple[float, str]],
    bound: tuple[FloatArray, str] | None = None,
) -> None:
    """Curves on logarithmic axes, each named with its slope, rates as lines of that slope, and a bound."""
    for policy, slope in slopes.items():
        colour, dashes = look(policy)
        label = f"{policy.removesuffix(', evidence')}: {slope.told()}"
        curves = study.curves(environment, policy)
        draw_band(axes, study.rounds, curves, colour, dashes, label, weight(policy))
    ends = {policy: float(study.final(environment, policy).mean()) for policy in slopes}
    late = study.rounds[study.rounds >= study.horizon // 10]
    for (power, text), dashes in zip(rates, (":", "-.", "--"), strict=False):
        line = min(ends.values()) / 3.0 * (late / study.horizon) ** power
        axes.plot(late, line, color=REFERENCE, linestyle=dashes, linewidth=1, label=text)
    if bound is not None:
        axes.plot(study.rounds, bound[0], color=REFERENCE, linestyle="-.", linewidth=1.4, label=bound[1])
    axes.set(xscale="log", yscale="log", xlabel="round")
    first = max(1, study.horizon // 500)  # what comes before says nothing of growth
    axes.set_xlim(first, study.horizon)
    heights = np.concatenate(
        [np.asarray(line.get_ydata())[np.asarray(line.get_xdata()) >= first] for line in axes.get_lines()]
    )
    heights = heights[heights > 0.0]
    axes.set_ylim(heights.min() / 1.4, heights.max() * 1.4)
    label_ends(axes, [(end, look(policy)[0]) for policy, end in ends.items()])
    legend_below(axes)


def legend_below(axes: Axes, columns: int = 1) -> None:
    """Below the panel, where it covers no curve, with lines long enough to tell dashes by."""
    place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
    axes.legend(fontsize=7, ncols=columns, handlelength=3.0, **place)


def label_ends(axes: Axes, ends: Sequence[tuple[float, str]], form: str = "{:,.0f}") -> None:
    """Final values to the right of the panel, moved apart where they would cover each other."""
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
        look: Any = {"transform": axes.transAxes, "color": colour}
        axes.plot([1.0, 1.03], [end, place], linewidth=0.6, clip_on=False, **look)
        axes.text(1.035, place, form.format(value), va="center", fontsize=8, **look)


def draw_differences(
    axes: Axes, study: Study, environment: str, reference: str, policies: Sequence[str], horizon: int
) -> None:
    """Each policy's regret minus the reference's, seed by seed: the mean and two standard errors."""
    for row, policy in enumerate(reversed(policies)):
        mean, error = study.difference(environment, policy, reference, horizon)
        axes.errorbar(mean, row, xerr=2.0 * error, color=look(policy)[0], marker="o", markersize=4, capsize=2)
    axes.axvline(0.0, color=REFERENCE, linewidth=1)
    axes.set_xscale("symlog", linthresh=100.0)
    axes.set_yticks(range(len(policies)), list(reversed(policies)), fontsize=7.5)
    axes.set_xlabel(f"regret minus that of {reference}, paired (symlog)")
    axes.grid(axis="y", visible=False)


def legend(made: Picture, axes: Sequence[Axes], columns: int, *, short: bool = False) -> None:
    """One legend for the picture; `short` names the two forms of a policy once."""
    found: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label.removesuffix(", evidence") if short else label, handle)
    made.legend(list(found.values()), list(found), loc="outside upper center", ncols=columns)


def encoded(made: Picture) -> dict[str, bytes]:
    """The picture as PNG and PDF, the same bytes whenever it is drawn."""
    files = {}
    for name, kind, metadata in (
        ("figure.png", "png", {"Software": None}),
        ("figure.pdf", "pdf", {"CreationDate": None, "Producer": None, "Creator": None}),
    ):
        stream = io.BytesIO()
        with mpl.rc_context(RC):
            made.savefig(stream, format=kind, dpi=130, metadata=metadata)
        files[name] = stream.getvalue()
    return files
