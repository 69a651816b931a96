"""A world that meets the theorem's assumptions, and what is measured there and of the lemmas.

Policies have the theory's own radii. Each quantity beside regret is a curve, computed by one function.
"""

import itertools
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from postserve import theory
from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.experiments.bounds import DELTA, W_BOUND, scaled_bound
from postserve.experiments.contenders import BEFORE, POLINUCB, Contender
from postserve.experiments.study import Curve, recorded_rounds
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

REGRET = "regret"
SLACK = "slack of the potential lemmas"
SHARE = "the lemmas' right side, as a share of T"
ONE = "left side at x_t = 1"
GRAM = "share of A that noise hides"
MISSED = "1 - coverage"

POWERS = (0.25, 0.5, 0.75, 1.0)
COVERED = (0.5, 0.1)
"""The deltas at which coverage is measured; at smaller ones it is hard to distinguish from 1."""
COVERAGE_RUNS = 100
"""Per seed."""

WITHOUT, EVERYWHERE, IN_Z = "without noise", "noise in every direction", "z seen with noise"
LEMMAS = (WITHOUT, EVERYWHERE, IN_Z)
"""The potential lemma, the paper's generalised one, and ours for mean contexts, by what they allow."""
EVERYWHERE_ROW = 0.25
"""The longest row beside noise of length 1: with longer ones T_0 is later."""

LARGEST = "largest gap, each round"
MEASURED, FACTOR, A_PRIORI = "measured", "from g²/lambda_min(E)", "a priori"
FACTORS = {MEASURED: "ratio", FACTOR: "factor", A_PRIORI: "bound"}
"""Of the noisy Gram matrix: their names, and those of their fields in `theory.NoisyGram`."""
FORMS = {
    "determinant form, at t": ("determinant", "at_round"),
    "determinant form, up to t": ("determinant", "so_far"),
    "closed form, up to t": ("closed_form", "so_far"),
}
"""Of the ellipsoid, and the fields of their coverage in `theory.confidence_coverage`'s result."""


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
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
    radius: Any = {"arm_radius": "determinant", "noise_scale": REWARD_NOISE, "delta": share.arm}
    radius |= {"w_bound": W_BOUND, "u_bound": known.u_bound}
    if contender == POLINUCB:
        return PoLinUCB(N_ARMS, phi_hat, optimism="joint", ridge=known.ridge, **radius)
    radius["z_noise_scale"] = Z_NOISE_SCALE
    return LinUCBPhiHat(N_ARMS, phi_hat, optimism="joint", ridge=known.ridge, **radius)


def bound_of(contender: Contender) -> str:
    return f"{contender}: bound"


def power(p: float, lemma: str | None = None) -> str:
    return f"p = {p:g}" if lemma is None else f"p = {p:g}, {lemma}"


def covered(form: str, delta: float) -> str:
    return f"{form}, delta = {delta:g}"


def regret_bound(contender: Contender, horizon: int, seed: int) -> FloatArray:
    known = constants(world(seed), contender, horizon)
    sizes: Any = {"dim_u": DIM_X + DIM_Z, "n_arms": N_ARMS, "z_noise_scale": Z_NOISE_SCALE, **MAP}
    sizes |= {"map_constant": known.map_constant, "u_bound": known.u_bound, "ridge": known.ridge}
    bound = partial(scaled_bound, KINDS[contender], known.largest_gap, REWARD_NOISE, **sizes)
    return np.array([bound(horizon=int(t)) for t in recorded_rounds(horizon)])


def largest_regret(horizon: int, seed: int) -> FloatArray:
    """The largest gap in each round: no policy can lose more."""
    return np.asarray(constants(world(seed), POLINUCB, horizon).largest_gap * recorded_rounds(horizon))


def slack(p: float, lemma: str, horizon: int, seed: int) -> FloatArray:
    found = potential(horizon, seed, p, lemma)
    return (found.right_by_round - found.left_by_round)[recorded_rounds(horizon) - 1]


