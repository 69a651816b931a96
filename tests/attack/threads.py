"""Threads around one object, in a process of their own: a crash is then a failed test, not the suite's end.

`python -m tests.attack.threads ATTACK AMOUNT [POLICY …]`: the amount is a number of runs of `learners`, of
seconds of `readers` and `maps`, and of updates for `signals`.
"""

import copy
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from postserve import (
    BestMap,
    BestPolicy,
    EpsilonGreedy,
    HybridMap,
    KernelMap,
    LinUCB,
    NeighborsMap,
    PerArmMap,
    PoLinTS,
    PoLinUCB,
    RidgeMap,
    StagedMap,
    load,
)
from postserve.changes import one_version
from postserve.conformance.tools import close, learnt
from postserve.errors import Busy

X, Z, ARMS = 3, 2, 4
SUMS = ("dense_gram", "dense_moment", "dense_weights", "row_u", "row_y")
"""What rounding alone changes when a cache is renewed."""
POLICIES: dict[str, Callable[[], Any]] = {
    "RidgeMap": lambda: PoLinUCB(ARMS, RidgeMap(X, Z)),
    "PerArmMap": lambda: PoLinUCB(ARMS, PerArmMap(RidgeMap(X, Z)), optimism="posterior"),
    "HybridMap": lambda: PoLinUCB(ARMS, HybridMap(X, Z), model="hybrid", optimism="posterior"),
    "NeighborsMap": lambda: PoLinUCB(ARMS, NeighborsMap(X, Z), optimism="bound"),
    "StagedMap": lambda: PoLinUCB(ARMS, StagedMap([RidgeMap(X, 1), HybridMap(X + 1, 1)])),
    "hybrid": lambda: LinUCB(ARMS, X, model="hybrid"),
    "shared": lambda: PoLinUCB(ARMS, HybridMap(X, Z), model="shared"),
    "BestPolicy": lambda: BestPolicy(ARMS, RidgeMap(X, Z)),
    "EpsilonGreedy": lambda: EpsilonGreedy(PoLinUCB(ARMS, RidgeMap(X, Z)), epsilon=0.2),
    "Thompson": lambda: PoLinTS(ARMS, RidgeMap(X, Z), draws=20),
}
MAPS: dict[str, Callable[[], Any]] = {
    "RidgeMap": lambda: RidgeMap(X, Z),
    "PerArmMap": lambda: PerArmMap(RidgeMap(X, Z)),
    "HybridMap": lambda: HybridMap(X, Z),
    "NeighborsMap": lambda: NeighborsMap(X, Z),
    "KernelMap": lambda: KernelMap(X, Z, landmarks=9),
    "BestMap": lambda: BestMap([RidgeMap(X, Z), PerArmMap(RidgeMap(X, Z))]),
    "StagedMap": lambda: StagedMap([RidgeMap(X, 1), HybridMap(X + 1, 1)]),
}
PROBES = np.random.default_rng(7).standard_normal((4, X))


class Seen(NamedTuple):
    """An answer, and the versions between which it was given."""

    first: int
    last: int
    what: str
    answer: Any


@one_version
def scores(policy: Any, x: Any) -> dict[int, float]:
    """What a choice is made of, by arm."""
    chooser = getattr(policy, "policy", policy)
    found = chooser._scores(x, chooser._arm_set.all_slots)
    return dict(zip(policy.arms, np.asarray(found).tolist(), strict=False))


