"""The worlds: what one may bring along, what they refuse, and what is exactly Hölder about phi."""

import pickle
from typing import Any

import numpy as np
import pytest
from tests.untyped import untyped

from postserve import (
    ActionDependentEnvironment,
    CatalogueEnvironment,
    DecisionSetEnvironment,
    HolderEnvironment,
    InvalidInput,
    LinUCB,
    NonlinearEnvironment,
    Observation1,
    PoLinUCB,
    RidgeMap,
    RotatingEnvironment,
    simulate,
)
from postserve import SyntheticEnvironment as Synthetic


def laplace(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.laplace(size=shape)


def products(X: Any) -> Any:
    return X[:, :1] * X[:, 1:]


def test_levels_beyond_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="levels is 1100, wanted at most 1000"):
        HolderEnvironment(0.5, levels=1100)


def test_a_phi_of_ones_own_is_taken_as_it_is() -> None:
    env = Synthetic(products, dim_x=3, dim_z=2, n_arms=2, z_noise=0.0, seed=1)
    assert np.array_equal(env.phi([2.0, 3.0, 4.0]), [6.0, 8.0])
    assert env.features is None
    assert np.array_equal(env.theta, Synthetic("linear", dim_x=3, dim_z=2, n_arms=2, seed=1).theta)
    rounds = env.rounds(5, np.random.default_rng(0))
    assert np.array_equal(rounds.z, products(rounds.x))
    doubled = Synthetic(products, dim_x=3, dim_z=2, scale=2.0, features=np.square)
    assert np.array_equal(doubled.phi([2.0, 3.0, 4.0]), [12.0, 16.0])
    assert doubled.features is np.square
    assert Synthetic("linear", features=np.square).features is np.square


def test_a_phi_that_works_in_place_spoils_nothing() -> None:
    def in_place(X: Any) -> Any:
        X *= 2.0
        return X

    env = Synthetic(in_place, dim_x=2, dim_z=2)
    x = np.array([1.0, 2.0])
    assert np.array_equal(env.phi(x), [2.0, 4.0])
    assert np.array_equal(x, [1.0, 2.0])
    rounds = env.rounds(3, np.random.default_rng(0))
    assert np.allclose(rounds.means, rounds.x @ env.theta.T + 2.0 * rounds.x @ env.beta.T)


