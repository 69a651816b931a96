"""A second policy that learns from the same rounds and decides nothing: what it would have earned.

What it would do is logged with each decision, as its probabilities of the eligible arms, once it has learnt
the log that was there when the service started. It is a fold over the log as well, from its beginning, and
is kept nowhere: a restart learns it anew, beside the service.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import NoSupport
from postserve.evaluation import compare
from postserve.policies import open_rounds
from postserve.service.experiment import Experiment
from postserve.service.log.events import Activated, Decided, Event, Logged, Promoted, Snapshot
from postserve.service.log.rounds import Round, round_of
from postserve.service.log.stores import BASE, Saved, Store
from postserve.service.model.fold import Model
from postserve.service.model.learner import Learner
from postserve.state import private
from postserve.types import FloatArray

SINCE = "shadow"
"""The setting that says which shadow there is, and at which place it came."""
PART = 5_000
"""Rounds that are in memory at once."""


class Shadow:
    """Learns beside the service's own model; `began` is the untaught one that the log began with."""

    def __init__(self, experiment: Experiment, store: Store, began: Model) -> None:
        assert experiment.shadow is not None
        self.experiment = msgspec.structs.replace(experiment, policy=experiment.shadow, shadow=None)
        untaught = began._replace(policy=self.experiment.untaught(len(began.arms)))
        self._store, self._first = store, store.last()
        self.learner = _Learner(store, untaught, tuple(experiment.z))
        self.since = _since(experiment.shadow, store, self._first)

    @property
    def model(self) -> Model:
        """The newest."""
        return self.learner.model

    def would(self, x: Any, eligible: Sequence[str]) -> FloatArray | None:
        """Its probabilities of the eligible arms; None until it has learnt what there was, and these arms."""
        model = self.model
        if model.seq < self._first or not all(arm in model.arms for arm in eligible):
            return None
        numbers = [model.arms[arm] for arm in eligible]
        among = None if len(numbers) == len(model.arms) else numbers
        found: FloatArray = model.policy.propensities(x, among)[numbers]
        return found

    def report(self) -> dict[str, Any]:
        """What was earned, what the shadow would have, and the difference, by the rounds since it came.

        By self-normalised inverse propensities; rounds whose reward is out or never came do not count. Where
        the log cannot say, it says why. With a default reward, only rounds whose wait is over count: before,
        those without a reward of their own would be missing.
        """
        model = self.model  # which knows the arms of what it has learnt
        behind = self._store.last() - model.seq
        found: dict[str, Any] = {"since": self.since, "behind": behind, "rounds": 0}
        parts = _parts(self._store, self.since, model.seq, list(model.arms), self._counts)
        if len(model.arms) < 2:
            return {**found, "unknown": "there is 1 arm, wanted at least 2: all policies do the same"}
        first = next(parts, None)
        if first is None:
            return found

        def all_parts() -> Iterator[LoggedRounds]:
            for part in (first, *parts):
                found["rounds"] += len(part)
                yield part

        try:
            both = compare({"shadow": _AsLogged()}, all_parts(), estimator="snips")
        except NoSupport as error:
            return {**found, "unknown": f"{error}; explore in the experiment's file makes it possible"}
        found |= {name: _numbers(each) for name, each in both.evaluations.items()}
        found["served"] = found.pop("as served")
        return {**found, "difference": _numbers(both.differences["shadow"])}

    def _counts(self, one: Round, now: float) -> bool:
        if one.decided is None or not one.active or one.reward is None:
            return False
        return self.experiment.feedback.default_reward is None or one.decided.due <= now


class _Learner(Learner):
    """One that nobody waits for: events may be dropped before it has learnt them."""

    def __init__(self, store: Store, untaught: Model, z_names: tuple[str, ...]) -> None:
        apart: Any = _Apart(store)
        super().__init__(apart, untaught, z_names, 1)
        self._log = store

    def _folded(self, taught: Model, logged: list[Logged]) -> Model:
        """Without rounds that were dropped: once a base is passed, all that went before it is known."""
        model = super()._folded(taught, logged)
        if not taught.seq < int(self._log.setting(BASE) or 0) <= model.seq:
            return model
        self._rounds.clear()  # which may have some of them
        names = list(open_rounds.named(model.policy))
        parts = (names[start : start + PART] for start in range(0, len(names), PART))
        gone = [name for part in parts for name, events in self._log.events_of(part).items() if not events]
        return model._replace(policy=_without(model.policy, gone)) if gone else model


