"""Every public policy, map and environment, in several settings, through every check."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

import postserve
from postserve import (
    ActionDependentEnvironment,
    BestMap,
    BestPolicy,
    CatalogueEnvironment,
    DecisionSetEnvironment,
    EpsilonGreedy,
    HolderEnvironment,
    HybridMap,
    KernelMap,
    KnownMap,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    NeighborsMap,
    NetworkMap,
    NonlinearEnvironment,
    Observation1,
    PerArmMap,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
    RotatingEnvironment,
    SklearnMap,
    StagedMap,
    SyntheticEnvironment,
    TableEnvironment,
)
from postserve.conformance import CONTEXT_MAP_CHECKS, ENVIRONMENT_CHECKS, POLICY_CHECKS

Make = Callable[[], Any]


def halves(x: Any) -> Any:
    return x[:2] / 2.0


def squares(x: Any) -> Any:
    return np.concatenate([x, x**2])


def ridge_map(**options: Any) -> RidgeMap:
    return RidgeMap(dim_x=3, dim_z=2, **options)


def cubes(x: Any) -> Any:
    return x**3


def fourths(x: Any) -> Any:
    return x / 4.0


QUADRATIC = PolynomialFeatures(2).fit(np.zeros((1, 3)))
POWERS = FunctionTransformer(lambda Z: np.hstack([Z, Z**2])).fit(np.zeros((1, 2)))

MAPS: dict[str, Make] = {
    "RidgeMap": ridge_map,
    "RidgeMap-intercept": lambda: ridge_map(intercept=True),
    "RidgeMap-number": lambda: ridge_map(ridge=0.5, map_radius="determinant", features=squares),
    "RidgeMap-pair": lambda: ridge_map(ridge=(0.5, 2.0), intercept=True, map_radius=1.0),
    "RidgeMap-transformer": lambda: ridge_map(features=QUADRATIC, map_radius="assumption", map_rate=0.25),
    "KnownMap": lambda: KnownMap(dim_x=3, dim_z=2, function=halves),
    "NetworkMap": lambda: NetworkMap(dim_x=3, dim_z=2, replay=25),
    "SklearnMap-refits": lambda: SklearnMap(3, 2, KNeighborsRegressor(3)),
    "SklearnMap-wrapped": lambda: SklearnMap(3, 2, LinearRegression(), map_rate=0.25),
    "SklearnMap-partial_fit": lambda: SklearnMap(3, 2, SGDRegressor()),
    "SklearnMap-raw": lambda: SklearnMap(3, 2, LinearRegression(), centred=False, refit_growth=1.5),
    "NeighborsMap": lambda: NeighborsMap(3, 2),
    "NeighborsMap-three": lambda: NeighborsMap(3, 2, smoothness=0.5, neighbors=3, map_rate=0.1),
    "KernelMap": lambda: KernelMap(3, 2),
    "KernelMap-few": lambda: KernelMap(3, 2, smoothness=0.7, landmarks=9),
    "KernelMap-settled": lambda: KernelMap(3, 2, landmarks=1, length_scale=2.0),
    "KernelMap-raw": lambda: KernelMap(3, 2, length_scale="raw median", nugget=0.1),
    "KernelMap-pair": lambda: KernelMap(3, 2, landmarks=20, ridge=(0.1, 10.0), radius_scale=2.0),
    "BestMap": lambda: BestMap([ridge_map(), KernelMap(3, 2)]),
    "BestMap-one": lambda: BestMap([KnownMap(3, 2, halves)]),
    "BestMap-arms": lambda: BestMap([ridge_map(), PerArmMap(ridge_map(intercept=True))]),
    "BestMap-hybrid": lambda: BestMap([ridge_map(), HybridMap(3, 2)]),
    "HybridMap": lambda: HybridMap(3, 2),
    "HybridMap-intercept": lambda: HybridMap(3, 2, intercept=True),
    "HybridMap-none": lambda: HybridMap(3, 2, intercept=False),
    "HybridMap-features": lambda: HybridMap(3, 2, features=squares),
    "HybridMap-number": lambda: HybridMap(3, 2, ridge=0.5, features=QUADRATIC),
    "HybridMap-pair": lambda: HybridMap(3, 2, ridge=(0.5, 2.0), intercept=True),
    "StagedMap": lambda: StagedMap([RidgeMap(3, 1), HybridMap(4, 1)]),
    "StagedMap-three": lambda: StagedMap([HybridMap(3, 1), HybridMap(4, 2), RidgeMap(6, 2, ridge=0.5)]),
    "StagedMap-apart": lambda: StagedMap([HybridMap(3, 1), RidgeMap(3, 1), RidgeMap(4, 1)]),
    "StagedMap-one": lambda: StagedMap([PerArmMap(ridge_map())]),
    "PerArmMap-staged": lambda: PerArmMap(StagedMap([RidgeMap(3, 1), RidgeMap(4, 1)])),
    "PerArmMap-best": lambda: PerArmMap(BestMap([ridge_map(), ridge_map(features=squares)])),
    "PerArmMap": lambda: PerArmMap(ridge_map()),
    "PerArmMap-network": lambda: PerArmMap(NetworkMap(dim_x=3, dim_z=2)),
    "PerArmMap-neighbors": lambda: PerArmMap(NeighborsMap(3, 2)),
    "PerArmMap-kernel": lambda: PerArmMap(KernelMap(3, 2, landmarks=9)),
}

POLICIES: dict[str, Make] = {
    "PoLinUCB": lambda: PoLinUCB(3, ridge_map()),
    "PoLinUCB-number": lambda: PoLinUCB(3, ridge_map(ridge=1.0), ridge=1.0, arm_radius=0.5),
    "PoLinUCB-joint": lambda: PoLinUCB(3, ridge_map(), optimism="joint"),
    "PoLinUCB-posterior": lambda: PoLinUCB(3, ridge_map(), optimism="posterior", prior_weights=[2.0, -1.0]),
    "PoLinUCB-bound": lambda: PoLinUCB(3, ridge_map(), optimism="bound", intercept=True),
    "PoLinUCB-theory": lambda: PoLinUCB(
        3,
        ridge_map(ridge=1.0, map_radius="determinant"),
        optimism="joint",
        ridge=(0.5, 2.0),
        arm_radius="determinant",
    ),
    "PoLinUCB-closed_form": lambda: PoLinUCB(3, ridge_map(), arm_radius="closed_form", u_bound=10.0),
    "PoLinUCB-KnownMap": lambda: PoLinUCB(3, MAPS["KnownMap"](), ridge=2.0),
    "PoLinUCB-NetworkMap": lambda: PoLinUCB(3, MAPS["NetworkMap"](), optimism="joint"),
    "PoLinUCB-SklearnMap": lambda: PoLinUCB(3, MAPS["SklearnMap-refits"]()),
    "PoLinUCB-NeighborsMap": lambda: PoLinUCB(3, MAPS["NeighborsMap"](), optimism="bound"),
    "PoLinUCB-KernelMap": lambda: PoLinUCB(3, MAPS["KernelMap-few"](), optimism="posterior"),
    "PoLinUCB-PerArmMap": lambda: PoLinUCB(3, PerArmMap(ridge_map()), optimism="posterior"),
    "PoLinUCB-HybridMap": lambda: PoLinUCB(3, HybridMap(3, 2), optimism="posterior", model="hybrid"),
    "PoLinUCB-HybridMap-shared": lambda: PoLinUCB(3, HybridMap(3, 2), optimism="bound", model="shared"),
    "PoLinTS-HybridMap": lambda: PoLinTS(3, HybridMap(3, 2), draws=20),
    "RobustPoLinUCB-HybridMap": lambda: RobustPoLinUCB(3, HybridMap(3, 2)),
    "PoLinUCB-StagedMap": lambda: PoLinUCB(3, MAPS["StagedMap"](), optimism="posterior", model="hybrid"),
    "PoLinUCB-StagedMap-impute": lambda: PoLinUCB(3, MAPS["StagedMap"](), missing_z="impute"),
    "PoLinTS-StagedMap": lambda: PoLinTS(3, MAPS["StagedMap"](), draws=20),
    "RobustPoLinUCB-StagedMap": lambda: RobustPoLinUCB(3, MAPS["StagedMap"](), optimism="bound"),
    "PoLinUCB-BestMap": lambda: PoLinUCB(3, MAPS["BestMap"](), optimism="posterior"),
    "PoLinUCB-BestMap-arms": lambda: PoLinUCB(3, MAPS["BestMap-arms"]()),
    "PoLinUCB-BestMap-sets": lambda: PoLinUCB(None, MAPS["BestMap"](), model="shared"),
    "PoLinTS-BestMap": lambda: PoLinTS(3, MAPS["BestMap-arms"](), draws=20),
    "PoLinUCB-impute": lambda: PoLinUCB(3, ridge_map(), missing_z="impute"),
    "LinUCBPhiHat": lambda: LinUCBPhiHat(3, ridge_map()),
    "LinUCBPhiHat-after": lambda: LinUCBPhiHat(3, ridge_map(), prediction="after", optimism="joint"),
    "LinUCBPhiHat-theory": lambda: LinUCBPhiHat(
        3, ridge_map(ridge=1.0), ridge=1.0, arm_radius="determinant", u_bound=5.0
    ),
    "LinUCBPhiHat-projected": lambda: LinUCBPhiHat(
        3, ridge_map(ridge=1.0), ridge=1.0, arm_radius="determinant", bias="projected", missing_z="impute"
    ),
    "LinUCBPhiHat-closed_form": lambda: LinUCBPhiHat(
        3, ridge_map(ridge=1.0), ridge=1.0, arm_radius="closed_form", u_bound=5.0, missing_z="drop"
    ),
    "RobustPoLinUCB": lambda: RobustPoLinUCB(3, ridge_map()),
    "RobustPoLinUCB-joint": lambda: RobustPoLinUCB(3, ridge_map(), optimism="joint"),
    "RobustPoLinUCB-posterior": lambda: RobustPoLinUCB(3, ridge_map(), optimism="posterior"),
    "RobustPoLinUCB-PerArmMap": lambda: RobustPoLinUCB(3, PerArmMap(ridge_map()), exploration=3.0),
    "LinUCBPhiHat-explores": lambda: LinUCBPhiHat(3, ridge_map(), exploration=3.0, intercept=True),
    "RobustPoLinUCB-pair": lambda: RobustPoLinUCB(
        3, ridge_map(ridge=1.0), ridge=(1.0, 2.0), missing_z="impute"
    ),
    "BestPolicy": lambda: BestPolicy(3, ridge_map()),
    "BestPolicy-pair": lambda: BestPolicy(3, ridge_map(ridge=1.0), ridge=(1.0, 2.0), missing_z="impute"),
    "BestPolicy-theory": lambda: BestPolicy(
        3,
        ridge_map(ridge=1.0, map_radius="determinant"),
        optimism="joint",
        ridge=1.0,
        arm_radius="determinant",
        u_bound=5.0,
        missing_z="drop",
    ),
    "BestPolicy-PerArmMap": lambda: BestPolicy(3, PerArmMap(ridge_map()), optimism="bound"),
    "BestPolicy-BestMap": lambda: BestPolicy(3, MAPS["BestMap"](), intercept=True),
    "BestPolicy-hybrid": lambda: BestPolicy(3, ridge_map(), model="hybrid"),
    "BestPolicy-features": lambda: BestPolicy(3, RidgeMap(10, 4), x_features=QUADRATIC, z_features=POWERS),
    "BestPolicy-sets": lambda: BestPolicy(None, ridge_map(), model="shared"),
    "EpsilonGreedy-BestPolicy": lambda: EpsilonGreedy(BestPolicy(3, ridge_map()), epsilon=0.2),
    "LinUCB": lambda: LinUCB(3, 4),
    "LinUCB-number": lambda: LinUCB(3, 4, ridge=0.1, arm_radius=1.0, intercept=True),
    "LinUCBOracle": lambda: LinUCBOracle(3, 4, 2),
    "LinUCBOracle-pair": lambda: LinUCBOracle(3, 4, 2, ridge=(1.0, 3.0), missing_z="drop"),
    "PoLinUCB-shared": lambda: PoLinUCB(3, ridge_map(), model="shared", optimism="joint"),
    "PoLinUCB-features": lambda: PoLinUCB(3, RidgeMap(10, 4), x_features=QUADRATIC, z_features=POWERS),
    "PoLinUCB-callables": lambda: PoLinUCB(
        3, ridge_map(), x_features=cubes, z_features=cubes, optimism="bound", missing_z="impute"
    ),
    "PoLinUCB-sets": lambda: PoLinUCB(None, ridge_map(), model="shared"),
    "PoLinUCB-sets-joint": lambda: PoLinUCB(
        None, ridge_map(features=squares), model="shared", optimism="joint", ridge=1.0, intercept=True
    ),
    "PoLinTS": lambda: PoLinTS(3, ridge_map(), draws=50),
    "PoLinTS-PerArmMap": lambda: PoLinTS(3, PerArmMap(ridge_map()), draws=20, floor=0.3, seed=1),
    "PoLinTS-shared": lambda: PoLinTS(3, MAPS["KernelMap-few"](), draws=50, model="shared", floor=0.0),
    "PoLinTS-sets": lambda: PoLinTS(None, ridge_map(ridge=1.0), draws=50, model="shared", ridge=1.0),
    "PoLinUCB-hybrid": lambda: PoLinUCB(3, ridge_map(), model="hybrid", optimism="posterior"),
    "PoLinUCB-hybrid-number": lambda: PoLinUCB(
        3, PerArmMap(ridge_map()), model="hybrid", ridge=(1.0, 2.0), arm_radius="determinant", intercept=True
    ),
    "PoLinTS-hybrid": lambda: PoLinTS(3, ridge_map(), model="hybrid", draws=50),
    "LinUCB-hybrid": lambda: LinUCB(
        3, 4, model="hybrid", ridge=1.0, arm_radius="closed_form", u_bound=5.0, x_features=fourths
    ),
    "LinUCBPhiHat-hybrid": lambda: LinUCBPhiHat(
        3, ridge_map(), model="hybrid", ridge=1.0, arm_radius="determinant", u_bound=5.0
    ),
    "LinUCBPhiHat-hybrid-projected": lambda: LinUCBPhiHat(
        3, ridge_map(), model="hybrid", ridge=1.0, arm_radius="determinant", bias="projected"
    ),
    "RobustPoLinUCB-hybrid": lambda: RobustPoLinUCB(3, ridge_map(), model="hybrid"),
    "LinUCBOracle-hybrid": lambda: LinUCBOracle(3, 4, 2, model="hybrid"),
    "LinUCB-shared": lambda: LinUCB(3, 4, model="shared", ridge=1.0, arm_radius="determinant"),
    "LinUCB-features": lambda: LinUCB(3, 10, x_features=QUADRATIC),
    "LinUCB-sets": lambda: LinUCB(None, 4, model="shared", arm_radius="closed_form", u_bound=5.0),
    "LinUCBPhiHat-sets": lambda: LinUCBPhiHat(
        None, ridge_map(), model="shared", arm_radius="determinant", u_bound=5.0, ridge=1.0
    ),
    "RobustPoLinUCB-sets": lambda: RobustPoLinUCB(None, ridge_map(), model="shared", optimism="joint"),
    "LinUCBOracle-sets": lambda: LinUCBOracle(None, 4, 2, model="shared"),
    "LinUCBOracle-features": lambda: LinUCBOracle(3, 10, 4, x_features=QUADRATIC, z_features=POWERS),
    "RandomPolicy-sets": lambda: RandomPolicy(None),
    "EpsilonGreedy-sets": lambda: EpsilonGreedy(PoLinUCB(None, ridge_map(), model="shared")),
    "EpsilonGreedy-features": lambda: EpsilonGreedy(LinUCB(3, 10, x_features=QUADRATIC)),
    "RandomPolicy": lambda: RandomPolicy(3),
    "EpsilonGreedy": lambda: EpsilonGreedy(PoLinUCB(3, ridge_map()), epsilon=0.2),
    "EpsilonGreedy-nested": lambda: EpsilonGreedy(EpsilonGreedy(RobustPoLinUCB(3, ridge_map())), epsilon=1.0),
}


def absolute(X: Any) -> Any:
    return abs(X[:, :2])


def uniform(rng: Any, shape: Any) -> Any:
    return rng.uniform(-1.0, 1.0, size=shape)


def synthetic(phi: Any, **options: Any) -> SyntheticEnvironment:
    return SyntheticEnvironment(phi, dim_x=6, dim_z=2, n_arms=3, **options)


def table(contexts: int) -> TableEnvironment:
    """100 rows; several have the same x where there are fewer contexts than rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((contexts, 3))[np.arange(100) % contexts]
    return TableEnvironment(x, rng.standard_normal((100, 2)), rng.standard_normal((100, 4)))


