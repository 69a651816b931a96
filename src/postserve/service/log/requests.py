"""What callers ask, and what follows from it: events for the log, none for a repetition, or a refusal.

Each request is of one decision. The writer hands it the round as the log has it, in the transaction that will
keep the events, so that no other request can come between.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from postserve.errors import InvalidInput, PostserveError
from postserve.service.experiment import Feedback
from postserve.service.log.events import Activated, Decided, Erased, Event, Expired, Followed, Rewarded
from postserve.service.log.rounds import Round
from postserve.service.values import Values


class Conflict(PostserveError):
    """What is asked contradicts what the log has; nothing was changed."""


class Request(Protocol):
    """Something that a caller asks of one decision."""

    @property
    def id(self) -> str:
        """Of the decision."""

    def events(self, known: Round, rules: "Rules", now: float) -> list[Event]:
        """What is to be logged; nothing if it was logged before. Raises `Conflict`."""


class Rules(NamedTuple):
    """What the experiment says of feedback."""

    z_names: Sequence[str]
    feedback: Feedback


class Decide(NamedTuple):
    """The service has chosen; if it had chosen before for this id, that choice stands."""

    decided: Decided

    @property
    def id(self) -> str:
        """Of the decision."""
        return self.decided.id

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """The decision, or nothing if the same was asked before."""
        if known.decided is None:
            return [self.decided]
        _refuse_another(self.id, self.decided.asked, known.decided.asked)
        return []


class Repeat(NamedTuple):
    """What cannot be decided now, as an arm is gone; if it was decided before for this id, that stands."""

    id: str
    asked: dict[str, Any]
    refusal: InvalidInput

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """Nothing new."""
        if known.decided is None:
            raise self.refusal
        _refuse_another(self.id, self.asked, known.decided.asked)
        return []


class Activate(NamedTuple):
    """What was decided is shown."""

    id: str

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """The activation, or nothing if the decision counts already."""
        if known.decided is None:
            raise Conflict(f"there is no decision {self.id!r:.60}, wanted the id of one")
        if known.active:
            return []
        _refuse_if_closed(known, rules, self.id)
        _refuse_if_expired(known, self.id, now)
        return [Activated(now, self.id)]


class Follow(NamedTuple):
    """Some fields of z, or all."""

    id: str
    z: Values

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """Those fields that are new."""
        for name, value in self.z.items():
            if name in known.z and known.z[name] != value:
                raise Conflict(
                    f"z.{name} of decision {self.id!r:.60} is {known.z[name]!r:.60}, got {value!r:.60}, "
                    "wanted the same value"
                )
        new = {name: value for name, value in self.z.items() if name not in known.z}
        if not new:
            return []
        _refuse_if_closed(known, rules, self.id)
        return [Followed(now, self.id, z=new)]


class Reward(NamedTuple):
    """A reward; `key` tells several of one decision apart, where they are added."""

    id: str
    reward: float
    key: str = ""

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """The reward, unless it came before."""
        mode = rules.feedback.rewards
        same_key = [each for each in known.rewards if each.key == self.key]
        if mode == "first" and known.rewards:
            same_key = list(known.rewards[:1])
        if mode == "sum" and not self.key:
            raise Conflict(
                f"the reward of decision {self.id!r:.60} has no key, wanted one: rewards are added here, and "
                "without it a repetition could not be told from another reward"
            )
        if same_key and mode != "last":
            if same_key[0].reward != self.reward:
                raise Conflict(
                    f"the reward of decision {self.id!r:.60} is {same_key[0].reward!r}, got {self.reward!r}, "
                    "wanted the same number"
                )
            return []
        if mode == "last" and self.reward in [each.reward for each in _repeatable(known, self.key)]:
            return []
        _refuse_if_closed(known, rules, self.id)
        _refuse_if_expired(known, self.id, now)
        return [Rewarded(now, self.id, reward=self.reward, final=mode == "first", key=self.key)]


def _repeatable(known: Round, key: str) -> Sequence[Rewarded]:
    """The rewards of which this one may be a repetition: without a key, only the one before it."""
    return [each for each in known.rewards if each.key == key] if key else known.rewards[-1:]


class Together(NamedTuple):
    """Several requests of one decision: all that is new of them is logged, or nothing."""

    id: str
    parts: tuple[Request, ...]

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """Those of each, in their order."""
        found: list[Event] = []
        for part in self.parts:
            new = part.events(known, rules, now)
            for event in new:
                known = known.after(event)
            found += new
        return found


class Tell(NamedTuple):
    """An event that belongs to no decision."""

    event: Event
    id: str = ""

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """As it is."""
        return [self.event]


class Erase(NamedTuple):
    """The decision is to be forgotten."""

    id: str

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """That it is, unless there is nothing to forget."""
        return [Erased(now, self.id)] if known.first and not known.erased else []


class Expire(NamedTuple):
    """The clock says that a wait may be over."""

    id: str

    def events(self, known: Round, rules: Rules, now: float) -> list[Event]:
        """That it is, and what follows for the reward."""
        due = known.next_due(rules.z_names, rules.feedback.longest_wait)
        if due is None or due > now:
            return []
        if known.decided is None:
            return [Expired(now, self.id)]
        z_over = not known.z_over and not known.has_z(rules.z_names) and known.decided.z_due <= now
        over = not known.reward_over and known.decided.due <= now
        settles = over and known.reward is None and known.active
        reward = settled(known, rules.feedback) if settles else None
        return [Expired(now, self.id, z=z_over, reward_over=over, reward=reward)]


def settled(known: Round, feedback: Feedback) -> float | None:
    """The reward that counts when the wait for it is over; None if there is none."""
    if not known.rewards:
        return feedback.default_reward
    if feedback.rewards == "sum":
        return math.fsum(each.reward for each in known.rewards)
    return known.rewards[-1 if feedback.rewards == "last" else 0].reward


def _refuse_another(name: str, got: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise if the request is not the one for which a decision was made."""
    for key, value in wanted.items():
        if got[key] != value:
            made = f"decision {name!r:.60} was made with {key} {value!r:.200}, got {got[key]!r:.200}"
            raise Conflict(f"{made}, wanted the same request, or another id")


def _refuse_if_closed(known: Round, rules: Rules, name: str) -> None:
    """Raise if nothing can be learnt from the round any more."""
    due = known.next_due(rules.z_names, rules.feedback.longest_wait)
    if known.decided is not None and due is None:
        raise Conflict(f"decision {name!r:.60} is closed, wanted one whose feedback is still waited for")


def _refuse_if_expired(known: Round, name: str, now: float) -> None:
    """Raise if the wait for the reward is over, whether the clock has logged it or not."""
    if known.decided is not None and known.decided.due <= now:
        raise Conflict(f"decision {name!r:.60} has expired, wanted feedback within the experiment's wait")
