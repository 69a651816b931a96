"""The learner: one thread that folds the log, in its order, and publishes a model after each batch.

Where several processes share a store, one leads: it folds the log and publishes its model in the store, from
where the others take it. Who leads next begins with the newest snapshot and the log, as after a restart. If
two believe that they lead, nothing happens but the same work twice: the fold has one result.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import numpy as np

from postserve.service.log.events import ArmAdded, ArmRetired, Event, Logged, Promoted, Snapshot
from postserve.service.log.rounds import Round, round_of
from postserve.service.log.stores import BASE, Saved, Store, StoreError
from postserve.service.model.fold import Fold, Model, Step, loaded, model_at
from postserve.service.model.giving_way import giving_way, pauses

BATCH = 512
"""Events that are folded into one copy of the model."""
GATHER = 0.25
"""Seconds in which events come together, unless somebody waits for one of them.

A new model costs as much for one event as for many: a copy, and the widths, which are made anew when it is
first asked.
"""
REST = 1.0
"""Seconds after which the log is looked at though nobody said that there is something new."""
SHARED_REST = 0.25
"""The same where other processes write, and nobody says it."""
PUBLISH = 0.5
"""Seconds between two models for other processes, at least, unless somebody waits for what has changed."""
SHARE = 0.25
"""Of the learner's time for publishing a model, or for taking one: with many open rounds it is large."""
AWAITED = (ArmAdded, ArmRetired, Promoted, Snapshot)
"""Events whose callers are answered once they are learnt."""
ERASURE = "snapshot of an erasure"
"""The setting that says which snapshot was saved for the last erasure."""
MOST_ROUNDS = 100_000
"""Rounds that are remembered; the others are read from the log when an event of theirs comes."""

log = logging.getLogger("postserve.service")


class Rounds:
    """Rounds as the fold has come to know them; closed ones are forgotten."""

    def __init__(self, store: Store, z_names: tuple[str, ...]) -> None:
        self._store, self._names = store, z_names
        self._known: dict[str, Round] = {}

    def clear(self) -> None:
        """Forget all; they are read from the log again."""
        self._known.clear()

    def steps(self, logged: list[Logged]) -> list[Step]:
        """Events that follow one another in the log, with their rounds."""
        known, found = self._known, []
        names = dict.fromkeys(event.id for _, event in logged if event.id)
        read = self._store.events_of([name for name in names if name not in known], before=logged[0].seq)
        rounds = {name: round_of(read[name]) if name in read else known.pop(name) for name in names}
        for seq, event in logged:
            if not event.id:
                found.append(Step(seq, event, Round(), Round()))
                continue
            before = rounds[event.id]
            rounds[event.id] = before.after(event)
            found.append(Step(seq, event, before, rounds[event.id]))
        known.update((name, one) for name, one in rounds.items() if not one.is_closed(self._names))
        while len(known) > MOST_ROUNDS:
            del known[next(iter(known))]  # one that was touched long ago
        return found


