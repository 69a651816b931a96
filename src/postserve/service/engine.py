"""The service without its HTTP edge: an experiment, its log, the writer, the learner and the clock."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from postserve.errors import InvalidInput
from postserve.policies.choosing import draw
from postserve.service.experiment import Experiment, check_number, check_text, check_values, seconds
from postserve.service.log.events import ArmAdded, ArmRetired, Decided, Event, Promoted, Snapshot
from postserve.service.log.replies import Answer
from postserve.service.log.requests import (
    Activate,
    Conflict,
    Decide,
    Erase,
    Expire,
    Follow,
    Repeat,
    Request,
    Reward,
    Rules,
    Tell,
    Together,
)
from postserve.service.log.retention import drop_old
from postserve.service.log.stores import Store, StoreError
from postserve.service.log.writer import Writer
from postserve.service.model.fold import Model, numbered
from postserve.service.model.learner import Learner, pin
from postserve.service.model.shadow import Shadow
from postserve.service.rehearsing import rehearse
from postserve.service.tally import Tally
from postserve.warming import warm_up

TICK = 0.2
"""Seconds between two looks at the clock."""
DUE = 1_000
"""Decisions that expire in one look, at most."""
DROP = 60.0
"""Seconds between two looks at what need not be kept any more."""
LAST_LESSONS = 60.0
"""Seconds in which a service that stops learns what it has not learnt yet; a restart learns the rest."""
BEGAN = "began"
"""The setting that says with which model and arms the experiment began."""
FILE_ARMS = "arms of the file"
"""The setting that says which arms the file had when the service last started."""

log = logging.getLogger("postserve.service")


class Engine:
    """Decides and learns; every verb returns what the writer will answer."""

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        self.experiment, self.store, self._clock = experiment, store, clock
        feedback = experiment.feedback
        self._wait_for_z = seconds("wait_for_z", feedback.wait_for_z)
        self._wait_for_reward = seconds("wait_for_reward", feedback.wait_for_reward)
        self._rng = np.random.default_rng(seed)
        self._drawing = threading.Lock()
        z_names = tuple(experiment.z)
        untaught = first_model(experiment, store)
        store.lead()  # which raises if another process has this log for itself
        self.learner = Learner(store, untaught, z_names, experiment.store.keep_snapshots)
        self.shadow = None if experiment.shadow is None else Shadow(experiment, store, untaught)
        rules = Rules(z_names, experiment.feedback)
        self.writer = Writer(store, rules, experiment.server.most_waiting, self._committed, clock)
        self.submit: Callable[[Request], Any] = self.writer.submit
        """How verbs hand requests to the writer, and so what they return: a future of the caller's kind."""
        self.tally = Tally()
        self._stopping = threading.Event()
        self._timer = threading.Thread(target=self._look_at_clock, name="postserve-clock", daemon=True)
        self._drop_at, self._asked_at = 0.0, 0
        self.doing: str | None = "starting"
        """What it does while it does not decide."""

    @property
    def ready(self) -> bool:
        """Whether it decides."""
        return self.doing is None

    @property
    def model(self) -> Model:
        """The one that decides now."""
        return self.learner.model

    # Life

    def start(self) -> None:
        """Learn what the log has, compile every kernel, and begin."""
        self.doing = "learning its log"
        self.learner.catch_up()
        self.doing = "compiling, for up to a minute on a new machine"
        self._warm_up()
        self.writer.start()
        self.learner.start()
        if self.shadow is not None:
            self.shadow.learner.start()
        self._timer.start()
        self._follow_file()
        self.doing = None

    def stop(self) -> None:
        """Commit what was submitted, learn it, save the model, and end."""
        self.doing = "stopping"
        self._stopping.set()
        if self._timer.ident is None:  # a start that failed has begun nothing
            self.store.close()
            return
        self._timer.join()
        if self.learner.leads:
            self.writer.submit(Tell(Snapshot(self._clock())), own=True)
        self.writer.stop()
        if self.shadow is not None:
            self.shadow.learner.stop()
        self.learner.stop()
        try:
            self._learn_the_rest()
        finally:
            self.store.close()

    def _learn_the_rest(self) -> None:
        """What this process has written; of what others write there is no end."""
        end = time.monotonic() + LAST_LESSONS
        while time.monotonic() < end and self.learner.leads and self.model.seq < self.learner.told:
            self.learner.step()

    # Verbs

    def decide(
        self,
        context: dict[str, Any],
        eligible: list[str] | None = None,
        name: str | None = None,
        *,
        deferred: bool = False,
    ) -> Any:
        """Choose an arm; a name that was used before gets the same choice."""
        experiment, model, now = self.experiment, self.model, self._clock()
        x = check_values("context", experiment.x, context, experiment.most_magnitude, whole=True)
        try:
            arms, chances = self._chances(model, x, eligible)
        except InvalidInput as refusal:
            if name is None:
                raise
            asked = {
                "x": x,
                "eligible": None if eligible is None else _each_once(eligible),
                "deferred": deferred,
            }
            return self.submit(Repeat(check_text("id", name), asked, refusal))
        with self._drawing:
            index, _ = draw(chances, self._rng)
        decided = Decided(
            now,
            uuid.uuid4().hex if name is None else check_text("id", name),
            x=x,
            eligible=arms,
            arm=arms[index],
            propensities=tuple(chances.tolist()),
            version=model.seq,
            z_due=now + self._wait_for_z,
            due=now + self._wait_for_reward,
            deferred=deferred,
            named=eligible is not None,
            shadow=self._shadows(x, arms),
        )
        return self.submit(Decide(decided))

    def _shadows(self, x: dict[str, Any], arms: tuple[str, ...]) -> tuple[float, ...]:
        """What the shadow would have done, exploring as the service does."""
        would = None if self.shadow is None else self.shadow.would(x, arms)
        return () if would is None else tuple(self._explored(would).tolist())

    def _explored(self, chances: Any) -> Any:
        share = self.experiment.explore
        return (1.0 - share) * chances + share / len(chances)

    def _chances(
        self, model: Model, x: dict[str, Any], eligible: list[str] | None
    ) -> tuple[tuple[str, ...], Any]:
        """The arms that may be served, and the probability of each."""
        if eligible is None:
            arms = model.eligible
        else:
            arms = _each_once(eligible)
            if unknown := [arm for arm in arms if arm not in model.arms or arm in model.retired]:
                wanted = f"some of {', '.join(model.eligible):.200}"
                raise InvalidInput(f"eligible has {unknown[0]!r:.60}, wanted {wanted}")
        if not arms:
            raise InvalidInput("eligible is empty, wanted at least one arm")
        numbers = [model.arms[arm] for arm in arms]
        chances = model.policy.propensities(x, None if len(arms) == len(model.arms) else numbers)[numbers]
        return arms, self._explored(chances)

    def follow(self, name: str, z: dict[str, Any]) -> Any:
        """Some fields of z came, or all."""
        return self.submit(self._follow(name, z))

    def _follow(self, name: str, z: dict[str, Any]) -> Follow:
        experiment = self.experiment
        values = check_values("z", experiment.z, z, experiment.most_magnitude, whole=False)
        if not values:
            raise InvalidInput(f"z is empty, wanted some of {', '.join(experiment.z) or 'no fields at all'}")
        return Follow(check_text("id", name), values)

    def reward(self, name: str, reward: float, key: str = "") -> Any:
        """A reward came."""
        return self.submit(self._reward(name, reward, key))

    def _reward(self, name: str, reward: float, key: str) -> Reward:
        value = check_number("reward", reward, self.experiment.most_magnitude)
        if key:
            check_text("key", key)
        return Reward(check_text("id", name), value, key)

    def activate(self, name: str) -> Any:
        """What was decided is shown."""
        return self.submit(Activate(check_text("id", name)))

    def outcome(
        self, name: str, z: dict[str, Any] | None, reward: float | None, key: str = "", *, activate: bool
    ) -> Any:
        """Several of these at once, of which all are kept, or none."""
        name, parts = check_text("id", name), list[Request]()
        if activate:
            parts.append(Activate(name))
        if z is not None:
            parts.append(self._follow(name, z))
        if reward is not None:
            parts.append(self._reward(name, reward, key))
        if not parts:
            raise InvalidInput("an event has nothing in it, wanted z, reward or activate")
        return self.submit(Together(name, tuple(parts)))

    def erase(self, name: str) -> Any:
        """Nothing more is learnt of a decision; `retention.drop_erased` drops it after the next snapshot."""
        return self.submit(Erase(check_text("id", name)))

    def add_arm(self, arm: str) -> Any:
        """An arm can be served from now on."""
        return self.submit(Tell(ArmAdded(self._clock(), arm=check_text("arm", arm))))

    def retire_arm(self, arm: str) -> Any:
        """An arm is served no more."""
        there = self.model.eligible
        if arm not in there:
            raise InvalidInput(f"arm is {arm!r:.60}, wanted one of {', '.join(there):.200}")
        if len(there) == 1:
            raise InvalidInput(f"arm {arm!r:.60} is the only one, wanted at least one to remain")
        return self.submit(Tell(ArmRetired(self._clock(), arm=arm)))

    def snapshot(self, *, erasing: bool = False) -> Any:
        """Save the model; for an erasure, in place of the snapshot of the one before."""
        return self.submit(Tell(Snapshot(self._clock(), erasing=erasing)))

    def promote(self, seq: int) -> Any:
        """Let the model of a snapshot decide and learn from now on."""
        self._refuse_unless_saved(seq)
        self.store.set_setting(pin(seq), "promoted")
        if seq not in dict(self.store.snapshots()):  # the learner has dropped it before it was pinned
            raise self._not_saved(seq)
        return self.submit(Tell(Promoted(self._clock(), snapshot=seq)))

    def _refuse_unless_saved(self, seq: int) -> None:
        if seq not in dict(self.store.snapshots()):
            raise self._not_saved(seq)
        try:
            self.learner.check(seq)
        except Exception as error:
            raise InvalidInput(f"snapshot {seq} cannot be loaded ({error}), wanted another one") from error

    def _not_saved(self, seq: int) -> InvalidInput:
        known = ", ".join(str(each) for each, _ in self.store.snapshots())
        return InvalidInput(f"snapshot is {seq}, wanted one of {known or 'none yet'}")

    # What happens by itself

    def _committed(self, last: int, events: list[Event]) -> None:
        """The log has grown, and the learner goes on."""
        self.learner.tell(last, events)
        self.tally.commit(events)
        if self.shadow is not None:
            self.shadow.learner.tell(last)

    def _look_at_clock(self) -> None:
        while not self._stopping.wait(TICK):
            try:
                if self.learner.leads:
                    self.expire()
                    self._save_if_due()
                    self._drop_if_due()
            except Exception:
                log.exception("the clock failed; it tries again")

    def expire(self) -> None:
        """Log all waits that are over."""
        while names := self.store.due(self._clock(), DUE):
            for future in _submitted(self.writer, map(Expire, names)):
                with suppress(Conflict):  # it was erased meanwhile
                    future.result()

    def _save_if_due(self) -> None:
        saved = self.store.snapshots()
        last = max(self._asked_at, saved[-1][0] if saved else 0)  # what was asked for may be refused
        if self.model.seq - last >= self.experiment.store.snapshot_every:
            self.writer.submit(Tell(Snapshot(self._clock())), own=True).result()
            self._asked_at = self.store.last()

    def _drop_if_due(self) -> None:
        """Now and then, drop what need not be kept any more."""
        keep, now = self.experiment.store.keep_events, time.monotonic()
        if keep is None or now < self._drop_at:
            return
        before = self._clock() - seconds("keep_events", keep)
        more = drop_old(self.store, before, self.experiment.store.keep_snapshots)
        self._drop_at = now if more else now + DROP

    def _follow_file(self) -> None:
        """Arms that came into the file since the last start are added, and those that left it are retired.

        What was done to other arms while running stays: the file need not know it.
        """
        known, wanted = self.store.setting(FILE_ARMS), self.experiment.arms
        before = began_with(self.store)["arms"] if known is None else msgspec.json.decode(known)
        for arm in wanted:
            if arm not in before and arm not in self.model.eligible:
                self.add_arm(arm).result()
        self.learner.wait_for(self.store.last(), LAST_LESSONS)  # one arm at least must remain
        for arm in before:
            if arm not in wanted and arm in self.model.eligible:
                self.retire_arm(arm).result()
        self.store.set_setting(FILE_ARMS, msgspec.json.encode(wanted).decode())

    def _warm_up(self) -> None:
        x_encoder, z_encoder = self.experiment.encoders()
        x, z = np.zeros(len(x_encoder.names)), np.zeros(len(z_encoder.names))
        pairs = [(self.experiment, self.model)]
        if self.shadow is not None:
            pairs.append((self.shadow.experiment, self.shadow.model))
        for experiment, model in pairs:
            warm_up(model.policy, x=x, z=z if experiment.z else None)
            rehearse(experiment, experiment.untaught(len(model.arms)))  # whose ids no caller has used


