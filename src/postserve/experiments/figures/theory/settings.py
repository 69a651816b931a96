"""The theory figure: a world that meets the theorem's assumptions, and what is measured beside its regret."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from postserve import theory
from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.experiments.contenders import BEFORE, POLINUCB
from postserve.experiments.figure import Size
from postserve.experiments.study import (
    Cell,
    Curve,
    MakeEnvironment,
    MakePolicy,
    cells_of,
    recorded_rounds,
    regret_of,
    seed_list,
)
from postserve.policies import LinUCBPhiHat, PoLinUCB
from postserve.types import FloatArray

SIZE = Size(horizon=10_000, seeds=8, quick=False)
QUICK = Size(horizon=300, seeds=3, quick=True)

REGRET = "regret"
SLACK = "slack of the potential lemmas"
ONE = "left side at x_t = 1"
GRAM = "share of A in the noisy A"
COVERAGE = "coverage"

POWERS = (0.25, 0.5, 0.75, 1.0)
DELTA = 0.1
COVERED = (0.5, 0.1)
"""The deltas at which coverage is measured; at smaller ones it is hard to tell from 1."""
COVERAGE_RUNS = 100
"""A seed."""

KINDS: dict[str, theory.Kind] = {POLINUCB: "polinucb", BEFORE: "linucb_phi_hat"}
LARGEST = "largest gap, each round"
MEASURED, FACTOR, A_PRIORI = "measured", "from g²/lambda_min(E)", "a priori"
FORMS = {
    "determinant form, at t": ("determinant", "at_round"),
    "determinant form, up to t": ("determinant", "so_far"),
    "closed form, up to t": ("closed_form", "so_far"),
}
"""Of the ellipsoid, and where its coverage is found."""


def bound_of(policy: str) -> str:
    """The name of a policy's bound."""
    return f"{policy}: bound"


def power(p: float, *, noisy: bool = False) -> str:
    """The name of a lemma's curve."""
    return f"p = {p:g}, z with noise" if noisy else f"p = {p:g}"


def covered(form: str, delta: float) -> str:
    """The name of a form's coverage."""
    return f"{form}, delta = {delta:g}"


# Regret, with the theory's own radii. Rewards are linear, z has bounded noise, and all bounds are known.

DIM_X, DIM_Z, N_ARMS = 2, 1, 3
HALF_WIDTH = 10.0
REWARD_NOISE = 0.1
FEATURE_BOUND = math.sqrt(3.0 * DIM_X)  # of h(x) = x/(10/sqrt(3))
MAP_RIDGE = FEATURE_BOUND**2  # so that no width is above 1
Z_NOISE_SCALE = 1.0 / math.sqrt(3.0)  # of uniform noise on [-1, 1]
RIDGE = 100.0


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Noise on [-1, 1]."""
    return rng.uniform(-1.0, 1.0, size=shape)


def world(seed: int) -> SyntheticEnvironment:
    """phi linear in x, with z = phi(x) + uniform noise."""
    return SyntheticEnvironment(
        "linear",
        dim_x=DIM_X,
        dim_z=DIM_Z,
        n_arms=N_ARMS,
        z_noise=uniform,
        reward_noise=REWARD_NOISE,
        seed=seed,
    )


class Constants(NamedTuple):
    """What the radii and the bound of one policy in one world are made of."""

    largest_gap: float
    row_bound: float
    map_constant: float
    u_bound: float
    ridge: float


def constants(environment: Any, policy: str, horizon: int) -> Constants:
    """From the truth; means are linear in x, so the largest gap and |phi| are at a corner of the box."""
    corners = HALF_WIDTH * np.array(list(itertools.product([-1.0, 1.0], repeat=DIM_X)))
    largest_z = max(float(np.abs(environment.phi(x)[0])) for x in corners)
    axes = HALF_WIDTH / math.sqrt(3.0) * np.eye(DIM_X)
    row_bound = float(np.linalg.norm([environment.phi(x)[0] for x in axes]))
    map_constant = theory.ridge_map_constant(
        horizon=horizon,
        map_dim=DIM_X,
        dim_z=DIM_Z,
        x_bound=FEATURE_BOUND,
        map_ridge=MAP_RIDGE,
        noise_scale=Z_NOISE_SCALE,
        row_bound=row_bound,
        delta=DELTA,
    )
    # z is within 1 of phi(x), and a prediction within the map's radius of it.
    off = 1.0 if policy == POLINUCB else map_constant * FEATURE_BOUND / math.sqrt(MAP_RIDGE)
    u_bound = math.hypot(HALF_WIDTH * math.sqrt(DIM_X), largest_z + off)
    ridge = RIDGE
    if policy == BEFORE:
        ridge = theory.optimal_ridge(
            horizon=horizon,
            map_rate=0.5,
            map_constant=map_constant,
            map_dim=DIM_X,
            u_bound=u_bound,
            x_bound=FEATURE_BOUND,
            map_ridge=MAP_RIDGE,
            w_bound=math.sqrt(2.0),
        )
    gap = max(float(np.ptp(environment.means(x))) for x in corners)
    return Constants(gap, row_bound, map_constant, u_bound, ridge)


def regret_bounds(environment: Any, policy: str, horizon: int) -> FloatArray:
    """The bound at each recorded round, in the rewards' own units: the bound in units of the largest gap."""
    known = constants(environment, policy, horizon)
    gap = known.largest_gap
    return gap * np.array(
        [
            theory.regret_bound(
                KINDS[policy],
                horizon=int(t),
                dim_u=DIM_X + DIM_Z,
                n_arms=N_ARMS,
                map_rate=0.5,
                map_constant=known.map_constant,
                u_bound=known.u_bound,
                noise_scale=REWARD_NOISE / gap,
                delta=DELTA,
                ridge=known.ridge,
                w_bound=math.sqrt(2.0) / gap,
                beta_bound=1.0 / gap,
                z_noise_scale=Z_NOISE_SCALE,
                map_dim=DIM_X,
                x_bound=FEATURE_BOUND,
                map_ridge=MAP_RIDGE,
            ).total
            for t in recorded_rounds(horizon)
        ]
    )


