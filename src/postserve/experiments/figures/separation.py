"""What seeing z is worth: a lower bound for policies that do not, an upper one for poLinUCB, over R and K."""

import math
from functools import cache, partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve import theory
from postserve.context_maps import RidgeMap
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import with_failures
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.statistics import mean_and_error
from postserve.experiments.study import Cell, Study
from postserve.policies import PoLinUCB
from postserve.types import FloatArray, Rounds

TITLE = "What seeing z is worth, proved and measured"
ABOUT = (
    "One arm of K is better, by a gap so small that the noise of rewards without z, sqrt(R² + b² sigma_z²), "
    "hides it for all T rounds: no policy that sees (x, r) only can have less than half of Random's regret "
    "on average over the arms (theorem 3 of docs/theory/theorem.md). A policy that sees z after serving "
    "subtracts its part of the reward, and R is all the noise that is left. Theorem 1 bounds poLinUCB's "
    "regret with the theory's radii, in the same worlds; where that bound is below the other, with the worst "
    "regret wherever it fails, the advantage is proved. Beyond the largest gap times T a bound says nothing, "
    "and there it is not drawn."
)
FULL, QUICK = Size(horizon=50_000, seeds=10), Size(horizon=3000, seeds=3, quick=True)

NOISES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
ARMS = (5, 10, 20, 50)
"""With 2 arms a policy without z as good as tosses a coin, and 10 seeds say little about its mean."""
AT_NOISE, AT_ARMS = 1e-4, 10
"""The noise R at which arms vary, and the arms at which R does. b and sigma_z are 1 everywhere."""
DELTA = 0.05
"""For the theorem; as much again for a z that is longer than `u_bound`."""
SURE = 1e-3
"""The same where bounds are compared: theorem 3 is about mean regret, and theorem 1 holds but for 2 delta."""
RIDGES = np.geomspace(1e-8, 1.0, 33)
"""Of which the policy has the one with the least bound, which depends on nothing that is drawn."""


class Known(NamedTuple):
    """Both bounds in a world, and what the policy needs to know for its own."""

    lower: float
    upper: float
    gap: float
    ridge: float
    u_bound: float


@cache
def known(horizon: int, n_arms: int, noise: float, delta: float = DELTA) -> Known:
    """All arms have the same beta, so that phi matters to none: beta_spread is 0."""
    lower = theory.lower_bound(horizon=horizon, n_arms=n_arms, noise_scale=noise, z_noise_scale=1.0)
    gap, u_bound = lower.gap, math.hypot(1.0, NormalDist().inv_cdf(1.0 - delta / 2.0 / horizon))
    mapped: Any = {"map_dim": 1, "x_bound": 1.0, "map_ridge": 1.0}
    constant = theory.ridge_map_constant(horizon=horizon, dim_z=1, delta=delta, **mapped)
    errors = theory.ridge_map_errors(constant, horizon=horizon, map_rate=0.5, **mapped)
    world: Any = {"horizon": horizon, "dim_u": 2, "n_arms": n_arms, "u_bound": u_bound, "delta": delta}
    world |= {"noise_scale": noise / gap, "w_bound": math.hypot(1.0, gap) / gap, "beta_spread": 0.0}

    def upper(ridge: float) -> float:
        return gap * theory.polinucb_bound(errors, ridge=ridge, z_noise_floor=1.0, **world).total

    least, ridge = min((upper(float(ridge)), float(ridge)) for ridge in RIDGES)
    return Known(lower.regret, least, gap, ridge, u_bound)


def upper_of_mean(horizon: int, n_arms: int, noise: float) -> float:
    """A bound on poLinUCB's mean regret: where theorem 1 fails, each round costs the gap at most."""
    found = known(horizon, n_arms, noise, SURE)
    return found.upper + 2.0 * SURE * found.gap * horizon


class OneBetterArm:
    """x = 1, z ~ N(0, 1), r = gap 1{a = best} + z + N(0, R²): the worlds of the lower bound."""

    dim_x = dim_z = 1

    def __init__(self, horizon: int, n_arms: int, noise: float, seed: int) -> None:
        self.horizon_known, self.n_arms, self.noise = horizon, n_arms, noise
        self.best = int(np.random.default_rng([seed, n_arms]).integers(n_arms))
        self.gap = known(horizon, n_arms, noise).gap

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        return np.zeros(1)

    def means(self, x: npt.ArrayLike) -> FloatArray:
        return np.asarray(self.gap * (np.arange(self.n_arms) == self.best))

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        z, noise = rng.standard_normal((n, 1)), self.noise * rng.standard_normal((n, 1))
        means = np.tile(self.means([1.0]), (n, 1))
        return Rounds(np.ones((n, 1)), z, means + z + noise, means)


def _proved(env: OneBetterArm) -> PoLinUCB:
    """poLinUCB as theorem 1 has it."""
    found, share = known(env.horizon_known, env.n_arms, env.noise), theory.shares(DELTA, n_arms=env.n_arms)
    phi_hat = RidgeMap(1, 1, ridge=1.0, map_radius="determinant", delta=share.map)
    radius: Any = {"arm_radius": "determinant", "noise_scale": env.noise, "delta": share.arm}
    radius |= {"w_bound": math.hypot(1.0, env.gap), "u_bound": found.u_bound}
    return PoLinUCB(env.n_arms, phi_hat, ridge=found.ridge, **radius)


