"""After a warm-up nothing is left to compile, and the policy is as it was."""

import gc
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.untyped import untyped

from postserve import (
    BestPolicy,
    EpsilonGreedy,
    HybridMap,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    NetworkMap,
    PerArmMap,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
)
from postserve.linalg.kernels import cholesky, evidence, joint, models, network
from postserve.linalg.kernels.compiling import WithoutCollection, compilations
from postserve.warming import warm_up

DIM_X, DIM_Z, ARMS = 6, 2, 4


def a_map() -> RidgeMap:
    return RidgeMap(DIM_X, DIM_Z)


CASES: dict[str, Any] = {
    "PoLinUCB": lambda: PoLinUCB(ARMS, a_map()),
    "joint": lambda: PoLinUCB(ARMS, a_map(), optimism="joint"),
    "bound, ridge 1": lambda: PoLinUCB(ARMS, RidgeMap(DIM_X, DIM_Z, ridge=1.0), optimism="bound", ridge=1.0),
    "shared": lambda: PoLinUCB(ARMS, a_map(), model="shared"),
    "hybrid": lambda: PoLinUCB(ARMS, a_map(), model="hybrid"),
    "many arms": lambda: PoLinUCB(3 * DIM_X, a_map()),
    "NetworkMap": lambda: PoLinUCB(ARMS, NetworkMap(DIM_X, DIM_Z)),
    "PerArmMap": lambda: PoLinUCB(ARMS, PerArmMap(a_map())),
    "HybridMap": lambda: PoLinUCB(ARMS, HybridMap(DIM_X, DIM_Z)),
    "LinUCB": lambda: LinUCB(ARMS, DIM_X),
    "BestPolicy": lambda: BestPolicy(ARMS, a_map()),
    "LinUCB, intercept": lambda: LinUCB(ARMS, DIM_X, intercept=True),
    "RobustPoLinUCB": lambda: RobustPoLinUCB(ARMS, a_map()),
    "PoLinTS": lambda: PoLinTS(ARMS, a_map()),
    "LinUCBPhiHat": lambda: LinUCBPhiHat(ARMS, a_map()),
    "LinUCBOracle": lambda: LinUCBOracle(ARMS, DIM_X, DIM_Z),
    "EpsilonGreedy": lambda: EpsilonGreedy(PoLinUCB(ARMS, a_map())),
    "RandomPolicy": lambda: RandomPolicy(ARMS),
}


def play(policy: Any, rounds: int) -> None:
    """Rounds as a user plays them."""
    rng = np.random.default_rng(1)
    sees_z = hasattr(policy, "sees_z")
    for t in range(rounds):
        x, z = rng.standard_normal(DIM_X), rng.standard_normal(DIM_Z)
        arm = policy.select(x, rng, **({"z": z} if sees_z else {})).arm
        seen = None if policy.dim_z is None else z
        if t % 2:
            policy.update(x, arm, seen, float(x[0] + z[0] * arm))
        else:
            policy.credit(x, arm, seen, float(x[0] - z[0]), z_hat=policy.observe(x, arm, seen))
    X, Z = rng.standard_normal((100, DIM_X)), rng.standard_normal((100, DIM_Z))
    arms = policy.select_batch(X, rng, **({"Z": Z} if sees_z else {})).arms
    policy.update_batch(X, arms, None if policy.dim_z is None else Z, X[:, 0])
    policy.refit_prior()


def kernel_signatures() -> dict[str, int]:
    """The number of signatures for which each kernel is ready, compiled now or loaded from the cache."""
    return {
        f"{module.__name__}.{name}": len(kernel.signatures)
        for module in (cholesky, evidence, joint, models, network)
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures")
    }


def new_after_warming_up(case: str) -> list[str]:
    policy = CASES[case]()
    warm_up(policy)
    before = kernel_signatures()
    play(policy, 150)
    after = kernel_signatures()
    return [name for name in after if after[name] != before[name]]


@pytest.mark.parametrize("case", ["PoLinUCB", "joint", "shared", "hybrid", "many arms", "LinUCB"])
def test_no_kernel_is_left_to_compile_or_load(case: str) -> None:
    """In a new process: in this one other tests have compiled them."""
    code = f"from tests.test_warming import new_after_warming_up as new; print(new({case!r}))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize("case", CASES)
def test_every_policy_can_be_warmed_up(case: str) -> None:
    assert new_after_warming_up(case) == []


@pytest.mark.parametrize("trained", [0, 60])
@pytest.mark.parametrize("case", CASES)
def test_the_policy_does_not_change(case: str, trained: int, tmp_path: Any) -> None:
    policy = CASES[case]()
    play(policy, trained)
    policy.save(tmp_path / "before.npz")
    warm_up(policy)
    policy.save(tmp_path / "after.npz")
    with np.load(tmp_path / "before.npz") as before, np.load(tmp_path / "after.npz") as after:
        assert before.files == after.files
        for name in before.files:
            np.testing.assert_array_equal(before[name], after[name])


def test_decision_sets_are_warmed_up() -> None:
    policy = PoLinUCB(None, a_map(), model="shared")
    warm_up(policy)
    rng = np.random.default_rng(2)
    with compilations() as compiled:
        for n in (1, 2, 5, 9):
            X = rng.standard_normal((n, DIM_X))
            arm = policy.select(X, rng).arm
            policy.update(X[arm], arm, rng.standard_normal(DIM_Z), 1.0)
    assert compiled == []


def test_features_need_an_example() -> None:
    policy = PoLinUCB(ARMS, RidgeMap(1, DIM_Z), x_features=lambda row: [row["age"]])
    with pytest.raises(InvalidInput, match="x is None, wanted an example of what x_features take"):
        warm_up(policy)
    warm_up(policy, x={"age": 3.0})
    rng = np.random.default_rng(3)
    with compilations() as compiled:
        for age in range(30):
            arm = policy.select({"age": age}, rng).arm
            policy.update({"age": age}, arm, rng.standard_normal(DIM_Z), 1.0)
    assert compiled == []


def test_collection_rests_only_while_a_kernel_of_ours_is_compiled() -> None:
    kernel = SimpleNamespace(py_func=untyped(models.learn).py_func)
    other = SimpleNamespace(py_func=test_features_need_an_example)
    listener, ours, theirs = (
        WithoutCollection(),
        *(untyped(Event({"dispatcher": d})) for d in (kernel, other)),
    )
    assert gc.isenabled()
    listener.on_start(theirs)
    assert gc.isenabled()
    listener.on_start(ours)
    listener.on_start(ours)
    listener.on_end(ours)
    assert not gc.isenabled()
    listener.on_end(ours)
    assert gc.isenabled()
    gc.disable()
    try:
        listener.on_start(ours)
        listener.on_end(ours)
        assert not gc.isenabled()  # as it was
    finally:
        gc.enable()


class Event(NamedTuple):
    data: Any
