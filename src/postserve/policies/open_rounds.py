"""Rounds that were announced by `expect` and whose feedback is out.

Until z comes, a round counts in the widths of the map at x, and in those of the arm at (x, phi_hat(x)), as
predicted when it was announced; from then on at (x, z), until the reward comes. Means do not change. z may
come in parts: entries that are not known yet are NaN, and the arm's row has what is expected in their place.
A map that learns in stages learns from each part what the parts before it have not taught; from then on only
the other stages are out.

All of this happens to a copy of the policy, which then takes its place (`changes.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from postserve.errors import InvalidInput
from postserve.pieces import stacked
from postserve.policies.arms import ArmModels
from postserve.policies.open_round import OpenRound, OpenRounds
from postserve.policies.phi_hat import Out
from postserve.types import FloatArray, IntArray
from postserve.validation import text


def expect(policy: Any, x: FloatArray, slot: int, round_id: str | None = None) -> None:
    """Announce a round."""
    if round_id is not None and _open(policy).has(text("round_id", round_id)):
        raise InvalidInput(f"round_id is {round_id!r:.60}, which is open already, wanted another id")
    seen = _seen(policy, x)
    rows = policy._rows_out(seen, slot, None, None)
    one = OpenRound(seen, _arm(policy, slot), rows=rows, round_id=round_id)
    if policy._phi_hat is not None:
        policy._phi_hat.expect(one.x, slot)
    count(policy, one)
    policy._open = _open(policy)
    policy._open.add(one)


def expect_batch(
    policy: Any, X: Sequence[FloatArray], slots: Sequence[int], round_ids: Sequence[str]
) -> None:
    """Announce many rounds."""
    if taken := [each for each in round_ids if _open(policy).has(text("round_id", each))]:
        raise InvalidInput(f"round_id is {taken[0]!r:.60}, which is open already, wanted another id")
    if len(set(round_ids)) < len(round_ids):
        raise InvalidInput("two of round_ids are the same, wanted another id for each round")
    rounds = zip(X, slots, round_ids, strict=True)
    expect_all(
        policy, [OpenRound(_seen(policy, x), _arm(policy, slot), round_id=each) for x, slot, each in rounds]
    )


def expect_all(policy: Any, others: Sequence[OpenRound]) -> None:
    """As `expect` one by one, with the x, arms and ids of these rounds."""
    if not others:
        return
    phi_hat, slots = policy._phi_hat, [policy._arm_set.slot(one.arm) for one in others]
    predicted: Sequence[FloatArray | None] = [None] * len(others)
    if phi_hat is not None:
        predicted = phi_hat.predict_each(stacked([one.x for one in others]), slots)
    rounds = []
    for one, slot, z_hat in zip(others, slots, predicted, strict=True):
        rows = policy._rows_out(one.x, slot, None, z_hat)
        rounds.append(OpenRound(one.x, one.arm, rows=rows, round_id=one.round_id))
    if phi_hat is not None:
        phi_hat.expect_all(out_of_map(policy, rounds))
    _add_all(policy, rounds)


def _expect_with_z(policy: Any, others: Sequence[OpenRound]) -> None:
    """As `expect` and `observe`, one by one, of rounds of another policy whose z came."""
    rounds = []
    for one in others:
        assert one.z is not None
        slot = policy._arm_set.slot(one.arm)
        staged = _learns_in_stages(policy)
        if staged:  # of rounds with equal x and arm it takes back the oldest
            policy._phi_hat.expect(one.x, slot)
        z_hat = _learn_z(policy, one.x, slot, one.z, None)
        if staged:
            policy._phi_hat.withdraw(one.x, slot)
        rows = policy._rows_out(one.x, slot, one.z, z_hat)
        rounds.append(OpenRound(one.x, one.arm, one.z, z_hat, rows=rows, round_id=one.round_id))
    if rounds:
        _add_all(policy, rounds)
        _count_more(policy)  # the map may have learnt its first z


def _add_all(policy: Any, rounds: Sequence[OpenRound]) -> None:
    count_all(policy, rounds)
    policy._open = _open(policy)
    policy._open.add_all(rounds)


def withdraw(policy: Any, x: FloatArray, slot: int, round_id: str | None) -> None:
    """Take a round back of which nothing will come."""
    arm = _arm(policy, slot)
    one = _open(policy).oldest(_seen(policy, x), arm, round_id)
    if one is None:
        raise InvalidInput(f"arm {arm} has no open round at this x, wanted one that expect() announced")
    close(policy, one)
    _follow(policy)


def refuse_unknown(policy: Any, x: FloatArray, slot: int, round_id: str | None) -> None:
    """Raise if there is an id, and no such round."""
    if round_id is not None:
        _open(policy).oldest(_seen(policy, x), _arm(policy, slot), round_id)


def observe(policy: Any, x: FloatArray, slot: int, z: FloatArray, round_id: str | None) -> FloatArray | None:
    """The policy's step, of a round that may have been announced."""
    one = _open(policy).without_z(_seen(policy, x), _arm(policy, slot), z, round_id)
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
        count(policy, policy._open.replace(one, z=z, z_hat=known, part=None, rows=rows))
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


