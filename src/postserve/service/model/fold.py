"""The model is a fold over the log: what each event teaches.

A round is announced when it is served (`expect`), its map learns as parts of z come (`observe`), its arm once
the reward is settled (`credit`), and where nothing comes of it, it is taken back (`withdraw`).
"""

import hashlib
import io
import json
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from postserve import archive
from postserve.changes import change
from postserve.errors import StateMismatch
from postserve.loading import load
from postserve.policies import open_rounds
from postserve.service.log.events import ArmAdded, ArmRetired, Decided, Event, Promoted, Snapshot
from postserve.service.log.rounds import Round
from postserve.service.log.stores import Saved, StoreError
from postserve.service.model.giving_way import giving_way
from postserve.state import content_of, private

AT_ONCE = 32
"""Decisions that are announced at once, at most: answers wait meanwhile, for about half a millisecond."""

log = logging.getLogger("postserve.service")


class Model(NamedTuple):
    """A policy that has learnt all events up to one, and its arms by name; nobody changes it any more."""

    policy: Any
    seq: int
    arms: Mapping[str, int]
    """Their numbers in the policy."""
    retired: frozenset[str] = frozenset()
    skipped: int = 0
    """How many events taught nothing because the policy refused them."""
    promoted: int | None = None
    """The snapshot from which it goes on, if one was promoted: the last one."""

    @property
    def digest(self) -> str:
        """Of all that was learnt."""
        return archive.digest_of(content_of(self.policy))

    @property
    def eligible(self) -> tuple[str, ...]:
        """The arms that can be served."""
        return tuple(arm for arm in self.arms if arm not in self.retired)

    @giving_way()
    def dump(self) -> Saved:
        """The model as bytes: a line of JSON, and the policy's state file."""
        head = {"arms": list(self.arms), "retired": sorted(self.retired), "skipped": self.skipped}
        head |= {} if self.promoted is None else {"promoted": self.promoted}
        head["proof"] = _proof(head)
        content, file = content_of(self.policy), io.BytesIO()
        archive.write(file, content)
        return Saved(
            self.seq, archive.digest_of(content), json.dumps(head).encode() + b"\n" + file.getvalue()
        )


def model_at(seq: int, snapshot: Callable[[int], Saved | None]) -> Model:
    """The model of a snapshot that is kept."""
    if (saved := snapshot(seq)) is None:
        raise StoreError(f"there is no snapshot at {seq}, wanted one that is kept")
    return loaded(saved)


@giving_way()
def loaded(saved: Saved) -> Model:
    """The model from its bytes."""
    line, _, state = saved.content.partition(b"\n")
    head = json.loads(line)
    if head.pop("proof", wanted := _proof(head)) != wanted:
        raise StateMismatch("the arms of the snapshot are not those that were saved, wanted another snapshot")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        path.write_bytes(state)
        policy = load(path)
    arms, retired = numbered(head["arms"]), frozenset(head["retired"])
    return Model(policy, saved.seq, arms, retired, head["skipped"], head.get("promoted"))


def _proof(head: Mapping[str, Any]) -> str:
    """A digest of what is beside the policy, which has one of its own."""
    told = {name: value for name, value in head.items() if name != "proof"}
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()


def numbered(arms: Iterable[str]) -> dict[str, int]:
    """Arms in the order in which they were added; the policy never drops one."""
    return {arm: number for number, arm in enumerate(arms)}


class Refused(Exception):
    """The policy cannot learn from an event."""


class Step(NamedTuple):
    """An event with its place, and the round that it belongs to before and after it."""

    seq: int
    event: Event
    before: Round
    after: Round


