"""What the figure claims: bounds above curves, lemmas that hold, coverage as promised."""

import numpy as np

from postserve import theory
from postserve.experiments.contenders import Contender
from postserve.experiments.figure import Claim
from postserve.experiments.figures.theory import quantities as q
from postserve.experiments.figures.theory.world import KINDS
from postserve.experiments.rates import late_slope
from postserve.experiments.study import Study
from postserve.types import BoolArray, FloatArray

ROUNDING = 1e-9


def claims(study: Study) -> list[Claim]:
    """At every recorded round and for every seed."""
    return [
        *(_of_regret(study, policy) for policy in KINDS),
        *(_of_growth(study, policy) for policy in KINDS),
        *(_of_slack(study, lemma) for lemma in q.LEMMAS),
        _of_tightness(study),
        *_of_gram(study),
        *(_of_coverage(study, form, delta) for form in q.FORMS for delta in q.COVERED),
    ]


def _of_regret(study: Study, policy: Contender) -> Claim:
    names = (policy, q.bound_of(policy), q.LARGEST)
    regret, bound, largest = (study.curves(q.REGRET, name) for name in names)
    times = float((bound[:, -1] / regret[:, -1]).min())
    since = _since(study, bound.mean(axis=0) < largest.mean(axis=0))
    text = (
        f"{policy}: the bound is above the regret at every recorded round, at the end by a factor of at "
        f"least {times:.3g}. Its mean is informative (below the largest gap times the rounds) {since}."
    )
    return Claim(text, bool((bound >= regret).all()))


def _of_growth(study: Study, policy: Contender) -> Claim:
    regret, bound = (late_slope(study, q.REGRET, name) for name in (policy, q.bound_of(policy)))
    rate = theory.rate(KINDS[policy], map_rate=0.5).horizon
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
    least = min(float(study.curves(q.SLACK, q.power(p, lemma)).min()) for p in q.POWERS)
    since = _since(study, study.curves(q.SHARE, lemma).max(axis=0) < 1.0)
    text = (
        f"The potential lemma, {lemma}: right minus left is at least {least:.3g} for p in "
        f"{', '.join(f'{p:g}' for p in q.POWERS)}. At p = 1 the right side is below T {since}."
    )
    return Claim(text, least >= 0.0)


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


def excess_factors(study: Study, name: str) -> FloatArray:
    """By how much a factor is above 1, one row per seed; infinite where there is none yet."""
    hidden = study.curves(q.GRAM, name)
    with np.errstate(divide="ignore"):
        return np.asarray(hidden / (1.0 - hidden))


def _of_coverage(study: Study, form: str, delta: float) -> Claim:
    name, runs = q.covered(form, delta), q.COVERAGE_RUNS * len(study.seeds)
    share = 1.0 - float(study.curves(q.MISSED, name).mean(axis=0).max())
    text = f"Coverage, {name}: {share:.3f} of {runs:,} runs at least, wanted {1.0 - delta:g}."
    return Claim(text, share >= 1.0 - delta)
