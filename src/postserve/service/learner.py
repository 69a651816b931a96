"""The learner: one thread that folds the log, in its order, and publishes a model after each batch."""

import logging
import threading
from collections.abc import Callable

from postserve.service.events import Logged
from postserve.service.fold import Fold, Model, Step, loaded
from postserve.service.rounds import Round, round_of
from postserve.service.stores import Saved, Store

BATCH = 512
"""Events that are folded into one copy of the model."""
REST = 1.0
"""Seconds after which the log is looked at though nobody said that there is something new."""
MOST_ROUNDS = 100_000
"""Rounds that are remembered; the others are read from the log when an event of theirs comes."""

log = logging.getLogger("postserve.service")


class Rounds:
    """Rounds as the fold has come to know them; closed ones are forgotten."""

    def __init__(self, store: Store, z_names: tuple[str, ...]) -> None:
        self._store, self._names = store, z_names
        self._known: dict[str, Round] = {}

    def at(self, name: str, seq: int) -> Round:
        """The round of a decision before the event at a place."""
        return round_of(self._store.events_of([name], before=seq)[name])

    def steps(self, logged: list[Logged]) -> list[Step]:
        """The events with their rounds."""
        known, found = self._known, []
        for seq, event in logged:
            if not event.id:
                found.append(Step(seq, event, Round(), Round()))
                continue
            before = known.pop(event.id, None)
            before = self.at(event.id, seq) if before is None else before
            after = before.after(event)
            if not after.is_closed(self._names):
                known[event.id] = after
            found.append(Step(seq, event, before, after))
        while len(known) > MOST_ROUNDS:
            del known[next(iter(known))]  # the one that was touched longest ago
        return found


class Learner:
    """Follows the log from the newest snapshot that can be loaded; `model` is the newest model."""

    def __init__(self, store: Store, untaught: Model, z_names: tuple[str, ...], keep: int) -> None:
        self._store, self._most_kept = store, keep
        self._rounds = Rounds(store, z_names)
        self._fold = Fold(z_names, self._rounds.at, store.snapshot, self._keep)
        self.model = newest(store, untaught)
        self._changed, self._stopping = threading.Condition(), False
        self._told = 0
        self._thread = threading.Thread(target=self._run, name="postserve-learner", daemon=True)

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def stop(self) -> None:
        """End after the batch at hand."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def tell(self, seq: int) -> None:
        """The log has events up to this place."""
        with self._changed:
            self._told = max(self._told, seq)
            self._changed.notify_all()

    def catch_up(self, *, progress: Callable[[int], None] = lambda seq: None) -> None:
        """Fold all that the log has, in this thread; for use before `start`."""
        while self.step():
            progress(self.model.seq)

    def wait_for(self, seq: int, seconds: float) -> bool:
        """Wait until an event is learnt; whether it was."""
        with self._changed:
            return self._changed.wait_for(lambda: self.model.seq >= seq, seconds)

    def step(self) -> bool:
        """Fold the next batch; whether there was one."""
        logged = self._store.read(self.model.seq, BATCH)
        if not logged:
            return False
        model = self._fold(self.model, self._rounds.steps(logged))
        if model.skipped > self.model.skipped:
            log.warning("events that taught nothing: %d", model.skipped - self.model.skipped)
        with self._changed:
            self.model = model
            self._changed.notify_all()
        return True

    def _run(self) -> None:
        while True:
            try:
                while not self._stopping and self.step():
                    pass
            except Exception:  # the store may be out of reach for a while
                log.exception("the learner failed; it tries again")
                if self._stopping:
                    return
            with self._changed:
                if self._stopping:
                    return
                self._changed.wait_for(lambda: self._stopping or self._told > self.model.seq, REST)

    def _keep(self, saved: Saved) -> None:
        self._store.save(saved)
        for seq, _ in self._store.snapshots()[: -self._most_kept]:
            if self._store.setting(pin(seq)) is None:
                self._store.drop_snapshot(seq)


def pin(seq: int) -> str:
    """The setting that says that a snapshot was promoted: the log needs it."""
    return f"pinned {seq}"


def newest(store: Store, untaught: Model) -> Model:
    """The newest snapshot that can be loaded, or the untaught model."""
    for seq, _ in reversed(store.snapshots()):
        try:
            saved = store.snapshot(seq)
            if saved is not None:
                return loaded(saved)
        except Exception:
            log.exception("the snapshot at %d cannot be loaded; an older one is taken", seq)
    return untaught