class Learner:
    """Follows the log from the newest snapshot that can be loaded; `model` is the newest model."""

    def __init__(self, store: Store, untaught: Model, z_names: tuple[str, ...], keep: int) -> None:
        self._store, self._most_kept = store, keep
        self._rounds = Rounds(store, z_names)
        self._full = False  # whether there may be more than was folded last
        self._fold = Fold(z_names, self._saved, self._keep, pauses(lambda: self._full))
        self._checked: Model | None = None  # of a snapshot that the fold is about to need
        self._untaught, self.model = untaught, newest(store, untaught)
        self._taught = None if store.shared else self.model
        """The model that is folded; None if another process leads."""
        self.leads = not store.shared
        """Whether this process folds the log, as far as it knows."""
        self._published, self._next_model = 0, 0.0
        self._changed, self._stopping = threading.Condition(), False
        self._awaited = threading.Event()  # somebody waits for what the log has, or for the end
        self.told = 0
        """The last place that this process has written."""
        self._thread = threading.Thread(target=self._run, name="postserve-learner", daemon=True)

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def stop(self) -> None:
        """End after the batch at hand."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._awaited.set()
        self._thread.join()

    def tell(self, seq: int, events: Iterable[Event] = ()) -> None:
        """The log has events up to this place, and these are new."""
        with self._changed:
            self.told = max(self.told, seq)
            self._changed.notify_all()
        if _any_awaited(events):
            self._awaited.set()

    def catch_up(self, *, progress: Callable[[int], None] = lambda seq: None) -> None:
        """Fold all that the log has, or take what is published, in this thread; for use before `start`."""
        last = self._store.last()
        while self.model.seq < last and self.step():
            progress(self.model.seq)

    def check(self, seq: int) -> None:
        """Raise if the model of a snapshot cannot be loaded; else the fold need not load it once more."""
        model = model_at(seq, self._store.snapshot)
        if self.leads:
            self._checked = model

    def wait_for(self, seq: int, seconds: float) -> bool:
        """Wait until an event is learnt; whether it was."""
        with self._changed:
            return self._changed.wait_for(lambda: self.model.seq >= seq, seconds)

    def step(self) -> bool:
        """Fold the next batch, or take a newer model from the process that leads; whether there was one."""
        if self._taught is not None:
            return self._fold_next(self._taught)
        if not self._asks_to_lead():
            return self._take_published()
        self._rounds.clear()
        self._taught = newest(self._store, self._untaught)
        return True

    def _asks_to_lead(self) -> bool:
        leads = False  # if the store does not say
        try:
            leads = self._store.lead()
        finally:
            self.leads = leads
            if not leads:
                self._taught = None  # who leads may drop events that it has not learnt
        return leads

    def _fold_next(self, taught: Model) -> bool:
        logged = self._store.read(taught.seq, BATCH)
        self._full = len(logged) == BATCH
        if logged:
            try:
                taught = self._folded(taught, logged)
            except BaseException:
                self._rounds.clear()  # they are ahead of the model now
                if self._store.shared:
                    self._taught = None  # perhaps another process leads: who does is asked again
                raise
        if not self._asks_to_lead():  # perhaps for a while now
            return False
        self._taught = taught
        self._serve(taught)
        if self._store.shared:
            self._publish(taught, awaited=_any_awaited(event for _, event in logged))
        return bool(logged)

    def _folded(self, taught: Model, logged: list[Logged]) -> Model:
        return self._fold(taught, self._rounds.steps(logged))

    def _publish(self, model: Model, *, awaited: bool) -> None:
        """Let the others have the model, if it has changed."""
        begin = time.monotonic()
        if model.seq > self._published and (awaited or begin >= self._next_model):
            self._store.publish(model.dump())
            self._published, self._next_model = model.seq, max(begin + PUBLISH, _rested(begin))

    def _take_published(self) -> bool:
        begin = time.monotonic()
        if begin < self._next_model or (saved := self._store.published(after=self.model.seq)) is None:
            return False
        self._serve(loaded(saved))
        self._next_model = _rested(begin)
        return True

    def _serve(self, model: Model) -> None:
        """Decide with a model, unless a later one decides already."""
        _ask_once(model)
        with self._changed:
            if model.seq > self.model.seq:
                self.model = model
                self._changed.notify_all()

    def _run(self) -> None:
        rest = SHARED_REST if self._store.shared else REST
        while not self._stopping:
            failed = False
            try:
                while not self._stopping and self.step():
                    if not self._full:
                        self._awaited.wait(GATHER)
                        self._awaited.clear()
            except Exception:  # the store may be out of reach for a while
                log.exception("the learner failed; it tries again")
                failed = True
            idle = failed or not self.leads  # nothing that is told makes it go on sooner
            with self._changed:
                self._changed.wait_for(partial(self._is_awaited, idle), rest)

    def _is_awaited(self, idle: bool) -> bool:
        return self._stopping or (not idle and self.told > self.model.seq)

    def _saved(self, seq: int) -> Model:
        checked, self._checked = self._checked, None
        return checked if checked is not None and checked.seq == seq else model_at(seq, self._store.snapshot)

    def _keep(self, saved: Saved, erasing: bool) -> None:
        self._store.save(saved)
        if erasing:  # else many erasures would push all snapshots out that somebody may want to go back to
            before = int(self._store.setting(ERASURE) or 0)
            if before < saved.seq:
                self._store.drop_snapshot(before, unless=pin(before))
            self._store.set_setting(ERASURE, str(saved.seq))
        for seq, _ in self._store.snapshots()[: -self._most_kept]:
            self._store.drop_snapshot(seq, unless=pin(seq))


@giving_way()
def _ask_once(model: Model) -> None:
    """Let a policy compute here what it computes when it is first asked, so that no answer waits for it."""
    with suppress(Exception):  # those who ask will hear of it
        model.policy.propensities(np.zeros(model.policy.dim_x))


def _any_awaited(events: Iterable[Event]) -> bool:
    return any(isinstance(event, AWAITED) for event in events)


def _rested(begin: float) -> float:
    """When what took from a moment until now may be done again, so that it takes its share of the time."""
    now = time.monotonic()
    return now + (now - begin) * (1.0 / SHARE - 1.0)


def pin(seq: int) -> str:
    """The setting that says that a snapshot was promoted: the log needs it."""
    return f"pinned {seq}"


def newest(store: Store, untaught: Model) -> Model:
    """The newest snapshot that can be loaded, or the untaught model."""
    base = store.setting(BASE)
    for seq, _ in reversed(store.snapshots()):
        try:
            saved = store.snapshot(seq)
            if saved is not None and seq >= int(base or 0):
                return loaded(saved)
        except Exception:
            log.exception("the snapshot at %d cannot be loaded; an older one is taken", seq)
    if base is not None:
        raise StoreError(f"no snapshot can be loaded, wanted one from {base} on: earlier events were dropped")
    return untaught
