"""The propositions' bounds for a world, with constants measured in some of its rounds."""

import math
from typing import Any, NamedTuple

import numpy as np

from postserve import theory
from postserve.experiments.contenders import RANDOM
from postserve.experiments.figure import Claim
from postserve.experiments.study import Line, MakeEnvironment, Study
from postserve.types import FloatArray, IntArray, Rounds

DELTA = 0.1
W_BOUND = math.sqrt(2.0)  # theta and beta on unit spheres
RIDGES = (1.0, 10.0, 100.0, 1e3, 1e4)
"""A bound holds for each; the one with the least bound at the horizon is drawn."""
ROUNDS = 1000
"""Drawn to measure a world, or fewer if it draws fewer at once."""
CONSTANTS = (
    f"The bounds have the longest (x, z) and h(x) and the largest gap seen in a block of at most {ROUNDS:,} "
    "rounds in place of constants: the noise of z is Gaussian and unbounded, so they are estimates of "
    "bounds. They are proved for gaps of at most 1, so they are computed in units of that gap and multiplied "
    f"by it. Of {len(RIDGES)} ridges, {RIDGES[0]:g} to {RIDGES[-1]:,.0f}, the one with the least bound at T "
    "is drawn. They are for poLinUCB with the theory's radii, not with the defaults."
)
"""For the texts of figures that draw these bounds."""
DRAWN = "poLinUCB's bound, constants as seen"
"""Its name in a legend."""


class Constants(NamedTuple):
    """What a bound needs to know about a world."""

    largest_gap: float
    u_bound: float
    feature_bound: float
    row_bound: float
    n_features: int


def largest_gap(rounds: Rounds) -> float:
    """The largest difference between two means in one of these rounds."""
    return float((rounds.means.max(axis=1) - rounds.means.min(axis=1)).max())


def constants(environment: Any) -> Constants:
    """The longest (x, z) and h(x) that were drawn, and the longest row of phi in the features h."""
    n = min(ROUNDS, getattr(environment, "rounds_at_once", ROUNDS))
    rounds = environment.rounds(n, np.random.default_rng(0))
    x, z = (part if part.ndim == 3 else part[:, None] for part in (rounds.x, rounds.z))
    phi = np.array([environment.phi(row) for row in rounds.x]).reshape(z.shape)
    features = environment.features(x)
    # phi is linear in h, so that a regression finds its rows: those of each arm, where maps are separate.
    rows = [np.linalg.lstsq(features[:, i], phi[:, i], rcond=None)[0] for i in range(min(phi.shape[1], 50))]
    return Constants(
        largest_gap(rounds),
        float(np.sqrt((x**2).sum(axis=-1) + (z**2).sum(axis=-1)).max()),
        float(np.linalg.norm(features, axis=-1).max()),
        float(np.linalg.norm(rows, axis=1).max()),
        features.shape[-1],
    )


def bound_over(kind: theory.Kind, environment: Any, rounds: IntArray) -> FloatArray:
    """The bound at each of these horizons, with the measured constants: an estimate of one that holds.

    Of RIDGES the one with the least bound at the last horizon is taken. The map is a ridge regression on h,
    with a ridge at which no width is above 1.
    """
    known = constants(environment)
    n_arms = 1 if kind == "linear_stochastic" else environment.n_arms
    n_maps = n_arms if kind == "action_dependent" else 1
    features: Any = {"map_dim": known.n_features, "x_bound": known.feature_bound}
    features["map_ridge"] = known.feature_bound**2
    noise: Any = {"noise_scale": environment.z_noise, "row_bound": known.row_bound, "delta": DELTA}
    sizes: Any = {"dim_u": environment.dim_x + environment.dim_z, "n_arms": n_arms, "u_bound": known.u_bound}

    def bound(horizon: int, ridge: float) -> float:
        map_constant = theory.ridge_map_constant(
            horizon=horizon, dim_z=environment.dim_z, n_maps=n_maps, **features, **noise
        )
        learning: Any = {"horizon": horizon, "ridge": ridge, "map_constant": map_constant}
        return scaled_bound(
            kind, known.largest_gap, environment.reward_noise, **learning, **sizes, **features
        )

    bounds = np.array([[bound(int(horizon), ridge) for horizon in rounds] for ridge in RIDGES])
    return np.asarray(bounds[bounds[:, -1].argmin()])


def scaled_bound(kind: theory.Kind, largest_gap: float, reward_noise: float, **known: Any) -> float:
    """A regret bound for a ridge map, of a world with gaps up to the largest one.

    It is proved for gaps of at most 1: the bounds on the weights and the noise of rewards are divided by
    the largest gap, and the result is multiplied by it.
    """
    found = theory.regret_bound(
        kind,
        map_rate=0.5,
        noise_scale=reward_noise / largest_gap,
        delta=DELTA,
        w_bound=W_BOUND / largest_gap,
        beta_bound=1.0 / largest_gap,
        **known,
    )
    return largest_gap * found.total


def bounds_of(kind: theory.Kind, make: MakeEnvironment, study: Study) -> FloatArray:
    """One row per seed, one column per recorded round."""
    return np.array([bound_over(kind, make(seed), study.rounds) for seed in study.seeds])


def lies_below(study: Study, environment: str, policy: Line, bounds: FloatArray) -> Claim:
    """That regret is nowhere above the bound, in any seed at any recorded round.

    Not judged where Random meets the bound too: there it could not fail.
    """
    share = float((study.curves(environment, policy) / bounds).max())
    ends = (bounds[:, -1], study.final(environment, policy), study.final(environment, RANDOM))
    bound, regret, random = (float(end.mean()) for end in ends)
    text = (
        f"{environment}: at T = {study.horizon:,} the bound, with constants as seen, is {bound:,.0f}, and "
        f"{policy} has {regret:,.0f}, Random {random:,.0f}; at most, over seeds and rounds, regret is "
        f"{share:.2g} of the bound."
    )
    if share <= 1.0 and random <= bound:
        return Claim(f"{text} At such a T the bound says nothing: Random meets it too.", None)
    return Claim(f"{text} Held if that is at most 1.", share <= 1.0)
