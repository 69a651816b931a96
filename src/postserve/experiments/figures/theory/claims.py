"""What the figure claims: bounds above curves, lemmas that hold, coverage that was promised."""

import numpy as np
import numpy.typing as npt

from postserve import theory
from postserve.experiments.figure import Claim
from postserve.experiments.figures.theory.settings import (
    A_PRIORI,
    COVERAGE_RUNS,
    COVERED,
    FACTOR,
    FORMS,
    GRAM,
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
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Study
from postserve.types import FloatArray

ROUNDING = 1e-9


def slope(study: Study, place: str, name: str) -> Slope:
    """Growth over the last nine tenths of the rounds."""
    return growth(study.rounds, study.curves(place, name), start=study.horizon // 10)


def claims(study: Study) -> list[Claim]:
    """Every one of them, at every recorded round and for every seed."""
    return [
        *(claim for policy in KINDS for claim in _of_regret(study, policy)),
        *(claim for lemma in LEMMAS for claim in _of_slack(study, lemma)),
        _of_tightness(study),
        *_of_gram(study),
        *(_of_coverage(study, form, delta) for form in FORMS for delta in COVERED),
    ]


def _of_regret(study: Study, policy: str) -> list[Claim]:
    regret, bound = study.curves(REGRET, policy), study.curves(REGRET, bound_of(policy))
    largest = study.curves(REGRET, LARGEST)
    times = float((bound[:, -1] / regret[:, -1]).min())
    worth = informative(study, bound.mean(axis=0) < largest.mean(axis=0))
    found, rate = slope(study, REGRET, policy), theory.rate(KINDS[policy], map_rate=0.5).horizon
    return [
        Claim(
            f"{policy}: the bound is above the regret at every recorded round, at the end by a factor of "
            f"{times:.3g} at least.",
            bool((bound >= regret).all()),
        ),
        Claim(
            f"{policy}: on average the bound says something, being below the largest gap times the rounds, "
            f"{worth}.",
            None,
        ),
        Claim(
            f"{policy}: regret grows with exponent {found}, the bound over the same rounds with "
            f"{slope(study, REGRET, bound_of(policy))}; stated, without logarithms: {rate:g}.",
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
    least = min(float(study.curves(SLACK, power(p, lemma)).min()) for p in POWERS)
    worth = informative(study, study.curves(SHARE, lemma).max(axis=0) < 1.0)
    return [
        Claim(
            f"The potential lemma, {lemma}: right less left is at least {least:.3g} for p in "
            f"{', '.join(f'{p:g}' for p in POWERS)}.",
            least >= 0.0,
        ),
        Claim(f"The potential lemma, {lemma}: at p = 1 the right side is below T {worth}.", None),
    ]


def _of_tightness(study: Study) -> Claim:
    """sum t^{-p} lies between T^{1-p} and T^{1-p}/(1-p), or log T and 1 + log T."""
    rounds, held, words = study.rounds.astype(np.float64), True, []
    for p in POWERS:
        left = study.curves(ONE, power(p))[0]
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
    measured, factor, a_priori = (1.0 - study.curves(GRAM, name) for name in (MEASURED, FACTOR, A_PRIORI))
    ends = [told_factor(float(share[:, -1].min())) for share in (measured, factor, a_priori)]
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
    """A row a seed: by how much a factor is above 1, infinite where there is none yet."""
    hidden = study.curves(GRAM, name)
    with np.errstate(divide="ignore"):
        return np.asarray(hidden / (1.0 - hidden))


def told_factor(share: float) -> str:
    """The factor that goes with a share of A, if any is left."""
    return f"{1.0 / share:.5g}" if share > 0.0 else "none yet"


def _of_coverage(study: Study, form: str, delta: float) -> Claim:
    share = 1.0 - float(study.curves(MISSED, covered(form, delta)).mean(axis=0).max())
    runs = COVERAGE_RUNS * len(study.seeds)
    text = f"Coverage, {covered(form, delta)}: {share:.3f} of {runs:,} runs at least, wanted {1.0 - delta:g}."
    return Claim(text, share >= 1.0 - delta)
