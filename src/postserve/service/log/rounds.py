"""The life of one decision, from its events; `fold.py` says what each step teaches."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from postserve.service.log.events import (
    Activated,
    Decided,
    Erased,
    Event,
    Expired,
    Followed,
    Rewarded,
)
from postserve.service.values import Values


class Round(Struct, frozen=True, gc=False):
    """What is known of one decision. Feedback may come before it: it is kept until the decision comes."""

    decided: Decided | None = None
    active: bool = False
    """The arm was served, as far as anybody said."""
    z: Values = {}
    rewards: tuple[Rewarded, ...] = ()
    reward: float | None = None
    """The one that counts, once it is settled."""
    z_over: bool = False
    reward_over: bool = False
    first: float = 0.0
    """When the first event came."""
    erased: bool = False

    def after(self, event: Event) -> "Round":
        """The round once this has happened."""
        known = self if self.first else replace(self, first=event.time)
        match event:
            case Decided():
                return replace(known, decided=event, active=not event.deferred)
            case Activated():
                return replace(known, active=True)
            case Followed():
                return replace(known, z={**self.z, **event.z})
            case Rewarded():
                reward = event.reward if event.final else self.reward
                return replace(known, rewards=(*self.rewards, event), reward=reward)
            case Erased():
                return replace(known, erased=True)
            case Expired() if self.decided is None:
                return Round()  # nobody will ask for what came to it
            case Expired():
                return replace(
                    known,
                    z_over=self.z_over or event.z,
                    reward_over=self.reward_over or event.reward_over,
                    reward=self.reward if event.reward is None else event.reward,
                )
        return self

    def has_z(self, names: Iterable[str]) -> bool:
        """Whether all of z came."""
        return all(name in self.z for name in names)

    def is_ready(self, needed: Iterable[str]) -> bool:
        """Whether the arm can learn: the reward is settled, and what it needs of z came, or will not."""
        settled = self.decided is not None and self.active and self.reward is not None
        return settled and (self.z_over or self.has_z(needed))

    @property
    def is_void(self) -> bool:
        """Whether nothing comes of it: it was erased, there was no reward in time, or it was never shown."""
        return self.erased or (self.reward_over and (self.reward is None or not self.active))

    def is_closed(self, names: Iterable[str]) -> bool:
        """Whether all came that is waited for."""
        return self.is_ready(names) or self.is_void

    def next_due(self, names: Iterable[str], wait: float) -> float | None:
        """When something must happen next if nothing comes: a wait is over; None if the round is closed.

        Feedback without a decision waits for it as long as `wait`.
        """
        if self.decided is None:
            return self.first + wait if self.first and not self.erased else None
        if self.is_closed(names):
            return None
        waits = []
        if not self.z_over and not self.has_z(names):
            waits.append(self.decided.z_due)
        if not self.reward_over and (self.reward is None or not self.active):
            waits.append(self.decided.due)
        return min(waits)


def round_of(events: Iterable[Event]) -> Round:
    """The round after all its events, in their order."""
    found = Round()
    for event in events:
        found = found.after(event)
    return found
