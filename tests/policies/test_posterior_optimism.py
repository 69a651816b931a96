"""Posterior optimism: the width is the standard deviation of (x, phi(x))·w_a, phi and w_a being uncertain."""

import math
from typing import Any

import numpy as np
import pytest

from postserve import (
    HybridMap,
    InvalidInput,
    KnownMap,
    LinUCBPhiHat,
    PerArmMap,
    PoLinUCB,
    RidgeMap,
    RobustPoLinUCB,
    StagedMap,
)
from postserve.confidence import expected_maximum
from postserve.linalg.kernels.models import widths_of_moving
from postserve.protocols import ContextMap
from postserve.types import FloatArray

ARMS, DIM_X, DIM_Z, DRAWS = 3, 3, 2, 100_000
CASES: dict[str, dict[str, Any]] = {
    "level": {},
    "no level": {"intercept": False},
    "ridge 1": {"ridge": 1.0, "exploration": 0.7},
    "shared": {"model": "shared"},
    "hybrid": {"model": "hybrid"},
    "guessed": {"prior_weights": [2.0, -1.0]},
    "hybrid, guessed": {"model": "hybrid", "prior_weights": [2.0, -1.0]},
    "no level, guessed": {"intercept": False, "prior_weights": [2.0, -1.0], "exploration": 2.0},
}


MAPS: tuple[ContextMap, ...] = (
    PerArmMap(RidgeMap(DIM_X, DIM_Z)),
    RidgeMap(DIM_X, DIM_Z),
    StagedMap([HybridMap(DIM_X, 1), HybridMap(DIM_X + 1, 1)]),
)


def taught(policy: PoLinUCB, seed: int) -> tuple[PoLinUCB, np.random.Generator]:
    rng = np.random.default_rng(seed)
    B, beta = rng.normal(size=(ARMS, DIM_Z, DIM_X)), rng.normal(size=(ARMS, DIM_Z))
    for _ in range(rng.integers(4, 40)):
        x, arm = rng.normal(size=DIM_X), int(rng.integers(ARMS - (seed % 2)))  # the last arm may have no row
        z = B[arm] @ x + 1.0 + rng.normal(size=DIM_Z)
        policy.update(x, arm, z, reward=float(beta[arm] @ z + x[0] + 5.0 + 0.3 * rng.normal()))
    return policy, rng


@pytest.fixture(scope="module")
def normals() -> tuple[FloatArray, FloatArray]:
    """For w and for z; the same for every state, which saves time."""
    rng = np.random.default_rng(12)
    return rng.standard_normal((DRAWS, DIM_X + 2 * DIM_Z + 1)), rng.standard_normal((DRAWS, DIM_Z))


def drawn_deviation(
    policy: PoLinUCB, x: FloatArray, arm: int, blocks: int, normals: tuple[FloatArray, FloatArray]
) -> tuple[float, float]:
    """The standard deviation of (x, phi(x))·w_a in draws from both posteriors, and its standard error."""
    arms, models, (of_w, of_z) = policy._arms, policy._arms.models, normals
    z_hat, spread = policy._phi_hat.spread(x, np.array([arm]))
    z_hat, root_of_z = z_hat.reshape(-1), spread[0] if spread.ndim == 3 else np.diag(spread.reshape(-1))
    slots = arms.models_of(np.array([arm]))
    u = models.centred(arms.stack(x, *[z_hat] * blocks))[0]
    weights = models.weights_of(slots)[0, 0].copy()
    for k in range(blocks):
        weights[DIM_X + k * DIM_Z : DIM_X + (k + 1) * DIM_Z] += arms._beta_0 if k == 0 else 0.0
    root = np.linalg.cholesky(arms.noise() ** 2 * models.inverse_of(slots)[0] + 1e-18 * np.eye(len(u)))
    w, d = weights + of_w[:, : len(u)] @ root.T, of_z @ root_of_z.T
    value = w @ u
    for k in range(blocks):
        value += np.vecdot(d, w[:, DIM_X + k * DIM_Z : DIM_X + (k + 1) * DIM_Z])
    squares = (value - u @ weights) ** 2
    deviation = float(np.sqrt(squares.mean()))
    return deviation, float(squares.std() / np.sqrt(DRAWS) / (2.0 * deviation))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB, LinUCBPhiHat])
