"""What policies that count announced rounds must do; others are not checked."""

import copy
from inspect import signature
from typing import Any

import numpy as np

from postserve.conformance.tools import (
    Feedback,
    Make,
    N,
    arms_of,
    chances,
    checks_in,
    choose_all,
    close,
    in_turn,
    learnt,
    reload,
    require,
    require_invalid,
    rounds_for,
    same,
    snapshot,
    trained_policy,
)
from postserve.protocols import announces, z_for_oracle
from postserve.state import Persistent
from postserve.types import FloatArray, Rounds


def announced_rounds_can_be_taken_back(make: Make) -> None:
    """Announced and withdrawn, rounds leave the policy as it was; in between, no weight changes."""
    policy, rounds = trained_policy(make)
    if not announces(policy):
        return
    before, decisions = snapshot(policy), choose_all(policy, rounds)
    weights, came = getattr(policy, "weights", None), in_turn(policy, rounds)
    for x, arm, *_ in came:
        mine = x.copy()
        policy.expect(mine, arm)
        mine[:] = np.nan
    announced = snapshot(policy)
    choose_all(policy, rounds)
    require(same(announced, snapshot(policy)), "with rounds announced, select changed the policy")
    if weights is not None:
        require(np.array_equal(weights, policy.weights), "announced rounds changed the weights")
    for x, arm, *_ in reversed(came):
        policy.withdraw(x, arm)
    require(same(before, snapshot(policy)), "announced and withdrawn rounds changed the policy")
    require(choose_all(policy, rounds) == decisions, "announced and withdrawn rounds changed a choice")


def announced_rounds_are_learnt_as_others(make: Make) -> None:
    """Rounds that were announced teach what they would have taught, also if z comes in parts."""
    plain, whole, staged, at_once, in_parts = (make() for _ in range(5))
    if not announces(plain):
        return
    rounds = rounds_for(plain, N)
    came = in_turn(plain, rounds)
    for policy in (whole, staged, at_once):
        _announce(policy, came)
    for x, arm, z, reward in came:
        plain.update(x, arm, z, reward)
        whole.update(x, arm, z, reward)
        z_hat = staged.observe(x, arm, z)
        staged.credit(x, arm, z, reward, z_hat=z_hat)
    for name, policy in (("update", whole), ("observe and credit", staged)):
        require(same(snapshot(plain), snapshot(policy)), f"{name} taught announced rounds differently")
    if (plain.dim_z or 0) > 1 and getattr(plain, "z_features", None) is None:
        _announce(in_parts, came)
        for x, arm, z, reward in came:
            missing = np.arange(len(z)) > 0
            require(
                in_parts.observe(x, arm, np.where(missing, np.nan, z)) is None, "a part gave a prediction"
            )
            z_hat = in_parts.observe(x, arm, np.where(missing, z, np.nan))
            in_parts.credit(x, arm, z, reward, z_hat=z_hat)
        require(same(snapshot(plain), snapshot(in_parts)), "z in parts taught differently")
    if hasattr(at_once, "update_batch"):
        at_once.update_batch(*(np.array(part) for part in zip(*came, strict=True)))
        for x, z in zip(rounds.x, rounds.z, strict=True):
            alike = close(chances(plain, x, z), chances(at_once, x, z), 1e-6)
            require(alike, "update_batch taught announced rounds differently")
        require_invalid("withdrawing a learnt round", at_once.withdraw, *came[0][:2])


def nonsense_about_announced_rounds_is_refused(make: Make) -> None:
    """Bad input, a round never announced and a z that comes twice are refused and change nothing."""
    policy, rounds = trained_policy(make)
    if not announces(policy):
        return
    (x, arm, z, _), (other, *_) = in_turn(policy, rounds)[:2]
    before = snapshot(policy)
    require_invalid("withdrawing what was not announced", policy.withdraw, x, arm)
    unknown: Any = max(policy.arms) + 1 if policy.arms else -1
    for verb in (policy.expect, policy.withdraw):
        require_invalid(f"{verb.__name__} with NaN", verb, np.full(len(x), np.nan), arm)
        require_invalid(f"{verb.__name__} with a matrix", verb, x[None], arm)
        for bad in (unknown, None, 0.5):
            require_invalid(f"{verb.__name__} with arm = {bad}", verb, x, bad)
    require(same(before, snapshot(policy)), "refused input changed the policy")
    policy.expect(x, arm)
    if policy.dim_x is not None:
        require_invalid("withdrawing another x", policy.withdraw, other, arm)
    policy.observe(x, arm, z)
    before = snapshot(policy)
    if policy.dim_z is not None:
        require_invalid("a second z of one round", policy.observe, x, arm, z)
        require(same(before, snapshot(policy)), "a refused z changed the policy")


