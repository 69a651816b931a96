"""Figure 2: regret on five movies, differences over draws, and gains against how predictable z is."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.figures.figure2 import results as of
from postserve.experiments.figures.figure2 import worlds as w
from postserve.experiments.figures.figure2.worlds import AS_THEY_ARE, AXES, DRAWN, DRAWS_OF, FIVE
from postserve.experiments.study import Study

COLOURS = {DRAWN: "#009E73", AXES: "#CC79A7", FIVE: "#000000"}
MARKERS = {"network": "o", "linear": "s"}
LABELS = {contender.name: contender.label for contender in w.LEARNT}
OPPONENTS = {
    **{each: w.POLINUCB for each in w.RIDGE_1 if each not in (c.RANDOM, c.POLINUCB)},
    **{each: w.POLINUCB.evidence for each in w.LEARNT if each != c.POLINUCB.evidence},
}
"""All but Random and poLinUCB, with the poLinUCB of the same prior, from the top row down."""


def draw(study: Study) -> Any:
    """Rows: curves on five movies; differences and wins over draws; predictability, and gains against it."""
    with style.picture(3, 3, height=3.6, width=4.9) as (made, axes):
        _curves(axes[0, 0], study, FIVE, w.RIDGE_1, "5 movies: ridge 1")
        _curves(axes[0, 1], study, FIVE, (c.RANDOM, *w.LEARNT), "5 movies: learnt prior")
        _curves(axes[0, 2], study, AS_THEY_ARE, w.RIDGE_1, f"{AS_THEY_ARE}: ridge 1")
        axes[0, 0].set_ylabel("cumulative regret")
        _differences(axes[1, 0], study, DRAWN)
        _differences(axes[1, 1], study, AXES)
        _wins(axes[1, 2], study)
        for panel in axes[1, 1:]:  # the rows are those of the first
            panel.set_yticklabels([])
        _predictability(axes[2, 0], study)
        for panel, form in zip(axes[2, 1:], of.FORMS, strict=True):
            _gains(panel, study, form)
        style.legend(made, [axes[0, 0], axes[0, 1]], 4, LABELS)
        return made


def _curves(panel: Any, study: Study, place: str, contenders: Sequence[c.Contender], title: str) -> None:
    """As in figure 1, but the panel is only as high as all but Random need."""
    top = 1.6 * max(study.final(place, each).mean() for each in contenders if each != c.RANDOM)
    style.draw_curves(panel, study, place, contenders, study.horizon, max(top, 1e-9))
    panel.set_title(title)


def _rows(study: Study, place: str) -> list[tuple[int, c.Contender, c.Contender]]:
    """Row, contender and poLinUCB of those that ran in a place."""
    rows = zip(reversed(range(len(OPPONENTS))), OPPONENTS.items(), strict=True)
    return [(row, each, ours) for row, (each, ours) in rows if study.has(place, each)]


def _differences(panel: Any, study: Study, place: str) -> None:
    for row, each, ours in _rows(study, place):
        found = of.difference(study, place, each, ours)
        style.draw_interval(panel, row, found, size=5, color=each.colour, marker=each.marker)
    panel.axvline(0.0, color=style.REFERENCE, linewidth=1)
    _name_rows(panel, list(OPPONENTS))
    panel.set(title=f"{place}: paired differences", xlabel="regret minus that of poLinUCB, 95% interval")


def _wins(panel: Any, study: Study) -> None:
    """The share of draws in which poLinUCB has less regret than each opponent."""
    for place, marker in zip(DRAWS_OF, ("o", "D"), strict=True):
        rows = _rows(study, place)
        shares = [of.in_order(study, place, [ours, each]).mean() for _, each, ours in rows]
        points: Any = {"color": COLOURS[place], "marker": marker, "markersize": 5, "linestyle": "none"}
        panel.plot(shares, [row for row, _, _ in rows], label=place, **points)
    panel.axvline(0.5, color=style.REFERENCE, linewidth=1)
    _name_rows(panel, list(OPPONENTS))
    panel.set(title="draws won by poLinUCB of the same prior", xlim=(-0.03, 1.03))
    panel.set_xlabel("share of draws in which poLinUCB has less regret")
    panel.legend(loc="upper right", fontsize=7.5)


def _gains(panel: Any, study: Study, form: of.Form) -> None:
    """One point per draw, and each place's mean with its intervals both ways."""
    for place in reversed(form.draws):
        r_squared, gained = of.predicted(study, "network", place), of.gains(study, place, form)
        points: Any = {"color": COLOURS[place], "s": 10, "alpha": 0.45, "linewidths": 0}
        panel.scatter(of.by_draw(r_squared), of.by_draw(gained), **points)
        across, up = of.interval(place, r_squared), of.interval(place, gained)
        point: Any = {"color": COLOURS[place], "marker": "o", "markeredgecolor": "white"}
        point["label"] = f"{place}: {up.rounded(1, sign='+')}"
        ends = [[up.value - up.low], [up.high - up.value]]
        style.draw_interval(panel, up.value, across, size=6, yerr=ends, **point)
    panel.axhline(0.0, color=style.REFERENCE, linewidth=1)
    bottom, top = panel.get_ylim()
    panel.set_ylim(bottom, top + 0.15 * (top - bottom))  # for the legend
    title = f"gain over LinUCB(x), {form}: one point per draw"
    panel.set(title=title, xlabel="held-out R² of z given x, network")
    panel.set_ylabel(f"regret: LinUCB(x) - {form(c.POLINUCB)}", fontsize=8)
    panel.legend(loc="upper left", fontsize=7.5)


def _predictability(panel: Any, study: Study) -> None:
    """Every draw's R², by map and place, with the mean."""
    rows = [(place, kind) for place in (FIVE, *DRAWS_OF) for kind in w.MAPS]
    for row, (place, kind) in enumerate(reversed(rows)):
        values = of.predicted(study, kind, place)
        shown = of.by_draw(values) if place in DRAWS_OF else values
        spread = np.linspace(-0.2, 0.2, len(shown)) if len(shown) > 1 else np.zeros(1)
        point: Any = {"color": COLOURS[place], "marker": MARKERS[kind]}
        panel.scatter(shown, row + spread, s=6, alpha=0.4, linewidths=0, **point)
        found = of.interval(place, values)
        style.draw_interval(panel, row, found, size=6, markeredgecolor="white", **point)
    panel.axvline(0.0, color=style.REFERENCE, linewidth=1)
    _name_rows(panel, [of.prediction(kind, place) for place, kind in rows])
    panel.set(title="how well x predicts z", xlabel="held-out R² of z given x, mean and 95% interval")


def _name_rows(panel: Any, names: Sequence[Any]) -> None:
    style.name_rows(panel, names)
    panel.set_ylim(-0.7, len(names) - 0.3)