def test_the_width_is_the_posteriors_standard_deviation(
    kind: type[PoLinUCB], case: str, normals: tuple[FloatArray, FloatArray]
) -> None:
    blocks = 2 if kind is RobustPoLinUCB else 1
    for seed in range(9):
        phi_hat = MAPS[seed % len(MAPS)]
        options = {"exploration": 1.0, **CASES[case]}
        policy, rng = taught(kind(ARMS, phi_hat, optimism="posterior", **options), seed)
        x, arm, every = rng.normal(size=DIM_X), int(rng.integers(ARMS)), np.arange(ARMS)
        score = float(policy._scores(x, every)[arm])
        c = float(policy._arms.multiplier)
        z_hat = policy.context_map.predict(x, [arm])[0]
        mean = float(policy._arms.average(policy._u_hat(x, z_hat), np.array([arm]))[0])
        deviation, error = drawn_deviation(policy, x, arm, blocks, normals)
        assert abs((score - mean) / c - deviation) < 4.0 * error


def test_stages_that_vary_together_widen_their_sum() -> None:
    """The second stage is the first once more: together they vary by twice the deviation of one."""
    policy = PoLinUCB(
        2,
        StagedMap([HybridMap(1, 1), RidgeMap(2, 1)]),
        model="shared",
        optimism="posterior",
        prior_weights=[1.0, 1.0],
        exploration=1.0,
    )
    rng = np.random.default_rng(0)
    for i in range(400):
        first = rng.normal() + i % 2
        policy.update([1.0], i % 2, [first, first], reward=2.0 * first)
    policy.add_arm()
    z_hat, arms = policy.context_map.predict([1.0], [2]), np.array([2])
    mean = policy._arms.average(policy._u_hat(np.ones(1), z_hat), arms)
    assert isinstance(policy.context_map, StagedMap)
    first, second = policy.context_map.spread([1.0], [2])[0]
    assert second == pytest.approx(first, rel=1e-3)
    assert (policy._scores(np.ones(1), arms) - mean)[0] == pytest.approx(2.0 * first, rel=1e-3)


@pytest.mark.parametrize("own_phi", [True, False])
def test_automatic_exploration_grows_with_the_rounds_for_w_only(own_phi: bool) -> None:
    """For phi it is the expected maximum of as many normals as there are phi, but at least 1."""
    one = RidgeMap(DIM_X, DIM_Z)
    policy, rng = taught(PoLinUCB(20, PerArmMap(one) if own_phi else one, optimism="posterior"), 0)
    x, slots, arms = rng.normal(size=DIM_X), np.arange(20), policy._arms
    z_hat, spread = policy._phi_hat.spread(x, slots)
    U, starts = arms.models.centred(policy._u_hat(x, z_hat)), np.array([DIM_X])
    found = arms.models.project_moving(U, slots, starts, spread**2, np.zeros(DIM_Z))
    zeta, c = arms.radius(slots)[0], expected_maximum(20) if own_phi else 1.0
    wanted = found.means + np.sqrt(zeta**2 * found.squares + c**2 * found.moved)
    assert np.allclose(policy._scores(x, slots), wanted, rtol=1e-12)


def test_a_map_that_is_certain_leaves_plugin() -> None:
    """Choices and scores are those of plugin if phi is known."""
    rng = np.random.default_rng(0)
    phi = KnownMap(DIM_X, DIM_Z, lambda x: x[:2] ** 2)
    one, other = (PoLinUCB(ARMS, phi, optimism=kind) for kind in ("plugin", "posterior"))
    for _ in range(200):
        x = rng.normal(size=DIM_X)
        arm = one.select(x, np.random.default_rng(1)).arm
        assert other.select(x, np.random.default_rng(1)).arm == arm
        z = x[:2] ** 2 + rng.normal(size=2)
        for policy in (one, other):
            policy.update(x, arm, z, reward=float((arm - 1) * z[0] + x[0]))


def test_an_arm_whose_phi_is_unknown_is_tried() -> None:
    """With shared weights and plugin it has no width of its own."""
    rng = np.random.default_rng(1)
    policies = [
        PoLinUCB(2, PerArmMap(RidgeMap(1, 1)), model="shared", optimism=kind, exploration=1.0)
        for kind in ("plugin", "posterior")
    ]
    for policy in policies:
        for _ in range(60):
            policy.update([1.0], 0, [1.0 + rng.normal()], reward=float(1.0 + 0.1 * rng.normal()))
        policy.update([1.0], 1, [0.8], reward=0.8)
    slots = np.arange(2)
    plugin, posterior = (policy._scores(np.ones(1), slots) for policy in policies)
    assert np.diff(posterior)[0] > np.diff(plugin)[0]


