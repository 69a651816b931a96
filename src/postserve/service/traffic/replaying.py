"""The same events given to the library: a second reading of the log, written with a policy's own verbs.

It shares no line with the service's fold, so that the two can differ. `save` and `load` stand for a snapshot.
Where events were dropped, it begins with the first snapshot that has learnt them all.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from postserve import archive
from postserve.errors import PostserveError
from postserve.loading import load
from postserve.policies.open_rounds import named
from postserve.service.experiment import Experiment
from postserve.service.log.events import (
    Activated,
    ArmAdded,
    Decided,
    Erased,
    Event,
    Expired,
    Followed,
    Logged,
    Promoted,
    Rewarded,
    Snapshot,
    decode,
)
from postserve.state import content_of


class Compared(NamedTuple):
    """How many snapshots are the same to the bit, and the first event at which they are not, and why."""

    agreeing: int
    differs_at: int | None = None
    why: str = ""


def compared(
    path: Path, digests: Mapping[int, str], folder: Path, fetch: Callable[[int, Path], None]
) -> Compared:
    """A log of events, replayed, against the digests of the service's snapshots, by their places.

    Snapshots that cannot be made again are fetched.
    """
    agreeing = 0
    with path.open("rb") as file:
        began = json.loads(next(file))
        base = min(seq for seq in digests if seq >= began["base"]) if began["base"] else 0
        replay = Replay(began["model"], began["arms"], folder, base, fetch)
        for seq, event in _events(file):
            try:
                replay.take(seq, event)
            except PostserveError as error:
                return Compared(agreeing, seq, f"the library refuses it: {error}")
            if isinstance(event, Snapshot) and seq in digests and seq > base:
                if digests[seq] != replay.digest:
                    return Compared(agreeing, seq, "the states differ there, and not at the snapshots before")
                agreeing += 1
    return Compared(agreeing)


def _events(lines: Iterable[bytes]) -> Iterator[Logged]:
    for line in lines:
        yield Logged(json.loads(line)["seq"], decode(line))


class _Round:
    """A decision on its way."""

    def __init__(self) -> None:
        self.decided: Decided | None = None
        self.z: dict[str, Any] = {}
        self.reward: float | None = None
        self.served = self.z_over = self.reward_over = False


class _Deaf:
    """Stands for a policy that cannot be taught: events that it learnt from are gone."""

    def _learn(self, *args: Any, **options: Any) -> None:
        """Nothing."""

    expect = observe = credit = withdraw = add_arm = _learn


class Replay:
    """A policy that is told what the log has, event by event; up to `base`, only which rounds are open."""

    def __init__(
        self,
        model: Mapping[str, Any],
        arms: list[str],
        folder: Path,
        base: int = 0,
        fetch: Callable[[int, Path], None] = lambda seq, path: None,
    ) -> None:
        experiment = msgspec.convert({**model, "arms": arms}, Experiment)
        untaught = experiment.untaught(len(arms))
        self.policy: Any = _Deaf() if base else untaught
        self._arms, self._folder, self._base, self._fetch = list(arms), folder, base, fetch
        self._z_names = [] if untaught.dim_z is None else list(experiment.z)
        self._rounds: dict[str, _Round] = {}
        self._ended: set[str] = set()
        self._announced: dict[str, Any] = {}
        self._saved: dict[int, dict[str, Any]] = {}

    @property
    def digest(self) -> str:
        """Of all that the policy has learnt."""
        return archive.digest_of(content_of(self.policy))

    def take(self, seq: int, event: Event) -> None:
        """The next event."""
        match event:
            case ArmAdded(arm=arm) if arm not in self._arms:
                self._arms.append(arm)
                self.policy.add_arm()
            case Snapshot():
                if seq > self._base:
                    self.policy.save(self._file(seq))
                if seq >= self._base:
                    self.policy = self._load(seq)
                self._saved[seq] = {name: self._rounds[name].z for name in self._announced}
            case Promoted(snapshot=then):
                self._go_back(then)
        if event.id and event.id not in self._ended:
            self._tell(event.id, event)

    def _file(self, seq: int) -> Path:
        return self._folder / f"{seq}.npz"

    def _load(self, seq: int) -> Any:
        if not self._file(seq).exists():
            self._fetch(seq, self._file(seq))
        return load(self._file(seq))

    def _go_back(self, then: int) -> None:
        """The policy as it was, with the rounds that are open now."""
        if isinstance(self.policy, _Deaf):
            return
        self.policy, now = self._load(then), self._announced
        before, z_before = named(self.policy), self._saved[then]
        while self.policy.n_arms < len(self._arms):
            self.policy.add_arm()
        z_now = {name: self._rounds[name].z if self._z_names else {} for name in now}
        whole = {name for name in now if self._z_names and self._has_whole_z(self._rounds[name])}
        kept = {name: now[name] for name in before if name in now and (z_before[name] or name not in whole)}
        for name, one in before.items():
            if name not in kept:
                self.policy.withdraw(one.x, one.arm, round_id=name)
        new = {name: now[name] for name in now if name not in kept}
        with_z = {name: new[name] for name in new if name in whole}
        for name, (x, arm) in (with_z | new).items():
            self.policy.expect(x, arm, round_id=name)
            if name in with_z:
                self.policy.observe(x, arm, z_now[name], round_id=name)
        for name, (x, arm) in now.items():
            if name not in with_z and z_now[name] != (z_before[name] if name in kept else {}):
                self.policy.observe(x, arm, z_now[name], round_id=name)
        self._announced = kept | with_z | new  # in the order in which the policy has them

    def _has_whole_z(self, one: _Round) -> bool:
        return all(field in one.z for field in self._z_names)

    def _tell(self, name: str, event: Event) -> None:
        one, news = self._rounds.setdefault(name, _Round()), False
        match event:
            case Decided():
                one.decided, one.served = event, not event.deferred
                news = one.served
            case Activated():
                one.served = news = True
            case Followed(z=z):
                one.z, news = {**one.z, **z}, True
            case Rewarded(reward=reward, final=True):
                one.reward = reward
            case Expired() if one.decided is None:
                del self._rounds[name]  # what came found no decision in time
            case Expired(z=z_over, reward_over=reward_over, reward=reward):
                one.z_over |= z_over
                one.reward_over |= reward_over
                one.reward = one.reward if reward is None else reward
            case Erased():
                one.reward, one.reward_over = None, True  # nothing comes of it any more
        if one.decided is not None:
            self._teach(name, one, one.decided, event, news)

    def _teach(self, name: str, one: _Round, decided: Decided, event: Event, news: bool) -> None:
        x, arm = decided.x, self._arms.index(decided.arm)
        if isinstance(event, Decided | Activated) and one.served:
            self.policy.expect(x, arm, round_id=name)
            self._announced[name] = x, arm
        by_id = {"round_id": name} if name in self._announced else {}
        whole = self._has_whole_z(one)
        if one.served and self._z_names and one.z and news and (whole or by_id):
            self.policy.observe(x, arm, one.z, **by_id)
        if one.served and one.reward is not None and (whole or one.z_over):
            z = one.z if self._z_names and whole else None
            self.policy.credit(x, arm, z, one.reward, **by_id)
        elif not (one.reward_over and (one.reward is None or not one.served)):
            return
        elif by_id:
            self.policy.withdraw(x, arm, **by_id)
        self._announced.pop(name, None)
        self._ended.add(name)
        del self._rounds[name]
