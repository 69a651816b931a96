"""The rounds that everyone plays: contexts and the reward of every arm, from a seed (numpy only).

x is N(0, I), and a reward is x·w_a plus N(0, 1). A policy need not compute the widths of arms that
cannot win, and how much that saves depends on how the weights w_a differ. Hence three kinds of weights:

- "apart": N(0, I), so that means differ by as much as x is long;
- "unit": the same over sqrt(dim), so that weights have about length 1, as in the paper's worlds;
- "equal": one w for all arms, so that every arm could still win.
"""

from typing import Any, NamedTuple

import numpy as np

SCENARIOS = {"a": (10, 105), "b": (100, 32), "c": (1000, 64), "d": (5, 32)}
"""(n_arms, dim)"""
DISTINCT = 10_000
"""Arms that differ; beyond, they repeat, so that a million arms need no gigabytes of weights."""


class Stream(NamedTuple):
    """Contexts, one per row; weights, one row per arm; one noise per round. All repeat after the last."""

    X: Any
    weights: Any
    noise: Any

    def x(self, t: int) -> Any:
        return self.X[t % len(self.X)]

    def reward(self, t: int, arm: int) -> float:
        t %= len(self.X)
        return float(self.X[t] @ self.weights[arm % len(self.weights)] + self.noise[t])


def stream(n_arms: int, dim: int, n: int = 5000, *, seed: int = 0, weights: str = "apart") -> Stream:
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((n, dim)), rng.standard_normal(n)
    distinct = 1 if weights == "equal" else min(n_arms, DISTINCT)
    scale = 1.0 if weights == "apart" else 1.0 / np.sqrt(dim)
    return Stream(X, scale * rng.standard_normal((distinct, dim)), noise)


def post_stream(n_arms: int, dim_x: int, dim_z: int, n: int = 5000, *, seed: int = 0) -> Stream:
    """Rows are (x, z), where z is linear in x plus N(0, 1)."""
    rng = np.random.default_rng(seed)
    x, phi = rng.standard_normal((n, dim_x)), rng.standard_normal((dim_x, dim_z)) / np.sqrt(dim_x)
    u = np.hstack([x, x @ phi + rng.standard_normal((n, dim_z))])
    return Stream(u, rng.standard_normal((n_arms, dim_x + dim_z)), rng.standard_normal(n))


def rewards(of: Stream, X: Any, arms: Any, rng: np.random.Generator) -> Any:
    """Rewards for the given rows and arms."""
    return np.einsum("nd,nd->n", X, of.weights[arms % len(of.weights)]) + rng.standard_normal(len(X))
