"""`HybridMap` against the joint Gaussian of (Phi_0, Delta_1, …, Delta_K), solved outright."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stored import arrays_in, write_arrays
from tests.untyped import untyped

from postserve import HybridMap, InvalidInput, PerArmMap, PoLinUCB, RidgeMap, StateMismatch, load
from postserve.types import FloatArray

DIM_X, DIM_Z = 3, 2
ASKED = (9, 2, 5, 77, 0, 78)
"""Seen and unseen arms, in no order."""
SETTINGS: dict[str, dict[str, Any]] = {
    "level": {},
    "intercept": {"intercept": True},
    "no intercept": {"intercept": False},
    "number": {"ridge": 0.7},
    "pair": {"ridge": (0.5, 3.0), "intercept": True},
    "features": {"features": lambda x: np.concatenate([x, x**2])},
}
Pair = tuple[FloatArray, int, FloatArray, float]
"""x, arm, z, and how much of it is not forgotten."""


def some_pairs(n: int, seed: int = 0, arms: tuple[int, ...] = (5, 0, 9, 2)) -> list[Pair]:
    """Arms differ in slope and level."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(DIM_X, DIM_Z)), {arm: rng.normal(size=(DIM_X, DIM_Z)) for arm in arms}
    found = []
    for _ in range(n):
        x, arm = rng.normal(size=DIM_X) + 1.0, int(rng.choice(arms))
        z = x @ (common + 0.5 * own[arm]) + 4.0 + own[arm][0] + 0.5 * rng.normal(size=DIM_Z)
        found.append((x, arm, z, 1.0))
    return found


def teach(phi_hat: Any, pairs: list[Pair]) -> Any:
    for x, arm, z, _ in pairs:
        phi_hat.update(x, arm, z)
    return phi_hat


class Dense:
    """The posterior of all weights, under the prior and in the frame that the map has at this time."""

    def __init__(self, phi_hat: HybridMap, pairs: list[Pair]) -> None:
        models = phi_hat._learnt.models
        self.phi_hat, self.frame = phi_hat, models.frame
        self.own, self.shared = np.split(models.prior.ridge, 2)
        self.arms = sorted({arm for _, arm, _, _ in pairs})
        noise = models.prior.noise_variance
        self.noise = noise if models.prior.evidence else np.ones(DIM_Z)
        precision = np.diag(np.concatenate([self.shared, *([self.own] * len(self.arms))]))
        moment = np.zeros((len(precision), DIM_Z))
        for x, arm, z, kept in pairs:
            row = self.row(x, arm)
            precision += kept * np.outer(row, row)
            moment += kept * np.outer(row, z - self.centre)
        self.covariance = np.linalg.inv(precision)
        self.weights = self.covariance @ moment

    @property
    def centre(self) -> Any:
        return 0.0 if self.frame is None else self.frame.y_centre

    def row(self, x: FloatArray, arm: int) -> FloatArray:
        f = self.phi_hat._f(x[None])[0]
        f = f if self.frame is None else np.append(f - self.frame.u.sum(axis=0)[:-1], 1.0)
        return np.concatenate([f, *(f if arm == one else np.zeros(len(f)) for one in self.arms)])

    def require(self, phi_hat: HybridMap, gone: tuple[int, ...] = ()) -> None:
        """Means, deviations and joint covariances at some x, of arms that are gone as of unseen ones."""
        for x in np.random.default_rng(9).normal(size=(3, DIM_X)) + 1.0:
            known = [arm if arm not in gone else -1 for arm in ASKED]
            rows = np.array([self.row(x, arm) for arm in known])
            f = rows[0, : len(self.own)]
            unseen = [arm not in self.arms for arm in known]
            apart = np.diag(np.where(unseen, f @ (f / self.own), 0.0))  # an unseen arm's own Delta
            joint = rows @ self.covariance @ rows.T + apart
            means = rows @ self.weights + self.centre
            assert np.allclose(phi_hat.predict(x, ASKED), means, rtol=0.0, atol=1e-8)
            spread = np.sqrt(np.outer(np.diag(joint), self.noise))
            assert np.allclose(phi_hat.spread(x, ASKED), spread, rtol=1e-8, atol=1e-8)
            radius = np.linalg.norm(spread, axis=1)
            assert np.allclose(phi_hat.radius(x, ASKED), radius, rtol=1e-8, atol=1e-8)
            for output, drawn in enumerate(np.moveaxis(deviations(phi_hat, x), 2, 0)):
                assert np.allclose(drawn.T @ drawn, self.noise[output] * joint, rtol=1e-8, atol=1e-8)