ENVIRONMENTS: dict[str, Make] = {
    "SyntheticEnvironment-polynomial": lambda: synthetic("polynomial"),
    "SyntheticEnvironment-periodic": lambda: synthetic("periodic", reward_from="phi"),
    "SyntheticEnvironment-linear": lambda: synthetic("linear", z_noise=0.0),
    "SyntheticEnvironment-own": lambda: synthetic(absolute, features=np.abs, seed=1),
    "SyntheticEnvironment-noises": lambda: synthetic(
        absolute, z_noise=uniform, reward_noise=uniform, reward_from="phi"
    ),
    "Observation1": Observation1,
    "Observation1-noisy": lambda: Observation1(z_noise=1.0, reward_noise=0.5),
    "HolderEnvironment-rough": lambda: HolderEnvironment(0.25, dim_x=3, dim_z=2),
    "HolderEnvironment-smooth": lambda: HolderEnvironment(2.5, n_arms=2, z_noise=uniform, levels=4),
    "HolderEnvironment-phi": lambda: HolderEnvironment(1.0, dim_x=2, reward_from="phi", seed=1),
    "ActionDependentEnvironment": lambda: ActionDependentEnvironment("polynomial", n_arms=3, dim_x=4),
    "ActionDependentEnvironment-shared": lambda: ActionDependentEnvironment(
        absolute, dim_x=4, dim_z=2, n_arms=3, maps="shared", z_noise=uniform, reward_from="phi"
    ),
    "DecisionSetEnvironment": lambda: DecisionSetEnvironment("periodic", dim_x=4, n_candidates=20),
    "DecisionSetEnvironment-phi": lambda: DecisionSetEnvironment(
        absolute, dim_x=4, dim_z=2, n_candidates=1, reward_noise=uniform, reward_from="phi"
    ),
    "CatalogueEnvironment": lambda: CatalogueEnvironment("linear", dim_x=4, n_arms=12, n_eligible=3),
    "CatalogueEnvironment-alike": lambda: CatalogueEnvironment(
        absolute, dim_x=4, dim_z=2, n_arms=4, n_eligible=4, own=0.0, reward_from="phi"
    ),
    "RotatingEnvironment": lambda: RotatingEnvironment(horizon=700, lifetime=200),
    "RotatingEnvironment-noises": lambda: RotatingEnvironment(
        n_alive=2, lifetime=1000, dim_x=2, dim_z=1, own_weights=0.5, z_noise=uniform, reward_noise=uniform
    ),
    "NonlinearEnvironment": lambda: NonlinearEnvironment("linear", z_noise=5.0),
    "NonlinearEnvironment-phi": lambda: NonlinearEnvironment("periodic", reward_from="phi", seed=1),
    "TableEnvironment": lambda: table(contexts=100),
    "TableEnvironment-averaged": lambda: table(contexts=20),
}


