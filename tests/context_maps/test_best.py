"""The best of several maps: which one answers, when that changes, and that nothing else decides it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDRegressor
from tests.own_map import OwnTotal
from tests.untyped import untyped

import postserve
from postserve import BestMap, InvalidInput, NeighborsMap, PerArmMap, PoLinUCB, RidgeMap, SklearnMap


def squares(x: Any) -> Any:
    return x**2


def both() -> BestMap:
    return BestMap([RidgeMap(2, 2), RidgeMap(2, 2, features=squares)])


def teach(phi_hat: Any, phi: Any, n: int = 60, *, seed: int = 0, noise: float = 0.1) -> None:
    """Pairs with z = phi(x) + noise, arms in turn."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        x = rng.standard_normal(2)
        phi_hat.update(x, i % 2, phi(x) + noise * rng.standard_normal(2))


def test_the_map_that_fits_answers() -> None:
    straight, curved = (lambda x: 2.0 * x), (lambda x: 2.0 * x**2)
    phi: Any
    for right, phi in enumerate((straight, curved)):
        phi_hat = both()
        teach(phi_hat, phi)
        assert phi_hat.best is phi_hat.maps[right]
        assert phi_hat.errors.argmin() == right
        x = np.array([0.5, -1.0])
        np.testing.assert_array_equal(phi_hat.predict(x), phi_hat.maps[right].predict(x))
        np.testing.assert_array_equal(phi_hat.radius(x), phi_hat.maps[right].radius(x))
        np.testing.assert_allclose(phi_hat.predict(x)[0], phi(x), atol=0.3)


def test_the_errors_are_those_of_predictions_made_before_z_was_learnt() -> None:
    phi_hat, alone = both(), [RidgeMap(2, 2), RidgeMap(2, 2, features=squares)]
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    squared = np.zeros((3, 2))
    for i, (x, z) in enumerate(zip(X, Z, strict=True)):
        rows = [each.predict(x)[0] for each in alone] + ([Z[:i].mean(axis=0)] if i else [z])
        within = np.clip(rows, Z[: i + 1].min(axis=0), Z[: i + 1].max(axis=0))
        squared += (within - z) ** 2 if i else 0.0
        for learner in (phi_hat, *alone):
            learner.update(x, 0, z)
    np.testing.assert_allclose(phi_hat.errors, (squared / Z.var(axis=0)).sum(axis=1) / (29 * 2), rtol=1e-9)
    best = int(phi_hat.errors.argmin())
    sums, pairs = phi_hat.squared_errors()
    np.testing.assert_allclose(sums, squared[best], rtol=1e-9)
    assert pairs == 29.0


def test_where_x_says_nothing_the_mean_answers() -> None:
    phi_hat = BestMap([RidgeMap(2, 2, ridge=1e-6, features=lambda x: np.concatenate([x, x**2, x**3]))])
    teach(phi_hat, lambda x: np.array([7.0, -3.0]), noise=1.0)
    assert phi_hat.best is not phi_hat.maps[0]
    np.testing.assert_allclose(phi_hat.predict([1.0, 1.0])[0], [7.0, -3.0], atol=0.5)
    assert 0.0 < phi_hat.radius([1.0, 1.0])[0] < 0.5  # the standard error of a mean over 60


def test_the_first_map_answers_until_pairs_decide() -> None:
    phi_hat = both()
    assert phi_hat.best is phi_hat.maps[0]
    phi_hat.update([1.0, 1.0], 0, [9.0, 9.0])  # before it, no map can know the level of z
    assert phi_hat.best is phi_hat.maps[0]
    assert phi_hat.squared_errors()[1] == 0.0


def test_forgetting_lets_it_change_its_mind() -> None:
    keeps, forgets = both(), both()
    for phi_hat in (keeps, forgets):
        teach(phi_hat, lambda x: 2.0 * x, 300)
    forgets.forget(0.01)
    for phi_hat in (keeps, forgets):
        teach(phi_hat, lambda x: 2.0 * x**2, 40, seed=1)
    assert keeps.best is keeps.maps[0]
    assert forgets.best is forgets.maps[1]


