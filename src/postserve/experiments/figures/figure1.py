"""Figure 1: cumulative regret in three synthetic environments, and paired differences at the end."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from postserve.environments import SyntheticEnvironment
from postserve.experiments import claims as say
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.study import Cell, MakeEnvironment, Study

TITLE = "Figure 1: cumulative regret in three synthetic environments"
ABOUT = (
    "The paper's five policies with ridge 1, LinUCB(phi_hat) in both its readings, LinUCB given the map's "
    "features too (the fair baseline of the paper's footnote) and a map that cannot express phi; and the "
    "same with the prior learnt from the rounds."
)
FULL, QUICK = Size(horizon=5000, seeds=10), Size(horizon=500, seeds=5, quick=True)

KINDS = ("polynomial", "periodic", "linear")
DIMS = {True: {"dim_x": 20, "dim_z": 5, "n_arms": 5}, False: {"dim_x": 100, "dim_z": 5, "n_arms": 10}}
"""Of the small world, and of the paper's."""
LABELS = {contender.name: contender.label for contender in c.LEARNT}
NEWCOMERS = tuple(each.evidence for each in (c.X_ONLY, c.X_AND_FEATURES, c.POLINUCB, c.ORACLE))
"""What a newcomer compares, with Random."""


def environments(quick: bool, **options: Any) -> dict[str, MakeEnvironment]:
    return {kind: partial(_world, kind, {**DIMS[quick], **options}) for kind in KINDS}


def _world(kind: Any, options: Mapping[str, Any], seed: int) -> SyntheticEnvironment:
    return SyntheticEnvironment(kind, seed=seed, **options)


def cells(size: Size, **options: Any) -> list[Cell]:
    return contest(size, environments(size.quick, **options), (*c.PAPER, *c.LEARNT))


def horizons(horizon: int) -> list[int]:
    """The paper's T = 1000 on the way to a longer one."""
    return [1000, horizon] if horizon > 1000 else [horizon]


def settings(size: Size) -> dict[str, str]:
    dims = DIMS[size.quick]
    return {
        "x": f"uniform on [-10, 10]^{dims['dim_x']}",
        "z": f"{dims['dim_z']} dimensions, phi(x) = 10 W^T h(x) with W of N(0, 1/dim_x), noise N(0, 1)",
        "arms": f"{dims['n_arms']}, theta and beta uniform on unit spheres, reward noise N(0, 0.1²)",
        "policies": f"ridge 1 with a constant radius of {c.PAPER_RADIUS} (tuned in other worlds: "
        "docs/tuning.md), and with the learnt prior, whose defaults come from there; unless stated otherwise "
        "the map is given h",
        "optimism": "over the weights alone (plugin); where stated (joint) over phi too, as in Algorithm 1",
    }


def summary(study: Study) -> list[Row]:
    return [row for horizon in horizons(study.horizon) for row in study.summary(c.ORACLE, horizon)]


def headline(study: Study) -> str:
    """How far poLinUCB is below what ignores the follow-ups, and how near to what is shown them."""

    def ratios(other: c.Contender) -> str:
        found = [
            study.final(place, c.POLINUCB.evidence).mean() / study.final(place, other).mean()
            for place in study.environments
        ]
        return f"{min(found):.0%} to {max(found):.0%}"

    return (
        f"After {study.horizon:,} rounds poLinUCB had {ratios(c.X_ONLY.evidence)} of the regret of "
        f"LinUCB(x), which ignores follow-ups, and {ratios(c.ORACLE.evidence)} of the regret of the oracle, "
        "which is shown them in advance (all three with the learnt prior, in three worlds)."
    )


def claims(study: Study) -> list[Claim]:
    return [claim for horizon in horizons(study.horizon) for claim in _claims(study, horizon)]


