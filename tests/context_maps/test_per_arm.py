"""Arms with few z: how sure their maps are, against the truth, and in states of earlier versions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import map_coverage
from benchmarks.map_coverage import MAPS, coverage, covered
from tests.stored import arrays_in, write_arrays

from postserve import KernelMap, PerArmMap, PoLinUCB, RidgeMap, StateMismatch, load

ARMS = (0, 1, 2, 7)
"""Arm 7 never has a z."""


def taught(phi_hat: Any, n: int, start: int = 0) -> Any:
    rng = np.random.default_rng(start)
    for i in range(start, start + n):
        x = rng.normal(size=3)
        phi_hat.update(x, i % 3, x[:2] + i % 3 + 0.5 * rng.normal(size=2))
    return phi_hat


def test_hybrid_maps_are_as_sure_as_they_should_be() -> None:
    """95% is wanted; 0.6% is a standard error here, of the first group."""
    shares = coverage(MAPS["HybridMap"], range(100))
    assert all(0.92 < share < 0.98 for share in shares.values()), shares


def test_maps_per_arm_are_not_surer_than_they_should_be() -> None:
    """They are cautious where an arm has no z: the noise of z counts as if phi might vary as much."""
    shares = coverage(MAPS["PerArmMap of RidgeMap"], range(100))
    assert all(0.92 < share < 0.99 for share in shares.values()), shares


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_an_arm_that_follows_the_noise_of_its_z_knows_it(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With about as many z as inputs, here 6, a regression that does not know the noise is at its worst."""
    monkeypatch.setattr(map_coverage, "PAIRS", np.array([30, 30, 30, n]))
    shares = np.mean([covered(PerArmMap(RidgeMap(5, 4)), seed) for seed in range(60)], axis=0)
    assert 0.9 < shares[-1] < 0.995, shares


@pytest.mark.parametrize("template", [RidgeMap(3, 2), KernelMap(3, 2, landmarks=9)])
def test_deviations_radii_and_draws_agree(template: Any) -> None:
    phi_hat, x = taught(PerArmMap(template), 12), np.ones(3)
    spread = phi_hat.spread(x, ARMS)
    assert np.allclose(phi_hat.radius(x, ARMS), np.linalg.norm(spread, axis=1))
    drawn = phi_hat.sample(x, ARMS, np.random.default_rng(0), 5000)
    assert np.allclose(drawn.std(axis=0), spread, rtol=0.1)
    assert np.allclose(drawn.mean(axis=0), phi_hat.predict(x, ARMS), atol=5.0 * spread.max() / np.sqrt(5000))
    assert phi_hat.spread(x, ()).shape == (0, 2)


def test_more_z_of_its_own_make_an_arm_surer() -> None:
    """Once it has learnt the noise of z, with 8 of them; until then its 4 inputs may just follow it."""
    phi_hat, x = taught(PerArmMap(RidgeMap(3, 2)), 30), np.zeros(3)
    radii = []
    for n in range(1, 16):  # with 16 it is not new any more
        phi_hat.update(x + 0.1 * n, 7, np.ones(2))  # constant: its map thinks that there is no noise
        radii.append(float(phi_hat.radius(x, (7,))[0]))
    assert np.all(np.diff(radii[7:]) < 0.0)
    assert max(radii) == radii[3] > radii[7]
    phi_hat.update(x, 7, np.ones(2))
    assert phi_hat.radius(x, (7,)) == 0.0
    phi_hat.forget(0.1)
    assert phi_hat.radius(x, (7,)) > radii[-1]
    phi_hat.remove_arm(7)
    assert np.array_equal(phi_hat.radius(x, (7,)), phi_hat.radius(x, (8,)))


@pytest.mark.parametrize("template", [RidgeMap(3, 2, ridge=1.0), taught(RidgeMap(3, 2), 20)])
def test_what_the_template_says_of_unseen_arms_stands(template: Any) -> None:
    phi_hat, x = taught(PerArmMap(template), 4), np.ones(3)
    assert np.array_equal(phi_hat.radius(x, (7,)), template.radius(x))
    drawn = (one.sample(x, (7,), np.random.default_rng(0)) for one in (phi_hat, template))
    assert np.array_equal(*drawn)


def test_merged_maps_have_the_pairs_of_both() -> None:
    whole, left, right, x = *(PerArmMap(RidgeMap(3, 2)) for _ in range(3)), np.ones(3)
    for one, n, start in ((whole, 9, 0), (whole, 8, 9), (left, 9, 0), (right, 8, 9)):
        taught(one, n, start)
    left.merge(right)
    for one in (whole, left):
        one.refit_prior()
    assert np.allclose(whole.spread(x, ARMS), left.spread(x, ARMS), rtol=1e-6)


def test_states_of_earlier_versions_stay_as_sure_as_they_were(tmp_path: Path) -> None:
    policy = PoLinUCB(3, taught(PerArmMap(RidgeMap(3, 2)), 7), optimism="joint")
    policy.save(tmp_path / "new.npz")
    arrays = arrays_in(tmp_path / "new.npz")
    bad = {**arrays, "context_map.arm_pairs": -arrays["context_map.arm_pairs"]}
    write_arrays(tmp_path / "bad.npz", bad)
    with pytest.raises(StateMismatch, match="arm_pairs"):
        load(tmp_path / "bad.npz")
    del arrays["context_map.arm_pairs"]
    write_arrays(tmp_path / "older.npz", arrays)
    older, x = load(tmp_path / "older.npz").context_map, np.ones(3)
    assert np.all(policy.context_map.radius(x, ARMS) > older.radius(x, ARMS))
    for _ in range(2):
        sure = [older._of(arm).radius(x, (arm,))[0] for arm in ARMS]
        assert np.array_equal(older.radius(x, ARMS), sure)
        assert np.allclose(np.linalg.norm(older.spread(x, ARMS), axis=1), sure)
        taught(older, 6, start=7)
        older.save(tmp_path / "again.npz")
        older = load(tmp_path / "again.npz")
