"""Hölder classes: Assumption 1 cannot hold for each x, and its sum over the rounds can."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postserve import HolderEnvironment, InvalidInput, NeighborsMap, theory
from postserve.confidence import map_radius_assumption
from postserve.types import FloatArray


def test_assumption_1_fails_for_a_holder_class() -> None:
    """All pairs at 1: phi = 0 and phi = |x - 1|^b have the same pairs, and differ at 1/2.

    Whatever a map predicts there, it is off by half of the difference for one of the two.
    """
    b, off = 0.5, 0.5**0.5 / 2.0
    for n in (10**4, 10**6, 10**8):
        width = math.sqrt(0.25 / (1.0 + n))
        assumed = map_radius_assumption(
            width=width, pairs=n, noise_scale=0.1, delta=0.05, map_rate=theory.holder_rate(b, 1)
        )
        assert assumed < off


def uniform(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    return rng.uniform(size=(n, dim))


def gathered(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """At few places, with some anywhere."""
    at_places = rng.uniform(size=(3, dim))[rng.integers(3, size=n)]
    return np.asarray(np.where(rng.random((n, 1)) < 0.9, at_places, uniform(rng, n, dim)))


def far_apart(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Each round the candidate whose k-th neighbour is furthest away: an adversary who sees all contexts."""
    chosen = [rng.uniform(size=dim)]
    candidates = rng.uniform(size=(200, dim))
    for t in range(1, n):
        k = min(t, math.ceil(t ** (1.0 / (1.0 + dim))))
        apart = np.linalg.norm(candidates[:, None] - np.array(chosen)[None], axis=2)
        chosen.append(candidates[np.partition(apart, k - 1, axis=1)[:, k - 1].argmax()])
    return np.array(chosen)


