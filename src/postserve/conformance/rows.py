"""What policies must do with rows: one context per arm, and decision sets."""

import numpy as np

from postserve.conformance.tools import (
    Make,
    N,
    chances,
    checks_in,
    choose,
    close,
    play,
    require,
    require_batch_as_single,
    require_invalid,
    rows_apart,
    same,
    snapshot,
    some_rounds,
    trained_policy,
)
from postserve.errors import InvalidInput


def rows_are_contexts_of_their_own(make: Make) -> None:
    """With one row per arm, if the policy takes that, equal rows are as one x, and rows follow the arms."""
    policy, rounds = trained_policy(make)
    if not policy.arms:
        return
    x, z, k = rounds.x[0], rounds.z[0], len(policy.arms)
    same_for_all, rng = np.repeat(x[None], k, axis=0), np.random.default_rng(1)
    try:
        chances(policy, same_for_all, z)
    except InvalidInput:
        return  # it takes only one context for all arms
    for one, other in zip(rounds.x, rounds.z, strict=True):
        p = chances(policy, np.repeat(one[None], k, axis=0), other)
        require(np.array_equal(p, chances(policy, one, other)), "equal rows do not give what one x gives")
    before = snapshot(policy)
    for wrong in (same_for_all[1:], np.repeat(x[None], k + 1, axis=0), np.repeat(x[None], 0, axis=0)):
        require_invalid(f"x of shape {wrong.shape} for {k} arms", choose, policy, wrong, z, rng)
    broken = same_for_all.copy()
    broken[-1, 0] = np.nan
    require_invalid("rows with a NaN", choose, policy, broken, z, rng)
    require(same(before, snapshot(policy)), "rows that were refused changed the policy")
    apart = rows_apart(some_rounds(k * N, len(x), len(z), k, seed=5), N)
    play(policy, apart)
    backwards = list(range(k))[::-1]
    for X, Z in zip(apart.x[:8], apart.z[:8], strict=True):
        p = chances(policy, X, Z)
        turned = chances(policy, X[::-1], Z[::-1], arms=[policy.arms[i] for i in backwards])
        require(close(p, turned, 1e-9), "rows do not go with the arms in the given order")
        some = chances(policy, X[1:], Z[1:], arms=policy.arms[1:])
        require(some[0] == 0.0 and abs(some.sum() - 1.0) < 1e-9, f"of all but the first it says {some}")
    if hasattr(policy, "select_batch"):
        require_batch_as_single(policy, apart)


def decision_sets_are_rows(make: Make) -> None:
    """A policy without arms takes any number of candidates, and their order does not matter."""
    policy, rounds = trained_policy(make)
    if policy.arms:
        return
    x, z, rng = rounds.x[0], rounds.z[0], np.random.default_rng(0)
    require(choose(policy, x[:1], z[:1], rng) == (0, 1.0), "a single candidate is not chosen")
    many, after = x.repeat(9, axis=0), z.repeat(9, axis=0)
    require(chances(policy, many, after).shape == (len(many),), "candidates that tie have no propensities")
    turned = chances(policy, x[::-1], z[::-1])[::-1]
    require(close(chances(policy, x, z), turned, 1e-9), "the order of the candidates changed a propensity")
    for wrong in (x[0], x[:0], x[None], np.full_like(x, np.nan)):
        require_invalid(f"candidates of shape {wrong.shape}", choose, policy, wrong, z, rng)


ROW_CHECKS = checks_in(globals())
