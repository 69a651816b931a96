"""One policy through the rounds of one environment."""

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from postserve.errors import InvalidInput
from postserve.protocols import Environment
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import integer, matrix, shaped

BLOCK = 1000
"""Rounds drawn at a time, unless a world says otherwise: memory does not grow with the horizon, and a short
run begins a long one."""


class Run(NamedTuple):
    """What happened in each round: the arm served, its reward, and the regret so far, at phi(x)."""

    arms: IntArray
    rewards: FloatArray
    regret: FloatArray


class Plays(Protocol):
    """Chooses an arm for x, giving something that has `arm`, and learns; with `sees_z`, z is shown."""

    @property
    def select(self) -> Callable[..., Any]:
        """(x, rng) -> Decision; with `arms=ids` where only some can be served."""

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float, /) -> None:
        """z and the reward came."""


def simulate(policy: Plays, environment: Environment, horizon: int, seed: int) -> Run:
    """Let the policy choose and learn for `horizon` rounds: x, select, serve, update.

    regret_t = sum over rounds of max_a mean_a(x) - mean_{a_t}(x), the means being taken at phi(x).
    All that is random comes from `seed`: one stream for the rounds, one for the policy, so that all
    policies of one seed meet the same rounds (and break their ties from equal streams). An oracle
    (`sees_z`) is shown z.

    Where each arm has an x of its own, `select` is given the round's rows, and `update` the row that
    was served; so with z. Where only some arms can be served, `select` is told their ids as `arms`.

    >>> from postserve import PoLinUCB, RidgeMap, SyntheticEnvironment
    >>> env = SyntheticEnvironment("linear", dim_x=5, dim_z=2, n_arms=3)
    >>> run = simulate(PoLinUCB(3, RidgeMap(5, 2)), env, horizon=200, seed=0)
    >>> bool(run.regret[-1] - run.regret[99] < run.regret[99])
    True
    """
    horizon = integer("horizon", horizon, least=1)
    of_rounds, of_policy = np.random.SeedSequence(integer("seed", seed, least=0)).spawn(2)
    rng = np.random.default_rng(of_policy)
    sees_z = getattr(policy, "sees_z", False)
    arms, rewards, gaps = np.empty(horizon, dtype=np.int64), np.empty(horizon), np.empty(horizon)
    t = 0
    for rounds in _blocks(environment, horizon, np.random.default_rng(of_rounds)):
        for x, z, reward, means, eligible in _each(rounds):
            options: dict[str, Any] = {"z": z} if sees_z else {}
            if eligible is not None:
                options["arms"] = eligible
            arm = policy.select(x, rng, **options).arm
            i = _column(arm, eligible, len(means))
            served_x, served_z = x if x.ndim == 1 else x[i], z if z.ndim == 1 else z[i]
            policy.update(served_x, int(arm), served_z, float(reward[i]))
            arms[t], rewards[t], gaps[t] = arm, reward[i], means.max() - means[i]
            t += 1
    return Run(arms, rewards, np.cumsum(gaps))


def _blocks(environment: Environment, horizon: int, rng: np.random.Generator) -> Iterator[Rounds]:
    """As many rounds as the horizon wants; whole blocks are drawn, or a short run would begin no long one."""
    size = integer("environment.rounds_at_once", getattr(environment, "rounds_at_once", BLOCK), least=1)
    for start in range(0, horizon, size):
        x, z, rewards, means, ids = checked(environment.rounds(size, rng), environment, size)
        left = horizon - start
        yield Rounds(x[:left], z[:left], rewards[:left], means[:left], None if ids is None else ids[:left])


def _each(rounds: Rounds) -> Iterator[tuple[Any, ...]]:
    """Round by round: x, z, rewards, means, and the eligible arms' ids or None."""
    ids = repeat(None, len(rounds.x)) if rounds.arms is None else rounds.arms
    return zip(*rounds[:4], ids, strict=True)


def _column(arm: Any, eligible: IntArray | None, k: int) -> int:
    """Where the chosen arm is among the round's columns."""
    if isinstance(arm, int | np.integer):
        if eligible is None and 0 <= arm < k:
            return int(arm)
        if eligible is not None:
            i = int(np.searchsorted(eligible, arm))
            if i < k and eligible[i] == arm:
                return i
    wanted = f"0 to {k - 1}" if eligible is None else ", ".join(map(str, eligible))
    raise InvalidInput(f"the policy chose arm {arm!r}, wanted one of {wanted}")


def checked(rounds: Rounds, environment: Environment, n: int) -> Rounds:
    """The block, of arrays that are finite and fit together, or a word on what does not."""
    ids = None if rounds.arms is None else _checked_ids(rounds.arms, n)
    k = environment.n_arms if ids is None else ids.shape[1]
    where = "environment.rounds(n)"
    x, z = (
        shaped(f"{where}.{name}", array, (n, k, dim) if np.ndim(array) == 3 else (n, dim))
        for name, array, dim in (("x", rounds.x, environment.dim_x), ("z", rounds.z, environment.dim_z))
    )
    rewards, means = (
        matrix(f"{where}.rewards", rounds.rewards, n, k),
        matrix(f"{where}.means", rounds.means, n, k),
    )
    return Rounds(x, z, rewards, means, ids)


def _checked_ids(value: Any, n: int) -> IntArray:
    name, ids = "environment.rounds(n).arms", np.asarray(value)
    if ids.ndim != 2 or len(ids) != n or not ids.size or ids.dtype.kind not in "iu":
        raise InvalidInput(f"{name} has shape {ids.shape}, wanted ({n}, k) whole numbers")
    if ids.min() < 0 or (np.diff(ids, axis=1) <= 0).any():
        raise InvalidInput(f"{name} has a row with ids that do not rise, wanted rising ones from 0 on")
    return ids.astype(np.int64)