def corners(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    return np.asarray(rng.integers(2, size=(n, dim)), dtype=np.float64)


def sweep(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Along the diagonal, from one end to the other."""
    return np.repeat(np.linspace(0.0, 1.0, n)[:, None], dim, axis=1)


SEQUENCES: list[Callable[[np.random.Generator, int, int], FloatArray]] = [uniform, gathered, corners, sweep]


def distance_sum(X: FloatArray, b: float, rate: float) -> tuple[float, int]:
    """sum_t D_t^b, and the largest number of neighbours."""
    total, most = 1.0, 1
    for t in range(1, len(X)):
        k = min(t, math.ceil(round(t ** (2.0 * rate), 9)))
        apart = np.sqrt(((X[:t] - X[t]) ** 2).mean(axis=1))
        total += float(np.partition(apart, k - 1)[k - 1]) ** b
        most = max(most, k)
    return total, most


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32),
    st.integers(2, 120),
    st.integers(1, 4),
    st.sampled_from([0.25, 0.5, 1.0]),
    st.sampled_from(SEQUENCES),
)
def test_distances_add_up_slowly(seed: int, n: int, dim: int, b: float, sequence: Any) -> None:
    found, k = distance_sum(sequence(np.random.default_rng(seed), n, dim), b, theory.holder_rate(b, dim))
    assert found <= theory.neighbor_distance_bound(horizon=n, neighbors=k, dim=dim, smoothness=b)


@pytest.mark.parametrize(("dim", "b"), [(1, 0.5), (1, 1.0), (2, 1.0)])
def test_distances_add_up_slowly_against_an_adversary(dim: int, b: float) -> None:
    """Far less than T, the trivial bound; outside the cube, where contexts never come near, it fails."""
    rng, n, rate = np.random.default_rng(0), 1000, theory.holder_rate(b, dim)
    X = far_apart(rng, n, dim)
    found, k = distance_sum(X, b, rate)
    bound = theory.neighbor_distance_bound(horizon=n, neighbors=k, dim=dim, smoothness=b)
    assert found <= bound < n
    away = np.arange(n)[:, None] * np.ones(dim)
    assert distance_sum(away, b, rate)[0] > bound


def test_bounds_by_hand() -> None:
    q = 2.0 * 0.01**0.5
    assert theory.neighbor_distance_bound(horizon=400, neighbors=4, dim=2, smoothness=1.0) == pytest.approx(
        400 * q * (2.0 - q), rel=1e-12
    )
    one = theory.neighbor_distance_bound(horizon=400, neighbors=4, dim=1, smoothness=1.0)
    assert one == pytest.approx(400 * 0.02 * (1.0 + math.log(50.0)), rel=1e-12)
    assert theory.neighbor_distance_bound(horizon=4, neighbors=4, dim=2, smoothness=1.0) == 4.0
    known: Any = {"horizon": 1000, "dim_x": 1, "dim_z": 2, "smoothness": 1.0, "delta": 0.1}
    noise = theory.neighbors_error_bound(**known, holder_constant=0.0, noise_scale=0.5)
    wanted = 0.5 * math.sqrt(4.0 * math.log(4000 / 0.1)) * 1000 ** (2 / 3) / (2 / 3)
    assert noise == pytest.approx(wanted, rel=1e-12)
    change = theory.neighbors_error_bound(**known, holder_constant=3.0, noise_scale=0.0)
    distances = theory.neighbor_distance_bound(horizon=1000, neighbors=100, dim=1, smoothness=1.0)
    assert change == pytest.approx(3.0 * distances, rel=1e-12)


SMOOTHNESS = st.sampled_from([0.25, 0.5, 1.0])
GROWING: dict[str, Any] = {
    "horizon": st.integers(1, 10**6),
    "neighbors": st.integers(1, 1000),
    "dim": st.integers(1, 10),
    "dim_z": st.integers(1, 10),
    "holder_constant": st.floats(0.0, 10.0),
    "noise_scale": st.floats(0.0, 10.0),
}


@pytest.mark.parametrize("name", ["horizon", "neighbors", "dim"])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data(), b=SMOOTHNESS)
def test_the_sum_of_distances_grows_with(name: str, data: st.DataObject, b: float) -> None:
    known = {each: data.draw(GROWING[each]) for each in ("horizon", "neighbors", "dim")}
    low, high = sorted([known[name], data.draw(GROWING[name])])
    less, more = (theory.neighbor_distance_bound(**{**known, name: v}, smoothness=b) for v in (low, high))
    assert less <= more * (1.0 + 1e-12)


@pytest.mark.parametrize("name", ["horizon", "dim_z", "holder_constant", "noise_scale"])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data(), b=SMOOTHNESS, dim_x=st.integers(1, 4))
def test_the_errors_bound_grows_with(name: str, data: st.DataObject, b: float, dim_x: int) -> None:
    known = {
        each: data.draw(GROWING[each]) for each in ("horizon", "dim_z", "holder_constant", "noise_scale")
    }
    low, high = sorted([known[name], data.draw(GROWING[name])])
    rest: Any = {"dim_x": dim_x, "smoothness": b, "delta": 0.1}
    less, more = (theory.neighbors_error_bound(**{**known, name: v}, **rest) for v in (low, high))
    assert less <= more * (1.0 + 1e-12)


@pytest.mark.parametrize("b", [0.5, 1.0])
def test_the_errors_bound_has_the_rate(b: float) -> None:
    alpha = theory.holder_rate(b, 2)
    known: Any = {"dim_x": 2, "dim_z": 1, "smoothness": b, "holder_constant": 1.0, "delta": 0.1}
    one, other = (
        theory.neighbors_error_bound(horizon=10**power, noise_scale=0.3, **known) for power in (12, 16)
    )
    assert math.log10(other / one) / 4.0 == pytest.approx(1.0 - alpha, abs=0.02)


def test_neighbors_meet_it() -> None:
    """Lipschitz in [0, 1]², 20 runs at delta = 0.1: errors are below e_t, and their sum below the bound."""
    T, noise = 600, 0.1
    known: Any = {"dim_x": 2, "dim_z": 1, "smoothness": 1.0, "holder_constant": 0.5**0.5, "delta": 0.1}
    bound = theory.neighbors_error_bound(horizon=T, noise_scale=noise, **known)
    missed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        phi_hat = NeighborsMap(2, 1, own_units=False)
        total, outside = 0.0, False
        X = SEQUENCES[seed % 2](rng, T, 2)
        for t, x in enumerate(X):
            truth = abs(x[0] - 0.5) / 2.0  # a difference is at most sqrt(2) times the root mean square
            if t > 0:
                near = phi_hat._near(x)[0]
                error = abs(float(phi_hat.predict(x)[0, 0]) - truth)
                change = 0.5**0.5 * float(np.sqrt(((near - x) ** 2).mean(axis=1).max()))
                k = math.ceil(round(t ** (2.0 * theory.holder_rate(1.0, 2)), 9))
                outside |= error > noise * math.sqrt(2.0 * math.log(2.0 * T / 0.1) / k) + change
                total += error
            phi_hat.update(x, 0, [truth + noise * rng.normal()])
        missed += outside or total > bound
    assert missed <= 2
    assert bound < T


def test_the_maps_own_radius_adds_up_as_the_regret_needs() -> None:
    """Random x of a Hölder world: sum of e_t grows like T^{1-alpha}, and is above the errors' sum."""
    env = HolderEnvironment(0.5, dim_x=1, seed=0)
    phi_hat, rounds = NeighborsMap(1, env.dim_z, smoothness=0.5), env.rounds(2000, np.random.default_rng(1))
    radii, errors = [], []
    for x, z in zip(rounds.x, rounds.z, strict=True):
        radii.append(float(phi_hat.radius(x)[0]))
        errors.append(float(np.linalg.norm(phi_hat.predict(x)[0] - env.phi(x))))
        phi_hat.update(x, 0, z)
    sums = np.cumsum(radii)
    assert math.log(sums[1999] / sums[249]) / math.log(8.0) < 0.85  # 3/4, with the logarithm
    assert np.mean(np.array(errors[20:]) <= radii[20:]) > 0.99


def test_refusals() -> None:
    for changed in ({"smoothness": 1.5}, {"neighbors": 0}, {"dim": 0}, {"horizon": 0}):
        known: Any = {"horizon": 10, "neighbors": 1, "dim": 1, "smoothness": 1.0, **changed}
        with pytest.raises(InvalidInput, match="wanted"):
            theory.neighbor_distance_bound(**known)
