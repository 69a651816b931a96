"""Feature mappings: rewards that are linear in features of x and of z."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.claims import compared, ordered
from postserve.experiments.contenders import (
    ON_FEATURES,
    ON_X_FEATURES,
    ORACLE_ON_FEATURES,
    WITHOUT_FEATURES,
    evidence,
)
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.features.settings import MAP_RATE, QUICK, SIZE, cells, described
from postserve.experiments.rates import grows_within, late_slope, with_slopes
from postserve.experiments.study import Study
from postserve.theory import rate

OURS, WITHOUT = evidence(ON_FEATURES), evidence(WITHOUT_FEATURES)
RATE = rate("polinucb", map_rate=MAP_RATE).horizon


def claims(study: Study) -> list[Claim]:
    """The theorem's exponent with features, and a larger one without them."""
    told = []
    for where in study.environments:
        told.append(grows_within(study, where, OURS, RATE))
        slope = late_slope(study, where, WITHOUT)
        text = f"{where}: {WITHOUT} grows with exponent {slope}, linear being 1; held if the interval is "
        told.append(
            Claim(f"{text}above {RATE:g}, which the theorem has for a model that fits.", slope.low > RATE)
        )
    order = (OURS, evidence(ON_X_FEATURES), WITHOUT)
    return [
        *told,
        ordered(study, order, study.horizon, study.environments),
        compared(study, evidence(ORACLE_ON_FEATURES), OURS, study.horizon, study.environments),
    ]


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets with slopes, and the exponent of the bound where there is one."""
    return [
        {**row, "rate": RATE if row["policy"] == OURS else 1.0}
        for row in with_slopes(study, study.summary(evidence(ORACLE_ON_FEATURES)))
    ]


def draw(study: Study) -> Any:
    """Growth in both worlds, and paired differences."""
    others = [policy for policy in study.policies if policy != OURS]
    with style.picture(1, 3, height=5.2, width=4.8) as (made, axes):
        *growths, last = axes[0]
        for panel, where in zip(growths, study.environments, strict=True):
            slopes = {policy: late_slope(study, where, policy) for policy in study.policies}
            style.draw_growth(panel, study, where, slopes, [(RATE, f"the theorem: slope {RATE:g}")])
            panel.set_title(f"{where}: growth")
        growths[0].set_ylabel("cumulative regret")
        style.draw_differences(last, study, study.environments[0], OURS, others, study.horizon)
        last.set_title(f"{study.environments[0]}: paired differences, two standard errors")
        last.set_yticks(range(len(others)), [name.removesuffix(", evidence") for name in reversed(others)])
        last.set_xlabel("regret minus that with features of x and z (symlog)")
        return made


FEATURES_FIGURE = Figure(
    name="features",
    title="Feature mappings of x and of z",
    about="Rewards are linear in pi_x(x) = (x, x²) and pi_z(z) = (z, z²). With x_features and z_features "
    "poLinUCB works on these, and its map learns E[pi_z(z)|x], which is not pi_z(E[z|x]): the noise of z has "
    "a part in it. The theorem then holds as it stands. Without features the model is wrong, and "
    "regret goes on growing. The rate is drawn as a slope: the noise of z² is not sub-Gaussian, as the "
    "bound's constants want it.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