@dataclass(frozen=True)
class Learner:
    """Makes a policy with the theory's radii, the literal optimism, and the shares of delta."""

    policy: str
    horizon: int

    def __call__(self, environment: Any) -> PoLinUCB:
        """A fresh one."""
        known = constants(environment, self.policy, self.horizon)
        share = theory.shares(DELTA, n_arms=N_ARMS)
        phi_hat = RidgeMap(
            DIM_X,
            DIM_Z,
            features=environment.features,
            ridge=MAP_RIDGE,
            map_radius="determinant",
            noise_scale=Z_NOISE_SCALE,
            row_bound=known.row_bound,
            delta=share.map,
        )
        options: dict[str, Any] = {
            "optimism": "joint",
            "ridge": known.ridge,
            "arm_radius": "determinant",
            "noise_scale": REWARD_NOISE,
            "w_bound": math.sqrt(2.0),
            "u_bound": known.u_bound,
            "delta": share.arm,
        }
        if self.policy == POLINUCB:
            return PoLinUCB(N_ARMS, phi_hat, **options)
        return LinUCBPhiHat(N_ARMS, phi_hat, z_noise_scale=Z_NOISE_SCALE, **options)


# Everything else is a quantity over rounds, of a sequence that is drawn from the seed.


@dataclass(frozen=True)
class Quantity:
    """A curve of what a function computes for a world, a horizon and a seed."""

    compute: Callable[..., FloatArray]
    of: tuple[Any, ...]


@dataclass(frozen=True)
class Made:
    """Makes a quantity, anew each time."""

    compute: Callable[..., FloatArray]
    of: tuple[Any, ...]

    def __call__(self, environment: Any) -> Quantity:
        """A fresh one."""
        return Quantity(self.compute, self.of)


def value_of(make_environment: MakeEnvironment, make_quantity: MakePolicy, horizon: int, seed: int) -> Curve:
    """A quantity at the recorded rounds."""
    environment = make_environment(seed)
    quantity = make_quantity(environment)
    return Curve(recorded_rounds(horizon), quantity.compute(environment, horizon, seed, *quantity.of))


def regret_bound(environment: Any, horizon: int, seed: int, policy: str) -> FloatArray:
    """The bound on a policy's regret."""
    return regret_bounds(environment, policy, horizon)


def largest_gap(environment: Any, horizon: int, seed: int) -> FloatArray:
    """What no policy can lose more than."""
    return np.asarray(constants(environment, POLINUCB, horizon).largest_gap * recorded_rounds(horizon))


