"""Rounds as potential outcomes: checks, and the part that belongs to the chosen arm."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import matrix, shaped


def each(rounds: Rounds) -> Iterator[tuple[Any, ...]]:
    """Round by round: x, z, rewards, means, and the eligible arms' ids or None."""
    ids = repeat(None, len(rounds.x)) if rounds.arms is None else rounds.arms
    return zip(*rounds[:4], ids, strict=True)


def column_of(arm: Any, eligible: IntArray | None, k: int) -> int:
    """The column of the chosen arm."""
    if isinstance(arm, int | np.integer) and not isinstance(arm, bool):
        if eligible is None and 0 <= arm < k:
            return int(arm)
        if eligible is not None:
            i = int(np.searchsorted(eligible, arm))
            if i < k and eligible[i] == arm:
                return i
    wanted = f"0 to {k - 1}" if eligible is None else ", ".join(map(str, eligible))
    raise InvalidInput(f"the policy chose arm {arm!r}, wanted one of {wanted}")


def checked(
    rounds: Rounds,
    where: str,
    n: int | None = None,
    dim_x: int | None = None,
    dim_z: int | None = None,
    n_arms: int | None = None,
) -> Rounds:
    """The block, checked to be finite and of matching shapes; None leaves a size free."""
    n = len(rounds.x) if n is None and np.ndim(rounds.x) else n
    ids = None if rounds.arms is None else _checked_ids(f"{where}.arms", rounds.arms, n)
    k = n_arms if ids is None else ids.shape[1]
    rewards = matrix(f"{where}.rewards", rounds.rewards, n, k)
    k = rewards.shape[1]
    x, z = (
        shaped(f"{where}.{name}", array, (n, k, dim) if np.ndim(array) == 3 else (n, dim))
        for name, array, dim in (("x", rounds.x, dim_x), ("z", rounds.z, dim_z))
    )
    return Rounds(x, z, rewards, matrix(f"{where}.means", rounds.means, n, k), ids)


def served(rows: FloatArray, i: int) -> FloatArray:
    """The context of column i: its own, or the one for all arms."""
    return rows if rows.ndim == 1 else np.asarray(rows[i])


def _checked_ids(name: str, value: Any, n: int | None) -> IntArray:
    ids = np.asarray(value)
    if ids.ndim != 2 or len(ids) != n or not ids.size or ids.dtype.kind not in "iu":
        raise InvalidInput(f"{name} has shape {ids.shape}, wanted ({n}, k) whole numbers")
    if ids.min() < 0 or (np.diff(ids, axis=1) <= 0).any():
        raise InvalidInput(f"{name} has a row with ids that do not rise, wanted rising ones from 0 on")
    return ids.astype(np.int64)