def share_of_rounds(lemma: str, horizon: int, seed: int) -> FloatArray:
    """right/T at p = 1: below 1 the lemma says something, since no round adds more than 1."""
    rounds = recorded_rounds(horizon)
    return potential(horizon, seed, 1.0, lemma).right_by_round[rounds - 1] / rounds


def potential(horizon: int, seed: int, p: float, lemma: str) -> theory.Potential:
    """Both sides of a lemma, on a sequence that it is about."""
    if lemma == EVERYWHERE:
        # Rows of one length in the plane, and noise of length 1, both in any direction: sigma² = 1/2.
        angles = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, size=(2, horizon))
        rows, noise = np.stack([np.cos(angles), np.sin(angles)], axis=2)
        bounds: Any = {"sigma_squared": 0.5, "noise_bound": 1.0, "x_bound": EVERYWHERE_ROW}
        X = EVERYWHERE_ROW * rows
        return theory.generalized_elliptical_potential(X, noise, np.eye(2), p, DELTA, **bounds)
    U, noise = _contexts(horizon, seed)
    if lemma == IN_Z:
        return theory.mean_context_potential(U, noise, np.eye(5), p, DELTA)
    return theory.elliptical_potential(U, np.eye(5), p)


def left_at_one(p: float, horizon: int, seed: int) -> FloatArray:
    found = theory.elliptical_potential(np.ones((horizon, 1)), np.eye(1), p)
    return found.left_by_round[recorded_rounds(horizon) - 1]


def hidden_share(name: str, horizon: int, seed: int) -> FloatArray:
    """The least s with A~ >= (1 - s) A: 1 - 1/factor of the noisy Gram matrix, 1 where there is none."""
    U, noise = _contexts(horizon, seed)
    options: Any = {"ridge": 1.0, "noise_scale": 1.0, "sigma": 1.0, "delta": DELTA}
    found = (theory.noisy_gram_factor(U[:n], noise[:n, 3:], **options) for n in recorded_rounds(horizon))
    return np.array([1.0 - 1.0 / float(getattr(each, FACTORS[name])) for each in found])


def missed(form: str, delta: float, horizon: int, seed: int) -> FloatArray:
    """The share of runs whose ellipsoids missed the truth; a small ridge, whose part in zeta is certain."""
    options: Any = {"dim_x": 1, "dim_z": 1, "ridge": 0.01, "runs": COVERAGE_RUNS}
    found = theory.confidence_coverage(horizon=horizon, delta=delta, seed=seed, **options)
    coverage, at = FORMS[form]
    shares: FloatArray = getattr(getattr(found, coverage), at)[recorded_rounds(horizon) - 1]
    return 1.0 - shares


def _contexts(horizon: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """u = (x, phi(x)) with x normal in 3 dimensions and phi linear into 2, and the noise (0, eps) of u."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((horizon, 3))
    U = np.hstack([X, X @ rng.standard_normal((3, 2))])
    return U, np.hstack([np.zeros((horizon, 3)), rng.standard_normal((horizon, 2))])


QUANTITIES: dict[tuple[str, str], Any] = {
    **{(REGRET, bound_of(each)): partial(regret_bound, each) for each in KINDS},
    (REGRET, LARGEST): largest_regret,
    **{(SLACK, power(p, lemma)): partial(slack, p, lemma) for lemma in LEMMAS for p in POWERS},
    **{(SHARE, lemma): partial(share_of_rounds, lemma) for lemma in LEMMAS},
    **{(ONE, power(p)): partial(left_at_one, p) for p in POWERS},
    **{(GRAM, name): partial(hidden_share, name) for name in FACTORS},
    **{(MISSED, covered(form, d)): partial(missed, form, d) for form in FORMS for d in COVERED},
}
"""By panel and line; each takes a horizon and a seed."""


def curve_of(compute: Any, horizon: int, seed: int) -> Curve:
    return Curve(recorded_rounds(horizon), compute(horizon, seed))