def _each_once(arms: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(arms))


def _submitted(writer: Writer, requests: Iterable[Request]) -> list["Future[Answer]"]:
    return [writer.submit(each, own=True) for each in requests]


def began_with(store: Store) -> dict[str, Any]:
    """The model's settings and the arms with which the experiment began."""
    found: dict[str, Any] = msgspec.json.decode(store.setting(BEGAN) or "{}")
    return found


def _differences(before: Any, now: Any, key: str = "") -> Iterator[str]:
    """What of some settings is not as it was."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before | now:
            yield from _differences(before.get(name), now.get(name), f"{key}.{name}" if key else name)
    elif before != now:
        was, found = ("not there" if each is None else f"{each!r:.60}" for each in (before, now))
        yield f"{key} was {was}, got {found}"


def first_model(experiment: Experiment, store: Store) -> Model:
    """The untaught model with which the experiment began; raises if it began with another one."""
    now = msgspec.to_builtins(experiment.model)
    store.setting(BEGAN, msgspec.json.encode({"model": now, "arms": experiment.arms}).decode())
    began = began_with(store)
    if differ := list(_differences(began["model"], now)):
        raise StoreError(
            f"{'; '.join(differ)}, wanted as when the experiment began: the model depends on it. Begin "
            "another experiment, with another name and store; its model can be taught from the log of this "
            "one"
        )
    return Model(experiment.untaught(len(began["arms"])), 0, numbered(began["arms"]))