def observe_part(
    policy: Any, x: FloatArray, slot: int, part: FloatArray, round_id: str | None
) -> FloatArray | None:
    """Keep a part of z, which has NaN elsewhere, until all of it came; then the policy's step."""
    arm = _arm(policy, slot)
    one = _open(policy).without_z(_seen(policy, x), arm, part, round_id)
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
    count(policy, policy._open.replace(one, rows=_rows(policy, one)))
    _follow(policy)
    return None


def credit(
    policy: Any,
    x: FloatArray,
    slot: int,
    z: FloatArray | None,
    reward: float,
    z_hat: FloatArray | None,
    round_id: str | None,
) -> None:
    """The policy's step; z and its prediction are remembered, if they came."""
    one = _open(policy).credited(_seen(policy, x), _arm(policy, slot), z, round_id)
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


def update(
    policy: Any, x: FloatArray, slot: int, z: FloatArray | None, reward: float, round_id: str | None
) -> None:
    """The policy's step; without z it is `credit` if z, or a part of it, came before."""
    one, untaught = _updated(policy, x, slot, z, round_id), _is_untaught(policy, slot)
    if z is None and _knows_z(one):
        credit(policy, x, slot, None, reward, None, round_id)
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
    if policy._open is None:
        policy._update_batch(X, slots, Z, rewards)
        policy._apply()
        return
    found: list[OpenRound] = []
    of_rows: list[OpenRound | None] = []
    for i, slot in enumerate(slots.tolist()):
        one = _updated(policy, X[i], slot, None if Z is None else Z[i], None, found)
        found += [] if one is None else [one]
        of_rows.append(one)
    if Z is None and any(map(_knows_z, found)):
        for x, slot, reward in zip(X, slots.tolist(), rewards.tolist(), strict=True):
            update(policy, x, slot, None, reward, None)
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


def close_all(policy: Any, rounds: Sequence[OpenRound]) -> None:
    """As `close` one by one."""
    if not rounds:
        return
    _uncount_all(policy, rounds)
    if policy._phi_hat is not None:
        policy._phi_hat.withdraw_all(out_of_map(policy, rounds))
    over = set(map(id, rounds))
    policy._open = OpenRounds(one for one in policy._open if id(one) not in over) or None


def close_arm(policy: Any, slot: int) -> None:
    """The arm is removed, and with it its rounds."""
    close_all(policy, [one for one in policy._open or () if one.arm == _arm(policy, slot)])
    _follow(policy)


def take_over(policy: Any, others: Sequence[OpenRound]) -> None:
    """Let the open rounds of another policy, which have ids, be the ones of this policy.

    Those of which as much is known here stay as they are, and what came of z since is learnt.
    """
    here, theirs = named(policy), {one.round_id: one for one in others}
    anew = [one for name, one in here.items() if not _goes_on(one, theirs.get(name))]
    close_all(policy, anew)
    here = named(policy)
    new = [one for one in others if one.round_id not in here]
    _expect_with_z(policy, [one for one in new if one.z is not None])
    expect_all(policy, [one for one in new if one.z is None])
    for one in others:
        if one.part is not None or (one.round_id in here and one.z is not None):
            _learn_more(policy, one, here.get(str(one.round_id)))
    _follow(policy)


def _goes_on(one: OpenRound, later: OpenRound | None) -> bool:
    """Whether a round becomes the later one if it learns a z of which it knows a part, or nothing at all.

    If all of z came at once, it is faster to announce it anew, with many others.
    """
    return later is not None and (later.z is None or one.z_so_far is not None)


def _learn_more(policy: Any, one: OpenRound, known: OpenRound | None) -> None:
    """What came of the z of a round that is open, beyond what is known."""
    z, before = one.z_so_far, None if known is None else known.z_so_far
    if z is None or (known is not None and known.z is not None) or _bits(before) == _bits(z):
        return
    learns = observe_part if one.z is None else observe
    learns(policy, one.x, policy._arm_set.slot(one.arm), z, one.round_id)


def _bits(z: FloatArray | None) -> bytes:
    return b"" if z is None else z.tobytes()


