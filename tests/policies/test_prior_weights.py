"""Prior weights: the prior mean of z's weights, for people who know roughly what a follow-up is worth."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from postserve import InvalidInput, LinUCB, PerArmMap, PoLinTS, PoLinUCB, RidgeMap, RobustPoLinUCB, load
from postserve.types import FloatArray, IntArray

GUESS = [2.0, -1.0]
KINDS: list[Any] = [PoLinUCB, RobustPoLinUCB, PoLinTS]


def rounds(n: int = 60, seed: int = 0) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """x, arms, z and rewards, on a grid on which r - w·z is exact."""
    rng = np.random.default_rng(seed)
    X, arms = rng.integers(-64, 65, size=(n, 2)) / 32, rng.integers(3, size=n)
    Z = X * [1.0, -0.5] + rng.integers(-64, 65, size=(n, 2)) / 32
    return X, arms, Z, Z @ [1.5, -0.5] + arms + rng.integers(-8, 9, size=n) / 32


def test_it_is_the_mean_of_the_prior() -> None:
    X, arms, Z, rewards = rounds()
    policy = PoLinUCB(3, RidgeMap(2, 2), ridge=4.0, prior_weights=GUESS)
    policy.update_batch(X, arms, Z, rewards)
    centre = np.array([0.0, 0.0, *GUESS])
    for arm in range(3):
        U, r = np.column_stack([X, Z])[arms == arm], rewards[arms == arm]
        wanted = np.linalg.solve(U.T @ U + 4.0 * np.eye(4), U.T @ r + 4.0 * centre)
        assert np.allclose(policy.weights[arm], wanted, rtol=1e-12)


@pytest.mark.parametrize("optimism", ["plugin", "posterior", "joint", "bound"])
@pytest.mark.parametrize("model", ["disjoint", "shared"])
def test_a_guess_is_as_good_as_rows_that_say_it(model: Any, optimism: Any) -> None:
    """Half of the ridge, and rows with the other half of its precision that say twice the guess."""
    X, arms, Z, rewards = rounds()
    options: dict[str, Any] = {"model": model, "optimism": optimism, "exploration": 1.0}
    maps = PerArmMap(RidgeMap(2, 2))
    one = PoLinUCB(3, maps, ridge=4.0, prior_weights=GUESS, **options)
    other = PoLinUCB(3, maps, ridge=2.0, **options)
    for arm in range(3 if model == "disjoint" else 1):
        for row, said in zip(np.sqrt(2.0) * np.eye(4), [0.0, 0.0, *GUESS], strict=True):
            other.credit(row[:2], arm, row[2:], reward=float(np.sqrt(2.0) * 2.0 * said))
    for x, arm, z, r in zip(X, arms.tolist(), Z, rewards.tolist(), strict=True):
        one.update(x, arm, z, r)
        other.update(x, arm, z, r)
    every = np.arange(3)
    assert np.allclose(one.weights, other.weights, rtol=1e-10)
    for x in X[:20]:
        scores, wanted = one._scores(x, every), other._scores(x, every)
        assert scores.argmax() == wanted.argmax()  # scores that cannot be the best may be inexact
        assert scores.max() == pytest.approx(wanted.max(), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_rewards_and_weights_do_not_matter(kind: Any) -> None:
    X, arms, Z, rewards = rounds()
    one = kind(3, RidgeMap(2, 2), prior_weights=GUESS)
    other = kind(3, RidgeMap(2, 2), prior_weights=[1024.0 * w for w in GUESS])
    for x, arm, z, r in zip(X, arms.tolist(), Z, rewards.tolist(), strict=True):
        assert one.select(x, np.random.default_rng(0)) == other.select(x, np.random.default_rng(0))
        one.update(x, arm, z, r)
        other.update(x, arm, z, 1024.0 * r)
    assert np.array_equal(1024.0 * one.weights, other.weights)


@pytest.mark.parametrize("kind", KINDS)
def test_a_guess_decides_before_the_first_reward(kind: Any) -> None:
    """Only z has come: what it is worth is guessed."""
    rng, policy = np.random.default_rng(0), kind(2, PerArmMap(RidgeMap(1, 1)), prior_weights=[1.0])
    for _ in range(30):
        policy.observe([1.0], 0, [rng.normal()])
        policy.observe([1.0], 1, [10.0 + rng.normal()])
    assert policy.select([1.0], rng).arm == 1


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_saved(kind: Any, tmp_path: Path) -> None:
    X, arms, Z, rewards = rounds()
    policy = kind(3, RidgeMap(2, 2), prior_weights=np.array(GUESS))
    policy.update_batch(X, arms, Z, rewards)
    policy.save(tmp_path / "state")
    loaded = load(tmp_path / "state")
    assert "prior_weights=[2.0, -1.0]" in repr(loaded)
    assert np.array_equal(loaded.weights, policy.weights)
    assert loaded.select(X[0], np.random.default_rng(0)) == policy.select(X[0], np.random.default_rng(0))


def test_only_equal_ones_merge() -> None:
    with pytest.raises(InvalidInput, match="prior_weights differ"):
        PoLinUCB(3, RidgeMap(2, 2), prior_weights=GUESS).merge(PoLinUCB(3, RidgeMap(2, 2)))


def test_bad_ones_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"prior_weights has shape \(3,\), wanted \(2,\)"):
        PoLinUCB(2, RidgeMap(2, 2), prior_weights=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="prior_weights"):
        PoLinUCB(2, RidgeMap(2, 1), prior_weights=[np.nan])
    with pytest.raises(InvalidInput, match="wanted None: there is no z here"):
        LinUCB(2, 2, prior_weights=[1.0])
