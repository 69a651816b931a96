"""Growth exponents of regret against the stated rates."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.contenders import BEFORE, POLINUCB, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.exponents.settings import QUICK, RATES, SIZE, cells, described
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Study


def slope(study: Study, environment: str, policy: str) -> Slope:
    """Growth over the last nine tenths of the rounds."""
    return growth(study.rounds, study.curves(environment, policy), start=study.horizon // 10)


def claims(study: Study) -> list[Claim]:
    """The theorem's and the proposition's exponents are upper bounds; nobody is worse than linear."""
    told = []
    for environment in study.environments:
        for policy in study.policies:
            found = slope(study, environment, policy)
            late = growth(study.rounds, study.curves(environment, policy), start=study.horizon // 2)
            seen = f"{environment}: {policy} grows with exponent {found}, over the last half alone {late}"
            if policy in (evidence(POLINUCB), evidence(BEFORE)):
                rate = RATES[environment][policy]
                text = f"{seen}; held if the first interval is below the bound's, {rate:g}."
                told.append(Claim(text, found.high <= rate))
            else:
                told.append(Claim(f"{seen}; linear is 1.", None))
    return told


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets and exponents, with those of the bounds."""
    return [
        {
            **row,
            **slope(study, row["environment"], row["policy"]).named(),
            "rate": RATES[row["environment"]].get(row["policy"], 1.0),
        }
        for row in study.summary()
    ]


def draw(study: Study) -> Any:
    """Regret on logarithmic axes with slopes 1/2, 3/4 and 1 beside it."""
    with style.picture(1, len(study.environments), height=4.2, width=4.4) as (made, axes):
        for panel, environment in zip(axes[0], study.environments, strict=True):
            for policy in study.policies:
                colour, dashes = style.look(policy)
                curves = study.curves(environment, policy)
                label = f"{policy}: {slope(study, environment, policy)}"
                style.draw_band(panel, study.rounds, curves, colour, dashes, label)
            late = study.rounds[study.rounds >= study.horizon // 10]
            level = min(study.final(environment, policy).mean() for policy in study.policies) / 4.0
            for power, dashes in ((0.5, ":"), (0.75, "-."), (1.0, "--")):
                line = level * (late / study.horizon) ** power
                panel.plot(
                    late, line, color=style.REFERENCE, linestyle=dashes, linewidth=1, label=f"slope {power:g}"
                )
            panel.set(xscale="log", yscale="log", xlabel="round", title=environment)
            ends = [(study.final(environment, p).mean(), style.look(p)[0]) for p in study.policies]
            style.label_ends(panel, ends)
            panel.legend(fontsize=6.8, loc="upper left")
        axes[0, 0].set_ylabel("cumulative regret")
        return made


EXPONENTS = Figure(
    name="exponents",
    title="Growth exponents of regret",
    about="The theorem bounds poLinUCB's regret by T^{1 - map_rate} + T^{1/2} up to logarithms, the "
    "proposition that of LinUCB(phi_hat) by T^{1 - map_rate/2}: exponents 1/2 and 3/4 where phi is learnt "
    "at the rate 1/2, 3/4 and 7/8 where it is learnt at 1/4 (a Hölder class of smoothness 1/2 in one "
    "dimension). They are worst cases, proved for radii and an optimism other than the defaults that run "
    "here; with gaps that are seldom small regret grows like log T. KernelMap's fixed number of landmarks "
    "bounds what it can resolve, so its curve turns up in the end.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
