"""Eight panels: regret and bounds, the lemmas' slack and worth, tightness, noisy Gram matrix, coverage."""

from typing import Any

import numpy as np

from postserve import theory
from postserve.experiments import style
from postserve.experiments.contenders import DASHED, DOTTED, SOLID
from postserve.experiments.figures.theory import quantities as q
from postserve.experiments.figures.theory.claims import excess_factors
from postserve.experiments.figures.theory.world import KINDS
from postserve.experiments.rates import late_slope
from postserve.experiments.study import Study

COLOURS = dict(zip(q.POWERS, ("#0072B2", "#009E73", "#E69F00", "#D55E00"), strict=True))


def draw(study: Study) -> Any:
    """All panels over rounds, on logarithmic axes."""
    with style.picture(2, 4, height=4.1, width=4.7) as (made, axes):
        _regret(axes[0, 0], study)
        for panel, lemma in zip(axes[0, 1:], q.LEMMAS, strict=True):
            _slack(panel, study, lemma)
        _share(axes[1, 0], study)
        _tightness(axes[1, 1], study)
        _gram(axes[1, 2], study)
        _coverage(axes[1, 3], study)
        for panel, columns in zip(axes.flat, (2, 4, 4, 4, 2, 4, 3, 1), strict=True):
            panel.set(xscale="log", yscale="log", xlim=(1, study.horizon), xlabel="round")
            style.legend_below(panel, columns)
        _coverage_ticks(axes[1, 3], study)
        return made


def _regret(panel: Any, study: Study) -> None:
    for contender in KINDS:
        label = f"{contender}: {late_slope(study, q.REGRET, contender).text}"
        curves = study.curves(q.REGRET, contender)
        style.draw_band(panel, study.rounds, curves, color=contender.colour, label=label)
    largest = study.curves(q.REGRET, q.LARGEST).mean(axis=0)
    panel.plot(
        study.rounds, largest, color=style.REFERENCE, linestyle=":", label="largest gap, each round: 1"
    )
    for contender, kind in KINDS.items():  # last, so that the legend has each beside its policy
        name, rate = q.bound_of(contender), theory.rate(kind, map_rate=0.5).horizon
        label = f"its bound: {late_slope(study, q.REGRET, name).value:.2f}, stated {rate:g}"
        line: Any = {"color": contender.colour, "linestyle": DASHED, "label": label}
        style.draw_band(panel, study.rounds, study.curves(q.REGRET, name), **line)
    panel.set(title="regret, and slopes of the last nine tenths", ylabel="cumulative regret")


def _slack(panel: Any, study: Study, lemma: str) -> None:
    for p in q.POWERS:
        curves = study.curves(q.SLACK, q.power(p, lemma))
        style.draw_band(panel, study.rounds, curves, color=COLOURS[p], label=q.power(p))
    panel.set(title=f"potential lemma, {lemma}: slack", ylabel="right side - left side")


def _share(panel: Any, study: Study) -> None:
    """Where a bound is below what is known without it."""
    largest = study.curves(q.REGRET, q.LARGEST)
    for contender in KINDS:
        share = study.curves(q.REGRET, q.bound_of(contender)) / largest
        line: Any = {"color": contender.colour, "linestyle": DASHED, "label": q.bound_of(contender)}
        style.draw_band(panel, study.rounds, share, **line)
    for lemma, colour in zip(q.LEMMAS, ("#000000", "#D55E00", "#CC79A7"), strict=True):
        curves = study.curves(q.SHARE, lemma)
        style.draw_band(panel, study.rounds, curves, color=colour, label=f"lemma, {lemma}")
    panel.axhline(1.0, color=style.REFERENCE, linestyle=":")
    panel.set(title="a bound is informative where it is below 1", ylabel="bound / trivial bound (p = 1)")


def _tightness(panel: Any, study: Study) -> None:
    rounds = study.rounds.astype(np.float64)
    for p in q.POWERS:
        panel.plot(rounds, study.curves(q.ONE, q.power(p))[0], color=COLOURS[p], label=q.power(p))
        reference = rounds ** (1.0 - p) if p < 1.0 else 1.0 + np.log(rounds)
        panel.plot(rounds, reference, color=COLOURS[p], linestyle=":", linewidth=1)
    title = "tight at x_t = 1: above the dotted T^(1-p);\nat p = 1 below the dotted 1 + log T"
    panel.set(title=title, ylabel="left side")


def _gram(panel: Any, study: Study) -> None:
    """The factors minus 1, at worst over seeds, where there are any and they are above 1."""
    lines = {q.A_PRIORI: ("#999999", "-"), q.FACTOR: ("#D55E00", DASHED), q.MEASURED: ("#0072B2", "-")}
    for name, (colour, dashes) in lines.items():
        excess = excess_factors(study, name).max(axis=0)
        there = np.isfinite(excess) & (excess > 0.0)
        label = f"{name}: {excess[-1]:.2g}" if there[-1] else f"{name}: none yet"
        panel.plot(study.rounds[there], excess[there], color=colour, linestyle=dashes, label=label)
    panel.set(title="noisy Gram matrix: factor - 1, and its end", ylabel="factor - 1, worst seed")


def _coverage(panel: Any, study: Study) -> None:
    """Runs that missed the truth: colours are deltas, dashes are forms; none at all is half a run."""
    for delta, colour in zip(q.COVERED, ("#0072B2", "#D55E00"), strict=True):
        for form, dashes in zip(q.FORMS, (DOTTED, SOLID, DASHED), strict=True):
            missed = study.curves(q.MISSED, q.covered(form, delta)).mean(axis=0)
            label = f"{q.covered(form, delta)}: {missed[-1]:.2g}"
            line: Any = {"color": colour, "linestyle": dashes, "label": label}
            panel.plot(study.rounds, np.maximum(missed, _half_a_run(study)), **line)
        panel.axhline(delta, color=colour, linestyle=":", linewidth=1)
        panel.text(1.15, 0.8 * delta, f"allowed at delta = {delta:g}", color=colour, fontsize=7.5, va="top")
    panel.set(title="truth outside the confidence ellipsoid", ylabel="1 - coverage, share of runs")


def _coverage_ticks(panel: Any, study: Study) -> None:
    least = _half_a_run(study)
    powers = [10.0**k for k in range(-5, 1) if 10.0**k > 1.5 * least]
    panel.set_ylim(0.7 * least, 1.0)
    panel.set_yticks([least, *powers], ["none", *(f"{power:g}" for power in powers)])


def _half_a_run(study: Study) -> float:
    return 0.5 / (q.COVERAGE_RUNS * len(study.seeds))
