"""What of the log may go: decisions that closed long ago, and those that somebody wants forgotten.

Once a snapshot has learnt from them, a restart needs their events no more, and a rebuild begins with that
snapshot. Of a decision that is gone only a trace of its id is kept, so that it is not used again by mistake.
"""

import bisect

from postserve.service.log.stores import Store

AT_ONCE = 1_000
"""Decisions that are dropped in one transaction, at most."""


def drop_old(store: Store, before: float, keep_snapshots: int) -> bool:
    """Drop some decisions of which nothing happened since a time; whether there may be more."""
    snapshots = store.snapshots()[-keep_snapshots:]  # older ones are kept only to be promoted
    if not snapshots:
        return False
    base, _ = snapshots[0]
    names = store.finished(min(base, _last_before(store, before)), AT_ONCE)
    # A clock that was wrong for a while has put times in disorder.
    old = [name for name, events in store.events_of(names).items() if events[-1].time < before]
    if old:
        store.drop(old, base)
    return len(old) == AT_ONCE


def drop_erased(store: Store, name: str) -> bool:
    """Drop a decision once a snapshot has learnt that it was erased; whether it is gone."""
    snapshots = store.snapshots()
    if snapshots:
        store.drop([name], snapshots[-1][0])
    return not store.events_of([name])[name]


def _last_before(store: Store, time: float) -> int:
    """The place of the last event before a time; events are in the order of their times, or nearly."""
    return bisect.bisect_left(range(store.last()), time, key=lambda after: store.read(after, 1)[0].event.time)