class OneAtATime(np.random.Generator):
    """Draws in which one normal number after the other is 1 and the others are 0."""

    def __init__(self, size: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.size, self.used = size, 0

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        draws, width = size
        numbers = np.repeat(np.eye(self.size), draws // self.size, axis=0)
        self.used += width
        return numbers[:, self.used - width : self.used]


def deviations(phi_hat: HybridMap, x: FloatArray) -> FloatArray:
    """What each of the normal numbers adds to a draw: (numbers, arms, dim_z)."""
    size = len(ASKED) + phi_hat._learnt.models.dim
    drawn = phi_hat.sample(x, ASKED, OneAtATime(size), size)
    return np.asarray(drawn - phi_hat.predict(x, ASKED))


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_the_joint_regression(name: str, n: int) -> None:
    pairs = some_pairs(n)
    phi_hat = teach(HybridMap(DIM_X, DIM_Z, **SETTINGS[name]), pairs)
    if n > 2 or not phi_hat._learnt.models.prior.evidence:  # before, columns without a unit have no width
        Dense(phi_hat, pairs).require(phi_hat)
    phi_hat.refit_prior()
    if n > 2:
        Dense(phi_hat, pairs).require(phi_hat)


@pytest.mark.parametrize("name", SETTINGS)
def test_it_stays_so_through_every_verb(name: str, tmp_path: Path) -> None:
    settings, pairs = SETTINGS[name], some_pairs(80)
    phi_hat = teach(HybridMap(DIM_X, DIM_Z, **settings), pairs[:30])
    other = teach(HybridMap(DIM_X, DIM_Z, **settings), [*pairs[30:50], *some_pairs(5, arms=(77,))])
    before = copy.deepcopy(other)
    phi_hat.merge(other)
    assert np.array_equal(other.predict(np.ones(DIM_X), ASKED), before.predict(np.ones(DIM_X), ASKED))
    pairs[50:50] = some_pairs(5, arms=(77,))
    Dense(phi_hat, pairs[:55]).require(phi_hat)

    phi_hat.forget(0.5)
    pairs[:55] = [(x, arm, z, 0.5) for x, arm, z, _ in pairs[:55]]
    Dense(phi_hat, pairs[:55]).require(phi_hat)
    teach(phi_hat, pairs[55:70])
    Dense(phi_hat, pairs[:70]).require(phi_hat)

    phi_hat.remove_arm(5)
    phi_hat.remove_arm(1234)  # which it has never seen
    Dense(phi_hat, pairs[:70]).require(phi_hat, gone=(5,))

    phi_hat.save(tmp_path / "map.npz")
    objects = {"features": phi_hat.features} if phi_hat.features else {}
    loaded = load(tmp_path / "map.npz", objects, kind=HybridMap)
    rest = [pair for pair in pairs[70:] if pair[1] != 5]
    twins = [teach(one, rest) for one in (phi_hat, loaded, copy.deepcopy(loaded))]
    x = np.ones(DIM_X)
    for twin in twins[1:]:
        assert np.array_equal(twin.predict(x, ASKED), twins[0].predict(x, ASKED))
        assert np.array_equal(twin.radius(x, ASKED), twins[0].radius(x, ASKED))
    if not phi_hat._learnt.models.prior.evidence:  # else what the arm taught was weighed by an earlier prior
        Dense(phi_hat, [*pairs[:70], *rest]).require(phi_hat, gone=(5,))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_order_of_pairs_does_not_matter(name: str) -> None:
    pairs = some_pairs(40)
    maps = []
    for order in (np.arange(40), np.random.default_rng(1).permutation(40)):
        phi_hat = teach(HybridMap(DIM_X, DIM_Z, **SETTINGS[name]), [pairs[i] for i in order])
        phi_hat.refit_prior()
        Dense(phi_hat, pairs).require(phi_hat)
        maps.append(phi_hat)
    x = np.ones(DIM_X)
    assert np.allclose(maps[0].predict(x, ASKED), maps[1].predict(x, ASKED), rtol=1e-6)


def test_rows_go_with_their_arms() -> None:
    phi_hat, X = teach(HybridMap(DIM_X, DIM_Z), some_pairs(40)), np.random.default_rng(0).normal(size=(6, 3))
    for ask in (phi_hat.predict, phi_hat.radius, phi_hat.spread):
        alone = [ask(x, (arm,))[0] for x, arm in zip(X, ASKED, strict=True)]
        assert np.allclose(ask(X, ASKED), alone, rtol=1e-12)
        assert len(ask(X[0], ())) == 0
    assert phi_hat.sample(X, ASKED, np.random.default_rng(0), 0).shape == (0, 6, DIM_Z)


def test_many_draws_have_the_joint_covariance() -> None:
    phi_hat, x = teach(HybridMap(DIM_X, DIM_Z), some_pairs(40)), np.ones(DIM_X)
    drawn = phi_hat.sample(x, ASKED, np.random.default_rng(0), 20_000)
    exact = deviations(phi_hat, x)
    for output in range(DIM_Z):
        wanted = exact[:, :, output].T @ exact[:, :, output]
        scale = np.sqrt(np.diag(wanted))
        off = (np.cov(drawn[:, :, output].T) - wanted) / np.outer(scale, scale)
        assert np.abs(off).max() <= 5.0 * np.sqrt(2.0 / 20_000)


def test_an_arm_that_comes_again_is_a_new_one() -> None:
    pairs, x = some_pairs(40), np.ones(DIM_X)
    phi_hat = teach(HybridMap(DIM_X, DIM_Z), pairs)
    phi_hat.remove_arm(9)
    assert np.array_equal(phi_hat.predict(x, (9,)), phi_hat.predict(x, (77,)))
    phi_hat.update(x, 9, [5.0, 5.0])
    assert not np.allclose(phi_hat.predict(x, (9,)), phi_hat.predict(x, (77,)))
    assert phi_hat.radius(x, (9,)) < phi_hat.radius(x, (77,))


def test_offsets_of_arms_are_found_and_slopes_stay_common() -> None:
    """What arms with offsets and one slope are: the prior says that only levels differ."""
    rng = np.random.default_rng(0)
    phi_hat, slope, offsets = HybridMap(4, 1), rng.normal(size=(4, 1)), 3.0 * rng.normal(size=20)
    for _ in range(600):
        x, arm = rng.normal(size=4), int(rng.integers(20))
        phi_hat.update(x, arm, x @ slope + offsets[arm] + 0.5 * rng.normal(size=1))
    phi_hat.refit_prior()
    ridge = phi_hat.prior.ridge
    assert ridge["features"] > 100.0 * ridge["intercept"]
    x = rng.normal(size=4)
    assert np.abs(phi_hat.predict(x, range(20))[:, 0] - x @ slope - offsets).max() < 0.5
    assert phi_hat.radius(x, (99,)) > 2.0


def test_errors_are_those_of_pairs_left_out() -> None:
    """With one pair per arm exactly so: a pair's leverage is its arm's."""
    pairs = [(x, arm, z, 1.0) for arm, (x, _, z, _) in enumerate(some_pairs(12))]
    phi_hat = teach(HybridMap(DIM_X, DIM_Z, ridge=1.0), pairs)
    squares, n = phi_hat.squared_errors()
    off = []
    for i, (x, arm, z, _) in enumerate(pairs):
        left_out = teach(HybridMap(DIM_X, DIM_Z, ridge=1.0), pairs[:i] + pairs[i + 1 :])
        off.append(left_out.predict(x, (arm,))[0] - z)
    assert n == 12.0
    assert np.allclose(squares, np.square(off).sum(axis=0), rtol=1e-9)
    phi_hat.forget(0.9)
    assert phi_hat.squared_errors()[1] == 0.0
    assert HybridMap(1, 1).squared_errors()[1] == 0.0


def test_policies_drop_arms_and_make_new_ones() -> None:
    rng, policy = np.random.default_rng(0), PoLinUCB(3, HybridMap(DIM_X, DIM_Z), model="shared")
    for t in range(60):
        if t % 10 == 9:
            policy.remove_arm(policy.arms[0])
            policy.add_arm()
        x = rng.normal(size=DIM_X)
        arm = policy.select(x, rng).arm
        policy.update(x, arm, x[:DIM_Z] + arm % 3, float(x.sum()))
    assert set(policy.context_map._learnt.places) <= set(policy.arms)  # type: ignore[attr-defined]
    assert "phi error" in str(policy.describe())
    with pytest.raises(InvalidInput, match="candidates have no ids"):
        PoLinUCB(None, HybridMap(DIM_X, DIM_Z), model="shared")


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    phi_hat = teach(HybridMap(2, 1), [(np.ones(2), arm, np.ones(1), 1.0) for arm in (0, 1)])
    with pytest.raises(InvalidInput, match=r"ridge is 1\.0, wanted ridge='evidence'"):
        HybridMap(2, 1, ridge=1.0, intercept="level")
    with pytest.raises(InvalidInput, match="arms"):
        phi_hat.predict([1.0, 2.0], untyped(["a"]))
    with pytest.raises(InvalidInput, match="ridge differ"):
        phi_hat.merge(HybridMap(2, 1, ridge=1.0))
    with pytest.raises(InvalidInput, match="wanted a HybridMap"):
        phi_hat.merge(untyped(PerArmMap(RidgeMap(2, 1))))
    gone = copy.deepcopy(phi_hat)
    gone.remove_arm(1)
    for one, other in ((phi_hat, gone), (gone, phi_hat)):
        with pytest.raises(InvalidInput, match="after an arm was removed"):
            one.merge(other)
    phi_hat.save(tmp_path / "map.npz")
    arrays = arrays_in(tmp_path / "map.npz")
    write_arrays(tmp_path / "twice.npz", {**arrays, "arms": np.array([3, 3])})
    with pytest.raises(StateMismatch, match="each arm once"):
        load(tmp_path / "twice.npz")


def test_it_can_be_pickled() -> None:
    pairs, x = some_pairs(40), np.ones(DIM_X)
    phi_hat = teach(HybridMap(DIM_X, DIM_Z), pairs[:20])
    twin = pickle.loads(pickle.dumps(phi_hat))
    for one in (phi_hat, twin):
        teach(one, pairs[20:])
    assert np.array_equal(phi_hat.predict(x, ASKED), twin.predict(x, ASKED))
