"""Figure 2: regret on five movies, differences over draws, and gains against how predictable z is."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from postserve.experiments import style
from postserve.experiments.contenders import POLINUCB, RANDOM, evidence
from postserve.experiments.figures.figure2.comparisons import (
    FORMS,
    PLACES,
    by_draw,
    difference,
    gains,
    in_order,
    interval,
    named,
    predicted,
)
from postserve.experiments.figures.figure2.policies import learnt_prior, ridge_one
from postserve.experiments.figures.figure2.settings import AXES, DRAWN, DRAWS_OF, LITERAL, MAPS, PAPERS
from postserve.experiments.study import Study

COLOURS = {DRAWN: "#009E73", AXES: "#CC79A7", PAPERS: "#000000"}
MARKERS = {"network": "o", "linear": "s"}


def draw(study: Study) -> Any:
    """Rows: curves on five movies; differences and wins over draws; predictability, and gains against it."""
    with style.picture(3, 3, height=3.6, width=4.9) as (made, axes):
        _curves(axes[0, 0], study, PAPERS, list(ridge_one()), "5 movies: ridge 1")
        _curves(axes[0, 1], study, PAPERS, [RANDOM, *learnt_prior()], "5 movies: learnt prior")
        _curves(axes[0, 2], study, LITERAL, list(ridge_one()), f"{LITERAL}: ridge 1")
        axes[0, 0].set_ylabel("cumulative regret")
        _differences(axes[1, 0], study, DRAWN)
        _differences(axes[1, 1], study, AXES)
        _wins(axes[1, 2], study)
        for panel in axes[1, 1:]:  # the rows are those of the first
            panel.set_yticklabels([])
        _predictability(axes[2, 0], study)
        for panel, form in zip(axes[2, 1:], FORMS, strict=True):
            _gains(panel, study, form)
        style.legend(made, [axes[0, 0], axes[0, 1]], 4, short=True)
        return made


def _curves(panel: Any, study: Study, place: str, policies: Sequence[str], title: str) -> None:
    """As in figure 1, but the panel is only as high as all but Random need."""
    ends = []
    for policy in policies:
        colour, dashes = style.look(policy)
        curves = study.curves(place, policy)
        style.draw_band(panel, study.rounds, curves, colour, dashes, policy, style.weight(policy))
        ends.append((float(curves[:, -1].mean()), colour))
    top = 1.6 * max(end for (end, _), policy in zip(ends, policies, strict=True) if policy != RANDOM)
    panel.set_xlim(0, study.horizon)
    panel.set_ylim(0.0, max(top, 1e-9))
    panel.set_xlabel("round")
    panel.set_title(title)
    high = [end for end in ends if end[0] > top]
    for end, colour in high:
        where: Any = {"transform": panel.transAxes, "ha": "right", "va": "top", "fontsize": 8}
        panel.text(0.99, 0.98, f"Random ends at {end:,.0f}", color=colour, **where)
    style.label_ends(panel, [end for end in ends if end not in high])


def _rivals() -> dict[str, str]:
    """All but Random and poLinUCB, with the poLinUCB they are compared with, from the top row down."""
    ours = evidence(POLINUCB)
    return {
        **{name: POLINUCB for name in ridge_one() if name not in (RANDOM, POLINUCB)},
        **{name: ours for name in learnt_prior() if name != ours},
    }


def _rows(study: Study, place: str) -> list[tuple[int, str, str]]:
    """Row, policy and poLinUCB of those that ran in a place."""
    rivals = _rivals()
    rows = zip(reversed(range(len(rivals))), rivals.items(), strict=True)
    return [(row, policy, ours) for row, (policy, ours) in rows if study.has(place, policy)]


def _differences(panel: Any, study: Study, place: str) -> None:
    for row, policy, ours in _rows(study, place):
        found = difference(study, place, policy, ours)
        ends = [[found.mean - found.low], [found.high - found.mean]]
        look: Any = {"color": style.look(policy)[0], "marker": _marker(policy), "markersize": 5, "capsize": 2}
        panel.errorbar(found.mean, row, xerr=ends, **look)
    panel.axvline(0.0, color=style.REFERENCE, linewidth=1)
    _name_rows(panel, list(_rivals()))
    panel.set_xlabel("regret minus that of poLinUCB, 95% interval")
    panel.set_title(f"{place}: paired differences")


def _wins(panel: Any, study: Study) -> None:
    """Of each rival, the share of draws in which poLinUCB has less regret."""
    for place, marker in zip(DRAWS_OF, ("o", "D"), strict=True):
        rows = _rows(study, place)
        shares = [in_order(study, place, [ours, policy]).mean() for _, policy, ours in rows]
        look: Any = {"color": COLOURS[place], "marker": marker, "markersize": 5, "linestyle": "none"}
        panel.plot(shares, [row for row, _, _ in rows], label=place, **look)
    panel.axvline(0.5, color=style.REFERENCE, linewidth=1)
    _name_rows(panel, list(_rivals()))
    panel.set_xlim(-0.03, 1.03)
    panel.set_xlabel("share of draws in which poLinUCB has less regret")
    panel.set_title("draws won by poLinUCB of the same prior")
    panel.legend(loc="upper right", fontsize=7.5)


def _gains(panel: Any, study: Study, form: str) -> None:
    """A point a draw, and each place's mean with its intervals both ways."""
    places = PLACES[form][1:]
    for place in reversed(places):
        r_squared, gained = predicted(study, "network", place), gains(study, place, form)
        colour = COLOURS[place]
        points: Any = {"color": colour, "s": 10, "alpha": 0.45, "linewidths": 0}
        panel.scatter(by_draw(r_squared), by_draw(gained), **points)
        across, up = interval(place, r_squared), interval(place, gained)
        panel.errorbar(
            across.mean,
            up.mean,
            xerr=[[across.mean - across.low], [across.high - across.mean]],
            yerr=[[up.mean - up.low], [up.high - up.mean]],
            color=colour,
            marker="o",
            markersize=6,
            markeredgecolor="white",
            capsize=3,
            label=f"{place}: {up.mean:+.1f} [{up.low:+.1f}, {up.high:+.1f}]",
        )
    panel.axhline(0.0, color=style.REFERENCE, linewidth=1)
    bottom, top = panel.get_ylim()
    panel.set_ylim(bottom, top + 0.15 * (top - bottom))  # for the legend
    panel.set_xlabel("held-out R² of z given x, network")
    panel.set_ylabel(f"regret: LinUCB(x) - {named(POLINUCB, form)}", fontsize=8)
    panel.set_title(f"gain over LinUCB(x), {form}: a point a draw")
    panel.legend(loc="upper left", fontsize=7.5)