def announced_rounds_are_kept(make: Make) -> None:
    """Copies and saved states have them; a removed arm's go, and forgetting leaves them."""
    policy, rounds = trained_policy(make)
    if not announces(policy):
        return
    fresh = rounds_for(policy, N, seed=2)
    came = in_turn(policy, fresh)
    _announce(policy, came)
    for x, arm, z, _ in came[: N // 2]:
        policy.observe(x, arm, z)
    twins: list[Any] = [copy.deepcopy(policy)]
    if isinstance(policy, Persistent):
        twins.append(reload(policy))
        require(same(learnt(policy), learnt(twins[-1])), "announced rounds do not reload")
    for twin in twins:
        _require_equal_chances(policy, twin, rounds, "a copy with announced rounds decides differently")
        for x, arm, *_ in came:
            twin.withdraw(x, arm)
        require_invalid("withdrawing twice", twin.withdraw, *came[0][:2])
    if hasattr(policy, "forget"):
        policy.forget(arms=0.5)
    if hasattr(policy, "remove_arm") and policy.arms:
        gone = policy.arms[0]
        policy.remove_arm(gone)
        came = [each for each in came if each[1] != gone]
    for x, arm, *_ in came:
        policy.withdraw(x, arm)


def announced_rounds_are_found_by_id(make: Make) -> None:
    """Feedback with an id is that of its round, of many at one x; an id that is not open is refused."""
    policy, rounds = trained_policy(make)
    if not _takes_ids(policy):
        return
    plain, (x, arm, *_) = copy.deepcopy(policy), in_turn(policy, rounds)[0]
    came = [(f"{i}", z, reward) for i, (_, _, z, reward) in enumerate(in_turn(policy, rounds))]
    many = copy.deepcopy(policy)
    for name, *_ in came:
        policy.expect(x, arm, round_id=name)
    if isinstance(policy, Persistent):
        plain, policy = reload(plain), reload(policy)
        if hasattr(many, "expect_batch"):
            many.expect_batch([x] * len(came), [arm] * len(came), round_ids=[name for name, *_ in came])
            alike = same(snapshot(reload(many)), snapshot(policy))
            require(alike, "expect_batch announced otherwise than expect")
    _require_only_ids(policy, x, arm, came[0][1])
    # The last one is the first whose z comes. Where z is used, the reward comes alone: the round has its own.
    z_hats = {name: plain.observe(x, arm, z) for name, z, _ in reversed(came)}
    for name, z, _ in reversed(came):
        policy.observe(x, arm, z, round_id=name)
    for name, z, reward in came:
        plain.credit(x, arm, z, reward, z_hat=z_hats[name])
        policy.credit(x, arm, z if policy.dim_z is None else None, reward, round_id=name)
    require(same(snapshot(plain), snapshot(policy)), "rounds found by their ids taught differently")
    require_invalid("a second reward of one round", policy.credit, x, arm, came[0][1], 1.0, round_id="0")


def _require_only_ids(policy: Any, x: FloatArray, arm: int, z: FloatArray) -> None:
    """Nothing but its id and what was announced finds a round."""
    before = snapshot(policy)
    require_invalid("withdrawing a round without its id", policy.withdraw, x, arm)
    require_invalid("announcing an open id", policy.expect, x, arm, round_id="0")
    other = next(each for each in arms_of(policy) if each != arm)
    for bad in ("none", "", 0, ["0"]):
        given: Any = {"round_id": bad}
        require_invalid(f"withdraw of {bad!r}", policy.withdraw, x, arm, **given)
        require_invalid(f"observe of {bad!r}", policy.observe, x, arm, z, **given)
        require_invalid(f"credit of {bad!r}", policy.credit, x, arm, z, 1.0, **given)
        require_invalid(f"update of {bad!r}", policy.update, x, arm, z, 1.0, **given)
    require_invalid("another arm of an id", policy.update, x, other, z, 1.0, round_id="0")
    if policy.dim_x is not None:
        require_invalid("another x of an id", policy.update, 2.0 * x + 1.0, arm, z, 1.0, round_id="0")
    require(same(before, snapshot(policy)), "feedback of a round that is not open changed the policy")


def a_cohort_can_be_chosen_in_sequence(make: Make) -> None:
    """Sequentially, `select_batch` decides as `select` and `expect` in turn would, and changes nothing."""
    trained, rounds = trained_policy(make)
    if not announces(trained) or not hasattr(trained, "select_batch"):
        return
    for policy in (make(), trained):
        before, rng = snapshot(policy), np.random.default_rng(1)
        early = z_for_oracle(policy, Z=rounds.z)
        batch = policy.select_batch(rounds.x, rng, sequential=True, **early)
        require(same(before, snapshot(policy)), "a sequential select_batch changed the policy")
        if early:
            continue  # an oracle announces z too
        twin, rng = copy.deepcopy(policy), np.random.default_rng(1)
        for i, x in enumerate(rounds.x):
            decision = twin.select(x, rng)
            got = batch.arms[i], batch.propensities[i]
            require(got == decision, f"in sequence, select_batch chose {got}, and select {decision}")
            twin.expect(x if x.ndim == 1 else x[decision.arm], decision.arm)


PENDING_CHECKS = checks_in(globals())


def _takes_ids(policy: Any) -> bool:
    """Whether all verbs take a `round_id`; those of one's own class need not."""
    verbs = ("expect", "withdraw", "observe", "credit", "update")
    return announces(policy) and all("round_id" in signature(getattr(policy, v)).parameters for v in verbs)


def _announce(policy: Any, came: list[Feedback]) -> None:
    for x, arm, *_ in came:
        policy.expect(x, arm)


def _require_equal_chances(one: Any, other: Any, rounds: Rounds, message: str) -> None:
    for x, z in zip(rounds.x, rounds.z, strict=True):
        require(close(chances(one, x, z), chances(other, x, z), 1e-6), message)
