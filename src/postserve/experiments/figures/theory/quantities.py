"""What the theory figure measures beside regret: each quantity is a curve, computed by one function."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from postserve import theory
from postserve.experiments.contenders import POLINUCB, Contender
from postserve.experiments.figures.theory import world as w
from postserve.experiments.study import Cell, Curve, cells_of, recorded_rounds, regret_cells
from postserve.types import FloatArray

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


class Form(NamedTuple):
    """A form of the ellipsoid, and where its coverage is found."""

    name: str
    coverage: str
    at: str


FORMS = (
    Form("determinant form, at t", "determinant", "at_round"),
    Form("determinant form, up to t", "determinant", "so_far"),
    Form("closed form, up to t", "closed_form", "so_far"),
)


def bound_of(contender: Contender) -> str:
    """The name of a policy's bound."""
    return f"{contender}: bound"


def power(p: float, lemma: str | None = None) -> str:
    """The name of a lemma's curve."""
    return f"p = {p:g}" if lemma is None else f"p = {p:g}, {lemma}"


def covered(form: Form, delta: float) -> str:
    """The name of a form's coverage."""
    return f"{form.name}, delta = {delta:g}"


def regret_bound(contender: Contender, horizon: int, seed: int) -> FloatArray:
    """The bound on a policy's regret: that in units of the largest gap, times the largest gap."""
    known = w.constants(w.world(seed), contender, horizon)
    gap = known.largest_gap
    return gap * np.array(
        [
            theory.regret_bound(
                w.KINDS[contender],
                horizon=int(t),
                dim_u=w.DIM_X + w.DIM_Z,
                n_arms=w.N_ARMS,
                map_rate=0.5,
                map_constant=known.map_constant,
                u_bound=known.u_bound,
                noise_scale=w.REWARD_NOISE / gap,
                delta=w.DELTA,
                ridge=known.ridge,
                w_bound=math.sqrt(2.0) / gap,
                beta_bound=1.0 / gap,
                z_noise_scale=w.Z_NOISE_SCALE,
                **w.MAP,
            ).total
            for t in recorded_rounds(horizon)
        ]
    )


def largest_gap(horizon: int, seed: int) -> FloatArray:
    """What no policy can lose more than."""
    return np.asarray(w.constants(w.world(seed), POLINUCB, horizon).largest_gap * recorded_rounds(horizon))


def slack(p: float, lemma: str, horizon: int, seed: int) -> FloatArray:
    """right - left of a potential lemma."""
    found = potential(horizon, seed, p, lemma)
    return (found.right_by_round - found.left_by_round)[recorded_rounds(horizon) - 1]


def share_of_rounds(lemma: str, horizon: int, seed: int) -> FloatArray:
    """right/T at p = 1: below 1 the lemma says something, since no round adds more than 1."""
    rounds = recorded_rounds(horizon)
    return potential(horizon, seed, 1.0, lemma).right_by_round[rounds - 1] / rounds


def potential(horizon: int, seed: int, p: float, lemma: str) -> theory.Potential:
    """Both sides of a lemma, on a sequence that it is about."""
    if lemma == EVERYWHERE:
        X, noise = _noise_everywhere(horizon, seed)
        return theory.generalized_elliptical_potential(
            X, noise, np.eye(2), p, w.DELTA, sigma_squared=0.5, noise_bound=1.0, x_bound=EVERYWHERE_ROW
        )
    U, noise = _contexts(horizon, seed)
    if lemma == IN_Z:
        return theory.mean_context_potential(U, noise, np.eye(5), p, w.DELTA)
    return theory.elliptical_potential(U, np.eye(5), p)


def left_at_one(p: float, horizon: int, seed: int) -> FloatArray:
    """The left side of the potential lemma at x_t = 1."""
    found = theory.elliptical_potential(np.ones((horizon, 1)), np.eye(1), p)
    return found.left_by_round[recorded_rounds(horizon) - 1]


def hidden_share(name: str, horizon: int, seed: int) -> FloatArray:
    """The least s with A~ >= (1 - s) A: 1 - 1/factor of the noisy Gram matrix, 1 where there is none."""
    U, noise = _contexts(horizon, seed)
    options: Any = {"ridge": 1.0, "noise_scale": 1.0, "sigma": 1.0, "delta": w.DELTA}
    found = (theory.noisy_gram_factor(U[:n], noise[:n, 3:], **options) for n in recorded_rounds(horizon))
    return np.array([1.0 - 1.0 / float(getattr(each, FACTORS[name])) for each in found])


def missed(form: Form, delta: float, horizon: int, seed: int) -> FloatArray:
    """The share of runs whose ellipsoids missed the truth; with a small ridge, whose part in zeta is sure."""
    found = theory.confidence_coverage(
        horizon=horizon, dim_x=1, dim_z=1, ridge=0.01, delta=delta, runs=COVERAGE_RUNS, seed=seed
    )
    shares: FloatArray = getattr(getattr(found, form.coverage), form.at)[recorded_rounds(horizon) - 1]
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


def quantities() -> dict[tuple[str, str], Any]:
    """All that is computed, by its panel and its line there; each takes a horizon and a seed."""
    return {
        **{(REGRET, bound_of(each)): partial(regret_bound, each) for each in w.KINDS},
        (REGRET, LARGEST): largest_gap,
        **{(SLACK, power(p, lemma)): partial(slack, p, lemma) for lemma in LEMMAS for p in POWERS},
        **{(SHARE, lemma): partial(share_of_rounds, lemma) for lemma in LEMMAS},
        **{(ONE, power(p)): partial(left_at_one, p) for p in POWERS},
        **{(GRAM, name): partial(hidden_share, name) for name in FACTORS},
        **{(MISSED, covered(form, d)): partial(missed, form, d) for form in FORMS for d in COVERED},
    }


def cells_of_all(horizon: int, seeds: list[int]) -> list[Cell]:
    """Regret of both policies, and every quantity."""
    makers = {contender.name: partial(w.make_policy, contender, horizon) for contender in w.KINDS}
    found = regret_cells({REGRET: w.world}, makers, horizon, seeds)
    for (panel, line), compute in quantities().items():
        found += cells_of(panel, line, partial(at_recorded_rounds, compute), horizon, seeds)
    return found


def at_recorded_rounds(compute: Any, horizon: int, seed: int) -> Curve:
    """A quantity as a curve."""
    return Curve(recorded_rounds(horizon), compute(horizon, seed))
