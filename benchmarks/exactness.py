"""Whether decisions agree with a direct solve, and weights with a fresh one after many updates."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.streams import SCENARIOS, Stream, stream
from postserve import LinUCB

TIE = 1e-9
"""Scores that differ by less than this, relative to the best, are a tie."""


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """Rounds in which the policy and a direct solve chose differently, and the largest error of a weight."""
    rounds, updates = (1_000, 100_000) if quick else (10_000, 1_000_000)
    for name, (n_arms, dim) in SCENARIOS.items():
        for weights in ("apart", "equal"):
            world = stream(n_arms, dim, rounds, seed=1, weights=weights)
            yield (
                f"{name}, weights {weights}: {rounds} rounds",
                {"other choices": _differing(n_arms, dim, world)},
            )
    yield f"{updates} updates of (2, 32): error of a weight, relative", {"value": _drift(2, 32, updates)}


def _differing(n_arms: int, dim: int, world: Stream) -> int:
    """The policy plays; each choice is compared with a direct solve, A^{-1} by LU for the changed arm."""
    policy, rng = LinUCB(n_arms, dim, ridge=1.0, arm_radius=1.0), np.random.default_rng(0)
    gram, moment = np.repeat(np.eye(dim)[None], n_arms, axis=0), np.zeros((n_arms, dim))
    inverse, weights = gram.copy(), moment.copy()
    differing = 0
    for t in range(len(world.X)):
        x = world.x(t)
        arm = policy.select(x, rng).arm
        solved = np.einsum("ij,j->i", inverse.reshape(-1, dim), x).reshape(n_arms, dim)
        scores = weights @ x + np.sqrt(solved @ x)
        best = float(scores.max())
        differing += bool(best - scores[arm] > TIE * max(abs(best), 1.0))
        reward = world.reward(t, arm)
        policy.update(x, arm, None, reward)
        gram[arm] += np.outer(x, x)
        moment[arm] += reward * x
        inverse[arm] = np.linalg.inv(gram[arm])
        weights[arm] = inverse[arm] @ moment[arm]
    return differing


def _drift(n_arms: int, dim: int, updates: int) -> float:
    """Against a solve of the sums of all rows, added up by blocks."""
    policy, rng = LinUCB(n_arms, dim, ridge=1.0, arm_radius=1.0), np.random.default_rng(0)
    gram, moment = np.repeat(np.eye(dim)[None], n_arms, axis=0), np.zeros((n_arms, dim))
    block = 10_000
    for _ in range(updates // block):
        X, arms, paid = (
            rng.normal(size=(block, dim)),
            rng.integers(n_arms, size=block),
            rng.normal(size=block),
        )
        paid += X[:, 0]
        for x, arm, reward in zip(X, arms.tolist(), paid.tolist(), strict=True):
            policy.update(x, arm, None, reward)
        for arm in range(n_arms):
            own = X[arms == arm]
            gram[arm] += own.T @ own
            moment[arm] += paid[arms == arm] @ own
    direct = np.linalg.solve(gram, moment[:, :, None])[:, :, 0]
    return float(np.abs(policy.weights - direct).max() / np.abs(direct).max())
