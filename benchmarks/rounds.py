"""One round, select and update, as a ratio to plain numpy in the same process (medians of blocks in turn)."""

import statistics
import time
from typing import Any

import numpy as np

from postserve import LinUCB, PoLinUCB, RidgeMap

BLOCK, BLOCKS = 200, 15
SCENARIOS = {"a (10 arms, 105)": (10, 105), "b (100, 32)": (100, 32), "d (5, 32)": (5, 32)}


class NumpyLinUCB:
    """All inverses stacked, one matrix product, Sherman-Morrison: what a careful user writes."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.inverse = np.repeat(np.eye(dim)[None], n_arms, axis=0)
        self.weights = np.zeros((n_arms, dim))
        self.moment = np.zeros((n_arms, dim))

    def select(self, u: Any) -> int:
        n_arms, dim = self.weights.shape
        solved = (self.inverse.reshape(-1, dim) @ u).reshape(n_arms, dim)
        return int((self.weights @ u + np.sqrt(solved @ u)).argmax())

    def update(self, arm: int, u: Any, reward: float) -> None:
        solved = self.inverse[arm] @ u
        self.inverse[arm] -= np.outer(solved, solved) / (1.0 + u @ solved)
        self.moment[arm] += reward * u
        self.weights[arm] = self.inverse[arm] @ self.moment[arm]


class NumpyPoLinUCB(NumpyLinUCB):
    """The same with recursive least squares for phi."""

    def __init__(self, n_arms: int, dim_x: int, dim_z: int) -> None:
        super().__init__(n_arms, dim_x + dim_z)
        self.P, self.Phi = np.eye(dim_x), np.zeros((dim_x, dim_z))

    def predict(self, x: Any) -> Any:
        return np.concatenate([x, x @ self.Phi])

    def learn(self, x: Any, z: Any) -> None:
        solved = self.P @ x
        gain = solved / (1.0 + x @ solved)
        self.Phi += np.outer(gain, z - x @ self.Phi)
        self.P -= np.outer(gain, solved)


def measure() -> dict[str, float]:
    """LinUCB on three scenarios and PoLinUCB on 100 + 5, each against its own reference."""
    found = {}
    for name, (n_arms, dim) in SCENARIOS.items():
        policy, plain = LinUCB(n_arms, dim, ridge=1.0, arm_radius=1.0), NumpyLinUCB(n_arms, dim)
        found[f"LinUCB {name}"] = _ratio(_linucb(policy, dim), _plain_linucb(plain, dim))
    phi_hat = RidgeMap(100, 5, ridge=1.0)
    po = PoLinUCB(10, phi_hat, ridge=1.0, arm_radius=1.0)
    found["PoLinUCB (10 arms, 100 + 5), plugin"] = _ratio(
        _polinucb(po), _plain_polinucb(NumpyPoLinUCB(10, 100, 5))
    )
    joint, plugin = (PoLinUCB(10, RidgeMap(100, 5), optimism=kind) for kind in ("joint", "plugin"))
    found["PoLinUCB joint, over plugin, both with their defaults"] = _ratio(
        _polinucb(joint), _polinucb(plugin)
    )
    return found


def _ratio(ours: Any, reference: Any) -> float:
    times: tuple[list[float], list[float]] = ([], [])
    for block in range(BLOCKS + 1):
        for which, play in enumerate((ours, reference)):
            start = time.perf_counter()
            play(np.random.default_rng(block))
            if block:  # the first block compiles
                times[which].append(time.perf_counter() - start)
    return statistics.median(times[0]) / statistics.median(times[1])


def _linucb(policy: LinUCB, dim: int) -> Any:
    def play(rng: np.random.Generator) -> None:
        X, r = rng.standard_normal((BLOCK, dim)), rng.standard_normal(BLOCK)
        for t in range(BLOCK):
            arm = policy.select(X[t], rng).arm
            policy.update(X[t], arm, None, float(r[t]))

    return play


def _plain_linucb(policy: NumpyLinUCB, dim: int) -> Any:
    def play(rng: np.random.Generator) -> None:
        X, r = rng.standard_normal((BLOCK, dim)), rng.standard_normal(BLOCK)
        for t in range(BLOCK):
            policy.update(policy.select(X[t]), X[t], float(r[t]))

    return play


def _polinucb(policy: PoLinUCB) -> Any:
    def play(rng: np.random.Generator) -> None:
        X, Z, r = (
            rng.standard_normal((BLOCK, 100)),
            rng.standard_normal((BLOCK, 5)),
            rng.standard_normal(BLOCK),
        )
        for t in range(BLOCK):
            policy.update(X[t], policy.select(X[t], rng).arm, Z[t], float(r[t]))

    return play


def _plain_polinucb(policy: NumpyPoLinUCB) -> Any:
    def play(rng: np.random.Generator) -> None:
        X, Z, r = (
            rng.standard_normal((BLOCK, 100)),
            rng.standard_normal((BLOCK, 5)),
            rng.standard_normal(BLOCK),
        )
        for t in range(BLOCK):
            arm = policy.select(policy.predict(X[t]))
            policy.learn(X[t], Z[t])
            policy.update(arm, np.concatenate([X[t], Z[t]]), float(r[t]))

    return play
