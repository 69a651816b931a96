"""What a policy's promises mean: that scales, units of columns, and constants change no choice."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from postserve.conformance.tools import POWERS_OF_TWO, Make, N, checks_in, play, require, rounds_for

GRID = 2.0**12
"""Values on this grid can be shifted by the constants below without rounding."""
CONSTANTS = (100.0, -1e6)


def scales_do_not_matter_where_promised(make: Make) -> None:
    """A scale-free policy chooses the same when rewards, x or z are scaled by a power of two."""
    if getattr(make(), "scale_free", False):
        changes = [(name, factor, 0.0) for name in ("rewards", "x", "z") for factor in POWERS_OF_TWO]
        _require_no_effect(make, "scale_free", changes)


def units_of_columns_do_not_matter_where_promised(make: Make) -> None:
    """A column-free policy chooses the same when one column of x or z is scaled by a power of two."""
    policy = make()
    if getattr(policy, "column_free", False):
        columns = [
            (name, np.arange(dim) == 0) for name, dim in (("x", policy.dim_x), ("z", policy.dim_z)) if dim
        ]
        changes = [(name, np.where(one, by, 1.0), 0.0) for name, one in columns for by in POWERS_OF_TWO]
        _require_no_effect(make, "column_free", changes)


def constants_do_not_matter_where_promised(make: Make) -> None:
    """A shift-free policy chooses the same when a constant is added to all rewards, or to all z."""
    if getattr(make(), "shift_free", False):
        changes = [(name, 1.0, constant) for name in ("rewards", "z") for constant in CONSTANTS]
        _require_no_effect(make, "shift_free", changes)


def _require_no_effect(make: Make, promise: str, changes: Sequence[tuple[str, Any, float]]) -> None:
    """In one long run and some short ones: the first rounds are the most sensitive."""
    for seed, n in ((0, N), (1, 12), (2, 12), (3, 12)):
        rounds = rounds_for(make(), n, seed)
        on_grid = {name: np.round(getattr(rounds, name) * GRID) / GRID for name in ("z", "rewards")}
        rounds = rounds._replace(**on_grid)
        expected = play(make(), rounds, seed)
        for name, factor, constant in changes:
            changed = rounds._replace(**{name: getattr(rounds, name) * factor + constant})
            same = play(make(), changed, seed) == expected
            require(same, f"{promise} is True, and {name} times {factor} plus {constant:g} changed a choice")


UNIT_CHECKS = checks_in(globals())