def _default(env: OneBetterArm) -> PoLinUCB:
    return PoLinUCB(env.n_arms, RidgeMap(1, 1))


BLIND = c.X_ONLY.evidence
OURS = c.Contender("poLinUCB, evidence", _default, c.POLINUCB.colour).made_by(_default)
PROVED = c.Contender("poLinUCB, the theory's radii", _proved, "#0072B2").made_by(_proved)
CONTENDERS = (c.RANDOM, BLIND, OURS, PROVED)


def place(n_arms: int, noise: float) -> str:
    return f"K = {n_arms}, R = {noise:g}"


WORLDS = {
    place(n_arms, noise): (n_arms, noise)
    for n_arms, noise in [*((AT_ARMS, noise) for noise in NOISES), *((n, AT_NOISE) for n in ARMS)]
}


def cells(size: Size) -> list[Cell]:
    worlds = {name: partial(OneBetterArm, size.horizon, *at) for name, at in WORLDS.items()}
    return contest(size, worlds, CONTENDERS)


def settings(size: Size) -> dict[str, str]:
    return {
        "worlds": "x = 1, z ~ N(0, 1), r = gap 1{a = best} + z + N(0, R²), the best arm drawn by the seed; "
        "gap = sqrt(R² + 1) (1 - 1/K) sqrt(K/T)",
        "the theory's radii": f"plug-in optimism, determinant radii, delta {DELTA:g} for the theorem and "
        f"{DELTA:g} for z beyond its bound; the ridge with the least bound",
        "claims": "written after one run of one world, before all others; bounds depend on T, K and R",
        "settled late": "where the bounds prove the advantage was first said of the bound itself, which may "
        "fail, and then of the mean with such failures counted: the same four worlds",
    }


def claims(study: Study) -> list[Claim]:
    """That no blind policy is below its bound, ours not above its own, and ours below theirs for small R."""
    bounds = {name: known(study.horizon, *at) for name, at in WORLDS.items()}
    informative = [name for name, found in bounds.items() if found.upper <= found.gap * study.horizon / 3.0]
    proved = [name for name, at in WORLDS.items() if upper_of_mean(study.horizon, *at) < bounds[name].lower]
    below, above, lost = [], [], []
    for name, found in bounds.items():
        mean, error = mean_and_error(study.final(name, BLIND))
        if not mean - 2.0 * error > found.lower:
            below.append(f"{name}: {mean:,.1f} ± {error:,.1f} against {found.lower:,.1f}")
        worst = float(study.final(name, PROVED).max())
        if name in informative and worst > found.upper:
            above.append(f"{name}: {worst:,.1f} against {found.upper:,.1f}")
        if WORLDS[name][1] <= 1e-2:
            for policy in (OURS, PROVED):
                mean, error = mean_and_error(study.final(name, policy))
                if not mean + 2.0 * error < found.lower:
                    lost.append(f"{name}: {policy} has {mean:,.1f} ± {error:,.1f}")
    upper = (
        "In every seed poLinUCB with the theory's radii is below its bound, where that is at most a third "
    )
    upper += f"of the largest gap times T: {', '.join(informative) or 'nowhere at this T'}."
    held = with_failures(upper, above)
    return [
        with_failures("LinUCB(x) is above the lower bound by two standard errors in every world.", below),
        held if informative else Claim(held.text, None),
        with_failures("For R <= 0.01, poLinUCB is below what any policy without z must lose.", lost),
        Claim(
            f"The bounds prove the advantage in {len(proved)} worlds: {', '.join(proved) or 'none'}.", None
        ),
    ]


def summary(study: Study) -> list[Row]:
    bounds = {name: known(study.horizon, *at) for name, at in WORLDS.items()}
    return [
        {
            **row,
            "lower_bound": bounds[row["environment"]].lower,
            "upper_bound": bounds[row["environment"]].upper,
        }
        for row in study.summary()
    ]


def draw(study: Study) -> Any:
    panels = [
        (
            NOISES,
            [place(AT_ARMS, noise) for noise in NOISES],
            f"R, the noise of rewards given z; K = {AT_ARMS}",
        ),
        (ARMS, [place(n, AT_NOISE) for n in ARMS], f"K, the number of arms; R = {AT_NOISE:g}"),
    ]
    with style.picture(1, 2, height=4.6, width=5.2) as (made, axes):
        for panel, (values, names, label) in zip(axes[0], panels, strict=True):
            for contender in CONTENDERS:
                style.draw_points(panel, values, [study.final(name, contender) for name in names], contender)
            found = [known(study.horizon, *WORLDS[name]) for name in names]
            lower = [each.lower for each in found]
            panel.plot(
                values, lower, color="#D55E00", linestyle="--", label="lower bound without z (theorem 3)"
            )
            shown = [(v, each.upper) for v, each in zip(values, found, strict=True)]
            shown = [
                at for at, each in zip(shown, found, strict=True) if each.upper <= each.gap * study.horizon
            ]
            line: Any = {"color": "#0072B2", "linestyle": "--", "marker": "v", "markersize": 4}
            panel.plot(*np.reshape(shown, (-1, 2)).T, label="poLinUCB's bound (theorem 1)", **line)
            panel.set(xscale="log", yscale="log")
            style.name_values(panel, values, label)
        axes[0, 0].set_ylabel(f"regret after {study.horizon:,} rounds")
        style.legend(made, [axes[0, 0]], 3)
        return made
