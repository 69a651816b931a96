"""The theory figure: regret with its bounds, and what else is measured, each in a panel of its own."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from postserve import theory
from postserve.experiments.contenders import POLINUCB
from postserve.experiments.figure import Size
from postserve.experiments.figures.theory.world import (
    DELTA,
    DIM_X,
    DIM_Z,
    FEATURE_BOUND,
    KINDS,
    MAP_RIDGE,
    N_ARMS,
    REWARD_NOISE,
    RIDGE,
    Z_NOISE_SCALE,
    Learner,
    constants,
    world,
)
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
from postserve.types import FloatArray

SIZE = Size(horizon=10_000, seeds=8, quick=False)
QUICK = Size(horizon=300, seeds=3, quick=True)

REGRET = "regret"
SLACK = "slack of the potential lemmas"
SHARE = "the lemmas' right side, as a share of T"
ONE = "left side at x_t = 1"
GRAM = "share of A that noise hides"
MISSED = "1 - coverage"

POWERS = (0.25, 0.5, 0.75, 1.0)
COVERED = (0.5, 0.1)
"""The deltas at which coverage is measured; at smaller ones it is hard to tell from 1."""
COVERAGE_RUNS = 100
"""A seed."""

WITHOUT, EVERYWHERE, IN_Z = "without noise", "noise in every direction", "z seen with noise"
LEMMAS = (WITHOUT, EVERYWHERE, IN_Z)
"""The potential lemma, the paper's generalised one, and ours for mean contexts, by what they allow."""
EVERYWHERE_ROW = 0.25
"""The longest row beside noise of length 1: with longer ones T_0 is later."""

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


def power(p: float, lemma: str | None = None) -> str:
    """The name of a lemma's curve."""
    return f"p = {p:g}" if lemma is None else f"p = {p:g}, {lemma}"


def covered(form: str, delta: float) -> str:
    """The name of a form's coverage."""
    return f"{form}, delta = {delta:g}"


@dataclass(frozen=True)
class Quantity:
    """A curve that `compute` finds for a world, a horizon, a seed and what it is told to compute it `of`."""

    compute: Callable[..., FloatArray]
    of: tuple[Any, ...] = ()

    def __call__(self, environment: Any) -> "Quantity":
        """A fresh one, as a study asks for."""
        return Quantity(self.compute, self.of)


def value_of(make_environment: MakeEnvironment, make_quantity: MakePolicy, horizon: int, seed: int) -> Curve:
    """A quantity at the recorded rounds."""
    environment = make_environment(seed)
    quantity = make_quantity(environment)
    return Curve(recorded_rounds(horizon), quantity.compute(environment, horizon, seed, *quantity.of))


def regret_bound(environment: Any, horizon: int, seed: int, policy: str) -> FloatArray:
    """The bound on a policy's regret: that in units of the largest gap, times the largest gap."""
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


def largest_gap(environment: Any, horizon: int, seed: int) -> FloatArray:
    """What no policy can lose more than."""
    return np.asarray(constants(environment, POLINUCB, horizon).largest_gap * recorded_rounds(horizon))


def slack(environment: Any, horizon: int, seed: int, p: float, lemma: str) -> FloatArray:
    """right - left of a potential lemma."""
    found = potential(horizon, seed, p, lemma)
    return (found.right_by_round - found.left_by_round)[recorded_rounds(horizon) - 1]


def share_of_rounds(environment: Any, horizon: int, seed: int, lemma: str) -> FloatArray:
    """right/T at p = 1: below 1 the lemma says something, since no round adds more than 1."""
    found = potential(horizon, seed, 1.0, lemma)
    rounds = recorded_rounds(horizon)
    return found.right_by_round[rounds - 1] / rounds


def potential(horizon: int, seed: int, p: float, lemma: str) -> theory.Potential:
    """Both sides of a lemma, on a sequence that it is about."""
    if lemma == EVERYWHERE:
        X, noise = _noise_everywhere(horizon, seed)
        return theory.generalized_elliptical_potential(
            X, noise, np.eye(2), p, DELTA, sigma_squared=0.5, noise_bound=1.0, x_bound=EVERYWHERE_ROW
        )
    U, noise = _contexts(horizon, seed)
    if lemma == IN_Z:
        return theory.mean_context_potential(U, noise, np.eye(5), p, DELTA)
    return theory.elliptical_potential(U, np.eye(5), p)


