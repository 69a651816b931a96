"""What every policy must do."""

from typing import Any

import numpy as np

from postserve.conformance.overriding import policies_take_overridden_steps
from postserve.conformance.pending import PENDING_CHECKS
from postserve.conformance.rows import ROW_CHECKS
from postserve.conformance.tools import (
    Feedback,
    Make,
    N,
    arms_of,
    chances,
    checks_in,
    choose,
    choose_all,
    close,
    feedback,
    in_turn,
    learnt,
    play,
    reload,
    require,
    require_batch_as_single,
    require_batch_propensities,
    require_invalid,
    rounds_for,
    same,
    snapshot,
    trained_policy,
)
from postserve.conformance.units import UNIT_CHECKS
from postserve.protocols import z_for_oracle
from postserve.state import Persistent
from postserve.types import Rounds


def it_has_the_verbs(make: Make) -> None:
    """`make` makes a policy with the protocol's methods and at least two arms, or decision sets."""
    require(callable(make), f"got a {type(make).__name__}, wanted a function that makes a fresh policy")
    policy = make()
    for name in ("arms", "dim_x", "dim_z", "select", "propensities", "update", "observe", "credit"):
        require(hasattr(policy, name), f"the policy has no {name}")
    require(len(policy.arms) != 1, "the policy has 1 arm, wanted two or more to check, or decision sets")


def select_is_pure(make: Make) -> None:
    """Selecting changes nothing but rng."""
    policy, rounds = trained_policy(make)
    before = snapshot(policy)
    first = choose_all(policy, rounds)
    require(first == choose_all(policy, rounds), "a second select with the same rng decided differently")
    fresh = rounds_for(policy, 1, seed=4)
    x, z = fresh.x[0].copy(), fresh.z[0].copy()
    choose(policy, x, z, np.random.default_rng(1))
    require(np.array_equal(x, fresh.x[0]) and np.array_equal(z, fresh.z[0]), "select changed its inputs")
    require(same(before, snapshot(policy)), "select changed the policy")


def describing_changes_nothing(make: Make) -> None:
    """A policy that describes itself does so before and after learning, and stays as it is."""
    fresh, (policy, _) = make(), trained_policy(make)
    if not hasattr(policy, "describe"):
        return
    before = snapshot(policy)
    require(bool(str(fresh.describe())), "the description of a fresh policy is empty")
    text = str(policy.describe())
    require(bool(text) and bool(policy.describe()._repr_html_()), "the description of a policy is empty")
    require(text == str(policy.describe()), "a second description differs from the first")
    require(same(before, snapshot(policy)), "describing changed the policy")


def inputs_are_not_kept(make: Make) -> None:
    """Arguments are neither changed nor kept."""
    one, other = make(), make()
    for x, arm, z, reward in in_turn(one, rounds_for(one, N)):
        mine, follow_up = x.copy(), z.copy()
        one.update(mine, arm, follow_up, reward)
        require(np.array_equal(mine, x) and np.array_equal(follow_up, z), "update changed its inputs")
        mine[:] = follow_up[:] = np.nan
        other.update(x, arm, z, reward)
    require(same(snapshot(one), snapshot(other)), "an array handed over was kept, and changed later")


def same_seed_same_arms(make: Make) -> None:
    """A run is a function of its rounds and its seed."""
    one, other = make(), make()
    rounds = rounds_for(one, N)
    require(play(one, rounds) == play(other, rounds), "the same seed gave other arms")


def state_round_trips(make: Make) -> None:
    """A policy saved and loaded in mid-run continues with identical decisions; saving changes nothing."""
    policy, _ = trained_policy(make)
    if not hasattr(policy, "save"):
        return
    before = snapshot(policy)
    twin = reload(policy)
    require(same(before, snapshot(policy)), "saving changed the policy")
    require(same(learnt(policy), learnt(twin)), "the loaded policy differs from the saved one")
    require(twin.arms == policy.arms, "the loaded policy has other arms")
    rounds = rounds_for(policy, N, seed=2)
    require(play(policy, rounds) == play(twin, rounds), "the loaded policy decided differently")
    require(same(learnt(policy), learnt(twin)), "the loaded policy learnt differently")


def update_is_observe_then_credit(make: Make) -> None:
    """z first and the reward later teach the same as both at once."""
    whole, staged = make(), make()
    for x, arm, z, reward in in_turn(whole, rounds_for(whole, N)):
        whole.update(x, arm, z, reward)
        z_hat = staged.observe(x, arm, z)
        staged.credit(x, arm, z, reward, z_hat=z_hat)
    require(same(snapshot(whole), snapshot(staged)), "observe and credit taught differently than update")


