"""Rounds that were announced by `expect` and whose feedback is out.

Until z comes, a round counts in the widths of the map at x, and in those of the arm at (x, phi_hat(x)), as
predicted when it was announced; from then on at (x, z), until the reward comes. Means do not change. z may
come in parts: entries that are not known yet are NaN, and the arm's row has what is expected in their place.
A map that learns in stages learns from each part what the parts before it have not taught; from then on only
the other stages are out.

All of this happens to a copy of the policy, which then takes its place (`changes.py`).
"""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from postserve.errors import InvalidInput
from postserve.policies.open_round import OpenRound, OpenRounds
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray


def expect(policy: Any, x: FloatArray, slot: int) -> None:
    """Announce a round."""
    seen = _seen(policy, x)
    one = OpenRound(seen, _arm(policy, slot), rows=policy._rows_out(seen, slot, None, None))
    if policy._phi_hat is not None:
        policy._phi_hat.expect(one.x, slot)
    _count(policy, one)
    if policy._open is None:
        policy._open = OpenRounds()
    policy._open.add(one)


def withdraw(policy: Any, x: FloatArray, slot: int) -> None:
    """Take a round back of which nothing will come."""
    arm = _arm(policy, slot)
    one = None if policy._open is None else policy._open.oldest(_seen(policy, x), arm)
    if one is None:
        raise InvalidInput(f"arm {arm} has no open round at this x, wanted one that expect() announced")
    close(policy, one)
    _follow(policy)


