"""Fold a log from its beginning, and compare what comes out with what was saved on the way.

Where events were dropped, the beginning is the oldest snapshot that has learnt from all of them.
"""

from collections.abc import Callable
from typing import NamedTuple

from postserve.service.engine import first_model
from postserve.service.experiment import Experiment
from postserve.service.log.events import Promoted
from postserve.service.log.stores import BASE, Saved, Store, StoreError
from postserve.service.model.fold import Fold, Model, loaded, model_at
from postserve.service.model.learner import BATCH, Rounds


class Rebuilt(NamedTuple):
    """The model of the whole log, how many snapshots it agrees with, and the first that it does not."""

    model: Model
    agreeing: int
    differs_at: int | None


def rebuild(
    experiment: Experiment, store: Store, progress: Callable[[int], None] = lambda seq: None
) -> Rebuilt:
    """Nothing in the store changes; if events are dropped meanwhile, it begins anew."""
    while True:
        base = store.setting(BASE)
        found = _rebuilt(experiment, store, progress)
        if store.setting(BASE) == base:
            return found


def _rebuilt(experiment: Experiment, store: Store, progress: Callable[[int], None]) -> Rebuilt:
    wanted, promoted = dict(store.snapshots()), _promoted(store)
    made: dict[int, Saved] = {}
    found: dict[int, str] = {}

    def keep(saved: Saved, erasing: bool) -> None:
        found[saved.seq] = saved.digest
        if saved.seq in promoted:
            made[saved.seq] = saved

    rounds = Rounds(store, tuple(experiment.z))
    model = _beginning(experiment, store)
    start = model.seq
    fold = Fold(
        tuple(experiment.z),
        lambda seq: model_at(seq, store.snapshot if seq <= start else made.get),
        keep,
    )
    while logged := store.read(model.seq, BATCH):
        model = fold(model, rounds.steps(logged))
        progress(model.seq)
    both = [seq for seq in sorted(wanted) if seq in found]
    differ = [seq for seq in both if wanted[seq] != found[seq]]
    return Rebuilt(model, len(both) - len(differ), min(differ, default=None))


def _beginning(experiment: Experiment, store: Store) -> Model:
    untaught, base = first_model(experiment, store), store.setting(BASE)
    if base is None:
        return untaught
    saved = next((store.snapshot(seq) for seq, _ in store.snapshots() if seq >= int(base)), None)
    if saved is None:
        raise StoreError(f"there is no snapshot from {base} on, wanted one: earlier events were dropped")
    return loaded(saved)


def _promoted(store: Store) -> set[int]:
    """The snapshots that came back into use."""
    found, at = set(), 0
    while logged := store.read(at, BATCH):
        at = logged[-1].seq
        found |= {event.snapshot for _, event in logged if isinstance(event, Promoted)}
    return found
