"""A fingerprint is the same for what behaves alike, in every process, and changes with what it is made of."""

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from postserve import PoLinUCB, RidgeMap, SklearnMap, SyntheticEnvironment
from postserve.experiments.fingerprint import fingerprint


def polinucb(**options: Any) -> PoLinUCB:
    return PoLinUCB(3, RidgeMap(4, 2), **options)


def own_class(constant: int) -> Any:
    class Own:
        def select(self) -> int:
            return constant

    return Own()


def other_class() -> Any:
    class Own:
        def select(self) -> int:
            return 1 + 1

    return Own()


PAIRS = {
    "option": (polinucb(), polinucb(exploration=2.0)),
    "nested option": (PoLinUCB(3, RidgeMap(4, 2)), PoLinUCB(3, RidgeMap(4, 2, intercept=True))),
    "class": (polinucb(), PoLinUCB(2, RidgeMap(4, 2))),
    "truth": (SyntheticEnvironment("linear", seed=0), SyntheticEnvironment("linear", seed=1)),
    "phi": (SyntheticEnvironment("linear"), SyntheticEnvironment("periodic")),
    "function": (lambda x: x + 1, lambda x: x + 2),
    "called name": (lambda x: np.sin(x), lambda x: np.cos(x)),
    "closure": (own_class(1).select, own_class(2).select),
    "default": (lambda n=1: n, lambda n=2: n),
    "partial": (partial(max, 1), partial(max, 2)),
    "method of an own class": (own_class(1), other_class()),
    "estimator": (
        SklearnMap(2, 1, DecisionTreeRegressor(max_depth=2)),
        SklearnMap(2, 1, DecisionTreeRegressor(max_depth=3)),
    ),
    "array": (np.arange(3.0), np.arange(3)),
    "type": (1, 1.0),
    "set": ({1, 2}, {1, 3}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_it_tells_apart(name: str) -> None:
    one, other = PAIRS[name]
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(
    "make",
    [
        polinucb,
        lambda: SyntheticEnvironment("polynomial", seed=3),
        lambda: own_class(1),
        lambda: SklearnMap(2, 1, DecisionTreeRegressor()),
        lambda: {"a": [1, (2.0, None)], "b": {3, "x"}},
    ],
)
def test_it_is_the_same_for_what_is_made_alike(make: Any) -> None:
    assert fingerprint(make()) == fingerprint(make())


def test_cycles_end() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)


def test_it_is_the_same_in_another_process() -> None:
    code = (
        "from postserve import PoLinUCB, RidgeMap, SyntheticEnvironment\n"
        "from postserve.experiments.fingerprint import fingerprint\n"
        "env = SyntheticEnvironment('polynomial', dim_x=4, dim_z=2, n_arms=3)\n"
        "policy = PoLinUCB(3, RidgeMap(4, 2, features=env.features))\n"
        "print(fingerprint(env, policy, {'names': {'a', 'b', 'c'}}, lambda x: x in {'u', 'v', 'w'}))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