def what_comes_is_learnt(make: Make) -> None:
    """A policy with weights learns from rewards, and its map from z, if it is one that learns."""
    policy = make()
    phi_hat = getattr(policy, "context_map", None)
    before, came = snapshot(phi_hat), in_turn(policy, rounds_for(policy, N))
    for x, arm, z, _ in came:
        policy.observe(x, arm, z)
    if phi_hat is not None and same(before, snapshot(phi_hat)):
        phi_hat.update(np.ones(phi_hat.dim_x), came[0][1], np.ones(phi_hat.dim_z))
        require(same(before, snapshot(phi_hat)), "observe taught the map nothing")
    for each in came:
        policy.update(*each)
    if hasattr(policy, "weights"):
        require(bool(np.any(policy.weights)), "rewards came, and all weights are 0")


def many_decisions_may_be_open(make: Make) -> None:
    """Feedback may come late and out of order, for decisions made long before."""
    policy = make()
    rounds = rounds_for(policy, N)
    rng = np.random.default_rng(1)
    came = [feedback(policy, rounds, i, chosen.arm) for i, chosen in enumerate(choose_all(policy, rounds))]
    z_hats = {i: policy.observe(*came[i][:3]) for i in rng.permutation(N).tolist()}
    for i in rng.permutation(N).tolist():
        policy.credit(*came[i], z_hat=z_hats[i])
    require(np.isfinite(chances(policy, rounds.x[0], rounds.z[0])).all(), "late feedback broke the policy")


def order_does_not_matter_where_promised(make: Make) -> None:
    """An order-free policy learns the same from its rounds in any order (1e-9; with evidence 1e-6)."""
    one, other = make(), make()
    if not getattr(one, "order_free", False):
        return
    came = in_turn(one, rounds_for(one, 3 * N))
    _teach(one, came)
    _teach(other, [came[i] for i in np.random.default_rng(1).permutation(len(came))])
    _require_equal_learners(one, other, "another order of updates")


def merging_adds_up_where_promised(make: Make) -> None:
    """Two order-free learners merged are one that saw the rounds of both; others refuse."""
    whole, left, right = make(), make(), make()
    if not getattr(whole, "order_free", False):
        if hasattr(whole, "merge"):
            before = snapshot(left)
            require_invalid("merging a policy that cannot be", left.merge, right)
            require(same(before, snapshot(left)), "a refused merge changed the policy")
        return
    came = in_turn(whole, rounds_for(whole, 3 * N))
    for one, part in ((whole, came), (left, came[:N]), (right, came[N:])):
        _teach(one, part)
    theirs = snapshot(right)
    left.merge(right)
    require(same(theirs, snapshot(right)), "merging changed the policy that was merged in")
    _require_equal_learners(whole, left, "merging")


def propensities_are_right(make: Make) -> None:
    """They sum to one, are zero for arms that are not eligible, and match what select does."""
    trained, rounds = trained_policy(make)
    for policy in (make(), trained):
        for eligible in (None, list(policy.arms[1:])) if policy.arms else (None,):
            x, z = rounds.x[0], rounds.z[0]
            p = chances(policy, x, z, arms=eligible)
            everyone = arms_of(policy)
            require(p.shape == (len(everyone),), f"propensities have shape {p.shape}")
            require(bool((p >= 0.0).all()) and abs(p.sum() - 1.0) < 1e-9, f"propensities are {p}")
            rng = np.random.default_rng(1)
            drawn = [choose(policy, x, z, rng, arms=eligible) for _ in range(1000)]
            slots = np.array([everyone.index(decision.arm) for decision in drawn])
            said = np.array([decision.propensity for decision in drawn])
            require(close(said, p[slots], 1e-9), "a decision's propensity is not that of its arm")
            frequency = np.bincount(slots, minlength=len(p)) / len(drawn)
            tolerance = 5.0 * np.sqrt(p * (1.0 - p) / len(drawn)) + 1e-9
            require(bool((abs(frequency - p) <= tolerance).all()), f"drew {frequency} where {p} was said")
            outside = [everyone.index(arm) for arm in everyone if eligible and arm not in eligible]
            require(not p[outside].any(), "an arm that is not eligible has a propensity")
            require_batch_propensities(policy, rounds, arms=eligible)