def _claims(study: Study, horizon: int) -> list[Claim]:
    places = study.environments
    curved = [place for place in places if place != "linear"]
    ours, fair = c.POLINUCB.evidence, c.X_AND_FEATURES.evidence
    papers = (c.RANDOM, c.X_ONLY, c.BEFORE, c.AFTER, c.POLINUCB)
    order = (c.POLINUCB, c.BEFORE, c.X_ONLY, c.RANDOM)
    found = {
        "The paper's order": say.ordered(study, order, horizon, places),
        "The paper: the oracle is best (but it scores at the z that is drawn, where regret is at phi(x))": (
            say.unbeaten(study, c.ORACLE, papers, horizon, places)
        ),
        "The distance to the oracle": say.within(study, c.POLINUCB, c.ORACLE, 1.10, horizon, places),
        "Optimism over phi too, the literal line 3": say.compared(
            study, c.JOINT, c.POLINUCB, horizon, places
        ),
        "Two readings of Algorithm 2": readings(study, horizon),
        "The literal reading": say.compared(study, c.AFTER, c.POLINUCB, horizon, places),
        "The same with the learnt prior": say.compared(study, c.AFTER.evidence, ours, horizon, places),
        "The learnt prior, below the paper's oracle": say.ordered(study, (ours, c.ORACLE), horizon, places),
        "The fair baseline": say.ordered(study, (ours, fair), horizon, places),
        "A map that cannot fit": say.ordered(study, (c.POLINUCB, c.MISSPECIFIED), horizon, curved),
    }
    return [claim._replace(text=f"{words}. {claim.text}") for words, claim in found.items()]


def readings(study: Study, horizon: int) -> Claim:
    """How much of poLinUCB's advantage over LinUCB(phi_hat) depends on how Algorithm 2 is read."""

    def excess(other: c.Contender, ours: c.Contender) -> str:
        found = [
            study.final(place, other, horizon).mean() / study.final(place, ours, horizon).mean() - 1.0
            for place in study.environments
        ]
        return f"{min(found):+.0%} to {max(found):+.0%}"

    def both(other: c.Contender) -> tuple[str, str]:
        return excess(other, c.POLINUCB), excess(other.evidence, c.POLINUCB.evidence)

    (fixed, learnt), (fixed_after, learnt_after) = both(c.BEFORE), both(c.AFTER)
    return Claim(
        f"T = {horizon:,}: the advantage over LinUCB(phi_hat) depends on how Algorithm 2 is read. Where "
        "arms learn from the prediction made before z was learnt, LinUCB(phi_hat)'s regret exceeds "
        f"poLinUCB's by {fixed} (ridge 1) and {learnt} (learnt prior); made after, the literal reading, by "
        f"{fixed_after} and {learnt_after}.",
        None,
    )


def overview(study: Study) -> Any:
    """One panel per world: the learnt prior, and Random."""
    with style.picture(1, len(study.environments), height=3.0) as (made, axes):
        for panel, environment in zip(axes[0], study.environments, strict=True):
            top = 1.5 * study.final(environment, c.X_ONLY.evidence).mean()
            style.draw_curves(panel, study, environment, (c.RANDOM, *NEWCOMERS), study.horizon, top)
            panel.set_title(f"{environment} phi, learnt prior")
        axes[0, 0].set_ylabel("cumulative regret")
        style.legend(made, axes[0, :1], 5, LABELS)
        return made


def draw(study: Study) -> Any:
    """One column per environment; rows: the paper's policies at each horizon, ours, the differences."""
    rows: list[tuple[str, tuple[c.Contender, ...], int]] = [
        (f"ridge 1, T = {horizon:,}", c.PAPER, horizon) for horizon in horizons(study.horizon)
    ]
    rows.append((f"learnt prior, T = {study.horizon:,}", c.LEARNT, study.horizon))
    others = [contender for contender in (*c.PAPER, *c.LEARNT) if contender != c.POLINUCB]
    with style.picture(len(rows) + 1, len(study.environments)) as (made, axes):
        for column, environment in enumerate(study.environments):
            for row, (title, contenders, horizon) in enumerate(rows):
                panel = axes[row, column]
                style.draw_curves(panel, study, environment, contenders, horizon)
                panel.set_title(f"{environment} phi: {title}")
            mean = study.curves(environment, c.ORACLE).mean(axis=0)
            axes[len(rows) - 1, column].plot(
                study.rounds, mean, color="#000000", linewidth=0.8, label="the paper's oracle, ridge 1"
            )
            style.draw_differences(axes[-1, column], study, environment, c.POLINUCB, others, study.horizon)
            if column:
                axes[-1, column].set_yticklabels([])
        for row in axes[:-1]:
            row[0].set_ylabel("cumulative regret")
        style.legend(made, [axes[0, 0], axes[len(rows) - 1, 0]], 5, LABELS)
        return made