class Fold(NamedTuple):
    """What the fold needs beside the log."""

    z_names: tuple[str, ...]
    saved: Callable[[int], Model]
    """The model of the snapshot at a place."""
    keep: Callable[[Saved, bool], None]
    """Where a snapshot goes, and whether it is that of an erasure."""
    make_way: Callable[[int], None] = lambda events: None
    """What is called after so many events: others may wait for the processor."""

    @giving_way()
    def __call__(self, model: Model, steps: Sequence[Step]) -> Model:
        """The model after these events; the given one stays as it is.

        An event that the policy refuses teaches nothing, whatever is before and after it in the log.
        """
        try:
            return self._all(model._replace(policy=private(model.policy)), steps)
        except Refused:  # find out which: a private copy may be left half taught
            for step in steps:
                try:
                    model = self._all(model._replace(policy=private(model.policy)), [step])
                except Refused:
                    log.warning("event %d teaches nothing", step.seq, exc_info=True)
                    policy = without(model.policy, step.after, self.z_names)
                    model = model._replace(policy=policy, seq=step.seq, skipped=model.skipped + 1)
            return model

    def _all(self, model: Model, steps: Iterable[Step]) -> Model:
        for announces, some in groupby(steps, _only_announces):
            for group in _in_parts(some, AT_ONCE if announces else 1):
                model = _announced(model, group) if announces else self._one(model, group[0])
                model = model._replace(seq=group[-1].seq)
                self.make_way(len(group))
        return model

    def _one(self, model: Model, step: Step) -> Model:
        match step.event:
            case ArmAdded(arm=arm):
                return self._added(model, arm)
            case ArmRetired(arm=arm):
                left = model._replace(retired=model.retired | {arm})
                return left if left.eligible else model  # two were asked for at once
            case Snapshot(erasing=erasing):
                saved = model._replace(seq=step.seq).dump()
                with _refusals():  # what a restart could not load is not kept
                    back = loaded(saved)
                self.keep(saved, erasing)
                return back._replace(policy=private(back.policy))
            case Promoted(snapshot=seq):
                return self._promoted(model, seq)
        if step.after.decided is not None:
            with _refusals():
                teach(model, step.before, step.after, self.z_names)
        return model

    def _added(self, model: Model, arm: str) -> Model:
        if arm in model.arms:
            return model._replace(retired=model.retired - {arm})
        model.policy.add_arm()
        return model._replace(arms=numbered([*model.arms, arm]))

    def _promoted(self, model: Model, seq: int) -> Model:
        """The policy of a snapshot, with the arms and the open rounds of today."""
        policy = private(self.saved(seq).policy)
        while policy.n_arms < len(model.arms):
            policy.add_arm()
        with giving_way(), _refusals():
            change(policy, open_rounds.take_over, list(open_rounds.named(model.policy).values()))
        return model._replace(policy=policy, promoted=seq)


def _only_announces(step: Step) -> bool:
    """Whether a decision was served of which nothing else is known."""
    return isinstance(step.event, Decided) and step.before == Round() and step.after.active


def _announced(model: Model, steps: Sequence[Step]) -> Model:
    """What `teach` does, for many decisions at once."""
    events = [step.event for step in steps if isinstance(step.event, Decided)]
    with _refusals():
        model.policy.expect_batch(
            [event.x for event in events],
            [model.arms[event.arm] for event in events],
            round_ids=[event.id for event in events],
        )
    return model


@contextmanager
def _refusals() -> Iterator[None]:
    """A block in which a policy learns, or refuses to."""
    try:
        yield
    except (MemoryError, OSError):
        raise  # which say nothing of the event
    except Exception as error:
        raise Refused from error


def _in_parts(steps: Iterable[Step], most: int) -> Iterator[list[Step]]:
    """The same in lists of at most so many."""
    left = iter(steps)
    while some := list(islice(left, most)):
        yield some


def teach(model: Model, before: Round, after: Round, z_names: Sequence[str]) -> None:
    """What a policy learns as a round goes on."""
    policy, decided, needed = model.policy, after.decided, _needed(model.policy, z_names)
    assert decided is not None  # what has no decision teaches nothing
    if not after.active or before.is_ready(needed):
        return  # it was not shown yet, or all that it teaches is learnt
    x, arm, name = decided.x, model.arms[decided.arm], decided.id
    newly_served = before.decided is None or not before.active
    if newly_served and not after.is_void:
        policy.expect(x, arm, round_id=name)
    # Not open are rounds of a log in which models were promoted without the rounds of their day.
    known = {"round_id": name} if open_rounds.is_open(policy, name) else {}
    whole = after.has_z(needed)
    if needed and after.z and (newly_served or after.z != before.z) and (whole or known):
        policy.observe(x, arm, after.z, **known)
    if after.is_ready(needed):
        policy.credit(x, arm, after.z if needed and whole else None, after.reward, **known)
    elif after.is_void and known:
        policy.withdraw(x, arm, **known)


def without(policy: Any, after: Round, z_names: Sequence[str]) -> Any:
    """The policy without a round that is over, though what came of it was refused."""
    name = "" if after.decided is None else after.decided.id
    over = after.is_ready(_needed(policy, z_names)) or after.is_void
    if not over or (one := open_rounds.named(policy).get(name)) is None:
        return policy
    left = private(policy)
    left.withdraw(one.x, one.arm, round_id=name)
    return left


def _needed(policy: Any, z_names: Sequence[str]) -> Sequence[str]:
    """The fields of z that the policy learns from."""
    return () if policy.dim_z is None else z_names
