"""Observation 1: without the follow-up, a bandit that is linear in x has linear regret."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.contenders import ORACLE, POLINUCB, X_INTERCEPT, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.observation1.settings import QUICK, SIZE, WORLD, cells, described
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Study


def slope(study: Study, policy: str) -> Slope:
    """Growth of the regret over the last nine tenths of the rounds."""
    return growth(study.rounds, study.curves(WORLD, policy), start=study.horizon // 10)


def claims(study: Study) -> list[Claim]:
    """Slope 1 for what is linear in x, and hardly any growth for poLinUCB."""
    told = []
    for policy in (X_ONLY, evidence(X_ONLY), evidence(X_INTERCEPT)):
        found = slope(study, policy)
        told.append(
            Claim(f"{policy} has linear regret: slope {found}, wanted 1.", abs(found.value - 1.0) < 0.05)
        )
    for policy in (POLINUCB, evidence(POLINUCB)):
        found = slope(study, policy)
        told.append(Claim(f"{policy} has not: slope {found}, wanted below 0.7.", found.high < 0.7))
    return told


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets and slopes."""
    return [{**row, **slope(study, row["policy"]).named()} for row in study.summary(ORACLE)]


def draw(study: Study) -> Any:
    """Regret over rounds, the same on logarithmic axes with the slope 1 beside it, and differences."""
    with style.picture(1, 3, height=4.0, width=4.8) as (made, axes):
        left, right, last = axes[0]
        style.draw_curves(left, study, WORLD, study.policies, study.horizon)
        left.set_ylabel("cumulative regret")
        left.set_title("regret")
        for policy in study.policies:
            colour, dashes = style.look(policy)
            found = slope(study, policy)
            mean = study.curves(WORLD, policy).mean(axis=0)
            right.loglog(
                study.rounds,
                mean,
                color=colour,
                linestyle=dashes,
                linewidth=style.weight(policy),
                label=f"{policy}: {found}",
            )
        late = study.rounds[study.rounds >= study.horizon // 10]
        top = float(study.curves(WORLD, X_ONLY).mean(axis=0)[-1])
        right.loglog(
            late, 2.0 * top * late / study.horizon, color=style.REFERENCE, linestyle=":", label="slope 1"
        )
        right.set_xlabel("round")
        right.set_title("growth: slope over the last nine tenths, with 95% interval")
        right.legend(fontsize=7.5)
        others = [policy for policy in study.policies if policy != POLINUCB]
        style.draw_differences(last, study, WORLD, POLINUCB, others, study.horizon)
        last.set_title("paired differences, two standard errors")
        style.legend(made, [left], 4)
        return made


OBSERVATION1 = Figure(
    name="observation1",
    title="Observation 1: linear regret without the follow-up",
    about="Two arms whose order at x = -3, -1, 1 no function that is linear in x can have. Where the paper "
    "says any online algorithm, it means any that is linear in x: with x² among its features LinUCB would "
    "do. poLinUCB learns phi(x) = x² from the follow-ups, with a map that has x² among its features.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