def test_a_users_map_has_its_radius_in_all_directions() -> None:
    class Constant:
        dim_x, dim_z = 1, 2

        def predict(self, x: Any, arms: Any = (0,)) -> FloatArray:
            return np.ones((len(arms), 2))

        def radius(self, x: Any, arms: Any = (0,)) -> FloatArray:
            return np.full(len(arms), 3.0)

        def sample(self, x: Any, arms: Any, rng: Any, size: Any = None) -> FloatArray:
            return np.ones((len(arms), 2)) if size is None else np.ones((size, len(arms), 2))

        def update(self, x: Any, arm: int, z: Any) -> None: ...

    policy = PoLinUCB(2, Constant(), optimism="posterior", ridge=1.0, exploration=1.0)
    policy.update([1.0], 0, [1.0, 2.0], reward=2.0)
    (means, widths), u = policy._arms.models.project(np.array([[1.0, 1.0, 1.0]]), np.array([0])), [1, 2]
    w, inverse = policy.weights[0, u], policy._arms.models.inverse_of(np.array([0]))[0]
    variance = widths[0] ** 2 + 4.5 * (w @ w + inverse[1, 1] + inverse[2, 2])
    assert policy._scores(np.ones(1), np.arange(2))[0] == pytest.approx(means[0, 0] + np.sqrt(variance))


@pytest.mark.parametrize("announced", [False, True])
def test_a_hybrid_map_is_asked_for_both_at_once_with_the_same_bits(announced: bool) -> None:
    policy, rng = taught(PoLinUCB(ARMS, HybridMap(DIM_X, DIM_Z), optimism="posterior"), 0)
    x, slots = rng.normal(size=DIM_X), np.arange(ARMS)
    if announced:
        policy.expect(x, 1)
    for asked in (x, rng.normal(size=(ARMS, DIM_X))):
        z_hat, spread = policy._phi_hat.spread(asked, slots)
        phi_hat: Any = policy.context_map
        np.testing.assert_array_equal(z_hat, phi_hat.predict(asked, range(ARMS)))
        np.testing.assert_array_equal(spread, phi_hat.spread(asked, range(ARMS)))


@pytest.mark.parametrize("verb", ["predict", "spread"])
def test_a_subclass_of_hybrid_map_is_asked_as_it_answers(verb: str) -> None:
    def answer(self: HybridMap, x: Any, arms: Any = (0,)) -> FloatArray:
        return np.full((len(arms), DIM_Z), 7.0)

    own = type("Own", (HybridMap,), {verb: answer, "__module__": __name__})
    policy = PoLinUCB(ARMS, own(DIM_X, DIM_Z), optimism="posterior")
    found = policy._phi_hat.spread(np.ones(DIM_X), np.arange(ARMS))
    assert (found[verb == "spread"] == 7.0).all()


@pytest.mark.parametrize("radius", ["determinant", 2.0])
def test_other_radii_are_refused(radius: Any) -> None:
    with pytest.raises(InvalidInput, match=r"arm_radius is .*, wanted 'posterior' with optimism='posterior'"):
        PoLinUCB(2, RidgeMap(2, 1), optimism="posterior", arm_radius=radius)


def test_a_width_that_cannot_be_squared_is_a_width() -> None:
    squares, moved = np.array([4.0, 1e250, 1e300, 0.0]), np.array([9.0, 1e250, 0.0, 1e300])
    widths_of_moving(2.0, 1.0, squares[:1], moved[:1])
    widths_of_moving(1e40, 1e40, squares[1:], moved[1:])
    np.testing.assert_allclose(squares, [5.0, math.sqrt(2.0) * 1e165, 1e190, 1e190], rtol=1e-12)


def test_a_subclass_that_overrides_spread_alone_is_asked_for_it() -> None:
    class Certain(StagedMap):
        def spread(self, x: Any, arms: Any = (0,)) -> FloatArray:
            return 0.0 * super().spread(x, arms)

    stages = [HybridMap(DIM_X, 1), HybridMap(DIM_X + 1, 1)]
    x, slots = np.ones(DIM_X), np.arange(ARMS)
    policies = (
        PoLinUCB(ARMS, Certain(stages), optimism="posterior", exploration=1.0),
        PoLinUCB(ARMS, StagedMap(stages), optimism="plugin", exploration=1.0),
        PoLinUCB(ARMS, StagedMap(stages), optimism="posterior", exploration=1.0),
    )
    certain, plugin, posterior = (taught(policy, 0)[0]._scores(x, slots) for policy in policies)
    assert certain.max() == pytest.approx(plugin.max())  # others may be inexact
    assert (certain < posterior).all()
