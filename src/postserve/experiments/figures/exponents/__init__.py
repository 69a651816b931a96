"""Growth exponents of regret against the stated rates."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.contenders import POLINUCB, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.exponents.settings import QUICK, RATES, SIZE, cells, described
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Study


def slope(study: Study, environment: str, policy: str) -> Slope:
    """Growth over the last nine tenths of the rounds."""
    return growth(study.rounds, study.curves(environment, policy), start=study.horizon // 10)


def claims(study: Study) -> list[Claim]:
    """The theorem's exponents are upper bounds; a policy linear in x has exponent 1."""
    told = []
    for environment, rate in RATES.items():
        found = slope(study, environment, evidence(POLINUCB))
        text = f"{environment}: poLinUCB's regret grows with exponent {found}, the theorem allows {rate:g}."
        told.append(Claim(text, found.low <= rate))
        late = growth(study.rounds, study.curves(environment, evidence(POLINUCB)), start=study.horizon // 2)
        told.append(Claim(f"{environment}: over the last half alone it grows with exponent {late}.", None))
        for policy in (evidence(X_ONLY), RANDOM):
            linear = slope(study, environment, policy)
            told.append(
                Claim(
                    f"{environment}: {policy} grows with exponent {linear}, linear is 1.", linear.high > 0.95
                )
            )
    return told


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets and exponents."""
    return [
        {**row, **slope(study, row["environment"], row["policy"]).named(), "rate": RATES[row["environment"]]}
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
            top = float(study.curves(environment, RANDOM).mean(axis=0)[-1])
            for power, dashes in ((0.5, ":"), (0.75, "-."), (1.0, "--")):
                line = 2.0 * top * (late / study.horizon) ** power
                panel.plot(
                    late, line, color=style.REFERENCE, linestyle=dashes, linewidth=1, label=f"slope {power:g}"
                )
            panel.set(xscale="log", yscale="log", xlabel="round", title=environment)
            panel.legend(fontsize=6.8, loc="upper left")
        axes[0, 0].set_ylabel("cumulative regret")
        return made


EXPONENTS = Figure(
    name="exponents",
    title="Growth exponents of regret",
    about="The theorem bounds poLinUCB's regret by T^{1 - map_rate} + T^{1/2} up to logarithms: exponent "
    "1/2 where phi is learnt at the rate 1/2, 3/4 where it is learnt at 1/4 (a Hölder class of smoothness "
    "1/2 in one dimension). They are upper bounds; a policy that is linear in x cannot do better than 1.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