def _predictability(panel: Any, study: Study) -> None:
    """Every draw's R², by map and place, with the mean."""
    rows = [(place, kind) for place in (PAPERS, *DRAWS_OF) for kind in MAPS]
    for row, (place, kind) in enumerate(reversed(rows)):
        values = predicted(study, kind, place)
        shown = by_draw(values) if place in DRAWS_OF else values
        spread = np.linspace(-0.2, 0.2, len(shown)) if len(shown) > 1 else np.zeros(1)
        look: Any = {"color": COLOURS[place], "marker": MARKERS[kind]}
        panel.scatter(shown, row + spread, s=6, alpha=0.4, linewidths=0, **look)
        found = interval(place, values)
        ends = [[found.mean - found.low], [found.high - found.mean]]
        panel.errorbar(found.mean, row, xerr=ends, markersize=6, markeredgecolor="white", capsize=3, **look)
    panel.axvline(0.0, color=style.REFERENCE, linewidth=1)
    _name_rows(panel, [f"{kind} map, {place}" for place, kind in rows])
    panel.set_xlabel("held-out R² of z given x, mean and 95% interval")
    panel.set_title("how much of z can be told from x")


def _name_rows(panel: Any, names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), list(reversed(names)), fontsize=7.5)
    panel.set_ylim(-0.7, len(names) - 0.3)
    panel.grid(axis="y", visible=False)


def _marker(policy: str) -> str:
    """As elsewhere: crosses for ridge 1."""
    return "o" if style.weight(policy) > 1.5 else "x"
