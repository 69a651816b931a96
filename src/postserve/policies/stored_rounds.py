"""Announced rounds as named arrays."""

import json
from typing import Any, cast

import numpy as np

from postserve.pieces import stacked
from postserve.policies.open_round import OpenRound, OpenRounds
from postserve.policies.open_rounds import count_all, out_of_map
from postserve.state import Arrays, Stored
from postserve.types import FloatArray


def arrays(policy: Any) -> Arrays:
    """All open rounds as named arrays; none if there are none."""
    rounds = list(policy._open or ())
    if not rounds:
        return {}
    found: Arrays = {
        "open_x": stacked([one.x for one in rounds]),
        "open_arms": np.array([one.arm for one in rounds], dtype=np.int64),
    }
    columns = {"open_z": [one.z for one in rounds], "open_z_hat": [one.z_hat for one in rounds]}
    for k in range(len(policy._regressions())):
        columns[f"open_rows_{k}"] = [one.rows[k] for one in rounds]
    for name, values in columns.items():
        known = np.array([value is not None for value in values])
        dim = max((len(value) for value in values if value is not None), default=0)
        found[name] = stacked([np.zeros(dim) if value is None else value for value in values])
        found[f"{name}_known"] = known
    if any(one.part is not None for one in rounds):
        unknown = np.full(policy.dim_z or 0, np.nan)
        parts = stacked([unknown if one.part is None else one.part for one in rounds])
        found["open_part"], found["open_part_known"] = np.nan_to_num(parts), ~np.isnan(parts)
    if any(one.round_id is not None for one in rounds):  # as text, since numpy drops a NUL at the end
        found["open_ids"] = np.array(json.dumps([one.round_id for one in rounds]))
    return found


def restore(policy: Any, stored: Stored) -> None:
    """Take back what `arrays` gave; the map has its own part."""
    if not stored.has("open_arms"):
        return
    arms = stored.take("open_arms", (None,), np.int64)
    n, regressions = len(arms), policy._regressions()
    there = bool((arms >= 0).all() if policy._arm_set.by_row else np.isin(arms, policy._arm_set.ids).all())
    stored.require(there and n > 0, "open_arms", "arms that there are")
    labels = ["open_z", "open_z_hat", *(f"open_rows_{k}" for k in range(len(regressions)))]
    dims = [policy.dim_z, policy.dim_z, *(each.dim_u for each in regressions)]
    columns = []
    for label, dim in zip(labels, dims, strict=True):
        known = stored.take(f"{label}_known", (n,), np.bool_)
        values = stored.take(label, (n, dim if known.any() else 0))
        columns.append([value if has else None for value, has in zip(values, known, strict=True)])
    parts: list[FloatArray | None] = [None] * n
    if stored.has("open_part"):
        shape = (n, policy.dim_z or 0)
        known = stored.take("open_part_known", shape, np.bool_)
        values = np.where(known, stored.take("open_part", shape), np.nan)
        parts = [value if has.any() else None for value, has in zip(values, known, strict=True)]
    X, names = stored.take("open_x", (n, policy.dim_x or 0)), _round_ids(stored, n)
    rounds = [
        OpenRound(x, arm, z, z_hat, part, tuple(rows), name)
        for x, arm, name, part, z, z_hat, *rows in zip(X, arms.tolist(), names, parts, *columns, strict=True)
    ]
    policy._open = OpenRounds(rounds)
    count_all(policy, rounds)
    out = out_of_map(policy, rounds)
    if policy._phi_hat is not None:
        policy._phi_hat.remember(out)
    agree = policy._phi_hat is None or policy._phi_hat.has_announced(out)
    stored.require(agree, "open_x", "rounds of which the map has those whose z is out")


def _round_ids(stored: Stored, n: int) -> list[str | None]:
    if not stored.has("open_ids"):
        return [None] * n
    try:
        found = json.loads(stored.text("open_ids"))
    except (ValueError, RecursionError):
        found = None
    right = isinstance(found, list) and len(found) == n
    given = [each for each in found if each is not None] if right else []
    right = right and all(isinstance(each, str) and each for each in given) and len(set(given)) == len(given)
    stored.require(right, "open_ids", "for each round another non-empty str, or null")
    return cast(list[str | None], found)