@pytest.mark.parametrize("change", [lambda z: 1024.0 * z, lambda z: z / 1024.0, lambda z: z + 64.0])
def test_the_units_and_the_level_of_z_choose_no_map(change: Any) -> None:
    """With maps that follow both exactly: means over some neighbours."""

    def answering(change: Any) -> list[int]:
        phi_hat = BestMap([NeighborsMap(2, 2, neighbors=k) for k in (1, 3, 10)])
        rng, chosen = np.random.default_rng(0), []
        for _ in range(80):
            x, noise = rng.standard_normal(2), 0.3 * rng.standard_normal(2)
            phi_hat.update(x, 0, change(np.array([x[0] + x[1] ** 2, x[0] ** 2 - x[1]]) + noise))
            chosen.append(phi_hat._best)
        return chosen

    plain = answering(lambda z: z)
    assert len(set(plain)) > 1
    assert answering(change) == plain


def test_each_follow_up_counts_in_its_own_units() -> None:
    """The loud z fits the first map, two quiet ones the second: the louder must not decide alone."""
    phi_hat = BestMap([RidgeMap(2, 3), RidgeMap(2, 3, features=squares)])
    rng = np.random.default_rng(0)
    for _ in range(100):
        x = rng.standard_normal(2)
        quiet = 1e-3 * x**2
        phi_hat.update(x, 0, [1e3 * x[0], quiet[0], quiet[1]])
    assert phi_hat.best is phi_hat.maps[1]


def test_it_chooses_between_one_map_and_one_per_arm() -> None:
    for right, follows in enumerate((False, True)):
        phi_hat = BestMap([RidgeMap(1, 1), PerArmMap(RidgeMap(1, 1))])
        rng = np.random.default_rng(0)
        for i in range(80):
            x = rng.standard_normal(1)
            sign = -1.0 if follows and i % 2 else 1.0
            phi_hat.update(x, i % 2, 2.0 * sign * x + 0.3 * rng.standard_normal(1))
        assert phi_hat.best is phi_hat.maps[right]
        one, other = phi_hat.predict([1.0], arms=[0, 1])
        assert (np.sign(one) != np.sign(other)) == follows
    phi_hat.remove_arm(1)
    mean = phi_hat.predict([1.0], arms=[1])
    np.testing.assert_array_equal(phi_hat.predict([9.0], arms=[1]), mean)  # of all z, wherever x is


def test_a_policy_asks_once_for_all_arms_only_if_no_member_differs_between_them() -> None:
    assert PoLinUCB(2, both())._phi_hat.is_one_for_all
    mixed = BestMap([RidgeMap(2, 2), PerArmMap(RidgeMap(2, 2))])
    assert not PoLinUCB(2, mixed)._phi_hat.is_one_for_all
    PoLinUCB(None, both(), model="shared")
    with pytest.raises(InvalidInput, match="candidates have no ids"):
        PoLinUCB(None, mixed, model="shared")


def test_members_are_copies_and_a_policy_teaches_its_own() -> None:
    given = RidgeMap(2, 2)
    phi_hat = BestMap([given])
    policy = PoLinUCB(2, phi_hat)
    policy.update([1.0, 2.0], 0, [3.0, 4.0], reward=1.0)
    assert not given.weights.any()
    assert not untyped(phi_hat.maps[0]).weights.any()
    assert untyped(policy.context_map).maps[0].weights.any()


def test_a_map_of_a_users_own_takes_part_and_is_handed_back(tmp_path: Path) -> None:
    phi_hat = BestMap([OwnTotal(), RidgeMap(2, 1)])
    phi_hat.update([1.0, 0.0], 0, [2.0])
    phi_hat.update([0.0, 1.0], 1, [1.0])
    PoLinUCB(2, phi_hat).save(tmp_path / "policy.npz")
    own = phi_hat.maps[0]
    policy = postserve.load(tmp_path / "policy.npz", objects={"context_map.maps.0": own})
    np.testing.assert_array_equal(policy.context_map.errors, phi_hat.errors)
    with pytest.raises(postserve.StateMismatch, match=r"needs the object context_map\.maps\.0"):
        postserve.load(tmp_path / "policy.npz")
    with pytest.raises(postserve.StateMismatch, match=r"maps\.0 handed back answers differently"):
        postserve.load(tmp_path / "policy.npz", objects={"context_map.maps.0": OwnTotal()})


