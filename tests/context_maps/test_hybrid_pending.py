"""A z that is out counts in the widths of HybridMap, of all arms, as if it had come at its mean."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from postserve import HybridMap, InvalidInput, RidgeMap, load
from postserve.types import FloatArray

ARMS = [0, 1, 2, 7]


def taught(**options: Any) -> tuple[HybridMap, np.random.Generator]:
    rng = np.random.default_rng(3)
    phi_hat = HybridMap(2, 2, **options)
    for _ in range(25):
        x, arm = rng.normal(size=2), int(rng.integers(3))
        phi_hat.update(x, arm, x * (1.0 + arm) + 4.0 + rng.normal(size=2))
    return phi_hat, rng


def fantasy(phi_hat: HybridMap, rounds: list[tuple[FloatArray, int]]) -> HybridMap:
    """The regressions after these rounds, each learnt at its mean under the prior in force."""
    other = copy.deepcopy(phi_hat.settled())
    for x, arm in rounds:
        models, place = other._learnt.models, other._place(arm)
        models.learn_rows(np.array([place]), x[None], other.predict(x, [arm]))
    return other


def same(one: HybridMap, other: HybridMap, x: FloatArray) -> bool:
    means = np.allclose(one.predict(x, ARMS), other.predict(x, ARMS), rtol=1e-9, atol=1e-9)
    return means and np.allclose(one.spread(x, ARMS), other.spread(x, ARMS), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"intercept": False}, {"ridge": 2.0}])
def test_announced_rounds_count_as_if_seen_at_their_mean(options: dict[str, Any], tmp_path: Path) -> None:
    phi_hat, rng = taught(**options)
    before, x = copy.deepcopy(phi_hat), rng.normal(size=2)
    rounds = [(rng.normal(size=2), arm) for arm in (0, 7, 7, 1, 0)]  # no z of arm 7 has come
    for each in rounds:
        phi_hat.expect(*each)
    assert same(phi_hat, fantasy(before, rounds), x)
    assert (phi_hat.spread(x, ARMS) < before.spread(x, ARMS)).all()  # arms share what is common
    phi_hat.save(tmp_path / "map")
    assert same(load(tmp_path / "map"), phi_hat, x)
    phi_hat.withdraw(*rounds.pop(1))
    z = rng.normal(size=2)
    phi_hat.update(rounds[0][0], 0, z)
    phi_hat.withdraw(*rounds[0])
    before.update(rounds.pop(0)[0], 0, z)
    assert same(phi_hat, fantasy(before, rounds), x)
    phi_hat.forget(0.5)
    before.forget(0.5)
    assert same(phi_hat, fantasy(before, rounds), x)
    phi_hat.remove_arm(1)
    before.remove_arm(1)
    rounds = [each for each in rounds if each[1] != 1]
    assert same(phi_hat, fantasy(before, rounds), x)
    for each in rounds:
        phi_hat.withdraw(*each)
    assert same(phi_hat, before, x)
    assert phi_hat._learnt.widths is phi_hat._learnt.models


def test_both_sides_announced_rounds_are_merged() -> None:
    one, rng = taught(ridge=1.0)
    other, x = copy.deepcopy(one), rng.normal(size=2)
    other.update(rng.normal(size=2), 9, rng.normal(size=2))
    both, rounds = copy.deepcopy(one), [(rng.normal(size=2), 0), (rng.normal(size=2), 9)]
    both.merge(other)
    one.expect(*rounds[0])
    other.expect(*rounds[1])
    one.merge(other)
    assert same(one, fantasy(both, rounds), x)


def test_what_was_not_announced_cannot_be_withdrawn() -> None:
    phi_hat, _ = taught()
    with pytest.raises(InvalidInput, match="wanted one that was announced"):
        phi_hat.withdraw([1.0, 2.0], 0)
    phi_hat.expect([1.0, 2.0], 0)
    with pytest.raises(InvalidInput, match="wanted one that was announced"):
        phi_hat.withdraw([1.0, 2.0], 1)


@pytest.mark.parametrize("phi_hat", [HybridMap(2, 1), RidgeMap(2, 1)], ids=["hybrid", "ridge"])
@pytest.mark.parametrize("announced", [0.0, -0.0])
def test_negative_zero_is_zero(phi_hat: Any, announced: float, tmp_path: Path) -> None:
    phi_hat = copy.deepcopy(phi_hat)
    phi_hat.expect([1.0, announced], 0)
    phi_hat.save(tmp_path / "map")
    for each in (phi_hat, load(tmp_path / "map")):
        each.withdraw([1.0, -announced], 0)
        with pytest.raises(InvalidInput, match="wanted one that was announced"):
            each.withdraw([1.0, announced], 0)
