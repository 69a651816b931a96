"""The arms: the ids that callers use, and the slots of their models."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from postserve.changes import shallow
from postserve.errors import InvalidInput
from postserve.state import Arrays, Stored
from postserve.types import Decision, FloatArray, IntArray
from postserve.validation import arm_ids, integer


class ArmSet:
    """n_arms arms that can be added and removed; with None, the rows of each decision set are the arms.

    An id is never reused. Models have slots 0, 1, … in the order of the arms' ids; a row of a decision set is
    its own slot.

    >>> arms = ArmSet(2)
    >>> arms.add(), arms.ids
    (2, array([0, 1, 2]))
    >>> arms.remove(1)
    >>> arms.slot(2)
    1
    """

    def __init__(self, n_arms: int | None) -> None:
        self.by_row = n_arms is None
        self._next = 0 if n_arms is None else integer("n_arms", n_arms, least=1)
        self._set(np.arange(self._next))

    def _set(self, ids: IntArray) -> None:
        self.ids = ids  # rising
        none_is_gone = len(ids) > 0 and int(ids[-1]) == len(ids) - 1
        self._ids_that_are_slots = len(ids) if none_is_gone else 0
        self.all_slots = np.arange(len(ids))

    def __deepcopy__(self, memo: dict[int, Any]) -> "ArmSet":
        return shallow(self)  # every verb replaces what it changes

    @property
    def n_arms(self) -> int | None:
        """The number of arms; None with decision sets."""
        return None if self.by_row else len(self.ids)

    def add(self) -> int:
        """Add an arm in the last slot; returns its id."""
        arm = self._next
        self._next += 1
        self._set(np.append(self.ids, arm))
        return arm

    def remove(self, slot: int) -> None:
        """Remove an arm; later slots move down by one."""
        self._set(np.delete(self.ids, slot))

    def refuse_rows(self) -> None:
        """Raise if the rows of a decision set are the arms."""
        if self.by_row:
            raise InvalidInput("n_arms is None: the candidates are the arms, wanted a policy with n_arms")

    def slot(self, arm: int) -> int:
        """The slot of an arm."""
        if type(arm) is int and 0 <= arm < self._ids_that_are_slots:
            return arm
        arm = integer("arm", arm, least=0)
        if self.by_row:
            return arm
        slot = int(np.searchsorted(self.ids, arm))
        if slot == len(self.ids) or self.ids[slot] != arm:
            removed = " (it was removed)" if arm < self._next else ""
            raise InvalidInput(f"arm is {arm}{removed}, wanted one of {self}")
        return slot

    def slots(self, arms: IntArray) -> IntArray:
        """The slots of many arms."""
        if not self.by_row and len(arms):
            slots = np.minimum(np.searchsorted(self.ids, arms), len(self.ids) - 1)
            known = self.ids[slots] == arms
        else:
            slots, known = arms, arms >= 0
        if not known.all():
            self.slot(int(arms[known.argmin()]))  # raises and says why
        return slots

    def eligible(self, arms: Sequence[int] | None) -> IntArray:
        """The slots of the eligible arms in the given order; with None, of all arms."""
        if arms is None:
            return self.all_slots
        self.refuse_rows()
        return self.slots(arm_ids("arms", arms))

    def ids_of(self, slots: IntArray) -> IntArray:
        """The ids of the arms in these slots."""
        return slots if self.by_row else self.ids[slots]

    def decision(self, slots: IntArray, index: int, propensity: float) -> Decision:
        """The arm in the slot at this index, as a decision."""
        slot = slots.item(index)
        return Decision(slot if self.by_row else self.ids.item(slot), propensity)

    def rows_wanted(self, slots: IntArray) -> int | None:
        """How many rows x has if it is a matrix; None for any number."""
        return None if self.by_row else len(slots)

    def place(self, x: FloatArray, slots: IntArray, label: str) -> tuple[FloatArray, IntArray]:
        """x and the slots in rising order; rows of x follow the slots, or are the slots of a decision set."""
        if self.by_row:
            if x.ndim != 2 or not len(x):
                wanted = f"(n, {x.shape[-1]}): one row per candidate"
                raise InvalidInput(f"{label} has shape {x.shape}, wanted {wanted}")
            return x, np.arange(len(x), dtype=np.int64)
        if x.ndim == 2 and len(x) != len(slots):
            wanted = f"({len(slots)}, {x.shape[1]}): one row per arm"
            raise InvalidInput(f"{label} has shape {x.shape}, wanted {wanted}")
        if slots is self.all_slots:
            return x, slots
        order = np.argsort(slots)  # the order in which arms are named does not matter
        return x if x.ndim == 1 else x[order], slots[order]

    def over_all(self, slots: IntArray, chances: FloatArray) -> FloatArray:
        """The probability of every arm, from those of these slots."""
        if self.by_row:
            return chances
        everyone = np.zeros(len(self.ids))
        everyone[slots] = chances
        return everyone

    def __str__(self) -> str:
        rest = f", … ({len(self.ids)} in all)" if len(self.ids) > 8 else ""
        return ", ".join(map(str, self.ids[:8].tolist())) + rest

    def arrays(self) -> Arrays:
        """The ids and the next id, as named arrays."""
        return {"arms": self.ids, "next_arm": np.array([self._next])}

    def restore(self, stored: Stored) -> None:
        """Take back what `arrays` gave, checked."""
        following = int(stored.take("next_arm", (1,), np.int64)[0])
        ids = stored.take("arms", (None,), np.int64)
        known = self.by_row == (len(ids) == 0)
        stored.require(known and bool((np.diff(ids, prepend=-1) > 0).all()), "arms", "ids in rising order")
        stored.require(following > ids.max(initial=-1), "next_arm", "an id not yet given")
        self._next = following
        self._set(ids)