def bad_input_is_refused(make: Make) -> None:
    """NaN, infinity, wrong shapes and types, unknown arms raise InvalidInput and change nothing."""
    policy, rounds = trained_policy(make)
    before = snapshot(policy)
    (x, arm, z, _), rng = in_turn(policy, rounds)[0], np.random.default_rng(0)

    def require_refused(what: str, *served: Any) -> None:
        require_invalid(f"update with {what}", policy.update, *served, 1.0)
        require_invalid(f"observe with {what}", policy.observe, *served)
        require_invalid(f"credit with {what}", policy.credit, *served, 1.0, z_hat=z)

    bad_vectors: dict[str, Any] = {
        "NaN": np.where(np.arange(len(x)) == 0, np.nan, x),
        "infinity": np.where(np.arange(len(x)) == 0, np.inf, x),
        "a number too large": np.full(len(x), 1e200),
        "a matrix": x[None],
        "a string": "x",
        "strings": ["a"] * len(x),
        "complex numbers": x + 1j,
    }
    if policy.dim_x is not None:
        bad_vectors["a vector too long"] = np.append(x, 1.0)
    for what, bad in bad_vectors.items():
        if policy.arms or what != "a matrix":  # a row is a decision set
            require_invalid(f"select with x = {what}", choose, policy, bad, z, rng)
        require_refused(f"x = {what}", bad, arm, z)
    if policy.dim_z is not None:
        for bad in (np.full(len(z), np.nan), np.full(len(z), np.inf), np.append(z, 1.0), "z", z[None]):
            require_refused(f"z = {bad}", x, arm, bad)
            require_invalid(f"z_hat = {bad}", policy.credit, x, arm, z, 1.0, z_hat=bad)
    for bad in (np.nan, np.inf, None, "1", 1e200, [1.0]):
        require_invalid(f"update with reward = {bad}", policy.update, x, arm, z, bad)
        require_invalid(f"credit with reward = {bad}", policy.credit, x, arm, z, bad, z_hat=z)
    unknown = [max(policy.arms) + 1] if policy.arms else []
    for bad in (*unknown, -1, 0.0, "0", None, True):
        require_refused(f"arm = {bad}", x, bad, z)
    for bad in ([], unknown or [0], [arm, arm], [0.5], "0", arm):
        require_invalid(f"arms = {bad}", choose, policy, x, z, rng, arms=bad)
    for bad in (None, 0, np.random.RandomState(0)):
        require_invalid(f"rng = {bad}", choose, policy, rounds.x[0], rounds.z[0], bad)
    require(same(before, snapshot(policy)), "refused input changed the policy")


def arms_come_and_go(make: Make) -> None:
    """New arms are served and learn, removed ones are refused, and no id is reused."""
    policy, rounds = trained_policy(make)
    if not hasattr(policy, "add_arm"):
        return
    if not policy.arms:
        require_invalid("adding an arm to decision sets", policy.add_arm)
        require_invalid("removing an arm of decision sets", policy.remove_arm, 0)
        return
    x, z, rng = rounds.x[0], rounds.z[0], np.random.default_rng(0)
    old = policy.arms
    new = policy.add_arm()
    require(new not in old and policy.arms == (*old, new), f"the new arm is {new} beside {old}")
    require(choose(policy, x, z, rng, arms=[new]) == (new, 1.0), "the new arm cannot be served")
    policy.update(x, new, z, 1.0)
    for gone in (old[0], new):
        policy.remove_arm(gone)
        require_invalid("removing a removed arm", policy.remove_arm, gone)
        require_invalid("teaching a removed arm", policy.update, x, gone, z, 1.0)
        require_invalid("serving a removed arm", choose, policy, x, z, rng, arms=[gone])
    require(policy.arms == old[1:], f"{policy.arms} are left of {old}")
    require(policy.add_arm() == new + 1, "an id was given twice")
    play(policy, rounds)
    if isinstance(policy, Persistent):
        require(same(learnt(policy), learnt(reload(policy))), "arms that came and went do not reload")


def batches_are_rounds_in_turn(make: Make) -> None:
    """select_batch and update_batch do as select and update, up to rounding; bad rows change nothing."""
    one, other = make(), make()
    if not hasattr(one, "update_batch"):
        return
    rounds = rounds_for(one, N)
    came = in_turn(one, rounds)
    X, arms, Z, rewards = (np.array(part) for part in zip(*came, strict=True))
    one.update_batch(X, arms, Z, rewards)
    _teach(other, came)
    _require_equal_chances(one, other, rounds, "update_batch taught differently than update")
    if hasattr(one, "weights"):
        require(close(one.weights, other.weights, 1e-9), "update_batch taught differently than update")
    if not hasattr(one, "select_batch"):
        return
    require_batch_as_single(one, rounds)
    before, rng, early = snapshot(one), np.random.default_rng(1), z_for_oracle(one, Z=rounds.z)
    broken, broken_rounds = X.copy(), rounds.x.copy()
    broken[-1, 0] = broken_rounds[-1, ..., 0] = np.nan
    require_invalid("a batch with a NaN row", one.update_batch, broken, arms, Z, rewards)
    require_invalid("a batch short of arms", one.update_batch, X, arms[1:], Z, rewards)
    unknown = arms + 99 if one.arms else arms - 99
    require_invalid("unknown arms", one.update_batch, X, unknown, Z, rewards)
    require_invalid("select_batch with a NaN row", one.select_batch, broken_rounds, rng, **early)
    require(same(before, snapshot(one)), "a refused batch changed the policy")


