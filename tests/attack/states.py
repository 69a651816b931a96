"""Saved states of many kinds, and what attacks on them share.

Each attack is a function of a seed. `make test` runs few rounds of it, `make test-attack` many.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from tests.stored import OLD_OBJECTS

from postserve import (
    BestMap,
    BestPolicy,
    EpsilonGreedy,
    HybridMap,
    KernelMap,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    NeighborsMap,
    NetworkMap,
    PerArmMap,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
    SklearnMap,
    StagedMap,
    StateMismatch,
    load,
)
from postserve.state import Persistent, arrays_of

X, Z = 3, 2
TREE = DecisionTreeRegressor(max_depth=2, random_state=0)

POLICIES: dict[str, Callable[[], Any]] = {
    "many arms that share weights": lambda: PoLinUCB(2000, RidgeMap(X, Z), model="shared"),
    "default": lambda: PoLinUCB(3, RidgeMap(X, Z)),
    "hybrid": lambda: PoLinUCB(3, HybridMap(X, Z), model="hybrid", optimism="posterior"),
    "robust with a kernel": lambda: RobustPoLinUCB(3, KernelMap(X, Z, landmarks=12)),
    "numeric ridge": lambda: LinUCB(5, X, ridge=2.0, arm_radius="determinant"),
    "neighbors": lambda: EpsilonGreedy(PoLinTS(3, NeighborsMap(X, Z))),
    "network": lambda: LinUCBPhiHat(3, NetworkMap(X, Z, hidden=8)),
    "best policy": lambda: BestPolicy(3, BestMap([RidgeMap(X, Z), PerArmMap(RidgeMap(X, Z))])),
    "stages": lambda: PoLinUCB(3, StagedMap([RidgeMap(X, 1), RidgeMap(X + 1, 1)])),
    "tree": lambda: PoLinUCB(3, SklearnMap(X, Z, TREE)),
    "oracle": lambda: LinUCBOracle(3, X, Z),
    "decision sets": lambda: LinUCB(None, X, model="shared"),
    "random": lambda: RandomPolicy(4),
    "rounds that are out": lambda: PoLinUCB(3, RidgeMap(X, Z), optimism="posterior"),
}
OBJECTS: dict[str, dict[str, Any]] = {"tree": {"context_map.regressor": TREE}, **OLD_OBJECTS}


def taught(kind: str, rounds: int = 30, seed: int = 0) -> Any:
    """A policy of that kind after some rounds."""
    policy, rng = POLICIES[kind](), np.random.default_rng(seed)
    for i in range(rounds):
        x, z = rng.normal(size=X), rng.normal(size=Z)
        policy.update(x, int(rng.integers(3)), z, float(x[0] + z[0] + 0.1 * rng.normal()))
        if kind == "rounds that are out" and i % 3 == 0:
            policy.expect(rng.normal(size=X), i % 2, round_id=f"round {i}" if i % 2 else None)
    return policy


def load_kind(kind: str, path: Path) -> Any:
    return load(path, objects=OBJECTS.get(kind))


def is_same(one: Any, other: Any) -> bool:
    """Whether two objects have the same class, settings and arrays, bit by bit."""
    mine, theirs = arrays_of(one), arrays_of(other)
    return (
        type(one) is type(other)
        and repr(one) == repr(other)
        and mine.keys() == theirs.keys()
        and all(_same_bits(mine[name], theirs[name]) for name in mine)
    )


def _same_bits(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())


def outcome(kind: str, path: Path, original: Persistent) -> str:
    """The word refused, equal or changed; any error but `StateMismatch` goes on to the test."""
    try:
        loaded = load_kind(kind, path)
    except StateMismatch:
        return "refused"
    return "equal" if is_same(loaded, original) else "changed"


def bits(size: int, rng: np.random.Generator, count: int) -> Iterator[tuple[int, int]]:
    """Places of bits in a file of that size: in pairs of a byte and a mask."""
    for place in rng.integers(8 * size, size=count).tolist():
        yield place // 8, 1 << place % 8
