"""A batch of 1,000 contexts, as a ratio to the matrix product that it needs at least."""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.streams import SCENARIOS, Stream, rewards, stream
from benchmarks.timing import seconds
from postserve import LinUCB
from postserve.types import FloatArray

BATCH, PULLS = 1000, 64


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """select_batch on a and c, by size of the batch, and update_batch against update."""
    repeats = 3 if quick else 9
    rng = np.random.default_rng(0)
    for name, weights in (("a", "apart"), ("a", "equal"), ("c", "apart"), ("c", "equal")):
        n_arms, dim = SCENARIOS[name]
        rounds = stream(n_arms, dim, weights=weights)
        policy = trained(n_arms, dim, rounds, 400 if name == "a" else PULLS)
        X = rng.standard_normal((BATCH, dim))
        product = _inverses_one_by_one(X, n_arms) if name == "a" else _packed(n_arms, dim)
        ours, bare = _in_turn(partial(policy.select_batch, X, rng), product, repeats)
        found = {"us": 1e6 * ours / BATCH, "reference_us": 1e6 * bare / BATCH, "ratio": ours / bare}
        yield f"select_batch {name}, weights {weights}, one context of 1,000", found
        if weights == "equal":
            continue
        sizes = {}
        for size in (1, 10, 100, 1000):
            again = repeats if size == BATCH else 5 * repeats
            taken = seconds(partial(policy.select_batch, X[:size], rng), again)
            sizes[str(size)] = 1e6 * taken / size
        alone = seconds(partial(_one_by_one, policy, X, rng), 3)
        sizes["select by itself"] = 1e6 * alone / BATCH
        yield f"select_batch {name}, microseconds per context by size of the batch", sizes
    for name in ("a", "c"):
        yield f"update_batch {name} over update row by row", _updates(name, repeats)


def _one_by_one(policy: LinUCB, X: FloatArray, rng: np.random.Generator) -> None:
    for x in X:
        policy.select(x, rng)


def trained(n_arms: int, dim: int, rounds: Stream, pulls: int) -> LinUCB:
    """Every arm pulled equally often, in random order."""
    policy, rng = LinUCB(n_arms, dim, ridge=1.0, arm_radius=1.0), np.random.default_rng(1)
    for _ in range(pulls):
        policy.update_batch(*_rows(n_arms, n_arms, dim, rounds, rng))
    return policy


def _rows(
    n: int, n_arms: int, dim: int, rounds: Stream, rng: np.random.Generator
) -> tuple[Any, Any, None, Any]:
    X, arms = rng.standard_normal((n, dim)), rng.permutation(n) % n_arms
    return X, arms, None, rewards(rounds, X, arms, rng)


def _inverses_one_by_one(X: Any, n_arms: int) -> Callable[[], Any]:
    """(1000 x 105) @ (105 x 105), one arm at a time."""
    inverses = np.random.default_rng(2).standard_normal((n_arms, X.shape[1], X.shape[1]))
    out = np.empty_like(X)
    return lambda: [np.matmul(X, inverse, out=out) for inverse in inverses]


def _packed(n_arms: int, dim: int) -> Callable[[], Any]:
    """(1000 x 2080) @ (2080 x 1000): the products of x with itself, by the packed inverses."""
    rng, packed = np.random.default_rng(2), dim * (dim + 1) // 2
    products, inverses = rng.standard_normal((BATCH, packed)), rng.standard_normal((packed, n_arms))
    out = np.empty((BATCH, n_arms))
    return lambda: np.matmul(products, inverses, out=out)


def _updates(name: str, repeats: int) -> dict[str, float]:
    n_arms, dim = SCENARIOS[name]
    rounds, rng = stream(n_arms, dim), np.random.default_rng(3)
    one, other = (trained(n_arms, dim, rounds, 2) for _ in range(2))
    X, arms, _, paid = _rows(BATCH, n_arms, dim, rounds, rng)

    def by_row() -> None:
        for x, arm, reward in zip(X, arms.tolist(), paid.tolist(), strict=True):
            other.update(x, arm, None, reward)

    batch, rows = _in_turn(lambda: one.update_batch(X, arms, None, paid), by_row, repeats)
    return {"us": 1e6 * batch / BATCH, "reference_us": 1e6 * rows / BATCH, "ratio": batch / rows}


def _in_turn(one: Callable[[], Any], other: Callable[[], Any], repeats: int) -> tuple[float, float]:
    one(), other()
    times = [(seconds(one), seconds(other)) for _ in range(repeats)]
    return median(pair[0] for pair in times), median(pair[1] for pair in times)
