"""How regret depends on exploration, on the noise and dimension of z, and on whether phi can be learnt."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.claims import compared
from postserve.experiments.contenders import BEFORE, ORACLE, POLINUCB, ROBUST, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.sensitivity.settings import QUICK, SIZE, cells, described, panels, place
from postserve.experiments.statistics import mean_and_error
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
            f"The limitation: follow-ups help as far as phi is learnt. LinUCB(x) has {gain:.1f} times the "
            f"regret of poLinUCB where the map can express phi, {left:.2f} times where it can express none "
            "of it; held if less than a tenth of the gain is left.",
            bool(left - 1.0 < 0.1 * (gain - 1.0)),
        ),
        compared(study, ours, x_only, study.horizon, [hidden]),
        Claim(
            f"Exploration 1 needs no tuning with the learnt prior: the best of the sweep, {best:g}, has "
            f"{at_best / at_one:.2f} of its regret here; held if more than 0.9.",
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
    """A column a sweep: final regret against what varies, and paired differences from poLinUCB."""
    ours = evidence(POLINUCB)
    with style.picture(2, len(panels()), height=3.5, width=4.4) as (made, axes):
        for (top, below), (name, sweep) in zip(axes.T, panels().items(), strict=True):
            places = [place(name, value) for value in sweep.values]
            for policy in study.policies:
                finals = [mean_and_error(study.final(where, policy)) for where in places]
                style.draw_points(top, sweep.values, finals, policy)
                pairs = [study.difference(where, policy, ours) for where in places]
                if policy != ours:
                    style.draw_points(below, sweep.values, pairs, policy, errors=2.0)
            top.set_yscale("log")
            below.set_yscale("symlog", linthresh=100.0)
            below.axhline(0.0, color=style.REFERENCE, linewidth=1)
            for panel in (top, below):
                panel.set_xscale("linear" if name == "unlearnable" else "log")
                panel.set_xlabel(sweep.title)
            ends = [
                (study.final(places[-1], policy).mean(), style.look(policy)[0]) for policy in study.policies
            ]
            style.label_ends(top, ends)
        axes[0, 0].set_ylabel(f"final regret, T = {study.horizon:,}")
        axes[1, 0].set_ylabel("minus that of poLinUCB, evidence (symlog)")
        style.legend(made, axes[0, :1], 4)
        return made


SENSITIVITY = Figure(
    name="sensitivity",
    title="Sensitivity: exploration, noise, dimension, learnability",
    about="What the paper names as its limitation, drawn: where phi cannot be learnt, most of the gain "
    "goes. What is left is that arms which regress on the observed z learn theta with less noise. Beside "
    "it, how regret depends on the multiplier of the radii, on the noise of z and on its dimension. Below, "
    "each policy's regret minus that of poLinUCB with the learnt prior, seed by seed.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
