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
    "No function that is linear in x can have the order of two arms at x = -3, -1, 1. Where the paper says "
    "any online algorithm, it means any that is linear in x: LinUCB with x² among its features would do. "
    "poLinUCB learns phi(x) = x² from the follow-ups."
)
FULL, QUICK = Size(horizon=5000, seeds=20), Size(horizon=500, seeds=5, quick=True)

WORLD = "observation 1"
X_INTERCEPT = c.Contender("LinUCB(1, x)", c.X_ONLY.make, "#D55E00", c.DOTTED, options={"intercept": True})
LINEAR = (c.X_ONLY, c.X_ONLY.evidence, X_INTERCEPT.evidence)
CURVED = (c.POLINUCB, c.POLINUCB.evidence)
CONTENDERS = (c.RANDOM, *LINEAR, *CURVED, c.ORACLE)


def cells(size: Size) -> list[Cell]:
    return contest(size, {WORLD: lambda seed: Observation1()}, CONTENDERS)


def settings(size: Size) -> dict[str, str]:
    return {
        "x": "uniform on {-3, -1, 1}",
        "z": "x², without noise; the map has the features (x, x²)",
        "rewards": "x + x²/2 and -x - x²/2, without noise",
    }


def claims(study: Study) -> list[Claim]:
    found = []
    for each in (*LINEAR, *CURVED):
        slope = late_slope(study, WORLD, each)
        if each in LINEAR:
            text = f"{each} has linear regret: slope {slope}; held if the interval is within 0.05 of 1."
            found.append(Claim(text, slope.low > 0.95 and slope.high < 1.05))
        else:
            text = f"{each} has not: slope {slope}; held if the interval is below 0.7."
            found.append(Claim(text, slope.high < 0.7))
    return found


def summary(study: Study) -> list[Row]:
    return with_slopes(study, study.summary(c.ORACLE))


def draw(study: Study) -> Any:
    with style.picture(1, 3, height=5.0, width=4.8) as (made, axes):
        left, right, last = axes[0]
        style.draw_curves(left, study, WORLD, CONTENDERS, study.horizon)
        left.set(ylabel="cumulative regret", title="regret")
        slopes = {contender: late_slope(study, WORLD, contender) for contender in CONTENDERS}
        style.draw_growth(right, study, WORLD, slopes, [(1.0, "slope 1")])
        right.set_title("growth: slope over the last nine tenths, with 95% interval")
        others = [contender for contender in CONTENDERS if contender != c.POLINUCB]
        style.draw_differences(last, study, WORLD, c.POLINUCB, others, study.horizon)
        last.set_title("paired differences, two standard errors")
        style.legend(made, [left], 4)
        return made
