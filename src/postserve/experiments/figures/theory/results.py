"""The theory's claims (bounds above curves, lemmas that hold, coverage as promised), and eight panels."""

from typing import Any

import numpy as np

from postserve import theory
from postserve.experiments import style
from postserve.experiments.contenders import DASHED, DOTTED, SOLID, Contender
from postserve.experiments.figure import Claim
from postserve.experiments.figures.theory import quantities as q
from postserve.experiments.rates import late_slope
from postserve.experiments.study import Study
from postserve.types import BoolArray

ROUNDING = 1e-9
COLOURS = dict(zip(q.POWERS, ("#0072B2", "#009E73", "#E69F00", "#D55E00"), strict=True))


def claims(study: Study) -> list[Claim]:
    """At every recorded round and for every seed; where a bound says nothing, nothing is judged."""
    return [
        *(_of_regret(study, policy) for policy in q.KINDS),
        *(_of_growth(study, policy) for policy in q.KINDS),
        *(_of_slack(study, lemma) for lemma in q.LEMMAS),
        _of_tightness(study),
        *_of_gram(study),
        *(_of_coverage(study, form, delta) for form in q.FORMS for delta in q.COVERED),
    ]


def _of_regret(study: Study, policy: Contender) -> Claim:
    names = (policy, q.bound_of(policy), q.LARGEST)
    regret, bound, largest = (study.curves(q.REGRET, name) for name in names)
    times = float((bound[:, -1] / regret[:, -1]).min())
    informative = bound < largest
    since = _since(study, bound.mean(axis=0) < largest.mean(axis=0))
    text = (
        f"{policy}: the bound is above the regret wherever it is informative (below the largest gap times "
        f"the rounds; elsewhere nothing can exceed it), at the end by a factor of at least {times:.3g}. Its "
        f"mean is informative {since}."
    )
    if not informative.any():
        return Claim(f"{text} Not judged: no regret could have been above it.", None)
    return Claim(text, bool((bound >= regret)[informative].all()))


def _of_growth(study: Study, policy: Contender) -> Claim:
    regret, bound = (late_slope(study, q.REGRET, name) for name in (policy, q.bound_of(policy)))
    rate = theory.rate(q.KINDS[policy], map_rate=0.5).horizon
    text = f"{policy}: regret grows with exponent {regret}, the bound over the same rounds with {bound}"
    return Claim(f"{text}; stated, without logarithms: {rate:g}.", None)


def _since(study: Study, informative: BoolArray) -> str:
    """From where on a bound stays informative; it may have been so before, between recorded rounds."""
    if informative.all():
        return "at every recorded round"
    stays = study.rounds[np.flatnonzero(~informative)[-1] + 1 :]
    if not len(stays):
        return f"at no recorded round up to {study.horizon:,}"
    return f"at the latest from the recorded round {stays[0]:,} on"


def _of_slack(study: Study, lemma: str) -> Claim:
    slacks = [study.curves(q.SLACK, q.power(p, lemma)) for p in q.POWERS]
    informative = study.curves(q.SHARE, lemma) < 1.0
    since = _since(study, study.curves(q.SHARE, lemma).max(axis=0) < 1.0)
    powers = f"for p in {', '.join(f'{p:g}' for p in q.POWERS)}"
    ends = f"At p = 1 the right side is below T, which the left cannot exceed, {since}."
    if not informative.any():
        return Claim(f"The potential lemma, {lemma}, {powers}. {ends} Not judged.", None)
    least = min(float(slack[informative].min()) for slack in slacks)
    text = f"The potential lemma, {lemma}: where it is informative, right minus left is at least {least:.3g} "
    return Claim(f"{text}{powers}. {ends} Held if that is not negative.", least >= 0.0)


def _of_tightness(study: Study) -> Claim:
    """sum t^{-p} lies between T^{1-p} and T^{1-p}/(1-p), or log T and 1 + log T."""
    rounds, held, words = study.rounds.astype(np.float64), True, []
    for p in q.POWERS:
        left = study.curves(q.ONE, q.power(p))[0]
        low = rounds ** (1.0 - p) if p < 1.0 else np.log(rounds)
        high = low / (1.0 - p) if p < 1.0 else 1.0 + low
        held &= bool((left >= low * (1.0 - ROUNDING)).all() and (left <= high * (1.0 + ROUNDING)).all())
        words.append(f"{left[-1] / low[-1]:.3g} at p = {p:g}")
    text = "At x_t = 1 the left side is 1 to 1/(1-p) times T^(1-p) (log T at p = 1): at the end "
    return Claim(f"{text}{', '.join(words)}.", held)