def _without(policy: Any, names: Sequence[str]) -> Any:
    left, known = private(policy), open_rounds.named(policy)
    for name in names:
        left.withdraw(known[name].x, known[name].arm, round_id=name)
    return left


class _AsLogged:
    """A policy that does what x says: the probabilities that were logged."""

    def propensities(self, x: FloatArray, arms: Any = None) -> FloatArray:
        return x

    def propensities_batch(self, X: FloatArray, arms: Any = None) -> FloatArray:
        return X


class _Apart:
    """The log for a model whose snapshots are not kept, and which nobody promotes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    shared = False
    """Every process has a shadow of its own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def lead(self) -> bool:
        return True

    def setting(self, name: str, default: str | None = None) -> str | None:
        """It folds what is kept of the log, whatever snapshot the service must begin with."""
        return None if name == BASE else self._store.setting(name, default)

    def read(self, after: int, most: int) -> list[Logged]:
        return [Logged(seq, _of_no_model(event)) for seq, event in self._store.read(after, most)]

    def snapshots(self) -> list[tuple[int, str]]:
        return []

    def snapshot(self, seq: int) -> None:
        return None

    def save(self, saved: Saved) -> None:
        raise AssertionError("a shadow has no snapshots")

    def drop_snapshot(self, seq: int, unless: str) -> None:
        raise AssertionError("a shadow has no snapshots")


def _of_no_model(event: Event) -> Event:
    """What says nothing of decisions says nothing here."""
    return Activated(event.time) if isinstance(event, Snapshot | Promoted) else event


def _since(policy: dict[str, Any], store: Store, last: int) -> int:
    """Where this shadow came: another one's decisions do not count for it."""
    digest = hashlib.sha256(msgspec.json.encode(policy, order="sorted")).hexdigest()
    known = msgspec.json.decode(store.setting(SINCE) or "{}")
    if known.get("digest") != digest:
        known = {"digest": digest, "since": last}
        store.set_setting(SINCE, msgspec.json.encode(known).decode())
    return int(known["since"])


def _parts(
    store: Store, since: int, last: int, arms: list[str], counts: Callable[[Round, float], bool]
) -> Iterator[LoggedRounds]:
    """The rounds that count and have a shadow; their x are the shadow's probabilities of all arms."""
    rows = _rows(store, since, last, {arm: number for number, arm in enumerate(arms)}, counts)
    while some := list(islice(rows, PART)):
        shadows, served, numbers, rewards = (np.array(column) for column in zip(*some, strict=True))
        yield LoggedRounds(
            x=shadows,
            z=np.empty((len(some), 0)),
            arms=numbers,
            rewards=rewards,
            propensities=served[np.arange(len(some)), numbers],
            all_propensities=served,
            arm_names=arms,
        )


def _rows(
    store: Store, since: int, last: int, numbers: dict[str, int], counts: Callable[[Round, float], bool]
) -> Iterator[tuple[FloatArray, FloatArray, int, float]]:
    at, newest = since, store.read(max(last - 1, 0), 1)
    now = newest[0].event.time if newest else 0.0
    while at < last and (some := store.read(at, PART)):
        at = some[-1].seq
        decided = [
            event for seq, event in some if seq <= last and isinstance(event, Decided) and event.shadow
        ]
        known = store.events_of([event.id for event in decided], before=last + 1)
        for event in decided:
            one = round_of(known[event.id])
            if counts(one, now):
                assert one.reward is not None
                sides = np.zeros((2, len(numbers)))
                sides[:, [numbers[arm] for arm in event.eligible]] = event.shadow, event.propensities
                yield sides[0], sides[1], numbers[event.arm], one.reward


def _numbers(each: Any) -> dict[str, float]:
    return {name: float(getattr(each, name)) for name in ("value", "error", "low", "high")}