def _cases(makes: dict[str, Make], checks: Iterable[Callable[[Make], None]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("make", "check"),
        [
            pytest.param(make, check, id=f"{name}-{check.__name__}")
            for name, make in makes.items()
            for check in checks
        ],
    )


@_cases(POLICIES, POLICY_CHECKS)
def test_policy(make: Make, check: Callable[[Make], None]) -> None:
    check(make)


@_cases(MAPS, CONTEXT_MAP_CHECKS)
def test_context_map(make: Make, check: Callable[[Make], None]) -> None:
    check(make)


@_cases(ENVIRONMENTS, ENVIRONMENT_CHECKS)
def test_environment(make: Make, check: Callable[[Make], None]) -> None:
    check(make)


def test_every_public_class_is_checked() -> None:
    values = {
        "AsyncClient",
        "Client",
        "Comparison",
        "Decision",
        "DecisionLog",
        "Decisions",
        "Description",
        "Diagnosis",
        "Encoder",
        "Evaluation",
        "LoggedRounds",
        "Prior",
        "Replay",
        "Rounds",
        "Run",
        "Study",
        "ContextMap",
        "Environment",
        "Policy",
    }
    errors = {
        name
        for name in postserve.__all__
        if isinstance(each := getattr(postserve, name), type) and issubclass(each, Exception)
    }
    classes = {name for name in postserve.__all__ if inspect.isclass(getattr(postserve, name))}
    checked = {type(make()).__name__ for cases in (POLICIES, MAPS, ENVIRONMENTS) for make in cases.values()}
    assert classes - values - errors == checked


@pytest.mark.parametrize("name", POLICIES)
def test_every_public_policy_can_be_described(name: str) -> None:
    assert isinstance(POLICIES[name]().describe(), postserve.Description)


def test_the_promises_are_made_where_they_should_be() -> None:
    promised = {name for name, make in POLICIES.items() if make().order_free}
    assert promised == {
        "PoLinUCB",
        "PoLinUCB-number",
        "PoLinUCB-joint",
        "PoLinUCB-posterior",
        "PoLinUCB-bound",
        "PoLinUCB-theory",
        "PoLinUCB-closed_form",
        "PoLinUCB-KnownMap",
        "PoLinUCB-PerArmMap",
        "PoLinUCB-HybridMap",
        "PoLinUCB-HybridMap-shared",
        "PoLinTS-HybridMap",
        "PoLinUCB-StagedMap",
        "PoLinTS-StagedMap",
        "LinUCB",
        "LinUCB-number",
        "LinUCBOracle",
        "LinUCBOracle-pair",
        "EpsilonGreedy",
        "PoLinUCB-shared",
        "PoLinUCB-features",
        "PoLinUCB-sets",
        "PoLinUCB-sets-joint",
        "PoLinUCB-hybrid",
        "PoLinUCB-hybrid-number",
        "PoLinTS-hybrid",
        "LinUCB-hybrid",
        "LinUCBOracle-hybrid",
        "PoLinTS",
        "PoLinTS-PerArmMap",
        "PoLinTS-sets",
        "LinUCB-shared",
        "LinUCB-features",
        "LinUCB-sets",
        "LinUCBOracle-sets",
        "LinUCBOracle-features",
        "EpsilonGreedy-sets",
        "EpsilonGreedy-features",
    }
    in_own_units = {"RidgeMap", "KernelMap", "KernelMap-few", "BestMap", "PerArmMap", "PerArmMap-kernel"}
    in_own_units |= {"HybridMap", "BestMap-hybrid"}
    assert {name for name, make in MAPS.items() if getattr(make(), "column_free", False)} == in_own_units
    assert {name for name, make in MAPS.items() if getattr(make(), "shift_free", False)} == in_own_units | {
        "NetworkMap",
        "SklearnMap-refits",
        "SklearnMap-wrapped",
        "SklearnMap-partial_fit",
        "NeighborsMap",
        "NeighborsMap-three",
        "KernelMap-settled",
        "KernelMap-raw",
        "HybridMap-features",
        "PerArmMap-best",
        "PerArmMap-network",
        "PerArmMap-neighbors",
    }
    for name in (
        "PoLinUCB",
        "LinUCB",
        "RobustPoLinUCB",
        "LinUCBPhiHat",
        "PoLinTS",
        "LinUCBOracle",
        "BestPolicy",
    ):
        assert POLICIES[name]().shift_free
        assert POLICIES[name]().column_free
    assert {name for name, make in POLICIES.items() if make().scale_free} == {
        "PoLinUCB",
        "PoLinUCB-joint",
        "PoLinUCB-bound",
        "PoLinUCB-KernelMap",
        "PoLinUCB-PerArmMap",
        "PoLinUCB-HybridMap",
        "PoLinUCB-HybridMap-shared",
        "PoLinTS-HybridMap",
        "RobustPoLinUCB-HybridMap",
        "PoLinUCB-StagedMap",
        "PoLinUCB-StagedMap-impute",
        "PoLinTS-StagedMap",
        "RobustPoLinUCB-StagedMap",
        "PoLinUCB-BestMap",
        "PoLinUCB-BestMap-arms",
        "PoLinUCB-BestMap-sets",
        "PoLinTS-BestMap",
        "PoLinUCB-impute",
        "LinUCBPhiHat",
        "LinUCBPhiHat-after",
        "RobustPoLinUCB",
        "RobustPoLinUCB-joint",
        "RobustPoLinUCB-posterior",
        "RobustPoLinUCB-PerArmMap",
        "LinUCBPhiHat-explores",
        "BestPolicy",
        "BestPolicy-PerArmMap",
        "BestPolicy-BestMap",
        "BestPolicy-hybrid",
        "BestPolicy-sets",
        "EpsilonGreedy-BestPolicy",
        "LinUCB",
        "LinUCBOracle",
        "RandomPolicy",
        "EpsilonGreedy",
        "EpsilonGreedy-nested",
        "PoLinUCB-hybrid",
        "PoLinTS-hybrid",
        "RobustPoLinUCB-hybrid",
        "LinUCBOracle-hybrid",
        "PoLinUCB-shared",
        "PoLinUCB-sets",
        "PoLinTS",
        "PoLinTS-PerArmMap",
        "PoLinTS-shared",
        "RobustPoLinUCB-sets",
        "LinUCBOracle-sets",
        "RandomPolicy-sets",
        "EpsilonGreedy-sets",
    }
