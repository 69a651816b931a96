"""One policy through the rounds of one environment."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from postserve.errors import InvalidInput
from postserve.protocols import Environment
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import integer, matrix

BLOCK = 1000
"""Rounds drawn at a time: memory does not grow with the horizon, and a short run begins a long one."""


class Run(NamedTuple):
    """What happened in each round: the arm served, its reward, and the regret so far, at phi(x)."""

    arms: IntArray
    rewards: FloatArray
    regret: FloatArray


class Plays(Protocol):
    """Chooses an arm for x, giving something that has `arm`, and learns; with `sees_z`, z is shown."""

    @property
    def select(self) -> Callable[..., Any]:
        """(x, rng) -> Decision."""

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float, /) -> None:
        """z and the reward came."""


def simulate(policy: Plays, environment: Environment, horizon: int, seed: int) -> Run:
    """Let the policy choose and learn for `horizon` rounds: x, select, serve, update.

    regret_t = sum over rounds of max_a mean_a(x) - mean_{a_t}(x), the means being taken at phi(x).
    All that is random comes from `seed`: one stream for the rounds, one for the policy, so that all
    policies of one seed meet the same rounds (and break their ties from equal streams). An oracle
    (`sees_z`) is shown z.

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
        for x, z, reward, means in zip(*rounds, strict=True):
            arm = policy.select(x, rng, **({"z": z} if sees_z else {})).arm
            if not isinstance(arm, int | np.integer) or not 0 <= arm < len(means):
                raise InvalidInput(f"the policy chose arm {arm!r}, wanted one of 0 to {len(means) - 1}")
            policy.update(x, int(arm), z, float(reward[arm]))
            arms[t], rewards[t], gaps[t] = arm, reward[arm], means.max() - means[arm]
            t += 1
    return Run(arms, rewards, np.cumsum(gaps))


def _blocks(environment: Environment, horizon: int, rng: np.random.Generator) -> Iterator[Rounds]:
    sides = environment.dim_x, environment.dim_z, environment.n_arms, environment.n_arms
    for start in range(0, horizon, BLOCK):
        rounds = environment.rounds(BLOCK, rng)
        for name, array, side in zip(Rounds._fields, rounds, sides, strict=True):
            matrix(f"environment.rounds(n).{name}", array, BLOCK, side)
        yield Rounds(*(array[: horizon - start] for array in rounds))