def an_empty_batch_changes_nothing(make: Make) -> None:
    """select_batch and update_batch of no rounds, as an array or as an empty list, give and teach nothing."""
    for policy in (make(), trained_policy(make)[0]):
        if not hasattr(policy, "update_batch"):
            return
        (x, _, z, _), before = in_turn(policy, rounds_for(policy, 1))[0], snapshot(policy)
        for X, Z in ((x[None][:0], z[None][:0]), ([], [])):
            policy.update_batch(X, [], Z, [])
            if hasattr(policy, "select_batch"):
                decisions = policy.select_batch(X, np.random.default_rng(0), **z_for_oracle(policy, Z=Z))
                require(len(decisions.arms) == len(decisions.propensities) == 0, f"no rounds: {decisions}")
            if hasattr(policy, "propensities_batch") and policy.arms:
                require(policy.propensities_batch(X).shape == (0, len(policy.arms)), "no rounds: not (0, k)")
        require(same(before, snapshot(policy)), "an empty batch changed the policy")


def forgetting_is_a_verb_of_its_own(make: Make) -> None:
    """A factor of 1 changes nothing, others keep it working, factors outside (0, 1] are refused."""
    policy, rounds = trained_policy(make)
    if not hasattr(policy, "forget"):
        return
    before = snapshot(policy)
    policy.forget(arms=1.0, map=1.0)
    for bad in (0.0, -1.0, 1.5, np.nan):
        require_invalid(f"forget(arms={bad})", policy.forget, arms=bad)
        require_invalid(f"forget(map={bad})", policy.forget, map=bad)
    require(same(before, snapshot(policy)), "forgetting nothing changed the policy")
    policy.forget(arms=0.5)
    play(policy, rounds)
    require(np.isfinite(chances(policy, rounds.x[0], rounds.z[0])).all(), "forgetting broke the policy")


def a_missing_z_is_never_ignored(make: Make) -> None:
    """A reward without z is refused, changing nothing, unless `missing_z` says what to do."""
    policy, rounds = trained_policy(make)
    before = snapshot(policy)
    missing_z, (x, arm, *_) = getattr(policy, "missing_z", "raise"), in_turn(policy, rounds)[0]
    if policy.dim_z is None or missing_z != "raise":
        policy.update(x, arm, None, 1.0)
        changed = not same(before, snapshot(policy))
        require(missing_z != "drop" or not changed, "a reward that was to be dropped changed the policy")
        require(missing_z != "impute" or changed, "a reward whose z was to be imputed taught nothing")
        return
    require_invalid("update without z", policy.update, x, arm, None, 1.0)
    require_invalid("credit without z", policy.credit, x, arm, None, 1.0)
    require_invalid("observe without z", policy.observe, x, arm, None)
    require(same(before, snapshot(policy)), "a refused reward changed the policy")


OTHER_CHECKS = (*ROW_CHECKS, *UNIT_CHECKS, *PENDING_CHECKS, policies_take_overridden_steps)
POLICY_CHECKS = (*checks_in(globals()), *OTHER_CHECKS)


def check_policy(make: Make) -> None:
    """Run every check on policies made by `make`, which gives a fresh one (2 or more arms) each time.

    >>> from postserve import RandomPolicy
    >>> check_policy(lambda: RandomPolicy(n_arms=3))
    """
    for check in POLICY_CHECKS:
        check(make)


def _teach(policy: Any, came: list[Feedback]) -> None:
    for each in came:
        policy.update(*each)


def _require_equal_chances(one: Any, other: Any, rounds: Rounds, message: str) -> None:
    for x, z in zip(rounds.x, rounds.z, strict=True):
        require(close(chances(one, x, z), chances(other, x, z), 1e-6), message)


def _require_equal_learners(one: Any, other: Any, what: str) -> None:
    for policy in (one, other):
        if hasattr(policy, "refit_prior"):
            policy.refit_prior()
    changed = f"order_free is True, and {what} changed"
    _require_equal_chances(one, other, rounds_for(one, N, seed=3), f"{changed} a choice")
    mine, theirs = learnt(one), learnt(other)
    for name in mine:
        owner, _, array = name.rpartition(".")
        if array in ("gram", "moment", "squares", "pulls", "weights", "inverse"):
            noise = mine[f"{owner}.noise_variance" if owner else "noise_variance"]
            tolerance = 1e-6 if noise.any() else 1e-9  # a learnt prior is found to a tolerance
            require(close(mine[name], theirs[name], tolerance), f"{changed} {name}")
