"""A fingerprint is the same for what behaves alike, in every process, and changes with what it is made of."""

import cmath
import math
import re
import subprocess
import sys
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from operator import itemgetter
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.special import expit
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from postserve import LinUCB, PoLinUCB, RidgeMap, SklearnMap, SyntheticEnvironment
from postserve.experiments.fingerprint import fingerprint
from postserve.experiments.reproduce import plan


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


class Bonus(LinUCB):
    def __init__(self, bonus: float) -> None:
        super().__init__(3, 4)
        self._bonus = bonus


def _with(values: list[int]) -> Any:
    class WithValues:
        held = values

    return WithValues


WithList, WithOtherList = _with([1, 2]), _with([1, 3])
SCALE = 1.0
THIS_MODULE: Any = sys.modules[__name__]


def scaled(x: float) -> float:
    return SCALE * x


def through(x: float) -> float:
    return scaled(x)


def through_a_module(x: float) -> Any:
    return THIS_MODULE.scaled(x)


@lru_cache
def remembered(x: float) -> float:
    return scaled(x)


@dataclass(slots=True)
class Slotted:
    size: int


class Base:
    factor = 1

    def select(self) -> float:
        return self.factor * through(1.0)


class Derived(Base):
    pass


def tried(a: Any, b: Any, c: Any) -> None:
    try:
        a()
        b()
    except ValueError:
        c()


def tried_else(a: Any, b: Any, c: Any) -> None:
    try:
        a()
    except ValueError:
        c()
    else:
        b()


tried_else.__name__ = tried_else.__qualname__ = "tried"


PAIRS = {
    "exceptions": (tried, tried_else),
    "builtins of two modules": (math.sqrt, cmath.sqrt),
    "compiled": (njit()(scaled), njit(fastmath=True)(scaled)),
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
    "slots": (Slotted(1), Slotted(2)),
    "pipeline": (make_pipeline(StandardScaler(), Ridge(1.0)), make_pipeline(StandardScaler(), Ridge(2.0))),
    "ufunc": (np.sin, np.cos),
    "array": (np.arange(3.0), np.arange(3)),
    "type": (1, 1.0),
    "generator": (np.random.default_rng(1), np.random.default_rng(2)),
    "deque": (deque([1]), deque([2])),
    "range": (range(3), range(4)),
    "decimal": (Decimal("1.5"), Decimal("2.5")),
    "pattern": (re.compile("a"), re.compile("b")),
    "default factory": (defaultdict(int), defaultdict(list)),
    "item getter": (itemgetter(1), itemgetter(2)),
    "bound builtin": ({1: 2}.get, {1: 3}.get),
    "order of arguments": (lambda a, b: a, lambda b, a: a),
    "star": (lambda *a: a, lambda a: a),
    "own attribute of a subclass": (Bonus(1.0), Bonus(2.0)),
    "class attribute": (WithList(), WithOtherList()),
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
        lambda: (np.sign, expit),
    ],
)
def test_it_is_the_same_for_what_is_made_alike(make: Any) -> None:
    assert fingerprint(make()) == fingerprint(make())


@pytest.mark.parametrize(
    "value", [scaled, through, through_a_module, remembered, lambda: through(1.0), Base(), Derived()]
)
def test_it_sees_what_functions_and_methods_refer_to(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(value)
    with monkeypatch.context() as patch:
        patch.setitem(scaled.__globals__, "SCALE", 2.0)
        assert fingerprint(value) != before
    assert fingerprint(value) == before


def test_it_sees_a_class_attribute_of_a_base(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(Derived())
    monkeypatch.setattr(Base, "factor", 2)
    assert fingerprint(Derived()) != before


def endless() -> Any:
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    return nested


@pytest.mark.parametrize("make", [threading.Lock, endless, lambda: (x for x in "")])
def test_what_cannot_be_looked_into_is_never_known_again(make: Any) -> None:
    value = make()
    assert fingerprint(value) != fingerprint(value)


def test_it_bears_what_is_not_bound_yet_and_what_answers_oddly() -> None:
    def outer() -> Any:
        def inner() -> Any:
            return later

        held = fingerprint(inner)
        later = 1
        return held, later

    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise KeyError(name)

    assert outer()
    assert fingerprint(Odd(), np)


def test_a_partial_of_a_partial_is_known_whether_python_merged_them_or_not() -> None:
    inner = partial(max, 1)
    merged = partial(inner, 2)
    assert fingerprint(merged) == fingerprint(partial(max, 1, 2))
    vars(inner)  # from here on, Python keeps it apart
    assert fingerprint(partial(inner, 2)) == fingerprint(merged)


def test_it_bears_cythons_functions() -> None:
    assert fingerprint(np.random.normal)


def test_it_follows_modules_in_modules() -> None:
    outer, inner = ModuleType("users_outer"), ModuleType("users_outer.inner")
    outer.__dict__["inner"] = inner
    function = FunctionType(compile("outer.inner.arm(1)", "", "eval"), {"outer": outer})
    found = []
    for arm in (lambda x: x, lambda x: x + 1):
        inner.__dict__["arm"] = arm
        found.append(fingerprint(function))
    assert found[0] != found[1]


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


def test_every_figures_cells_are_known_again_in_any_order() -> None:
    plans = plan(["all"], quick=True, seeds=2)

    def keys() -> list[list[str]]:
        return [[cell.key for cell in planned.figure.cells(*planned.given)] for planned in plans]

    first = keys()
    assert keys() == first
    assert len({key for figure in first for key in figure}) == sum(map(len, first))