def questions(policy: Any) -> dict[str, Callable[[], Any]]:
    """Readings of a policy, by name: numbers, by arm."""

    def by_arm(values: Any) -> dict[int, float]:
        return dict(enumerate(np.asarray(values, dtype=float).ravel().tolist()))

    found: dict[str, Callable[[], Any]] = {
        "arms": lambda: by_arm(policy.arms),
        # Not the arms: two new ones tie, and a reading that is repeated draws again.
        "batch": lambda: by_arm(policy.select_batch(PROBES, np.random.default_rng(0)).propensities),
        "describe": lambda: {0: float(len(str(policy.describe())) > 0)},
        "scores": lambda: scores(policy, PROBES[0]),
        "chances": lambda: by_arm(policy.propensities(PROBES[1])),
    }
    if hasattr(policy, "weights"):
        found["weights"] = lambda: by_arm(policy.weights)
    if getattr(policy, "context_map", None) is not None:
        found["map"] = lambda: by_arm(policy.context_map.predict(PROBES[:2], [0, 1]))
    if isinstance(policy, PoLinTS):
        del found["scores"]  # which are drawn
    if isinstance(policy, PoLinTS | EpsilonGreedy):
        found["batch"] = lambda: {0: float(len(policy.select_batch(PROBES, np.random.default_rng(0)).arms))}
    return found


class Learner:
    """Changes a policy in random ways, and records every version."""

    def __init__(self, policy: Any, seed: int) -> None:
        self.policy, self.rng, self.asked = policy, np.random.default_rng(seed), questions(policy)
        self.versions: dict[int, dict[str, Any]] = {}
        self.saved: dict[int, Any] = {}
        self.beta = self.rng.standard_normal((X, Z))
        for arm in range(ARMS):
            for _ in range(10):
                policy.update(*self.round(arm))
        self.record()

    def round(self, arm: int) -> tuple[Any, int, Any, float]:
        x = self.rng.standard_normal(X)
        z = x @ self.beta + self.rng.standard_normal(Z)
        return x, arm, z, float(x[0] * (arm % 3) + z.sum() + self.rng.standard_normal())

    def record(self) -> None:
        version = self.policy.version
        self.versions[version] = {what: ask() for what, ask in self.asked.items()}
        self.saved[version] = learnt(self.policy)

    def change(self) -> None:
        policy, rng, arms = self.policy, self.rng, self.policy.arms
        x, arm, z, reward = self.round(int(rng.choice(arms)))
        verb = rng.choice(["update", "two", "forget", "refit", "add", "remove", "announce", "batch"])
        if verb == "two":
            z_hat = policy.observe(x, arm, z)
            if policy.version not in self.versions:
                self.record()
            policy.credit(x, arm, z, reward, z_hat=z_hat)
        elif verb == "forget":
            policy.forget(arms=0.95)
        elif verb == "refit":
            policy.refit_prior()
        elif verb == "add" and len(arms) < ARMS + 2:
            policy.add_arm()
        elif verb == "remove" and len(arms) > ARMS:
            policy.remove_arm(arm)
        elif verb == "announce":
            policy.expect(x, arm)
            self.record()
            policy.update(x, arm, z, reward)
        elif verb == "batch":
            rows = [self.round(int(rng.choice(arms))) for _ in range(8)]
            policy.update_batch(*map(list, zip(*rows, strict=True)))
        else:
            policy.update(x, arm, z, reward)
        self.record()


