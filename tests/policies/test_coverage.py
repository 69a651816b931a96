"""The confidence sets contain the truth as often as they promise, with R and the bounds known.

500 runs of PoLinUCB; a run counts as covered if the truth is inside at every round.
"""

from typing import Any

import numpy as np
import pytest

from postserve import PoLinUCB, RidgeMap
from postserve.linalg.ridge import RidgeModels

RUNS, HORIZON, N_ARMS, DIM_X, DIM_Z, RIDGE, DELTA = 500, 150, 3, 3, 2, 1.0, 0.1
NOISE, Z_NOISE = 0.5, 0.5


def worst_miss(phi_hat: Any, Phi: Any) -> float:
    """The largest ratio of ||phi_hat(x) - phi(x)|| to the radius, over all x there are.

    Both grow with x: it is ||(Phi_hat - Phi) F^{1/2}|| over the radius at a width of one.
    """
    root = np.linalg.cholesky(phi_hat._models.gram_of()[0] + RIDGE * np.eye(DIM_X))
    at_width_one = phi_hat.radius(root[:, 0])[0]  # F^{1/2} e_1 has width ||e_1|| = 1
    return float(np.linalg.norm((phi_hat.weights - Phi) @ root, ord=2) / at_width_one)


@pytest.fixture(scope="module")
def worst() -> Any:
    """Per run, the largest ratio of the error to its radius: of the arms' ellipsoids, of the map."""
    found = np.zeros((RUNS, 2))
    slots = np.arange(N_ARMS)
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        weights = rng.standard_normal((N_ARMS, DIM_X + DIM_Z))
        Phi = rng.standard_normal((DIM_Z, DIM_X))
        phi_hat = RidgeMap(
            DIM_X,
            DIM_Z,
            ridge=RIDGE,
            map_radius="determinant",
            noise_scale=Z_NOISE,
            row_bound=np.linalg.norm(Phi, axis=1),
            delta=DELTA,
        )
        policy = PoLinUCB(
            N_ARMS,
            phi_hat,
            ridge=RIDGE,
            arm_radius="determinant",
            noise_scale=NOISE,
            w_bound=float(np.linalg.norm(weights, axis=1).max()),
            delta=DELTA / N_ARMS,
        )
        models = policy._arms.models
        assert isinstance(models, RidgeModels)
        for _ in range(HORIZON):
            x = rng.standard_normal(DIM_X)
            arm = policy.select(x, rng).arm
            z = Phi @ x + Z_NOISE * rng.standard_normal(DIM_Z)
            reward = float(weights[arm] @ np.concatenate([x, z]) + NOISE * rng.standard_normal())
            policy.update(x, arm, z, reward)
            off = policy.weights - weights
            error = np.sqrt(
                np.einsum("ai,aij,aj->a", off, models.gram_of(), off) + RIDGE * (off**2).sum(axis=1)
            )
            found[seed, 0] = max(found[seed, 0], (error / policy._arms.radius(slots)).max())
            found[seed, 1] = max(found[seed, 1], worst_miss(policy.context_map, Phi))
    return found


@pytest.mark.parametrize(("index", "what"), [(0, "arms"), (1, "map")])
def test_the_truth_is_inside_at_every_round(worst: Any, index: int, what: str) -> None:
    assert (worst[:, index] <= 1.0).mean() >= 1.0 - DELTA, what


@pytest.mark.parametrize("index", [0, 1])
def test_radii_half_as_large_would_be_caught(worst: Any, index: int) -> None:
    assert (worst[:, index] <= 0.5).mean() < 1.0 - DELTA