def slack(environment: Any, horizon: int, seed: int, p: float, noisy: bool) -> FloatArray:
    """right - left of the potential lemma, or of the one for mean contexts where z is seen with noise."""
    U, noise = _contexts(horizon, seed)
    if noisy:
        found = theory.mean_context_potential(U, noise, np.eye(5), p, DELTA)
    else:
        found = theory.elliptical_potential(U, np.eye(5), p)
    return (found.right_by_round - found.left_by_round)[recorded_rounds(horizon) - 1]


def left_at_one(environment: Any, horizon: int, seed: int, p: float) -> FloatArray:
    """The left side of the potential lemma at x_t = 1."""
    found = theory.elliptical_potential(np.ones((horizon, 1)), np.eye(1), p)
    return found.left_by_round[recorded_rounds(horizon) - 1]


def gram_share(environment: Any, horizon: int, seed: int, field: str) -> FloatArray:
    """The share s of A with A~ >= s A: the inverse of the noisy Gram factor, 0 where there is none."""
    U, noise = _contexts(horizon, seed)
    shares = []
    for n in recorded_rounds(horizon):
        found = theory.noisy_gram_factor(
            U[:n], noise[:n, 3:], ridge=1.0, noise_scale=1.0, sigma=1.0, delta=DELTA
        )
        shares.append(1.0 / float(getattr(found, field)))
    return np.array(shares)


def coverage(environment: Any, horizon: int, seed: int, form: str, delta: float) -> FloatArray:
    """The share of runs whose ellipsoids held the truth; with a small ridge, whose part in zeta is sure."""
    found = theory.confidence_coverage(
        horizon=horizon, dim_x=1, dim_z=1, ridge=0.01, delta=delta, runs=COVERAGE_RUNS, seed=seed
    )
    name, field = FORMS[form]
    shares: FloatArray = getattr(getattr(found, name), field)[recorded_rounds(horizon) - 1]
    return shares


def _contexts(horizon: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """u = (x, phi(x)) with x normal in 3 dimensions and phi linear into 2, and the noise (0, eps) of u."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((horizon, 3))
    U = np.hstack([X, X @ rng.standard_normal((3, 2))])
    return U, np.hstack([np.zeros((horizon, 3)), rng.standard_normal((horizon, 2))])


def quantities() -> dict[tuple[str, str], Made]:
    """All that is computed, by its panel and its name there."""
    return {
        **{(REGRET, bound_of(policy)): Made(regret_bound, (policy,)) for policy in KINDS},
        (REGRET, LARGEST): Made(largest_gap, ()),
        **{(SLACK, power(p)): Made(slack, (p, False)) for p in POWERS},
        **{(SLACK, power(p, noisy=True)): Made(slack, (p, True)) for p in POWERS},
        **{(ONE, power(p)): Made(left_at_one, (p,)) for p in POWERS},
        (GRAM, MEASURED): Made(gram_share, ("ratio",)),
        (GRAM, FACTOR): Made(gram_share, ("factor",)),
        (GRAM, A_PRIORI): Made(gram_share, ("bound",)),
        **{
            (COVERAGE, covered(form, delta)): Made(coverage, (form, delta))
            for form in FORMS
            for delta in COVERED
        },
    }


def cells(size: Size) -> list[Cell]:
    """Regret of both policies, and every quantity."""
    seeds = seed_list(size.seeds)
    found = []
    for policy in KINDS:
        learner = Learner(policy, size.horizon)
        found += cells_of(regret_of, (REGRET, world), (policy, learner), size.horizon, seeds)
    for (place, name), quantity in quantities().items():
        found += cells_of(value_of, (place, world), (name, quantity), size.horizon, seeds)
    return found


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        REGRET: f"x uniform on [-10, 10]^{DIM_X}, z in {DIM_Z} dimension with noise uniform on [-1, 1], "
        f"{N_ARMS} arms, reward noise {REWARD_NOISE:g}; the theory's radii (determinant form, delta "
        f"{DELTA:g} shared out) and joint optimism; ridge {RIDGE:g} for poLinUCB, optimal_ridge for "
        "LinUCB(phi_hat)",
        SLACK: "right side less left; u = (x, phi(x)), x normal in 3 dimensions, phi linear into 2; then "
        "with normal noise of z in the matrix",
        ONE: "sum of t^{-p}",
        GRAM: "largest s with A~ >= s A, the same u and noise, ridge 1; 0 where there is none",
        COVERAGE: f"share of {COVERAGE_RUNS} runs a seed, an arm that is chosen adaptively; dim_x = dim_z = "
        "1, ridge 0.01",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds",
    }