def observe(policy: Any, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
    """The policy's step, of a round that may have been announced."""
    one = policy._open.without_z(_seen(policy, x), _arm(policy, slot), z)
    return _observe(policy, x, slot, z, one)


def _observe(
    policy: Any, x: FloatArray, slot: int, z: FloatArray, one: OpenRound | None
) -> FloatArray | None:
    untaught = _is_untaught(policy, slot)
    z_hat = _learn_z(policy, x, slot, z, one)
    if one is not None:
        _uncount(policy, one)
        if policy._phi_hat is not None:
            policy._phi_hat.withdraw(one.x, slot, one.part)
        z, known = z.copy(), None if z_hat is None else z_hat.copy()
        rows = policy._rows_out(one.x, slot, z, known)
        _count(policy, policy._open.replace(one, z=z, z_hat=known, part=None, rows=rows))
    if untaught:
        _count_more(policy)
    _follow(policy)
    return z_hat


def _learn_z(
    policy: Any, x: FloatArray, slot: int, z: FloatArray, one: OpenRound | None
) -> FloatArray | None:
    """The policy's step; a map that has learnt a part of z was asked before, and does not learn it again."""
    z_hat: FloatArray | None
    if one is None or one.part is None or not _learns_in_stages(policy):
        z_hat = policy._observe(x, slot, z)
        policy._apply()
        return z_hat
    with policy._phi_hat.having_learnt(one.part):
        z_hat = policy._observe(x, slot, z)
    policy._apply()
    return z_hat if one.z_hat is None else one.z_hat


def observe_part(policy: Any, x: FloatArray, slot: int, part: FloatArray) -> FloatArray | None:
    """Keep a part of z, which has NaN elsewhere, until all of it came; then the policy's step."""
    arm = _arm(policy, slot)
    one = None if policy._open is None else policy._open.without_z(_seen(policy, x), arm, part)
    if one is None:
        got = f"z has missing entries, and arm {arm} has no open round at this x"
        raise InvalidInput(f"{got}, wanted all of z, or a round that expect() announced")
    whole = part.copy() if one.part is None else np.where(np.isnan(part), one.part, part)
    if not np.isnan(whole).any():
        return _observe(policy, x, slot, whole, one)
    z_hat = one.z_hat
    if _learns_in_stages(policy):
        z_hat = policy._before_parts(x, slot) if one.part is None else one.z_hat
        policy._phi_hat.learn_part(x, slot, whole, one.part)
        policy._phi_hat.withdraw(one.x, slot, one.part)
        policy._phi_hat.expect(one.x, slot, whole)
    _uncount(policy, one)
    one = policy._open.replace(one, part=whole, z_hat=z_hat)
    _count(policy, policy._open.replace(one, rows=_rows(policy, one)))
    _follow(policy)
    return None


def credit(
    policy: Any, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
) -> None:
    """The policy's step; z and its prediction are remembered, if they came."""
    one = policy._open.credited(_seen(policy, x), _arm(policy, slot), z)
    if one is not None:
        z, z_hat = one.z if z is None else z, one.z_hat if z_hat is None else z_hat
        if z is None and one.part is not None and policy.missing_z == "impute":
            predicted = policy._impute(x, slot)
            z = _completed(policy, x, slot, one.part, predicted)
            z_hat = predicted if z_hat is None else z_hat
    policy._fill_z_and_credit(x, slot, z, reward, z_hat)
    policy._apply()
    if one is not None:
        close(policy, one)
    _follow(policy)


def update(policy: Any, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
    """The policy's step; without z it is `credit` if z, or a part of it, came before."""
    one, untaught = _updated(policy, x, slot, z, []), _is_untaught(policy, slot)
    if z is None and _knows_z(one):
        credit(policy, x, slot, None, reward, None)
        return
    _learn(policy, x, slot, z, reward, one)
    if one is not None:
        close(policy, one)
    if untaught:
        _count_more(policy)
    _follow(policy)


def _learn(
    policy: Any, x: FloatArray, slot: int, z: FloatArray | None, reward: float, one: OpenRound | None
) -> None:
    """The policy's step, of a round of whose z a part may have been learnt."""
    if z is None or one is None or one.part is None or not _learns_in_stages(policy):
        policy._update(x, slot, z, reward)
    else:
        policy._fill_z_and_credit(x, slot, z, reward, _learn_z(policy, x, slot, z, one))
    policy._apply()


def update_batch(
    policy: Any, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
) -> None:
    """The policy's step; all rounds are found before the first is learnt."""
    found: list[OpenRound] = []
    of_rows: list[OpenRound | None] = []
    for i, slot in enumerate(slots.tolist()):
        one = _updated(policy, X[i], slot, None if Z is None else Z[i], found)
        found += [] if one is None else [one]
        of_rows.append(one)
    if Z is None and any(map(_knows_z, found)):
        for x, slot, reward in zip(X, slots.tolist(), rewards.tolist(), strict=True):
            update(policy, x, slot, None, reward)
        return
    if all(one.part is None for one in found) or not _learns_in_stages(policy):
        policy._update_batch(X, slots, Z, rewards)
        policy._apply()
    else:
        for i, (slot, one) in enumerate(zip(slots.tolist(), of_rows, strict=True)):
            _learn(policy, X[i], slot, None if Z is None else Z[i], float(rewards[i]), one)
    for one in found:
        close(policy, one)
    _count_more(policy)
    _follow(policy)


def close(policy: Any, one: OpenRound) -> None:
    """The round counts no more."""
    _uncount(policy, one)
    if one.z is None and policy._phi_hat is not None:
        policy._phi_hat.withdraw(one.x, policy._arm_set.slot(one.arm), one.part)
    policy._open.remove(one)
    if not policy._open:
        policy._open = None


def close_arm(policy: Any, slot: int) -> None:
    """The arm is removed, and with it its rounds."""
    for one in policy._open or ():
        if one.arm == _arm(policy, slot):
            close(policy, one)
    _follow(policy)


def adopt(policy: Any, others: Iterable[OpenRound]) -> None:
    """Take over the rounds of another policy; its map's have been merged."""
    for each in others:
        one = OpenRound(each.x.copy(), each.arm, each.z, each.z_hat, each.part, list(each.rows))
        _count(policy, one)
        policy._open = policy._open or OpenRounds()
        policy._open.add(one)
    _count_more(policy)  # one of the two maps may have known where z lies


def _updated(
    policy: Any, x: FloatArray, slot: int, z: FloatArray | None, taken: list[OpenRound]
) -> OpenRound | None:
    x, arm, rounds = _seen(policy, x), _arm(policy, slot), policy._open
    found: OpenRound | None = None
    if rounds is not None and z is not None and policy.dim_z is not None:
        found = rounds.without_z(x, arm, z, taken)
    elif rounds is not None:
        found = rounds.oldest(x, arm, taken)
    return found


def _knows_z(one: OpenRound | None) -> bool:
    """Whether z came, or a part of it."""
    return one is not None and (one.z is not None or one.part is not None)


def _seen(policy: Any, x: FloatArray) -> FloatArray:
    """A copy of x; nothing of it where it is ignored."""
    return x.copy() if policy.dim_x is not None else np.empty(0)


def _arm(policy: Any, slot: int) -> int:
    return int(policy._arm_set.ids_of(np.array([slot]))[0])


def _is_untaught(policy: Any, slot: int) -> bool:
    """Whether the map cannot say where z lies: then rounds count from the first z on."""
    return policy._phi_hat is not None and not policy._phi_hat.is_taught(slot)


def _learns_in_stages(policy: Any) -> bool:
    """Whether the map learns from a part of z."""
    return policy._phi_hat is not None and policy._phi_hat.learns_in_stages


def _follow(policy: Any) -> None:
    for arms in policy._regressions():
        arms.follow()


def _count(policy: Any, one: OpenRound) -> None:
    for arms, row in zip(policy._regressions(), one.rows, strict=True):
        if row is not None:
            arms.expect(policy._arm_set.slot(one.arm), row)


def _uncount(policy: Any, one: OpenRound) -> None:
    for arms, row in zip(policy._regressions(), one.rows, strict=True):
        if row is not None:
            arms.withdraw(policy._arm_set.slot(one.arm), row)


def _count_more(policy: Any) -> None:
    """Count the rounds that were announced before the map could say where z lies."""
    for one in policy._open or ():
        if any(row is None for row in one.rows):
            _uncount(policy, one)
            _count(policy, policy._open.replace(one, rows=_rows(policy, one)))


def _rows(policy: Any, one: OpenRound) -> list[FloatArray | None]:
    """The rows of a round as far as it is known now."""
    slot, z, z_hat = policy._arm_set.slot(one.arm), one.z, one.z_hat
    if one.part is not None and policy._phi_hat is not None and not _is_untaught(policy, slot):
        predicted = policy._phi_hat.predict_one(one.x, slot)
        z_hat = predicted if z_hat is None else z_hat
        z = _completed(policy, one.x, slot, one.part, predicted)
    rows: list[FloatArray | None] = policy._rows_out(one.x, slot, z, z_hat)
    return rows


def _completed(policy: Any, x: FloatArray, slot: int, part: FloatArray, predicted: FloatArray) -> FloatArray:
    """z as far as it is known, and what is predicted elsewhere: from the part too, if the map can."""
    if _learns_in_stages(policy):
        whole: FloatArray = policy._phi_hat.complete(x, slot, part)
        return whole
    return np.where(np.isnan(part), predicted, part)


# State


def arrays(policy: Any) -> Arrays:
    """All open rounds as named arrays; none if there are none."""
    rounds = list(policy._open or ())
    if not rounds:
        return {}
    found: Arrays = {
        "open_x": np.array([one.x for one in rounds]),
        "open_arms": np.array([one.arm for one in rounds], dtype=np.int64),
    }
    columns = {"open_z": [one.z for one in rounds], "open_z_hat": [one.z_hat for one in rounds]}
    for k in range(len(policy._regressions())):
        columns[f"open_rows_{k}"] = [one.rows[k] for one in rounds]
    for name, values in columns.items():
        known = np.array([value is not None for value in values])
        dim = max((len(value) for value in values if value is not None), default=0)
        found[name] = np.array([np.zeros(dim) if value is None else value for value in values])
        found[f"{name}_known"] = known
    if any(one.part is not None for one in rounds):
        unknown = np.full(policy.dim_z or 0, np.nan)
        parts = np.array([unknown if one.part is None else one.part for one in rounds])
        found["open_part"], found["open_part_known"] = np.nan_to_num(parts), ~np.isnan(parts)
    return found


def restore(policy: Any, stored: Stored) -> None:
    """Take back what `arrays` gave; the map has its own part."""
    if not stored.has("open_arms"):
        return
    ids = stored.take("open_arms", (None,), np.int64)
    n, regressions = len(ids), policy._regressions()
    there = bool((ids >= 0).all() if policy._arm_set.by_row else np.isin(ids, policy._arm_set.ids).all())
    stored.require(there and n > 0, "open_arms", "arms that there are")
    names = ["open_z", "open_z_hat", *(f"open_rows_{k}" for k in range(len(regressions)))]
    dims = [policy.dim_z, policy.dim_z, *(arms.dim_u for arms in regressions)]
    columns = []
    for name, dim in zip(names, dims, strict=True):
        known = stored.take(f"{name}_known", (n,), np.bool_)
        values = stored.take(name, (n, dim if known.any() else 0))
        columns.append([value if has else None for value, has in zip(values, known, strict=True)])
    parts: list[FloatArray | None] = [None] * n
    if stored.has("open_part"):
        shape = (n, policy.dim_z or 0)
        known = stored.take("open_part_known", shape, np.bool_)
        values = np.where(known, stored.take("open_part", shape), np.nan)
        parts = [value if has.any() else None for value, has in zip(values, known, strict=True)]
    policy._open = OpenRounds()
    X = stored.take("open_x", (n, policy.dim_x or 0))
    for x, arm, part, z, z_hat, *rows in zip(X, ids.tolist(), parts, *columns, strict=True):
        one = OpenRound(x, arm, z, z_hat, part, rows)
        policy._open.add(one)
        _count(policy, one)
    if policy._phi_hat is not None:
        policy._phi_hat.remember(_out_of_map(policy))
    stored.require(_map_has_all(policy), "open_x", "rounds of which the map has those whose z is out")


def _map_has_all(policy: Any) -> bool:
    """Whether every round whose z is out can be taken back from the map, if it counts them."""
    if policy._phi_hat is None or not policy._phi_hat.counts_pending:
        return True
    phi_hat = copy.deepcopy(policy._phi_hat)
    try:
        for announced in _out_of_map(policy):
            phi_hat.withdraw(*announced)
    except InvalidInput:
        return False
    return True


def _out_of_map(policy: Any) -> list[tuple[FloatArray, int, FloatArray | None]]:
    """The rounds whose z is out, or a part of it, as the map is told of them."""
    return [(one.x, policy._arm_set.slot(one.arm), one.part) for one in policy._open if one.z is None]