def test_one_best_map_per_arm_is_saved_and_learns_on(tmp_path: Path) -> None:
    phi_hat = PerArmMap(both())
    teach(phi_hat, lambda x: 2.0 * x**2, 30)
    phi_hat.save(tmp_path / "map.npz")
    twin = postserve.load(tmp_path / "map.npz", objects={"template.maps.1.features": squares}, kind=PerArmMap)
    for each in (phi_hat, twin):
        teach(each, lambda x: 2.0 * x**2, 10, seed=1)
    x = [0.5, 0.7]
    np.testing.assert_array_equal(phi_hat.predict(x, [0, 1, 2]), twin.predict(x, [0, 1, 2]))
    np.testing.assert_allclose(twin.predict(x, [0, 1]), [[0.5, 0.98]] * 2, atol=0.2)


def test_a_regressor_that_learns_in_place_cannot_be_saved_for_each_arm(tmp_path: Path) -> None:
    phi_hat = PerArmMap(BestMap([SklearnMap(2, 1, SGDRegressor())]))
    phi_hat.update([1.0, 2.0], 0, [1.0])
    with pytest.raises(InvalidInput, match="cannot be saved for each arm"):
        phi_hat.save(tmp_path / "map.npz")


class Breaks(OwnTotal):
    """Predicts until it has learnt twice, and then something else."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer, self.learnt = answer, 0

    def predict(self, x: Any, arms: Any = (0,)) -> Any:
        if self.learnt < 2:
            return super().predict(x, arms)
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.full((len(arms), 1), self.answer)

    def update(self, x: Any, arm: int, z: Any) -> None:
        self.learnt += 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.nan, r"maps\[1\]\.predict\(x\) has nan at \[0, 0\], wanted finite numbers"),
        (KeyError("x"), r"maps\[1\]\.predict\(x\) fails \(KeyError: 'x'\), wanted a map that predicts z"),
    ],
)
def test_a_member_that_breaks_is_named_and_no_other_learns(answer: Any, message: str) -> None:
    phi_hat = BestMap([RidgeMap(2, 1), Breaks(answer)])
    for z in (1.0, 2.0):
        phi_hat.update([z, 0.0], 0, [z])
    before = untyped(phi_hat.maps[0]).weights.copy(), phi_hat.errors
    with pytest.raises(InvalidInput, match=message):
        phi_hat.update([3.0, 0.0], 0, [3.0])
    np.testing.assert_array_equal(untyped(phi_hat.maps[0]).weights, before[0])
    np.testing.assert_array_equal(phi_hat.errors, before[1])


def test_a_map_that_cannot_forget_is_named_before_any_forgets() -> None:
    taught = RidgeMap(2, 1)
    taught.update([1.0, 2.0], 0, [3.0])
    for other, message in ((OwnTotal(), r"maps\[1\].* cannot forget"), (sgd(), "cannot forget")):
        phi_hat = BestMap([taught, other])
        with pytest.raises(InvalidInput, match=message):
            phi_hat.forget(0.5)
        np.testing.assert_array_equal(untyped(phi_hat.maps[0])._models.pulls, [1.0])


def sgd() -> SklearnMap:
    phi_hat = SklearnMap(2, 1, SGDRegressor())
    phi_hat.update([1.0, 2.0], 0, [3.0])
    return phi_hat


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([], "maps is .*, wanted a list of at least one context map"),
        (RidgeMap(2, 1), "maps is .*, wanted a list"),
        ([RidgeMap], r"maps\[0\] is a ABCMeta, wanted a context map"),
        ([RidgeMap(2, 1), RidgeMap(2, 2)], r"maps\[1\] has \(dim_x, dim_z\) = \(2, 2\), wanted \(2, 1\)"),
    ],
)
def test_what_is_no_list_of_maps_is_refused(maps: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        BestMap(maps)
