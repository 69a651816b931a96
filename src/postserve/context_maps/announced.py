"""Whether a map that was loaded counts the rounds that its policy says are out."""

import copy
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from postserve.errors import InvalidInput
from postserve.protocols import CountsPending

Announced: TypeAlias = tuple[Any, ...]
"""x and an arm, and what is known of z for a map that learns in stages: what `expect` was told."""


@runtime_checkable
class KnowsAnnounced(Protocol):
    """A map that can tell without taking rounds back one by one."""

    def _has_announced(self, rounds: Sequence[Announced]) -> bool:
        """Whether all of these could be taken back."""


def has_announced(phi_hat: CountsPending, rounds: Sequence[Announced]) -> bool:
    """Whether all of these could be taken back from a map."""
    if isinstance(phi_hat, KnowsAnnounced):
        return not rounds or phi_hat._has_announced(rounds)
    twin: Any = copy.deepcopy(phi_hat)
    try:
        for one in rounds:
            twin.withdraw(*one)
    except InvalidInput:
        return False
    return True
