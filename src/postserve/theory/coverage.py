"""How often the confidence ellipsoid contains the truth, by simulation."""

from typing import NamedTuple

import numpy as np

from postserve import confidence
from postserve.environments.linear_rewards import on_sphere
from postserve.errors import InvalidInput
from postserve.linalg.ridge import RidgeModels
from postserve.types import FloatArray
from postserve.validation import integer, number

FARTHEST = 1e8
"""The largest squared length in units of the ridge: beyond it, rounding would dominate."""


class Covered(NamedTuple):
    """The share of runs with the truth inside: at round t, and at all rounds up to t (`so_far`)."""

    at_round: FloatArray
    so_far: FloatArray


class Coverage(NamedTuple):
    """Of both forms of the Confidence Ellipsoid lemma, which promises 1 - delta for `so_far`."""

    closed_form: Covered
    determinant: Covered


def confidence_coverage(
    *,
    horizon: int,
    dim_x: int,
    dim_z: int,
    ridge: float = 1.0,
    noise_scale: float = 1.0,
    z_noise: float = 1.0,
    delta: float = 0.05,
    runs: int = 1000,
    seed: int = 0,
) -> Coverage:
    """Coverage of the Confidence Ellipsoid lemma (appendix C) for an arm of poLinUCB, on observed (x, z).

    ||w_hat_t - w||_{A_t} <= zeta_t for all t at once, with probability 1 - delta. The paper states it for
    each t; the self-normalised bound behind it is uniform, as regret needs it.

    In each run x is uniform on the unit ball, phi(x) = Phi x with ||Phi|| = 1, z = phi(x) + eps with eps
    uniform on the ball of radius `z_noise`, and w = (theta, beta) is drawn from unit spheres. The arm is
    served if its optimistic score at (x, phi(x)) is at least 0, so the rounds it learns from depend on
    earlier rewards, which have N(0, noise_scale²) noise. w_bound is the paper's 2, u_bound the longest
    possible (x, z).

    >>> found = confidence_coverage(horizon=50, dim_x=2, dim_z=1, delta=0.1, runs=200)
    >>> bool(found.determinant.so_far[-1] >= 0.9), bool(found.closed_form.so_far[-1] >= 0.9)
    (True, True)
    """
    horizon, runs = integer("horizon", horizon, least=1), integer("runs", runs, least=1)
    dim_x, dim_z = integer("dim_x", dim_x, least=1), integer("dim_z", dim_z, least=1)
    ridge = number("ridge", ridge, above=0.0)
    noise_scale = number("noise_scale", noise_scale, least=0.0)
    z_noise, delta = number("z_noise", z_noise, least=0.0), number("delta", delta, above=0.0, below=1.0)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    dim_u, u_bound = dim_x + dim_z, float(np.hypot(1.0, 1.0 + z_noise))
    if u_bound**2 > FARTHEST * ridge:
        raise InvalidInput(f"ridge is {ridge:g}, wanted at least {u_bound**2 / FARTHEST:g} against rounding")
    phi = rng.standard_normal((runs, dim_z, dim_x))
    phi /= np.linalg.norm(phi, 2, axis=(1, 2), keepdims=True)
    weights = np.concatenate([on_sphere(rng, runs, dim) for dim in (dim_x, dim_z)], axis=1)
    models, all_runs = RidgeModels(runs, {"u": dim_u}, ridge=ridge), np.arange(runs)  # one arm per run
    inside = np.empty((2, horizon, runs), dtype=bool)
    common = {"ridge": ridge, "noise_scale": noise_scale, "delta": delta}

    def radii() -> FloatArray:
        """zeta of each run, in the closed and the determinant form."""
        closed = confidence.arm_radius_closed_form(pulls=models.pulls, dim_u=dim_u, u_bound=u_bound, **common)
        determinant = confidence.arm_radius_determinant(log_det_ratio=models.log_det, **common)
        return np.array([closed, determinant])

    zeta = radii()
    for t in range(horizon):
        x = _in_ball(rng, runs, dim_x)
        mean = np.einsum("rij,rj->ri", phi, x)
        means, widths = models.project(np.concatenate([x, mean], axis=1), all_runs)
        chosen = np.flatnonzero(means[:, 0] + zeta[1] * widths >= 0.0)
        u = np.concatenate([x, mean + z_noise * _in_ball(rng, runs, dim_z)], axis=1)
        reward = (u * weights).sum(axis=1) + noise_scale * rng.standard_normal(runs)
        models.update_batch(chosen, u[chosen], reward[chosen, None])
        zeta = radii()
        miss = models.weights_of()[:, 0] - weights
        square = np.einsum("ri,rij,rj->r", miss, models.gram_of(), miss) + ridge * (miss**2).sum(axis=1)
        inside[:, t] = np.sqrt(square) <= zeta
    so_far = np.logical_and.accumulate(inside, axis=1).mean(axis=2)
    return Coverage(*map(Covered, inside.mean(axis=2), so_far))


def _in_ball(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    return np.asarray(on_sphere(rng, n, dim) * rng.random((n, 1)) ** (1.0 / dim))
