"""How regret depends on exploration, on the noise and dimension of z, and on whether phi can be learnt."""

from typing import Any

import numpy as np

from postserve.experiments import style
from postserve.experiments.claims import compared
from postserve.experiments.contenders import BEFORE, ORACLE, POLINUCB, ROBUST, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.sensitivity.settings import QUICK, SIZE, cells, described, panels, place
from postserve.experiments.study import Study


def claims(study: Study) -> list[Claim]:
    """What the paper names as its limitation: phi must be learnable."""
    ours, x_only = evidence(POLINUCB), evidence(X_ONLY)
    learnable, hidden = (place("unlearnable", share) for share in (0.0, 1.0))
    gain = study.final(learnable, x_only).mean() / study.final(learnable, ours).mean()
    left = study.final(hidden, x_only).mean() / study.final(hidden, ours).mean()
    sweep = panels()["exploration"].values
    best = min(sweep, key=lambda value: study.final(place("exploration", value), ours).mean())
    at_best, at_one = (study.final(place("exploration", value), ours).mean() for value in (best, 1.0))
    noisy = place("noise of z", panels()["noise of z"].values[-1])
    return [
        Claim(
            f"The limitation: follow-ups help only as far as phi is learnt. LinUCB(x) has {gain:.1f} times "
            f"the regret of poLinUCB where the map can express phi, {left:.2f} times where it can express "
            "none of it.",
            bool(gain > 2.0 and left < 1.2),
        ),
        Claim(
            f"Exploration 1 needs no tuning with the learnt prior: the best of the sweep, {best:g}, has "
            f"{at_best / at_one:.2f} of its regret here.",
            bool(at_best / at_one > 0.9),
        ),
        compared(study, evidence(ORACLE), ours, study.horizon, [noisy]),
        compared(study, ours, evidence(BEFORE), study.horizon, [noisy, hidden]),
        compared(study, evidence(ROBUST), ours, study.horizon, [noisy, hidden]),
    ]


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets, against the oracle with the learnt prior."""
    return study.summary(evidence(ORACLE))


def draw(study: Study) -> Any:
    """A panel a sweep: final regret against what varies."""
    with style.picture(2, 2, height=3.6, width=5.2) as (made, axes):
        for panel, (name, sweep) in zip(axes.ravel(), panels().items(), strict=True):
            for policy in study.policies:
                colour, dashes = style.look(policy)
                finals = [study.final(place(name, value), policy) for value in sweep.values]
                mean = np.array([final.mean() for final in finals])
                error = np.array([final.std(ddof=1) / np.sqrt(len(final)) for final in finals])
                panel.errorbar(
                    sweep.values,
                    mean,
                    yerr=error,
                    color=colour,
                    linestyle=dashes,
                    linewidth=style.weight(policy),
                    marker=".",
                    label=policy,
                )
            panel.set(xlabel=sweep.title, yscale="log")
            if name != "unlearnable":
                panel.set_xscale("log")
        for row in axes:
            row[0].set_ylabel(f"final regret, T = {study.horizon:,}")
        style.legend(made, axes[0, :1], 4)
        return made


SENSITIVITY = Figure(
    name="sensitivity",
    title="Sensitivity: exploration, noise, dimension, learnability",
    about="What the paper names as its limitation, drawn: where phi cannot be learnt, follow-ups are of no "
    "use. Beside it, how regret depends on the multiplier of the radii, on the noise of z and on its "
    "dimension.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
