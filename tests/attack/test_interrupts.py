"""An interrupt anywhere in a verb leaves the object as it was before the verb, or as it is after it."""

import copy
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.attack.size import LONG
from tests.attack.verbs import SOME, Make, Verb, announce, answers, go_on, rounds_of, teach, verbs
from tests.conformance.test_conformance import MAPS, POLICIES

import postserve
from postserve import InvalidInput
from postserve.conformance.tools import close, reload, same, snapshot

SOURCE = str(Path(postserve.__file__).parent)
ERRORS = (KeyboardInterrupt, MemoryError)
CASES = {**MAPS, **POLICIES}
SHORT = (
    "RidgeMap",
    "KernelMap-few",
    "NeighborsMap",
    "SklearnMap-partial_fit",
    "BestMap-arms",
    "HybridMap",
    "StagedMap",
    "PerArmMap",
    "PoLinUCB",
    "PoLinUCB-hybrid",
    "PoLinUCB-HybridMap",
    "PoLinUCB-StagedMap",
    "PoLinUCB-shared",
    "BestPolicy",
    "EpsilonGreedy",
    "LinUCB-hybrid",
    "LinUCBOracle",
    "PoLinTS-PerArmMap",
)
"""Objects of the short attack, which samples their stages, verbs and lines; the long one takes every line of
every verb of them, and samples the lines of all other objects."""
Line = tuple[str, int]


class State(NamedTuple):
    """An object before or after a verb, and what is seen of it then, and one round later."""

    all: dict[str, Any]
    answers: list[Any]
    later: list[Any]


def lines(call: Callable[[], Any], stop: int = 0) -> list[Line]:
    """The lines of the library that a call comes to; with `stop` it is interrupted before that one."""
    seen: list[Line] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            seen.append((frame.f_code.co_filename, frame.f_lineno))
            if len(seen) == stop:
                raise ERRORS[stop % 2](f"before {frame.f_code.co_filename}:{frame.f_lineno}")
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return seen


def stages(make: Make, came: list[Any], rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """The object when it is new, after one round, before the round that has the most to do, and later.

    In the short attack after any number of rounds.
    """
    if not LONG:
        few, item = int(rng.integers(0, SOME)), make()
        for each in came[:few]:
            teach(item, each)
        yield f"{few} rounds", item
        return
    yield "0 rounds", make()
    item, most, busiest = make(), 0, make()
    for i, each in enumerate(came[:SOME]):
        before = copy.deepcopy(item)
        n_lines = len(lines(lambda each=each: teach(item, each)))  # type: ignore[misc]
        if i == 1:
            yield "1 round", before
        if i > 3 and n_lines >= most:
            most, busiest = n_lines, before
    yield "before a refit", busiest
    yield f"{SOME} rounds", item


def state_of(item: Any, came: list[Any]) -> State:
    twin = copy.deepcopy(item)
    go_on(twin, came)
    return State(snapshot(item), answers(item, came), answers(twin, came))


def check_verb(
    name: str, verb: Verb, item: Any, came: list[Any], tried: set[Line] | None, rng: np.random.Generator
) -> None:
    after = copy.deepcopy(item)
    try:
        seen = lines(lambda: verb(after))
    except (InvalidInput, AttributeError):
        return  # it has no such verb, or not now
    states, changes = [state_of(each, came) for each in (item, after)], after.version - item.version
    for stop in stops(seen, tried, rng):
        one = copy.deepcopy(item)
        try:
            lines(lambda one=one: verb(one), stop)  # type: ignore[misc]
        except (*ERRORS, InvalidInput) as error:
            what = f"{name} stopped {error}"
        else:
            what = f"{name}, whose line {stop} of {len(seen)} does not stop it"
        step = one.version - item.version
        assert step in (0, changes), f"{what}: version {one.version} after {item.version}"
        wanted = states[bool(step)] if changes else states[0]
        if not same(snapshot(one), wanted.all):
            require_alike(answers(one, came), wanted.answers, what)
            require_alike(answers(reload(one), came), wanted.answers, f"{what}, saved and loaded")
        if stop % 2:  # a copy must have nothing of an interrupted verb either
            one = copy.deepcopy(one)
        go_on(one, came)
        require_alike(answers(one, came), wanted.later, f"{what}, one round later")


def stops(seen: list[Line], tried: set[Line] | None, rng: np.random.Generator) -> list[int]:
    """Numbers of lines: a few, or if the lines that were tried are given, all others, first time and last."""
    near_the_end = max(1, len(seen) - int(rng.integers(0, 10)))
    some = {near_the_end, *rng.integers(1, len(seen) + 1, 3).tolist()}
    if tried is None:
        return sorted(some)
    first = {line: i + 1 for i, line in reversed(list(enumerate(seen))) if line not in tried}
    last = {line: i + 1 for i, line in enumerate(seen) if line not in tried}
    tried.update(seen)
    return sorted({*some, *first.values(), *last.values(), *range(max(1, len(seen) - 5), len(seen) + 1)})


def require_alike(ours: list[Any], wanted: list[Any], what: str) -> None:
    for got, want in zip(ours, wanted, strict=True):
        assert close(got, want, 1e-9), f"{what}: got {got}, wanted {want}"


@pytest.mark.parametrize("name", CASES if LONG else SHORT)
def test_an_interrupt_leaves_the_object_before_or_after(name: str) -> None:
    make, rng = CASES[name], np.random.default_rng(list(CASES).index(name))
    came = rounds_of(make())
    tried: dict[str, set[Line]] = defaultdict(set)
    for stage, item in stages(make, came, rng):
        for announced in (False, True):
            if announced:
                if not hasattr(item, "expect"):
                    continue
                announce(item, came)
            chosen = list(verbs(make, came, announced=announced))
            for i in range(len(chosen)) if LONG else rng.permutation(len(chosen))[:4]:
                each, verb = chosen[i]
                what = f"{each} of {name}, {stage}{', some announced' * announced}"
                every_line = tried[each] if LONG and name in SHORT else None
                check_verb(what, verb, item, came, every_line, rng)
