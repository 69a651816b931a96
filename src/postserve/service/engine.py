"""The service without its HTTP edge: an experiment, its log, the writer, the learner and the clock."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import msgspec
import numpy as np

from postserve.errors import InvalidInput
from postserve.policies.choosing import draw
from postserve.service.events import ArmAdded, ArmRetired, Decided, Promoted, Snapshot
from postserve.service.experiment import Experiment, check_values, seconds
from postserve.service.fold import Model
from postserve.service.learner import Learner, pin
from postserve.service.requests import Activate, Decide, Expire, Follow, Request, Reward, Rules, Tell
from postserve.service.stores import Store, StoreError
from postserve.service.writer import Answer, Writer
from postserve.warming import warm_up

TICK = 0.2
"""Seconds between two looks at the clock."""
DUE = 1_000
"""Decisions that expire in one look, at most."""
BEGAN = "began"
"""The setting that says with which model and arms the experiment began."""

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
        self._rng = np.random.default_rng(seed)
        self._drawing = threading.Lock()
        z_names = tuple(experiment.z)
        untaught = first_model(experiment, store)
        self.learner = Learner(store, untaught, z_names, experiment.store.keep_snapshots)
        rules = Rules(z_names, experiment.feedback)
        self.writer = Writer(store, rules, experiment.server.most_waiting, self._committed, clock)
        self._stopping = threading.Event()
        self._timer = threading.Thread(target=self._look_at_clock, name="postserve-clock", daemon=True)
        self.ready = False

    @property
    def model(self) -> Model:
        """The one that decides now."""
        return self.learner.model

    # Life

    def start(self) -> None:
        """Learn what the log has, compile every kernel, and begin."""
        self.learner.catch_up()
        self._warm_up()
        self.writer.start()
        self.learner.start()
        self._timer.start()
        self._follow_file()
        self.ready = True

    def stop(self) -> None:
        """Commit what was submitted, learn it, save the model, and end."""
        self.ready = False
        self._stopping.set()
        self._timer.join()
        future = self.writer.submit(Tell(Snapshot(self._clock())))
        self.writer.stop()
        future.result()
        self.learner.wait_for(self.store.last(), 60.0)
        self.learner.stop()
        self.store.close()

    # Verbs

    def decide(
        self,
        context: dict[str, Any],
        eligible: list[str] | None = None,
        name: str | None = None,
        *,
        deferred: bool = False,
    ) -> "Future[Answer]":
        """Choose an arm; a name that was used before gets the same choice."""
        experiment, model, now = self.experiment, self.model, self._clock()
        x = check_values("context", experiment.x, context, experiment.most_magnitude, whole=True)
        arms, chances = self._chances(model, x, eligible)
        with self._drawing:
            index, _ = draw(chances, self._rng)
        feedback = experiment.feedback
        decided = Decided(
            now,
            uuid.uuid4().hex if name is None else name,
            x=x,
            eligible=arms,
            arm=arms[index],
            propensities=chances.tolist(),
            version=model.seq,
            z_due=now + seconds("wait_for_z", feedback.wait_for_z),
            due=now + seconds("wait_for_reward", feedback.wait_for_reward),
            deferred=deferred,
        )
        return self.writer.submit(Decide(decided))

    def _chances(self, model: Model, x: dict[str, Any], eligible: list[str] | None) -> tuple[list[str], Any]:
        """The arms that may be served, and the probability of each."""
        there = model.eligible
        if eligible is None:
            arms = list(there)
        else:
            arms = list(dict.fromkeys(eligible))
            if unknown := [arm for arm in arms if arm not in there]:
                raise InvalidInput(f"eligible has {unknown[0]!r:.60}, wanted some of {', '.join(there):.200}")
        if not arms:
            raise InvalidInput("eligible is empty, wanted at least one arm")
        numbers = [model.arms.index(arm) for arm in arms]
        everyone = len(numbers) == len(model.arms)
        found = model.policy.propensities(x, None if everyone else numbers)
        places = {number: i for i, number in enumerate(model.policy.arms)}
        chances = found[[places[number] for number in numbers]]
        share = self.experiment.explore
        return arms, (1.0 - share) * chances + share / len(arms)

    def follow(self, name: str, z: dict[str, Any]) -> "Future[Answer]":
        """Some fields of z came, or all."""
        experiment = self.experiment
        values = check_values("z", experiment.z, z, experiment.most_magnitude, whole=False)
        if not values:
            raise InvalidInput(f"z is empty, wanted some of {', '.join(experiment.z) or 'no fields at all'}")
        return self.writer.submit(Follow(name, values))

    def reward(self, name: str, reward: float, key: str = "") -> "Future[Answer]":
        """A reward came."""
        most = self.experiment.most_magnitude
        if type(reward) not in (int, float) or not abs(reward) <= most:
            raise InvalidInput(f"reward is {reward!r:.60}, wanted a number of at most {most:g}")
        return self.writer.submit(Reward(name, float(reward), key))

    def activate(self, name: str) -> "Future[Answer]":
        """What was decided is shown."""
        return self.writer.submit(Activate(name))

    def add_arm(self, arm: str) -> "Future[Answer]":
        """An arm can be served from now on."""
        return self.writer.submit(Tell(ArmAdded(self._clock(), arm=arm)))

    def retire_arm(self, arm: str) -> "Future[Answer]":
        """An arm is served no more."""
        there = self.model.eligible
        if arm not in there:
            raise InvalidInput(f"arm is {arm!r:.60}, wanted one of {', '.join(there):.200}")
        if len(there) == 1:
            raise InvalidInput(f"arm {arm!r:.60} is the only one, wanted at least one to remain")
        return self.writer.submit(Tell(ArmRetired(self._clock(), arm=arm)))

    def snapshot(self) -> "Future[Answer]":
        """Save the model."""
        return self.writer.submit(Tell(Snapshot(self._clock())))

    def promote(self, seq: int) -> "Future[Answer]":
        """Let the model of a snapshot decide and learn from now on."""
        if seq not in (known := [each for each, _ in self.store.snapshots()]):
            raise InvalidInput(f"snapshot is {seq}, wanted one of {', '.join(map(str, known)) or 'none yet'}")
        self.store.set_setting(pin(seq), "promoted")
        return self.writer.submit(Tell(Promoted(self._clock(), snapshot=seq)))

    # What happens by itself

    def _committed(self, last: int) -> None:
        """The log has grown: the learner goes on, and now and then the model is saved."""
        self.learner.tell(last)

    def _look_at_clock(self) -> None:
        while not self._stopping.wait(TICK):
            try:
                self.expire()
                self._save_if_due()
            except Exception:
                log.exception("the clock failed; it tries again")

    def expire(self) -> None:
        """Log all waits that are over."""
        while names := self.store.due(self._clock(), DUE):
            for future in _submitted(self.writer, map(Expire, names)):
                future.result()

    def _save_if_due(self) -> None:
        saved = self.store.snapshots()
        if self.model.seq - (saved[-1][0] if saved else 0) >= self.experiment.store.snapshot_every:
            self.snapshot().result()

    def _follow_file(self) -> None:
        """Arms that the file has and the log has not are added; those that it has no more are retired."""
        here, wanted = self.model, self.experiment.arms
        for arm in wanted:
            if arm not in here.eligible:
                self.add_arm(arm).result()
        # Arms that were added while running stay: the file need not know them.

    def _warm_up(self) -> None:
        x_encoder, z_encoder = self.experiment.encoders()
        x, z = np.zeros(len(x_encoder.names)), np.zeros(len(z_encoder.names))
        warm_up(self.model.policy, x=x, z=z if self.experiment.z else None)


def _submitted(writer: Writer, requests: Iterable[Request]) -> list["Future[Answer]"]:
    return [writer.submit(each) for each in requests]


def first_model(experiment: Experiment, store: Store) -> Model:
    """The untaught model with which the experiment began; raises if it began with another one."""
    now, known = msgspec.to_builtins(experiment.model), store.setting(BEGAN)
    if known is None:
        known = msgspec.json.encode({"model": now, "arms": experiment.arms}).decode()
        store.set_setting(BEGAN, known)
    began = msgspec.json.decode(known)
    if differ := [key for key in now if now[key] != began["model"].get(key)]:
        raise StoreError(
            f"{', '.join(differ)} changed since the experiment began, wanted as before: the model depends on "
            "it. Begin another experiment, with another name and store; its model can be taught from the log "
            "of this one"
        )
    return Model(experiment.untaught(len(began["arms"])), 0, tuple(began["arms"]))
