"""What the figure claims: bounds above curves, lemmas that hold, coverage that was promised."""

import numpy as np
import numpy.typing as npt

from postserve import theory
from postserve.experiments.contenders import Contender
from postserve.experiments.figure import Claim
from postserve.experiments.figures.theory import quantities as q
from postserve.experiments.figures.theory.world import KINDS
from postserve.experiments.rates import late_slope
from postserve.experiments.study import Study
from postserve.types import FloatArray

ROUNDING = 1e-9


def claims(study: Study) -> list[Claim]:
    """Every one of them, at every recorded round and for every seed."""
    return [
        *(claim for policy in KINDS for claim in _of_regret(study, policy)),
        *(claim for lemma in q.LEMMAS for claim in _of_slack(study, lemma)),
        _of_tightness(study),
        *_of_gram(study),
        *(_of_coverage(study, form, delta) for form in q.FORMS for delta in q.COVERED),
    ]


def _of_regret(study: Study, policy: Contender) -> list[Claim]:
    regret, bound = study.curves(q.REGRET, policy), study.curves(q.REGRET, q.bound_of(policy))
    largest = study.curves(q.REGRET, q.LARGEST)
    times = float((bound[:, -1] / regret[:, -1]).min())
    since = informative(study, bound.mean(axis=0) < largest.mean(axis=0))
    found, rate = late_slope(study, q.REGRET, policy), theory.rate(KINDS[policy], map_rate=0.5).horizon
    return [
        Claim(
            f"{policy}: the bound is above the regret at every recorded round, at the end by a factor of "
            f"{times:.3g} at least.",
            bool((bound >= regret).all()),
        ),
        Claim(
            f"{policy}: the mean bound is informative (below the largest gap times the rounds) {since}.",
            None,
        ),
        Claim(
            f"{policy}: regret grows with exponent {found}, the bound over the same rounds with "
            f"{late_slope(study, q.REGRET, q.bound_of(policy))}; stated, without logarithms: {rate:g}.",
            None,
        ),
    ]


def informative(study: Study, below: npt.NDArray[np.bool_]) -> str:
    """From where on a bound stays below the trivial one, as far as rounds were recorded."""
    above = study.rounds[~below]
    if not len(above):
        return "at every recorded round"
    stays = study.rounds[study.rounds > above[-1]]
    return latest(stays[0]) if len(stays) else f"at no recorded round up to {study.horizon:,}"


def latest(recorded: int) -> str:
    """It may have been so before, at a round that was not recorded."""
    return f"at the latest from the recorded round {recorded:,} on"


def _of_slack(study: Study, lemma: str) -> list[Claim]:
    least = min(float(study.curves(q.SLACK, q.power(p, lemma)).min()) for p in q.POWERS)
    since = informative(study, study.curves(q.SHARE, lemma).max(axis=0) < 1.0)
    return [
        Claim(
            f"The potential lemma, {lemma}: right less left is at least {least:.3g} for p in "
            f"{', '.join(f'{p:g}' for p in q.POWERS)}.",
            least >= 0.0,
        ),
        Claim(f"The potential lemma, {lemma}: at p = 1 the right side is below T {since}.", None),
    ]


def _of_tightness(study: Study) -> Claim:
    """sum t^{-p} lies between T^{1-p} and T^{1-p}/(1-p), or log T and 1 + log T."""
    rounds, held, words = study.rounds.astype(np.float64), True, []
    for p in q.POWERS:
        left = study.curves(q.ONE, q.power(p))[0]
        low, high = (
            (rounds ** (1.0 - p), rounds ** (1.0 - p) / (1.0 - p))
            if p < 1.0
            else (np.log(rounds), 1.0 + np.log(rounds))
        )
        held &= bool((left >= low * (1.0 - ROUNDING)).all() and (left <= high * (1.0 + ROUNDING)).all())
        words.append(f"{left[-1] / low[-1]:.3g} at p = {p:g}")
    return Claim(
        f"At x_t = 1 the left side is 1 to 1/(1-p) times T^(1-p) (log T at p = 1): at the end "
        f"{', '.join(words)}.",
        held,
    )


def _of_gram(study: Study) -> list[Claim]:
    measured, factor, a_priori = (
        1.0 - study.curves(q.GRAM, name) for name in (q.MEASURED, q.FACTOR, q.A_PRIORI)
    )
    ends = [factor_text(float(share[:, -1].min())) for share in (measured, factor, a_priori)]
    some = study.rounds[(a_priori > 0.0).all(axis=0)]
    from_round = latest(some[0]) if len(some) else "at no recorded round so far"
    return [
        Claim(
            f"The worst ratio of the noisy Gram matrix, {ends[0]} at the end, is at most the factor, "
            f"{ends[1]}.",
            bool((measured >= factor * (1.0 - ROUNDING)).all()),
        ),
        Claim(
            f"The factor is at most its a-priori bound, {ends[2]} at the end; there is one {from_round}.",
            bool((factor >= a_priori).all()),
        ),
    ]


def excess_factors(study: Study, name: str) -> FloatArray:
    """By how much a factor is above 1, one row per seed; infinite where there is none yet."""
    hidden = study.curves(q.GRAM, name)
    with np.errstate(divide="ignore"):
        return np.asarray(hidden / (1.0 - hidden))


def factor_text(share: float) -> str:
    """The factor that goes with a share of A, if any is left."""
    return f"{1.0 / share:.5g}" if share > 0.0 else "none yet"


def _of_coverage(study: Study, form: q.Form, delta: float) -> Claim:
    share = 1.0 - float(study.curves(q.MISSED, q.covered(form, delta)).mean(axis=0).max())
    runs = q.COVERAGE_RUNS * len(study.seeds)
    text = (
        f"Coverage, {q.covered(form, delta)}: {share:.3f} of {runs:,} runs at least, wanted {1.0 - delta:g}."
    )
    return Claim(text, share >= 1.0 - delta)
