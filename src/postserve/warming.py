"""Compile before the first round: kernels are compiled at their first use, and then cached on disk."""

import copy
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from postserve.context_maps import RidgeMap
from postserve.errors import InvalidInput
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.compiling import compilations
from postserve.policies import LinUCB, PoLinUCB
from postserve.policies.base import BasePolicy
from postserve.protocols import z_for_oracle
from postserve.types import Context

BATCH = 80
"""Enough rows for a batch to be decided by matrix products."""
Rows = Callable[[int], Any]
"""Makes that many rows of x or of z, as a policy takes them."""

USUAL: dict[str, Callable[[], Any]] = {
    "LinUCB": lambda: LinUCB(3, 2),
    "PoLinUCB": lambda: PoLinUCB(3, RidgeMap(2, 2)),
    "PoLinUCB, joint optimism": lambda: PoLinUCB(3, RidgeMap(2, 2), optimism="joint"),
    "PoLinUCB, one model for all arms": lambda: PoLinUCB(3, RidgeMap(2, 2), model="shared"),
    "PoLinUCB, hybrid models": lambda: PoLinUCB(3, RidgeMap(2, 2), model="hybrid"),
}
"""What `postserve warm-up` warms up. Compiled code does not depend on the number of arms or dimensions."""


class WarmUp(NamedTuple):
    """What a warm-up did."""

    compiled: list[str]  # the kernels that were not in the cache
    seconds: float


def warm_up(policy: Any, *, x: Context | None = None, z: Context | None = None) -> WarmUp:
    """Compile all kernels that this policy needs, or load them from the cache; the policy does not change.

    A copy of the policy plays some rounds of made-up numbers, which call your own map and features too. A
    policy with `x_features` or `z_features` needs an example of their input: one `x`, one `z`.

    >>> from postserve import LinUCB
    >>> policy = LinUCB(n_arms=3, dim_x=2)
    >>> seconds = warm_up(policy).seconds
    >>> warm_up(policy).compiled  # nothing is left to do
    []
    """
    before, inner = time.perf_counter(), getattr(policy, "policy", policy)
    if not isinstance(inner, BasePolicy):
        raise InvalidInput(f"policy is a {type(inner).__name__}, wanted a policy on postserve's own classes")
    rng = np.random.default_rng(0)
    xs = _rows("x", policy.dim_x, x, getattr(policy, "x_features", None), rng)
    zs = _rows("z", policy.dim_z, z, getattr(policy, "z_features", None), rng)
    with compilations() as compiled:
        _play(copy.deepcopy(policy), xs, zs, rng)
    return WarmUp(compiled, time.perf_counter() - before)


def cache_folder() -> str:
    """Where compiled kernels are kept: beside the package, or where NUMBA_CACHE_DIR says."""
    kernel: Any = kernels.learn
    return str(kernel.stats.cache_path)


def show_warm_up(console: Any) -> None:
    """Warm the usual policies up, and say what was compiled and how long it took."""
    from postserve.terminal import say  # rich is not there in an install of the core alone

    for name, make in USUAL.items():
        with console.status(name):
            compiled, seconds = warm_up(make())
        done = f"kernels compiled: {len(set(compiled))}" if compiled else "nothing to compile"
        say(f"{name}: {done}, {seconds:.1f} s", console)
        if compiled:
            say(f"  {', '.join(sorted(set(compiled)))}", console)
    say(f"cache: {cache_folder()}", console)


def _rows(name: str, dim: int | None, example: Any, features: Any, rng: np.random.Generator) -> Rows:
    if example is None and features is not None:
        raise InvalidInput(f"{name} is None, wanted an example of what {name}_features take")
    if example is None:
        return lambda n: rng.standard_normal((n, dim or 1))
    if isinstance(example, np.ndarray):
        return lambda n: np.array([example] * n)
    return lambda n: [example] * n


def _play(policy: Any, xs: Rows, zs: Rows, rng: np.random.Generator) -> None:
    """Call every method, with arms that have no rows, few rows and many."""
    by_row = not policy.arms
    _choose(policy, xs, zs, rng)
    many = 1 + (policy.dim_x or 0) + 2 * (policy.dim_z or 0)  # at least the length of u
    arms = [0] if by_row else [policy.add_arm() for _ in range(min(many, policy.n_arms))]
    _update_batch(policy, arms[:1], xs, zs)
    policy.refit_prior()  # of a single row, contiguous in either order: a case of its own for kernels
    for arm in arms[:2]:
        _learn(policy, arm, xs, zs, 1)
    _choose(policy, xs, zs, rng)
    policy.refit_prior()
    _learn(policy, arms[0], xs, zs, many)
    _update_batch(policy, [arms[0]] * 3, xs, zs)
    policy.refit_prior()
    _choose(policy, xs, zs, rng)
    _update_batch(policy, np.repeat(arms, many), xs, zs)
    policy.refit_prior()
    _choose(policy, xs, zs, rng)
    if not by_row:
        _choose_batch(policy, xs(BATCH), zs(BATCH), rng, arms=arms)


def _choose(policy: Any, xs: Rows, zs: Rows, rng: np.random.Generator) -> None:
    """At one x and at one row per arm; one by one and in batches; from all arms and from some."""
    if not policy.arms:  # decision sets
        candidates, their_z = xs(3), zs(3)
        policy.select(candidates, rng, **z_for_oracle(policy, z=their_z))
        policy.propensities(candidates, **z_for_oracle(policy, z=their_z))
        _choose_batch(policy, [candidates] * 2, [their_z] * 2, rng)
        return
    for arms in (None, list(policy.arms[:1]), list(policy.arms[:2])):
        n = policy.n_arms if arms is None else len(arms)
        for x, z in ((xs(1)[0], zs(1)[0]), (xs(n), zs(n))):
            policy.select(x, rng, arms=arms, **z_for_oracle(policy, z=z))
            policy.propensities(x, arms=arms, **z_for_oracle(policy, z=z))
        _choose_batch(policy, xs(BATCH), zs(BATCH), rng, arms=arms)


def _choose_batch(policy: Any, X: Any, Z: Any, rng: np.random.Generator, **arms: Any) -> None:
    policy.select_batch(X, rng, **arms, **z_for_oracle(policy, Z=Z))


def _learn(policy: Any, arm: int, xs: Rows, zs: Rows, rounds: int) -> None:
    """In one stage and in two; rewards vary, as without a variance nothing is computed."""
    for x, z in zip(xs(rounds), zs(rounds), strict=True):
        z = None if policy.dim_z is None else z
        policy.update(x, arm, z, 0.0)
        policy.credit(x, arm, z, 1.0, z_hat=policy.observe(x, arm, z))


def _update_batch(policy: Any, arms: Any, xs: Rows, zs: Rows) -> None:
    n = len(arms)
    policy.update_batch(xs(n), arms, None if policy.dim_z is None else zs(n), np.arange(n) % 2.0)
