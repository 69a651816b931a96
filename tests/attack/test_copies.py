"""Pickles of an object that a thread teaches meanwhile, and merges of it, are those of one version."""

import copy
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pytest
from tests.attack.size import LONG
from tests.attack.threads import ARMS, MAPS, POLICIES, X, Z, is_one_of

from postserve.conformance.tools import learnt
from postserve.protocols import Merges

SECONDS = 10.0 if LONG else 0.15
MERGE = [name for name, make in MAPS.items() if isinstance(made := make(), Merges) and made.order_free]


def by_joblib(item: Any) -> Any:
    file = BytesIO()
    joblib.dump(item, file)
    file.seek(0)
    return joblib.load(file)


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda item: pickle.loads(pickle.dumps(item)),
    "joblib": by_joblib,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda item: copy.deepcopy([item])[0],
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", POLICIES)
def test_a_copy_of_a_policy_is_one_version(name: str, way: str) -> None:
    policy = POLICIES[name]()

    def change(rng: np.random.Generator) -> None:
        x, z = rng.standard_normal(X), rng.standard_normal(Z)
        if policy.version % 10 == 9:
            policy.forget(arms=0.9)
        else:
            policy.update(x, int(rng.integers(ARMS)), z, float(z.sum()))

    check_readings(policy, change, lambda: COPIES[way](policy), lambda version: version)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", MAPS)
def test_a_copy_of_a_map_is_one_version(name: str, way: str) -> None:
    phi_hat = MAPS[name]()
    check_readings(phi_hat, teaching(phi_hat), lambda: COPIES[way](phi_hat), lambda version: version)


@pytest.mark.parametrize("name", MERGE)
def test_a_merge_with_a_map_adds_one_version_of_it(name: str) -> None:
    phi_hat = MAPS[name]()

    def merged(other: Any) -> Any:
        mine = MAPS[name]()
        mine.merge(other)
        return mine

    check_readings(phi_hat, teaching(phi_hat), lambda: merged(phi_hat), merged)


def teaching(phi_hat: Any) -> Callable[[np.random.Generator], None]:
    def change(rng: np.random.Generator) -> None:
        if phi_hat.version % 10 == 9:
            phi_hat.forget(0.9)
        else:
            phi_hat.update(rng.standard_normal(X), int(rng.integers(ARMS)), rng.standard_normal(Z))

    return change


def check_readings(
    item: Any,
    change: Callable[[np.random.Generator], None],
    read: Callable[[], Any],
    wanted: Callable[[Any], Any],
) -> None:
    """Read an object while a thread changes it, and compare with what `wanted` makes of its versions."""
    rng, over = np.random.default_rng(0), threading.Event()
    for _ in range(20):
        change(rng)
    versions, seen = {item.version: copy.deepcopy(item)}, []

    def learn() -> None:
        while not over.is_set():
            change(rng)
            versions[item.version] = copy.deepcopy(item)

    learner = threading.Thread(target=learn)
    with switching_often():
        learner.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            first = item.version
            found = learnt(read())
            seen.append((first, item.version, found))
        over.set()
        learner.join()
    assert len(versions) > 1
    for first, last, found in seen:
        made = {v: learnt(wanted(versions[v])) for v in range(first, last + 2) if v in versions}
        assert is_one_of(found, made, first, last), (first, last)


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