def adopt(policy: Any, others: Iterable[OpenRound]) -> None:
    """Take over the rounds of another policy; its map's have been merged."""
    for each in others:
        one = replace(each, x=each.x.copy())
        count(policy, one)
        policy._open = _open(policy)
        policy._open.add(one)
    _count_more(policy)  # one of the two maps may have known where z lies


def refuse_same_ids(policy: Any, others: Iterable[OpenRound]) -> None:
    """Raise if a round of another policy has the id of one that is open here."""
    for each in others:
        if each.round_id is not None and _open(policy).has(each.round_id):
            got = f"cannot merge: a round with round_id {each.round_id!r:.60} is open in both"
            raise InvalidInput(f"{got}, wanted other ids in each")


def _open(policy: Any) -> OpenRounds:
    rounds: OpenRounds | None = policy._open
    return OpenRounds() if rounds is None else rounds


def _updated(
    policy: Any,
    x: FloatArray,
    slot: int,
    z: FloatArray | None,
    round_id: str | None,
    taken: Sequence[OpenRound] = (),
) -> OpenRound | None:
    x, arm = _seen(policy, x), _arm(policy, slot)
    if z is not None and policy.dim_z is not None:
        return _open(policy).without_z(x, arm, z, round_id, taken)
    return _open(policy).oldest(x, arm, round_id, taken)


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


def count(policy: Any, one: OpenRound) -> None:
    """The round counts in the widths of the arms."""
    for arms, row in zip(policy._regressions(), one.rows, strict=True):
        if row is not None:
            arms.expect(policy._arm_set.slot(one.arm), row)


def count_all(policy: Any, rounds: Sequence[OpenRound]) -> None:
    """As `count` one by one."""
    for arms, slots, rows in _rows_of_all(policy, rounds):
        arms.expect_all(slots, rows)


def _uncount(policy: Any, one: OpenRound) -> None:
    for arms, row in zip(policy._regressions(), one.rows, strict=True):
        if row is not None:
            arms.withdraw(policy._arm_set.slot(one.arm), row)


def _uncount_all(policy: Any, rounds: Sequence[OpenRound]) -> None:
    for arms, slots, rows in _rows_of_all(policy, rounds):
        arms.withdraw_all(slots, rows)


def _rows_of_all(
    policy: Any, rounds: Sequence[OpenRound]
) -> Iterator[tuple[ArmModels, IntArray, FloatArray]]:
    """Each of the regressions, with the slots and rows of the rounds that count in it."""
    slots = np.array([policy._arm_set.slot(one.arm) for one in rounds], dtype=np.int64)
    for k, arms in enumerate(policy._regressions()):
        known = [one.rows[k] is not None for one in rounds]
        yield arms, slots[known], stacked([one.rows[k] for one in compress(rounds, known)])


def out_of_map(policy: Any, rounds: Iterable[OpenRound]) -> list[Out]:
    """The rounds whose z is out, or a part of it, as the map is told of them."""
    return [(one.x, policy._arm_set.slot(one.arm), one.part) for one in rounds if one.z is None]


def _count_more(policy: Any) -> None:
    """Count the rounds that were announced before the map could say where z lies."""
    for one in policy._open or ():
        if any(row is None for row in one.rows):
            _uncount(policy, one)
            count(policy, policy._open.replace(one, rows=_rows(policy, one)))


def _rows(policy: Any, one: OpenRound) -> tuple[FloatArray | None, ...]:
    """The rows of a round as far as it is known now."""
    slot, z, z_hat = policy._arm_set.slot(one.arm), one.z, one.z_hat
    if one.part is not None and policy._phi_hat is not None and not _is_untaught(policy, slot):
        predicted = policy._phi_hat.predict_one(one.x, slot)
        z_hat = predicted if z_hat is None else z_hat
        z = _completed(policy, one.x, slot, one.part, predicted)
    rows: tuple[FloatArray | None, ...] = policy._rows_out(one.x, slot, z, z_hat)
    return rows


def _completed(policy: Any, x: FloatArray, slot: int, part: FloatArray, predicted: FloatArray) -> FloatArray:
    """z as far as it is known, and what is predicted elsewhere: from the part too, if the map can."""
    if _learns_in_stages(policy):
        whole: FloatArray = policy._phi_hat.complete(x, slot, part)
        return whole
    return np.where(np.isnan(part), predicted, part)


def is_open(policy: Any, round_id: str) -> bool:
    """Whether a round was announced under this id, and is open."""
    return policy._open is not None and policy._open.has(round_id)


def named(policy: Any) -> dict[str, OpenRound]:
    """The open rounds that have an id, by it."""
    return {one.round_id: one for one in policy._open or () if one.round_id is not None}