def left_at_one(environment: Any, horizon: int, seed: int, p: float) -> FloatArray:
    """The left side of the potential lemma at x_t = 1."""
    found = theory.elliptical_potential(np.ones((horizon, 1)), np.eye(1), p)
    return found.left_by_round[recorded_rounds(horizon) - 1]


def hidden_share(environment: Any, horizon: int, seed: int, field: str) -> FloatArray:
    """The least s with A~ >= (1 - s) A: 1 - 1/factor of the noisy Gram matrix, 1 where there is none."""
    U, noise = _contexts(horizon, seed)
    shares = []
    for n in recorded_rounds(horizon):
        found = theory.noisy_gram_factor(
            U[:n], noise[:n, 3:], ridge=1.0, noise_scale=1.0, sigma=1.0, delta=DELTA
        )
        shares.append(1.0 - 1.0 / float(getattr(found, field)))
    return np.array(shares)


def missed(environment: Any, horizon: int, seed: int, form: str, delta: float) -> FloatArray:
    """The share of runs whose ellipsoids missed the truth; with a small ridge, whose part in zeta is sure."""
    found = theory.confidence_coverage(
        horizon=horizon, dim_x=1, dim_z=1, ridge=0.01, delta=delta, runs=COVERAGE_RUNS, seed=seed
    )
    name, field = FORMS[form]
    shares: FloatArray = getattr(getattr(found, name), field)[recorded_rounds(horizon) - 1]
    return 1.0 - shares


def _contexts(horizon: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """u = (x, phi(x)) with x normal in 3 dimensions and phi linear into 2, and the noise (0, eps) of u."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((horizon, 3))
    U = np.hstack([X, X @ rng.standard_normal((3, 2))])
    return U, np.hstack([np.zeros((horizon, 3)), rng.standard_normal((horizon, 2))])


def _noise_everywhere(horizon: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Rows of one length in the plane, and noise of length 1, both in any direction: sigma² = 1/2."""
    angles = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, size=(2, horizon))
    rows, noise = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    return EVERYWHERE_ROW * rows, noise


def quantities() -> dict[tuple[str, str], Quantity]:
    """All that is computed, by its panel and its name there."""
    return {
        **{(REGRET, bound_of(policy)): Quantity(regret_bound, (policy,)) for policy in KINDS},
        (REGRET, LARGEST): Quantity(largest_gap),
        **{(SLACK, power(p, lemma)): Quantity(slack, (p, lemma)) for lemma in LEMMAS for p in POWERS},
        **{(SHARE, lemma): Quantity(share_of_rounds, (lemma,)) for lemma in LEMMAS},
        **{(ONE, power(p)): Quantity(left_at_one, (p,)) for p in POWERS},
        (GRAM, MEASURED): Quantity(hidden_share, ("ratio",)),
        (GRAM, FACTOR): Quantity(hidden_share, ("factor",)),
        (GRAM, A_PRIORI): Quantity(hidden_share, ("bound",)),
        **{
            (MISSED, covered(form, delta)): Quantity(missed, (form, delta))
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
        SLACK: "right side less left; u = (x, phi(x)), x normal in 3 dimensions, phi linear into 2, without "
        "noise and with normal noise of z in the matrix; for the paper's generalised lemma, which wants "
        f"noise in every direction, rows of length {EVERYWHERE_ROW:g} in the plane and noise of length 1",
        SHARE: "the same sequences, p = 1: below 1 a lemma says more than that no round adds more than 1",
        ONE: "sum of t^{-p}",
        GRAM: "the least s with A~ >= (1 - s) A, the same u and noise, ridge 1: 1 - 1/factor, 1 where there "
        "is no factor yet",
        MISSED: f"share of {COVERAGE_RUNS} runs a seed, an arm that is chosen adaptively; dim_x = dim_z = "
        "1, ridge 0.01",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds",
    }
