"""What `save` writes `load` takes, of learners whose rows span up to 16 orders of magnitude.

Where sums of squares were subtracted from each other, rounding may leave less than 0, which `load` refuses.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attack.size import LONG
from tests.attack.states import is_same

from postserve import HybridMap, LinUCB, PerArmMap, PoLinUCB, RidgeMap, load
from postserve.types import FloatArray

SEEDS = range(1000 if LONG else 60)
X, Z = 3, 2

KINDS: dict[str, Callable[[float], Any]] = {
    "hybrid": lambda ridge: LinUCB(3, X, model="hybrid"),
    "hybrid, numeric ridge": lambda ridge: LinUCB(3, X, model="hybrid", ridge=ridge),
    "hybrid map": lambda ridge: PoLinUCB(3, HybridMap(X, Z), model="hybrid"),
    "disjoint": lambda ridge: PoLinUCB(3, PerArmMap(RidgeMap(X, Z)), model="disjoint"),
    "shared": lambda ridge: PoLinUCB(3, RidgeMap(X, Z), model="shared"),
}


FOUND = [("hybrid", 188), ("hybrid map", 188)]
"""Learners whose frame's move once left a negative sum of squares of a removed arm."""


@pytest.mark.parametrize("kind", KINDS)
def test_hard_learners_load_as_they_were_saved(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    for seed in SEEDS:
        policy = taught_hard(kind, seed)
        policy.save(path)
        assert is_same(load(path), policy), f"seed {seed}"


@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_learners_that_were_refused_once_load(kind: str, seed: int, tmp_path: Path) -> None:
    policy = taught_hard(kind, seed)
    policy.save(tmp_path / "policy.npz")
    assert is_same(load(tmp_path / "policy.npz"), policy)


def test_what_an_arm_taught_more_than_before_is_not_negative(tmp_path: Path) -> None:
    """Of the second column nothing is learnt: what was taught before is rounding, and more than after."""
    policy = LinUCB(3, 5, model="hybrid", ridge=664405.2719916609, intercept=False)
    x = [12.302208840566687, 0.0005323237287152748, 0.005623907126381921, 28603636731586.887, -17329701.956]
    policy.update(x, 2, None, 756856.4452958736)
    policy.save(tmp_path / "policy.npz")
    assert is_same(load(tmp_path / "policy.npz"), policy)


def taught_hard(kind: str, seed: int) -> Any:
    """A policy after rounds in hard units, some of them far outside, with arms that come and go."""
    rng = np.random.default_rng(seed)
    span = float(rng.choice([2.0, 5.0, 8.0]))
    policy = KINDS[kind](10.0 ** rng.uniform(-span, span))
    x, z, rewards = (hard_rows(rng, dim, span) for dim in (X, Z, 1))
    for i in range(len(x)):
        policy.update(x[i], int(rng.choice(policy.arms)), z[i], float(rewards[i, 0]))
        verb = rng.random()
        if verb < 0.05 and policy.n_arms > 1:
            policy.remove_arm(int(rng.choice(policy.arms)))
        elif verb < 0.1:
            policy.add_arm()
        elif verb < 0.15:
            keep = float(rng.uniform(0.01, 1.0))
            policy.forget(arms=keep, map=keep if policy.dim_z else 1.0)
        elif verb < 0.2:
            policy.refit_prior()
    return policy


def hard_rows(rng: np.random.Generator, dim: int, span: float) -> FloatArray:
    """Each column in units of its own, some of them far from 0; some rows far outside of the others."""
    units, rows = 10.0 ** rng.uniform(-span, span, size=dim), rng.normal(size=(20, dim))
    far = rng.random(len(rows)) < 0.1
    rows[far] *= 10.0 ** rng.uniform(-span, span, size=(far.sum(), 1))
    levels = rng.integers(2, size=dim) * 10.0 ** rng.uniform(0.0, span, size=dim)
    return np.asarray(units * (levels + rows))
