"""Fold a log from its beginning, and compare what comes out with what was saved on the way."""

from collections.abc import Callable
from typing import NamedTuple

from postserve.service.engine import first_model
from postserve.service.events import Promoted
from postserve.service.experiment import Experiment
from postserve.service.fold import Fold, Model
from postserve.service.learner import BATCH, Rounds
from postserve.service.stores import Saved, Store


class Rebuilt(NamedTuple):
    """The model of the whole log, how many snapshots it agrees with, and the first that it does not."""

    model: Model
    agreeing: int
    differs_at: int | None


def rebuild(
    experiment: Experiment, store: Store, progress: Callable[[int], None] = lambda seq: None
) -> Rebuilt:
    """Nothing in the store changes."""
    wanted, promoted = dict(store.snapshots()), _promoted(store)
    made: dict[int, Saved] = {}
    found: dict[int, str] = {}

    def keep(saved: Saved) -> None:
        found[saved.seq] = saved.digest
        if saved.seq in promoted:
            made[saved.seq] = saved

    rounds = Rounds(store, tuple(experiment.z))
    fold = Fold(tuple(experiment.z), rounds.at, made.get, keep)
    model = first_model(experiment, store)
    while logged := store.read(model.seq, BATCH):
        model = fold(model, rounds.steps(logged))
        progress(model.seq)
    both = [seq for seq in sorted(wanted) if seq in found]
    differ = [seq for seq in both if wanted[seq] != found[seq]]
    return Rebuilt(model, len(both) - len(differ), min(differ, default=None))


def _promoted(store: Store) -> set[int]:
    """The snapshots that came back into use."""
    found, at = set(), 0
    while logged := store.read(at, BATCH):
        at = logged[-1].seq
        found |= {event.snapshot for _, event in logged if isinstance(event, Promoted)}
    return found