def test_noise_of_ones_own_is_drawn_from_the_rounds_generator() -> None:
    env = Synthetic("linear", dim_x=3, dim_z=2, z_noise=laplace, reward_noise=laplace)
    rounds = env.rounds(4, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    assert np.array_equal(rounds.x, rng.uniform(-10.0, 10.0, size=(4, 3)))
    assert np.array_equal(rounds.z, env._phi(rounds.x) + rng.laplace(size=(4, 2)))
    eta = rng.laplace(size=(4, 1))
    assert np.array_equal(rounds.rewards, rounds.x @ env.theta.T + rounds.z @ env.beta.T + eta)


@pytest.mark.parametrize("make", [Synthetic, HolderEnvironment])
def test_rewards_from_phi_differ_in_the_noise_of_z_alone(make: Any) -> None:
    first = "periodic" if make is Synthetic else 0.5
    from_z, from_phi = (
        make(first, dim_x=4, dim_z=2, n_arms=3, reward_from=source).rounds(20, np.random.default_rng(0))
        for source in ("z", "phi")
    )
    for name in ("x", "z", "means"):
        assert np.array_equal(getattr(from_z, name), getattr(from_phi, name))
    eta = from_phi.rewards - from_phi.means
    assert np.allclose(eta, eta[:, :1])
    assert not np.allclose(from_z.rewards, from_phi.rewards)


@pytest.mark.parametrize(
    "env",
    [
        Synthetic("polynomial", dim_x=2, dim_z=1),
        Synthetic(products, dim_x=2, dim_z=1, z_noise=laplace),
        Observation1(),
        HolderEnvironment(0.5),
        ActionDependentEnvironment("periodic"),
        ActionDependentEnvironment(products, dim_x=3, dim_z=2, maps="shared"),
        DecisionSetEnvironment(products, dim_x=3, dim_z=2),
        CatalogueEnvironment("linear", z_noise=laplace),
        RotatingEnvironment(z_noise=laplace),
        NonlinearEnvironment(),
    ],
)
def test_environments_travel_between_processes(env: Any) -> None:
    twin = pickle.loads(pickle.dumps(env))
    one, other = (each.rounds(5, np.random.default_rng(0)) for each in (env, twin))
    assert all(map(np.array_equal, one, other))


def test_observation_1_is_linear_regret_for_whatever_is_linear_in_x() -> None:
    env = Observation1()
    rounds = env.rounds(600, np.random.default_rng(0))
    assert set(rounds.x.ravel()) == {-3.0, -1.0, 1.0}
    assert np.array_equal(rounds.rewards[:, :1], rounds.x + rounds.x**2 / 2.0)
    assert np.array_equal(rounds.rewards[:, 1], -rounds.rewards[:, 0])
    blind = simulate(LinUCB(2, 1), env, 600, seed=0).regret
    phi_hat = RidgeMap(1, 1, features=env.features)
    sees = simulate(PoLinUCB(2, phi_hat), env, 600, seed=0).regret
    assert blind[-1] - blind[300] > 0.8 * (blind[300] - blind[0]) > 50.0
    assert sees[-1] == sees[100]  # without noise, all is known then


def exponent(env: HolderEnvironment, differences: int) -> float:
    """The slope of log mean |differences of phi over steps h| against log h, h from 2^-8 to 2^-24.

    The limits are dyadic like the waves, so that what phi repeats from octave to octave cancels.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.9, 0.9, size=(500, env.dim_x))
    along = rng.standard_normal(env.dim_x)
    along /= np.linalg.norm(along)
    steps = 2.0 ** -np.arange(8, 25)
    rises = []
    for h in steps:
        rows = [env._phi(x + i * h * along) for i in range(differences + 1)]
        rises.append(np.abs(np.diff(rows, n=differences, axis=0)).mean())
    return float(np.polyfit(np.log(steps), np.log(rises), 1)[0])


@pytest.mark.parametrize("smoothness", [0.25, 0.5, 0.9])
@pytest.mark.parametrize("dim_x", [1, 3])
def test_increments_have_the_exponent_of_the_class(smoothness: float, dim_x: int) -> None:
    env = HolderEnvironment(smoothness, dim_x=dim_x, dim_z=8)
    assert exponent(env, 1) == pytest.approx(smoothness, abs=0.04)


@pytest.mark.parametrize("smoothness", [0.5, 1.0, 1.5])
def test_second_differences_have_it_up_to_two(smoothness: float) -> None:
    assert exponent(HolderEnvironment(smoothness, dim_z=8), 2) == pytest.approx(smoothness, abs=0.04)


def test_beyond_one_first_increments_are_those_of_a_slope() -> None:
    assert exponent(HolderEnvironment(1.5, dim_z=8), 1) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("smoothness", [0.25, 1.0, 3.0])
def test_holder_phi_has_the_deviation_that_scale_says(smoothness: float) -> None:
    env = HolderEnvironment(smoothness, dim_x=2, dim_z=20, scale=3.0, z_noise=0.0)
    deviation = env.rounds(4000, np.random.default_rng(0)).z.std(axis=0)
    assert np.sqrt((deviation**2).mean()) == pytest.approx(3.0, rel=0.15)


def test_levels_that_doubles_cannot_see_change_nothing() -> None:
    assert HolderEnvironment(0.25).levels == 53
    assert HolderEnvironment(4.0).levels == 14
    assert HolderEnvironment(4.0, levels=2).levels == 2


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: Synthetic(untyped("cubic")), "phi is 'cubic'"),
        (lambda: Synthetic(untyped(3)), "phi is 3"),
        (lambda: Synthetic(lambda X: X[:, 0], dim_x=2, dim_z=1), r"phi\(X\) has shape \(3,\)"),
        (lambda: Synthetic(lambda X: X[:1], dim_x=2, dim_z=2), r"phi\(X\) has shape \(1, 2\)"),
        (lambda: Synthetic(lambda X: X * np.nan, dim_x=2, dim_z=2), "finite"),
        (lambda: Synthetic(lambda X: X @ np.ones(7), dim_x=2, dim_z=2), "phi fails on a batch"),
        (lambda: Synthetic(lambda X: X, dim_x=2, dim_z=2, scale=-1.0), "scale"),
        (lambda: Synthetic("linear", features=untyped(3)), "features"),
        (lambda: Synthetic("linear", z_noise=-1.0), "z_noise"),
        (lambda: Synthetic("linear", z_noise=untyped("loud")), "z_noise"),
        (lambda: Synthetic("linear", z_noise=untyped(lambda rng: 1.0)), "z_noise fails"),
        (lambda: Synthetic("linear", z_noise=lambda rng, shape: 0.0), "z_noise"),
        (lambda: Synthetic("linear", reward_noise=lambda rng, shape: np.zeros(3)), "reward_noise"),
        (lambda: Synthetic("linear", reward_noise=lambda rng, shape: np.full(shape, np.inf)), "finite"),
        (lambda: Synthetic("linear", reward_from=untyped("x")), "reward_from"),
        (lambda: Observation1(z_noise=untyped(laplace)), "z_noise"),
        (lambda: Observation1(reward_noise=-1.0), "reward_noise"),
        (lambda: HolderEnvironment(0.0), "smoothness"),
        (lambda: HolderEnvironment(np.inf), "smoothness"),
        (lambda: HolderEnvironment(untyped("rough")), "smoothness"),
        (lambda: HolderEnvironment(0.5, levels=0), "levels"),
        (lambda: HolderEnvironment(0.5, dim_x=0), "dim_x"),
        (lambda: HolderEnvironment(0.5).phi([1.0, 2.0]), "x has shape"),
        (lambda: ActionDependentEnvironment("linear", maps=untyped("both")), "maps is 'both'"),
        (lambda: ActionDependentEnvironment(products, dim_x=3, dim_z=2), "wanted a name"),
        (lambda: ActionDependentEnvironment(untyped("cubic")), "phi is 'cubic'"),
        (lambda: ActionDependentEnvironment("linear", scale=-1.0), "scale"),
        (lambda: ActionDependentEnvironment("linear", n_arms=3).phi(np.ones(20)), r"x has shape \(20,\)"),
        (lambda: ActionDependentEnvironment("linear", n_arms=3).means(np.ones((2, 20))), "x has shape"),
        (lambda: DecisionSetEnvironment("linear", n_candidates=0), "n_candidates is 0"),
        (lambda: DecisionSetEnvironment("linear").means(np.ones((2, 3))), "x has shape"),
        (lambda: CatalogueEnvironment("linear", n_arms=3, n_eligible=4), "n_eligible is 4, wanted at most 3"),
        (lambda: CatalogueEnvironment("linear", own=-0.1), "own"),
        (lambda: CatalogueEnvironment("linear").means(np.ones((3, 20))), "x has shape"),
        (lambda: CatalogueEnvironment("linear").means(np.ones((2, 20)), arms=[3, 3]), "arms has 3 more"),
        (lambda: CatalogueEnvironment("linear").means(np.ones((2, 20)), arms=[1, 100]), "arms is"),
        (lambda: RotatingEnvironment(lifetime=15), "lifetime is 15, wanted a multiple of n_alive, 10"),
        (lambda: RotatingEnvironment(horizon=0), "horizon is 0"),
        (lambda: RotatingEnvironment(own_weights=-1.0), "own_weights is -1"),
        (
            lambda: RotatingEnvironment(horizon=9).rounds(10, np.random.default_rng(0)),
            "n is 10, wanted at most 9",
        ),
        (lambda: RotatingEnvironment().phi(np.ones(4)), "x has shape"),
        (lambda: RotatingEnvironment().means(np.ones(5), arms=[0, 59]), "arms is"),
        (lambda: NonlinearEnvironment(untyped(products)), "phi is"),
        (lambda: NonlinearEnvironment(scale=0.0), "scale"),
        (lambda: NonlinearEnvironment(z_noise=untyped(laplace)), "z_noise"),
        (lambda: NonlinearEnvironment().expected_z_features([1.0]), "x has shape"),
    ],
)
def test_bad_worlds_say_what_was_wanted(make: Any, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=wanted) as caught:
        make()
    assert "wanted" in str(caught.value)


def test_functions_that_fail_in_mid_run_are_named() -> None:
    def fragile(X: Any) -> Any:
        return X if len(X) < 10 else X[:5]

    with pytest.raises(InvalidInput, match=r"phi\(X\) has shape \(5, 2\), wanted \(20, 2\)"):
        Synthetic(fragile, dim_x=2, dim_z=2).rounds(20, np.random.default_rng(0))
    brief = Synthetic("linear", dim_x=2, dim_z=2, z_noise=lambda rng, shape: rng.normal(size=(3, 2)))
    with pytest.raises(InvalidInput, match=r"z_noise\(rng, \(20, 2\)\) has shape \(3, 2\)"):
        brief.rounds(20, np.random.default_rng(0))


# Worlds with a context of its own for each row of a round.


def test_arms_have_maps_of_their_own_or_share_one() -> None:
    same = np.tile(np.linspace(-3.0, 3.0, 4), (3, 1))
    apart = ActionDependentEnvironment("polynomial", dim_x=4, dim_z=2, n_arms=3).phi(same)
    assert not np.allclose(apart[0], apart[1])
    shared = ActionDependentEnvironment("polynomial", dim_x=4, dim_z=2, n_arms=3, maps="shared").phi(same)
    assert np.allclose(shared, shared[0])


def test_rows_of_a_round_are_drawn_apart() -> None:
    for env in (ActionDependentEnvironment("linear"), DecisionSetEnvironment("linear", n_candidates=10)):
        rounds = env.rounds(400, np.random.default_rng(0))
        noise = rounds.z - np.array([env.phi(x) for x in rounds.x])
        for rows in (rounds.x[..., 0], noise[..., 0]):
            between = np.corrcoef(rows.T) - np.eye(10)
            assert np.abs(between).max() < 0.25
        eta = rounds.rewards - rounds.means - (noise * env.beta).sum(axis=-1)
        assert np.allclose(eta, eta[:, :1])


def test_a_decision_set_has_one_truth_for_all_its_rows() -> None:
    env = DecisionSetEnvironment("linear", dim_x=4, dim_z=2, n_candidates=6)
    assert env.n_arms == 6
    rows = np.random.default_rng(0).normal(size=(6, 4))
    assert np.allclose(env.means(rows)[::-1], env.means(rows[::-1]))
    assert np.allclose(env.means(rows), rows @ env.theta[0] + env.phi(rows) @ env.beta[0])


def test_large_rounds_are_drawn_in_small_blocks() -> None:
    assert DecisionSetEnvironment("linear", dim_x=4, dim_z=2, n_candidates=10).rounds_at_once == 1000
    large = DecisionSetEnvironment("linear", dim_x=60, dim_z=4, n_candidates=100_000)
    assert large.rounds_at_once == 1
    assert DecisionSetEnvironment("linear", dim_x=60, dim_z=4, n_candidates=1000).rounds_at_once == 32


def test_a_catalogues_arms_are_as_far_apart_as_told() -> None:
    for own in (0.0, 0.3):
        env = CatalogueEnvironment("linear", n_arms=40, n_eligible=3, own=own)
        for weights in (env.theta, env.beta):
            away = np.linalg.norm(weights - weights.mean(axis=0), axis=1)
            assert away == pytest.approx(own, rel=0.25, abs=1e-12)


def test_a_catalogues_arms_are_eligible_equally_often() -> None:
    env = CatalogueEnvironment("linear", dim_x=2, dim_z=1, n_arms=20, n_eligible=5)
    arms = env.rounds(4000, np.random.default_rng(0)).arms
    assert arms is not None
    assert (np.diff(arms, axis=1) > 0).all()
    assert np.bincount(arms.ravel(), minlength=20) == pytest.approx(1000, abs=150)


def test_the_expected_features_of_z_are_exact() -> None:
    env = NonlinearEnvironment("polynomial", z_noise=6.0)
    x = np.linspace(-8.0, 5.0, env.dim_x)
    z = env.phi(x) + 6.0 * np.random.default_rng(0).standard_normal((200_000, env.dim_z))
    features = np.array(env.z_features(z))
    error = features.std(axis=0) / np.sqrt(len(z))
    assert np.abs((features.mean(axis=0) - env.expected_z_features(x)) / error).max() < 4.0


@pytest.mark.parametrize("phi", ["linear", "polynomial", "periodic"])
def test_the_expected_features_of_z_are_linear_in_the_features_of_x(phi: Any) -> None:
    env: Any = NonlinearEnvironment(phi)
    x = env.rounds(200, np.random.default_rng(0)).x
    F = np.array([env.features(row) for row in x])
    E = np.array([env.expected_z_features(row) for row in x])
    assert np.allclose(F @ np.linalg.lstsq(F, E, rcond=None)[0], E)


@pytest.mark.parametrize("phi", ["linear", "polynomial", "periodic"])
def test_a_policy_on_features_of_x_has_a_map_that_can_learn_those_of_z(phi: Any) -> None:
    env = NonlinearEnvironment(phi, dim_x=2, dim_z=2, z_noise=0.0)
    phi_hat = RidgeMap(4, 4, features=env.map_features)
    policy = PoLinUCB(env.n_arms, phi_hat, x_features=env.x_features, z_features=env.z_features)
    rounds = env.rounds(300, np.random.default_rng(0))
    for x, z in zip(rounds.x[:200], rounds.z[:200], strict=True):
        policy.observe(x, 0, z)
    told = [policy.context_map.predict(env.x_features(x))[0] for x in rounds.x[200:]]
    wanted = [env.expected_z_features(x) for x in rounds.x[200:]]
    assert np.abs(np.array(told) - wanted).max() < 1e-3


def test_a_map_that_is_shown_features_finds_x_in_them() -> None:
    env: Any = NonlinearEnvironment("periodic")
    x = np.linspace(-7.0, 9.0, env.dim_x)
    np.testing.assert_allclose(env.map_features(env.x_features(x)), env.features(x))


def test_features_have_about_unit_scale() -> None:
    env = NonlinearEnvironment(dim_z=40)
    rounds = env.rounds(5000, np.random.default_rng(0))
    assert env.x_features(rounds.x).std(axis=0) == pytest.approx(1.0, abs=0.05)
    z = env.z_features(rounds.z)
    assert np.sqrt((z**2).mean(axis=0).reshape(2, -1).mean(axis=1)) == pytest.approx(1.0, rel=0.35)


def test_arms_come_and_go_and_share_their_weights() -> None:
    env = RotatingEnvironment(n_alive=4, lifetime=80, horizon=100, own_weights=0.0, seed=3)
    assert env.n_arms == 8
    rounds = env.rounds(100, np.random.default_rng(0))
    assert rounds.arms is not None
    for t, arms in enumerate(rounds.arms):
        assert arms.tolist() == [t // 20 + i for i in range(4)]
    assert (env.theta == env.common_theta).all()
    assert (env.beta == env.common_beta).all()
    short = env.rounds(7, np.random.default_rng(0))
    np.testing.assert_array_equal(short.arms, rounds.arms[:7])
    own = RotatingEnvironment(own_weights=0.5)
    np.testing.assert_allclose(np.linalg.norm(own.beta - own.common_beta, axis=1), 0.5)


def test_what_arms_have_in_common_and_of_their_own() -> None:
    """Over many worlds, phi's parts have the deviations that the docstring names."""
    at_zero, slopes = [], []
    for seed in range(300):
        env = RotatingEnvironment(dim_x=3, dim_z=2, horizon=200, lifetime=100, seed=seed)
        offset = env.phi(np.zeros(3))
        at_zero.append(offset)
        slopes.append(env.phi([1.0, 0.0, 0.0]) - offset)
    for found, common, own in ((at_zero, 0.5, 0.5), (slopes, 3**-0.5, 0.5 * 3**-0.5)):
        between = np.mean([part.var(axis=0, ddof=1) for part in found])
        assert between == pytest.approx(own**2, rel=0.1)
        assert np.mean(np.square(found)) == pytest.approx(common**2 + own**2, rel=0.15)