def _of_gram(study: Study) -> list[Claim]:
    shares = [1.0 - study.curves(q.GRAM, name) for name in (q.MEASURED, q.FACTOR, q.A_PRIORI)]
    measured, factor, a_priori = shares
    least = [float(share[:, -1].min()) for share in shares]
    ends = [f"{1.0 / share:.5g}" if share > 0.0 else "none yet" for share in least]
    since = _since(study, a_priori.min(axis=0) > 0.0)
    ratio = f"The noisy Gram matrix's worst ratio, {ends[0]} at the end, is at most the factor, {ends[1]}."
    bound = f"The factor is at most its a-priori bound, {ends[2]} at the end; there is one {since}."
    return [
        Claim(ratio, bool((measured >= factor * (1.0 - ROUNDING)).all())),
        Claim(bound, bool((factor >= a_priori).all())),
    ]


def _of_coverage(study: Study, form: str, delta: float) -> Claim:
    name, runs = q.covered(form, delta), q.COVERAGE_RUNS * len(study.seeds)
    share = 1.0 - float(study.curves(q.MISSED, name).mean(axis=0).max())
    text = (
        f"Coverage, {name}: {share:.3f} of {runs:,} runs at least; held if that is at least {1.0 - delta:g}."
    )
    return Claim(text, share >= 1.0 - delta)


def draw(study: Study) -> Any:
    with style.picture(2, 4, height=4.1, width=4.7) as (made, axes):
        for panel in axes.flat:
            panel.set(xscale="log", yscale="log", xlim=(1, study.horizon), xlabel="round")
        _regret(axes[0, 0], study)
        for panel, lemma in zip(axes[0, 1:], q.LEMMAS, strict=True):
            _slack(panel, study, lemma)
        _share(axes[1, 0], study)
        _tightness(axes[1, 1], study)
        _gram(axes[1, 2], study)
        _coverage(axes[1, 3], study)
        for panel, columns in zip(axes.flat, (2, 4, 4, 4, 2, 4, 3, 1), strict=True):
            style.legend_below(panel, columns)
        return made


def _regret(panel: Any, study: Study) -> None:
    for contender in q.KINDS:
        label = f"{contender}: {late_slope(study, q.REGRET, contender).text}"
        curves = study.curves(q.REGRET, contender)
        style.draw_band(panel, study.rounds, curves, color=contender.colour, label=label)
    largest = study.curves(q.REGRET, q.LARGEST).mean(axis=0)
    label = "largest gap, each round: 1"
    panel.plot(study.rounds, largest, color=style.REFERENCE, linestyle=":", label=label)
    for contender, kind in q.KINDS.items():  # last, so that the legend has each beside its policy
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
    for contender in q.KINDS:
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
        hidden = study.curves(q.GRAM, name).max(axis=0)
        with np.errstate(divide="ignore"):
            excess = hidden / (1.0 - hidden)  # infinite where there is no factor yet
        there = np.isfinite(excess) & (excess > 0.0)
        label = f"{name}: {excess[-1]:.2g}" if there[-1] else f"{name}: none yet"
        panel.plot(study.rounds[there], excess[there], color=colour, linestyle=dashes, label=label)
    panel.set(title="noisy Gram matrix: factor - 1, and its end", ylabel="factor - 1, worst seed")


def _coverage(panel: Any, study: Study) -> None:
    """Runs that missed the truth: colours are deltas, dashes are forms; none at all is half a run."""
    half_a_run = 0.5 / (q.COVERAGE_RUNS * len(study.seeds))
    for delta, colour in zip(q.COVERED, ("#0072B2", "#D55E00"), strict=True):
        for form, dashes in zip(q.FORMS, (DOTTED, SOLID, DASHED), strict=True):
            missed = study.curves(q.MISSED, q.covered(form, delta)).mean(axis=0)
            label = f"{q.covered(form, delta)}: {missed[-1]:.2g}"
            line: Any = {"color": colour, "linestyle": dashes, "label": label}
            panel.plot(study.rounds, np.maximum(missed, half_a_run), **line)
        panel.axhline(delta, color=colour, linestyle=":", linewidth=1)
        panel.text(1.15, 0.8 * delta, f"allowed at delta = {delta:g}", color=colour, fontsize=7.5, va="top")
    panel.set(title="truth outside the confidence ellipsoid", ylabel="1 - coverage, share of runs")
    powers = [10.0**k for k in range(-5, 1) if 10.0**k > 1.5 * half_a_run]
    panel.set_ylim(0.7 * half_a_run, 1.0)
    panel.set_yticks([half_a_run, *powers], ["none", *(f"{power:g}" for power in powers)])
