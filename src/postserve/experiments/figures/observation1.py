"""Observation 1: without the follow-up, a bandit that is linear in x has linear regret."""

from typing import Any

from postserve.environments import Observation1
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.rates import late_slope, with_slopes
from postserve.experiments.study import Cell, Study

TITLE = "Observation 1: linear regret without the follow-up"
ABOUT = (
    "Two arms whose order at x = -3, -1, 1 no function that is linear in x can have. Where the paper says "
    "any online algorithm, it means any that is linear in x: with x² among its features LinUCB would do. "
    "poLinUCB learns phi(x) = x² from the follow-ups, with a map that has x² among its features."
)
FULL, QUICK = Size(horizon=5000, seeds=20), Size(horizon=500, seeds=5, quick=True)

WORLD = "observation 1"
X_INTERCEPT = c.Contender("LinUCB(1, x)", c.X_ONLY.make, "#D55E00", c.DOTTED, options={"intercept": True})
LINEAR = (c.X_ONLY, c.X_ONLY.evidence, X_INTERCEPT.evidence)
CURVED = (c.POLINUCB, c.POLINUCB.evidence)
CONTENDERS = (c.RANDOM, *LINEAR, *CURVED, c.ORACLE)


def cells(size: Size) -> list[Cell]:
    """One world, the same for every seed but for the order of x."""
    return contest(size, {WORLD: lambda seed: Observation1()}, CONTENDERS)


def settings(size: Size) -> dict[str, str]:
    """For the report."""
    return {
        "x": "uniform on {-3, -1, 1}",
        "z": "x², without noise; the map has the features (x, x²)",
        "rewards": "x + x²/2 and -x - x²/2, without noise",
    }


def claims(study: Study) -> list[Claim]:
    """Slope 1 for policies that are linear in x, and hardly any growth for poLinUCB."""
    linear = {contender: late_slope(study, WORLD, contender) for contender in LINEAR}
    curved = {contender: late_slope(study, WORLD, contender) for contender in CURVED}
    return [
        *(
            Claim(f"{policy} has linear regret: slope {slope}, wanted 1.", abs(slope.value - 1.0) < 0.05)
            for policy, slope in linear.items()
        ),
        *(
            Claim(f"{policy} has not: slope {slope}, wanted below 0.7.", slope.high < 0.7)
            for policy, slope in curved.items()
        ),
    ]


def summary(study: Study) -> list[Row]:
    """Final regrets and slopes."""
    return with_slopes(study, study.summary(c.ORACLE))


def draw(study: Study) -> Any:
    """Regret over rounds, the same on logarithmic axes with the slope 1 beside it, and differences."""
    with style.picture(1, 3, height=4.0, width=4.8) as (made, axes):
        left, right, last = axes[0]
        style.draw_curves(left, study, WORLD, CONTENDERS, study.horizon)
        left.set(ylabel="cumulative regret", title="regret")
        for contender in CONTENDERS:
            label = f"{contender}: {late_slope(study, WORLD, contender)}"
            mean = study.curves(WORLD, contender).mean(axis=0)
            right.loglog(study.rounds, mean, label=label, **contender.line)
        late = study.rounds[study.rounds >= study.horizon // 10]
        line = 2.0 * study.final(WORLD, c.X_ONLY).mean() * late / study.horizon
        right.loglog(late, line, color=style.REFERENCE, linestyle=":", label="slope 1")
        right.set(xlabel="round", title="growth: slope over the last nine tenths, with 95% interval")
        right.legend(fontsize=7.5)
        others = [contender for contender in CONTENDERS if contender != c.POLINUCB]
        style.draw_differences(last, study, WORLD, c.POLINUCB, others, study.horizon)
        last.set_title("paired differences, two standard errors")
        style.legend(made, [left], 4)
        return made
