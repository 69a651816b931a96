"""The propositions' bounds for a world, with what some of its rounds showed in the place of constants."""

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
    "The bounds are drawn with the longest (x, z) and h(x) and the largest gap seen in a block of at most "
    f"{ROUNDS:,} rounds in place of constants: the noise of z is Gaussian and unbounded, so they are "
    "estimates of bounds. Rewards are in units of that gap (the bounds on the weights and the noise of "
    "rewards are divided by it), since bounds are proved for gaps of at most 1, and the result is multiplied "
    f"by it again. Of {len(RIDGES)} ridges, {RIDGES[0]:g} to {RIDGES[-1]:,.0f}, the one with the least bound "
    "at T is drawn. They are those of poLinUCB with the theory's radii, not of the defaults."
)
"""For the texts of figures that draw these bounds."""
DRAWN = "poLinUCB's bound, constants as seen"
"""Its name in a legend."""


class Constants(NamedTuple):
    """What a bound needs to know of a world, as far as some rounds show it."""

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

    It is proved for gaps of at most 1: the bounds on the weights and the noise of rewards are divided by
    the largest gap seen, and the result is multiplied by it. Of RIDGES the one with the least bound at the
    last horizon is taken. The map is a ridge regression on h, whose ridge is such that no width is above 1.
    """
    known = constants(environment)
    return min((_with_ridge(kind, environment, known, rounds, ridge) for ridge in RIDGES), key=_last)


def _with_ridge(
    kind: theory.Kind, environment: Any, known: Constants, rounds: IntArray, ridge: float
) -> FloatArray:
    n_arms = 1 if kind == "linear_stochastic" else environment.n_arms
    gap, map_ridge = known.largest_gap, known.feature_bound**2
    bounds = []
    for horizon in map(int, rounds):
        map_constant = theory.ridge_map_constant(
            horizon=horizon,
            map_dim=known.n_features,
            dim_z=environment.dim_z,
            x_bound=known.feature_bound,
            map_ridge=map_ridge,
            noise_scale=environment.z_noise,
            row_bound=known.row_bound,
            delta=DELTA,
            n_maps=n_arms if kind == "action_dependent" else 1,
        )
        found = theory.regret_bound(
            kind,
            horizon=horizon,
            dim_u=environment.dim_x + environment.dim_z,
            n_arms=n_arms,
            map_rate=0.5,
            map_constant=map_constant,
            u_bound=known.u_bound,
            noise_scale=environment.reward_noise / gap,
            delta=DELTA,
            ridge=ridge,
            w_bound=W_BOUND / gap,
            beta_bound=1.0 / gap,
            map_dim=known.n_features,
            x_bound=known.feature_bound,
            map_ridge=map_ridge,
        )
        bounds.append(gap * found.total)
    return np.array(bounds)


def _last(bounds: FloatArray) -> float:
    return float(bounds[-1])


def bounds_of(kind: theory.Kind, make: MakeEnvironment, study: Study) -> FloatArray:
    """One row per seed, one column per recorded round."""
    return np.array([bound_over(kind, make(seed), study.rounds) for seed in study.seeds])


def lies_below(study: Study, environment: str, policy: Line, bounds: FloatArray) -> Claim:
    """That regret is nowhere above the bound, in any seed at any recorded round."""
    share = float((study.curves(environment, policy) / bounds).max())
    ends = (bounds[:, -1], study.final(environment, policy), study.final(environment, RANDOM))
    bound, regret, random = (float(end.mean()) for end in ends)
    text = (
        f"{environment}: the bound, with constants as seen, is {bound:,.0f} at T = {study.horizon:,}, where "
        f"{policy} has {regret:,.0f} and Random {random:,.0f}; at its highest, over all seeds and rounds, "
        f"regret is {share:.2g} of the bound."
    )
    vacuous = " At such a T the bound says nothing: Random meets it too." if random < bound else ""
    return Claim(text + vacuous, share <= 1.0)
