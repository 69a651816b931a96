"""A world that meets the theorem's assumptions, and policies in it with the theory's own radii."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from postserve import theory
from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.experiments.bounds import DELTA, W_BOUND
from postserve.experiments.contenders import BEFORE, POLINUCB, Contender
from postserve.policies import LinUCBPhiHat, PoLinUCB
from postserve.types import FloatArray

KINDS: dict[Contender, theory.Kind] = {POLINUCB: "polinucb", BEFORE: "linucb_phi_hat"}
DIM_X, DIM_Z, N_ARMS = 2, 1, 3
HALF_WIDTH = 10.0
REWARD_NOISE = 0.1
FEATURE_BOUND = math.sqrt(3.0 * DIM_X)  # of h(x) = x/(10/sqrt(3))
MAP_RIDGE = FEATURE_BOUND**2  # so that no width is above 1
Z_NOISE_SCALE = 1.0 / math.sqrt(3.0)  # of uniform noise on [-1, 1]
RIDGE = 100.0
MAP: dict[str, Any] = {"map_dim": DIM_X, "x_bound": FEATURE_BOUND, "map_ridge": MAP_RIDGE}


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Noise on [-1, 1]."""
    return rng.uniform(-1.0, 1.0, size=shape)


def world(seed: int) -> SyntheticEnvironment:
    """phi linear in x, with z = phi(x) + uniform noise."""
    dims: Any = {"dim_x": DIM_X, "dim_z": DIM_Z, "n_arms": N_ARMS}
    return SyntheticEnvironment("linear", z_noise=uniform, reward_noise=REWARD_NOISE, seed=seed, **dims)


class Constants(NamedTuple):
    """For the radii and the bound of one policy in one world."""

    largest_gap: float
    row_bound: float
    map_constant: float
    u_bound: float
    ridge: float


def constants(environment: Any, contender: Contender, horizon: int) -> Constants:
    """From the truth; means are linear in x, so the largest gap and |phi| are at a corner of the box."""
    corners = HALF_WIDTH * np.array(list(itertools.product([-1.0, 1.0], repeat=DIM_X)))
    largest_z = max(float(np.abs(environment.phi(x)[0])) for x in corners)
    axes = HALF_WIDTH / math.sqrt(3.0) * np.eye(DIM_X)
    row_bound = float(np.linalg.norm([environment.phi(x)[0] for x in axes]))
    noise: Any = {"noise_scale": Z_NOISE_SCALE, "row_bound": row_bound, "delta": DELTA}
    map_constant = theory.ridge_map_constant(horizon=horizon, dim_z=DIM_Z, **MAP, **noise)
    # z is within 1 of phi(x), and a prediction within the map's radius of it.
    off = 1.0 if contender == POLINUCB else map_constant * FEATURE_BOUND / math.sqrt(MAP_RIDGE)
    u_bound = math.hypot(HALF_WIDTH * math.sqrt(DIM_X), largest_z + off)
    ridge = RIDGE
    if contender == BEFORE:
        rate: Any = {"map_rate": 0.5, "map_constant": map_constant, **MAP}
        ridge = theory.optimal_ridge(horizon=horizon, u_bound=u_bound, w_bound=W_BOUND, **rate)
    gap = max(float(np.ptp(environment.means(x))) for x in corners)
    return Constants(gap, row_bound, map_constant, u_bound, ridge)


def make_policy(contender: Contender, horizon: int, environment: Any) -> PoLinUCB:
    """With the theory's radii, joint optimism, and the shares of delta."""
    known = constants(environment, contender, horizon)
    share = theory.shares(DELTA, n_arms=N_ARMS)
    noise: Any = {"noise_scale": Z_NOISE_SCALE, "row_bound": known.row_bound, "delta": share.map}
    options: Any = {"features": environment.features, "ridge": MAP_RIDGE, "map_radius": "determinant"}
    phi_hat = RidgeMap(DIM_X, DIM_Z, **options, **noise)
    radius: Any = {
        "arm_radius": "determinant",
        "noise_scale": REWARD_NOISE,
        "w_bound": W_BOUND,
        "u_bound": known.u_bound,
        "delta": share.arm,
    }
    if contender == POLINUCB:
        return PoLinUCB(N_ARMS, phi_hat, optimism="joint", ridge=known.ridge, **radius)
    radius["z_noise_scale"] = Z_NOISE_SCALE
    return LinUCBPhiHat(N_ARMS, phi_hat, optimism="joint", ridge=known.ridge, **radius)
