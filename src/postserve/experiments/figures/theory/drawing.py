"""Eight panels: regret and bounds, the lemmas' slack and worth, tightness, noisy Gram matrix, coverage."""

from typing import Any

import numpy as np

from postserve import theory
from postserve.experiments import style
from postserve.experiments.figures.theory.claims import excess_factors, slope
from postserve.experiments.figures.theory.settings import (
    A_PRIORI,
    COVERAGE_RUNS,
    COVERED,
    FACTOR,
    FORMS,
    LARGEST,
    LEMMAS,
    MEASURED,
    MISSED,
    ONE,
    POWERS,
    REGRET,
    SHARE,
    SLACK,
    bound_of,
    covered,
    power,
)
from postserve.experiments.figures.theory.world import KINDS
from postserve.experiments.study import Study

COLOURS = dict(zip(POWERS, ("#0072B2", "#009E73", "#E69F00", "#D55E00"), strict=True))


def draw(study: Study) -> Any:
    """All panels over rounds, on logarithmic axes but for coverage."""
    with style.picture(2, 4, height=4.1, width=4.7) as (made, axes):
        _regret(axes[0, 0], study)
        for panel, lemma in zip(axes[0, 1:], LEMMAS, strict=True):
            _slack(panel, study, lemma)
        _worth(axes[1, 0], study)
        _tightness(axes[1, 1], study)
        _gram(axes[1, 2], study)
        _coverage(axes[1, 3], study)
        for panel in axes.flat:
            panel.set_xscale("log")
            panel.set_xlim(1, study.horizon)
            panel.set_xlabel("round")
        return made


def _regret(panel: Any, study: Study) -> None:
    rounds = study.rounds
    for policy in KINDS:
        label = f"{policy}: {slope(study, REGRET, policy).told()}"
        style.draw_band(panel, rounds, study.curves(REGRET, policy), style.look(policy)[0], "-", label)
    largest = study.curves(REGRET, LARGEST).mean(axis=0)
    panel.plot(rounds, largest, color=style.REFERENCE, linestyle=":", label="largest gap, each round: 1")
    for policy, kind in KINDS.items():  # last: the legend then has each beside its policy
        name, rate = bound_of(policy), theory.rate(kind, map_rate=0.5).horizon
        label = f"its bound: {slope(study, REGRET, name).value:.2f}, stated {rate:g}"
        style.draw_band(panel, rounds, study.curves(REGRET, name), style.look(policy)[0], (0, (4, 2)), label)
    panel.set_yscale("log")
    panel.set(title="regret, and slopes of the last nine tenths", ylabel="cumulative regret")
    _legend(panel, 2)


def _slack(panel: Any, study: Study, lemma: str) -> None:
    for p in POWERS:
        curves = study.curves(SLACK, power(p, lemma))
        style.draw_band(panel, study.rounds, curves, COLOURS[p], "-", power(p))
    panel.set_yscale("log")
    panel.set(title=f"potential lemma, {lemma}: slack", ylabel="right side - left side")
    _legend(panel, 4)


def _worth(panel: Any, study: Study) -> None:
    """Where a bound is below what is known without it."""
    largest = study.curves(REGRET, LARGEST)
    for policy in KINDS:
        share = study.curves(REGRET, bound_of(policy)) / largest
        style.draw_band(panel, study.rounds, share, style.look(policy)[0], (0, (4, 2)), bound_of(policy))
    for lemma, colour in zip(LEMMAS, ("#000000", "#D55E00", "#CC79A7"), strict=True):
        curves = study.curves(SHARE, lemma)
        style.draw_band(panel, study.rounds, curves, colour, "-", f"lemma, {lemma}")
    panel.axhline(1.0, color=style.REFERENCE, linestyle=":")
    panel.set_yscale("log")
    panel.set(title="a bound says something where it is below 1", ylabel="bound / trivial bound (p = 1)")
    _legend(panel, 2)


def _tightness(panel: Any, study: Study) -> None:
    rounds = study.rounds.astype(np.float64)
    for p in POWERS:
        panel.plot(rounds, study.curves(ONE, power(p))[0], color=COLOURS[p], label=power(p))
        reference = rounds ** (1.0 - p) if p < 1.0 else 1.0 + np.log(rounds)
        panel.plot(rounds, reference, color=COLOURS[p], linestyle=":", linewidth=1)
    panel.set_yscale("log")
    panel.set(
        title="tight at x_t = 1: above the dotted T^(1-p);\nat p = 1 below the dotted 1 + log T",
        ylabel="left side",
    )
    _legend(panel, 4)


def _gram(panel: Any, study: Study) -> None:
    """The factors less 1, at worst over seeds, where there are any and they are above 1."""
    for name, colour, dashes in (
        (A_PRIORI, "#999999", "-"),
        (FACTOR, "#D55E00", (0, (4, 2))),
        (MEASURED, "#0072B2", "-"),
    ):
        excess = excess_factors(study, name).max(axis=0)
        there = np.isfinite(excess) & (excess > 0.0)
        label = f"{name}: {excess[-1]:.2g}" if there[-1] else f"{name}: none yet"
        panel.plot(study.rounds[there], excess[there], color=colour, linestyle=dashes, label=label)
    panel.set_yscale("log")
    panel.set(title="noisy Gram matrix: factor - 1, and its end", ylabel="factor - 1, worst seed")
    _legend(panel, 3)


def _coverage(panel: Any, study: Study) -> None:
    """Runs that missed the truth: colours are deltas, dashes are forms; none at all is half a run."""
    least = 0.5 / (COVERAGE_RUNS * len(study.seeds))
    for delta, colour in zip(COVERED, ("#0072B2", "#D55E00"), strict=True):
        for form, dashes in zip(FORMS, ((0, (1, 1)), "-", (0, (4, 2))), strict=True):
            missed = study.curves(MISSED, covered(form, delta)).mean(axis=0)
            label = f"{covered(form, delta)}: {missed[-1]:.2g}"
            look: Any = {"color": colour, "linestyle": dashes, "label": label}
            panel.plot(study.rounds, np.maximum(missed, least), **look)
        panel.axhline(delta, color=colour, linestyle=":", linewidth=1)
        panel.text(1.15, 0.8 * delta, f"allowed at delta = {delta:g}", color=colour, fontsize=7.5, va="top")
    panel.set_yscale("log")
    panel.set_ylim(0.7 * least, 1.0)
    powers = [10.0**k for k in range(-5, 1) if 10.0**k > 1.5 * least]
    panel.set_yticks([least, *powers], ["none", *(f"{power:g}" for power in powers)])
    panel.set(title="truth outside the confidence ellipsoid", ylabel="1 - coverage, share of runs")
    _legend(panel, 1)


def _legend(panel: Any, columns: int) -> None:
    style.legend_below(panel, columns)