def beside_a_learner(
    name: str, seconds: float, readers: int, savers: int, folder: Path, seed: int = 0
) -> str:
    """One learner, selectors and savers: every answer is that of a version, every file loads and is one."""
    learner = Learner(POLICIES[name](), seed)
    policy, end = learner.policy, time.monotonic() + seconds
    seen: list[Seen] = []
    failures: list[str] = []
    files: list[tuple[int, int, Path]] = []

    def loop(work: Callable[[int], None], number: int) -> None:
        try:
            while time.monotonic() < end and not failures:
                work(number)
        except BaseException:
            failures.append(traceback.format_exc())

    def ask(number: int) -> None:
        rng = np.random.default_rng(number)
        for what, reading in questions(policy).items():
            first = policy.version
            answer = reading()
            seen.append(Seen(first, policy.version, what, answer))
        for k in range(len(PROBES)):
            first = policy.version
            decision = policy.select(PROBES[k], rng)
            if k == 1:
                seen.append(Seen(first, policy.version, "decision", decision))

    def save(number: int) -> None:
        path, first = folder / f"{name}-{number}-{len(files)}.npz", policy.version
        policy.save(path)
        files.append((first, policy.version, path))
        time.sleep(0.01)

    threads = [threading.Thread(target=loop, args=(ask, i)) for i in range(readers)]
    threads += [threading.Thread(target=loop, args=(save, i)) for i in range(savers)]
    threads += [threading.Thread(target=loop, args=(lambda _: learner.change(), 0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures += [why for each in seen if (why := no_version(each, learner))]
    for first, last, path in files:
        if not is_one_of(learnt(load(path)), learner.saved, first, last):
            failures.append(f"{path.name} is none of the versions {first} to {last}")
    counts = f"{len(learner.versions)} versions, {len(seen)} readings, {len(files)} files"
    if failures:
        raise AssertionError(f"{name}: {len(failures)} failures in {counts}, the first: {failures[0]}")
    return f"{name}: {counts}"


def no_version(seen: Seen, learner: Learner) -> str | None:
    """Why an answer is that of no version; None if it is one."""
    versions = [learner.versions[v] for v in range(seen.first, seen.last + 1) if v in learner.versions]
    for version in versions:
        if seen.what == "decision":
            chances = dict(zip(version["arms"].values(), version["chances"].values(), strict=True))
            chance = chances.get(seen.answer.arm, 0.0)
            if chance > 0.0 and close(chance, seen.answer.propensity, 1e-9):
                return None
        elif alike(seen.answer, version[seen.what]):
            return None
    return f"{seen}, wanted one of {[v.get(seen.what) for v in versions][:3]}"


def alike(one: dict[int, float], other: dict[int, float]) -> bool:
    return one.keys() == other.keys() and close(list(one.values()), list(other.values()), 1e-9)


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def is_one_of(found: dict[str, Any], versions: dict[int, Any], first: int, last: int) -> bool:
    """Whether what was found is a version that was recorded, or the one before it: if caches had lost digits,
    these were renewed in the version after it, before anybody could record it.
    """
    between = range(first, last + 1)
    if any(v in versions and equal(found, versions[v]) for v in between):
        return True
    return any(settles_to(found, versions[v + 1]) for v in between if v not in versions and v + 1 in versions)


def settles_to(found: dict[str, Any], settled: dict[str, Any]) -> bool:
    return all(close(found[name], settled[name], 1e-6) for name in settled if name.endswith(SUMS))


def two_learners(name: str, seed: int) -> str:
    """Two threads learn until each kind of outcome was seen: one of them is refused, and nothing is torn."""
    policy, done, busy = POLICIES[name](), [0, 0], [0, 0]
    failures: list[str] = []
    end = time.monotonic() + 120.0

    def learn(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        try:
            while time.monotonic() < end and (not sum(busy) or min(done) < 50) and not failures:
                x, z = rng.standard_normal(X), rng.standard_normal(Z)
                try:
                    policy.update(x, int(rng.integers(ARMS)), z, 1.0)
                    done[number] += 1
                except Busy:
                    busy[number] += 1
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=learn, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert sum(busy), f"{name}: no learner was refused in {done} updates"
    assert policy.version >= sum(done), f"{name}: version {policy.version} after {done} updates"
    if hasattr(policy, "pulls"):
        assert policy.pulls.sum() == sum(done), f"{name}: {policy.pulls} pulls after {done} updates"
    policy.select(PROBES[0], np.random.default_rng(0))
    return f"{name}: {done} updates, {busy} refused"


def maps_beside_a_learner(name: str, seconds: float) -> str:
    """A map alone, which one thread teaches and others ask: every answer is that of a version."""
    phi_hat, rng, end = MAPS[name](), np.random.default_rng(0), time.monotonic() + seconds
    versions: dict[int, list[Any]] = {}
    seen: list[tuple[int, int, int, Any]] = []
    failures: list[str] = []

    def answers() -> list[Any]:
        return [phi_hat.predict(PROBES, range(4)), phi_hat.radius(PROBES[0], range(4))]

    def learn() -> None:
        x, z = rng.standard_normal(X), rng.standard_normal(Z)
        if phi_hat.version % 20 == 19:
            phi_hat.forget(0.9)
        elif phi_hat.version % 20 == 9 and hasattr(phi_hat, "refit_prior"):
            phi_hat.refit_prior()
        elif phi_hat.version % 20 == 4 and hasattr(phi_hat, "remove_arm"):
            phi_hat.remove_arm(int(rng.integers(4)))
        else:
            phi_hat.update(x, int(rng.integers(4)), z)
        versions[phi_hat.version] = answers()

    def ask() -> None:
        for k in range(2):
            first = phi_hat.version
            answer = answers()[k]
            seen.append((first, phi_hat.version, k, answer))

    def loop(work: Callable[[], None]) -> None:
        try:
            while time.monotonic() < end and not failures:
                work()
        except BaseException:
            failures.append(traceback.format_exc())

    versions[phi_hat.version] = answers()
    threads = [threading.Thread(target=loop, args=(work,)) for work in (learn, ask, ask, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first, last, k, answer in seen:
        wanted = [versions[v][k] for v in range(first, last + 1) if v in versions]
        if not any(close(answer, each, 1e-9) for each in wanted):
            failures.append(f"question {k}, {first} to {last}: {answer}, wanted one of {wanted[:3]}")
    assert not failures, f"{name}: {len(failures)} failures of {len(seen)}, the first: {failures[0]}"
    return f"{name}: {len(versions)} versions, {len(seen)} readings"


def signals(name: str, rounds: int) -> str:
    """Interrupts at random instants of updates: each is learnt or not, and the version says which."""
    policy, rng = POLICIES[name](), np.random.default_rng(0)

    def round_() -> tuple[Any, int, Any, float]:
        x, z = rng.standard_normal(X), rng.standard_normal(Z)
        return x, int(rng.integers(ARMS)), z, float(z.sum())

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    times = []
    for _ in range(100):
        start = time.perf_counter()
        policy.update(*round_())
        times.append(time.perf_counter() - start)
    longest = 3.0 * float(np.median(times))
    twin, stopped, torn = copy.deepcopy(policy), 0, 0
    for _ in range(rounds):
        now, before = round_(), policy.version
        try:
            signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-6, longest)))
            policy.update(*now)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        except KeyboardInterrupt:
            stopped += 1
        if policy.version > before:
            twin.update(*now)
        torn += not equal(learnt(policy), learnt(twin))
    assert not torn, f"{name}: {torn} of {stopped} interrupts left it torn"
    return f"{name}: {stopped} interrupts in {rounds} updates, version {policy.version}"


def main(attack: str, amount: str, *names: str) -> None:
    """An attack on the named policies, or on all of them."""
    wanted = names or tuple(POLICIES)
    if attack == "signals":
        for name in wanted[:3]:
            print(signals(name, int(amount)), flush=True)
        return
    if attack == "maps":
        for name in MAPS:
            sys.setswitchinterval(1e-5)
            print(maps_beside_a_learner(name, float(amount)), flush=True)
        return
    if attack == "learners":
        for seed in range(int(amount)):
            sys.setswitchinterval((5e-3, 1e-6)[seed % 2])
            print(two_learners(wanted[seed % len(wanted)], seed), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        for seed, name in enumerate(wanted):
            for interval in (5e-3, 1e-6):
                sys.setswitchinterval(interval)
                readers, savers = (8, 2) if float(amount) > 5.0 else (3, 1)
                print(beside_a_learner(name, float(amount), readers, savers, Path(folder), seed), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
