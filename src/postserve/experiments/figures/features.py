"""Feature mappings: rewards that are linear in features of x and of z, and in nothing less."""

from functools import partial
from typing import Any

from postserve.context_maps import RidgeMap
from postserve.environments import NonlinearEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import compared, ordered
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.rates import grows_within, late_slope, with_rates
from postserve.experiments.study import Cell, Study
from postserve.policies import LinUCBOracle, PoLinUCB
from postserve.theory import kurtosis_noise_factor, rate

TITLE = "Feature mappings of x and of z"
ABOUT = (
    "Rewards are linear in pi_x(x) = (x, x²) and pi_z(z) = (z, z²). With x_features and z_features poLinUCB "
    "works on these, and its map learns E[pi_z(z)|x], which is not pi_z(E[z|x]) as z is noisy. The model "
    "then fits, but the theorem does not apply as it stands: the noise of z² is neither symmetric nor "
    f"bounded. Its kurtosis is at most 15: the arms' term needs a factor {kurtosis_noise_factor(15.0):.1f} "
    "in place of 2 (at least 2.43 is needed), and the map's radius is proved for sub-Gaussian noise, which "
    "that of z² is not. So no bound is drawn, and slopes are compared with an exponent that is not proved "
    "here. Without features the model is wrong, and regret goes on growing."
)
FULL, QUICK = Size(horizon=3000, seeds=10), Size(horizon=250, seeds=3, quick=True)

NOISES = (1.0, 5.0)
"""Of z, against a phi of deviation 10: the louder, the further E[pi_z(z)] is from pi_z(E[z])."""
RATE = rate("polinucb", map_rate=0.5).horizon
"""With a ridge map on features in which E[pi_z(z)|x] is linear."""


def _polinucb(env: Any, *, z_features: bool) -> PoLinUCB:
    phi_hat = RidgeMap(2 * env.dim_x, (1 + z_features) * env.dim_z, features=env.map_features)
    features: Any = {"z_features": env.z_features} if z_features else {}
    return PoLinUCB(env.n_arms, phi_hat, x_features=env.x_features, **features)


def _oracle(env: Any) -> LinUCBOracle:
    features: Any = {"x_features": env.x_features, "z_features": env.z_features}
    return LinUCBOracle(env.n_arms, 2 * env.dim_x, 2 * env.dim_z, **features)


ON_X, ON_BOTH = (partial(_polinucb, z_features=z_features) for z_features in (False, True))
WITHOUT = c.Contender("poLinUCB without features", c.POLINUCB.make, "#CC79A7", c.DASHED).evidence
ON_X_FEATURES = c.Contender("poLinUCB on features of x", ON_X, "#0072B2", c.DASHED).evidence
OURS = c.Contender("poLinUCB on features of x and z", ON_BOTH, "#009E73").evidence
ORACLE = c.Contender("LinUCB(x, z) on features, oracle", _oracle, "#000000", c.DOTTED).evidence
CONTENDERS = (c.RANDOM, c.X_ONLY.evidence, WITHOUT, ON_X_FEATURES, OURS, ORACLE)
"""All maps can express phi."""


def environment(z_noise: float, seed: int) -> NonlinearEnvironment:
    """phi is periodic, so that no features of x that arms are given can stand in for those of z."""
    dims: Any = {"dim_x": 5, "dim_z": 3, "n_arms": 5}
    return NonlinearEnvironment("periodic", z_noise=z_noise, reward_noise=0.5, seed=seed, **dims)


def cells(size: Size) -> list[Cell]:
    worlds = {f"noise of z {noise:g}": partial(environment, noise) for noise in NOISES}
    return contest(size, worlds, CONTENDERS)


def settings(size: Size) -> dict[str, str]:
    return {
        "world": "x uniform on [-10, 10]^5, z = phi(x) + eps in 3 dimensions, phi = 10 W^T sqrt(2) cos(x); 5 "
        "arms, rewards linear in (x, x²) and (z, z²), standardised, with noise 0.5",
        "maps": "given 1, cos(x) and the products of its entries, in which E[z|x] and E[z²|x] are linear",
        "settled late": "phi was linear at first, where features of x nearly sufficed; and the policy "
        "without features was first claimed to have a slope above 0.8, which failed",
    }


def claims(study: Study) -> list[Claim]:
    found = []
    for where in study.environments:
        slope = late_slope(study, where, WITHOUT)
        text = f"{where}: {WITHOUT} grows with exponent {slope}, linear being 1; held if the interval is "
        found += [
            grows_within(study, where, OURS, RATE, "the theorem's, which is not proved for noise of z²"),
            Claim(f"{text}above {RATE:g}, which the theorem has for a model that fits.", slope.low > RATE),
        ]
    return [
        *found,
        ordered(study, (OURS, ON_X_FEATURES, WITHOUT), study.horizon, study.environments),
        compared(study, ORACLE, OURS, study.horizon, study.environments),
    ]


def summary(study: Study) -> list[Row]:
    return with_rates(study, study.summary(ORACLE), {OURS.name: RATE})


def draw(study: Study) -> Any:
    others = [contender for contender in CONTENDERS if contender != OURS]
    with style.picture(1, 3, height=5.2, width=4.8) as (made, axes):
        *growths, last = axes[0]
        for panel, where in zip(growths, study.environments, strict=True):
            slopes = {contender: late_slope(study, where, contender) for contender in CONTENDERS}
            style.draw_growth(panel, study, where, slopes, [(RATE, f"the theorem: slope {RATE:g}")])
            panel.set_title(f"{where}: growth")
        growths[0].set_ylabel("cumulative regret")
        style.draw_differences(last, study, study.environments[0], OURS, others, study.horizon)
        style.name_rows(last, [contender.label for contender in others])
        last.set_title(f"{study.environments[0]}: paired differences, two standard errors")
        last.set_xlabel("regret minus that with features of x and z (symlog)")
        return made
