"""One policy through the rounds of one environment."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from postserve.errors import InvalidInput
from postserve.evaluation.delays import Delay, Feedback, delays_of, require
from postserve.evaluation.serving import checked, column_of, each, served
from postserve.protocols import Announces, Environment, z_for_oracle
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import flag, integer

BLOCK = 1000
"""Rounds drawn at a time, unless a world sets its own number: memory does not grow with the horizon, and a
short run is the beginning of a long one."""


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


def simulate(
    policy: Plays,
    environment: Environment,
    horizon: int,
    seed: int,
    *,
    z_delay: Delay = 0,
    reward_delay: Delay = 0,
    announce: bool = False,
) -> Run:
    """Let the policy choose and learn for `horizon` rounds: x, select, serve, update.

    regret_t = sum over rounds of max_a mean_a(x) - mean_{a_t}(x), the means being taken at phi(x).
    All that is random comes from `seed`: one stream for the rounds, one for the policy, so that all
    policies of one seed meet the same rounds (and break their ties from equal streams). An oracle
    (`sees_z`) is shown z.

    Where each arm has its own x, `select` gets the rows of the round, and `update` the row that was served;
    likewise z. Where only some arms can be served, `select` gets their ids as `arms`.

    `z_delay` and `reward_delay` say how many rounds later z and the reward come: a number, a function of a
    generator and of how many, a frozen SciPy distribution, or one entry per round. What is due in a round
    comes before its select, in the order of the rounds served: z by `observe`, the reward by `credit`. A
    reward that is due before its z waits for it, and both come by `update`. What is due after the horizon
    never comes. Random delays have streams of their own. With `announce`, the policy is told of each round
    served (`expect`), so that rounds whose feedback is out count in its widths.

    >>> from postserve import PoLinUCB, RidgeMap, SyntheticEnvironment
    >>> env = SyntheticEnvironment("linear", dim_x=5, dim_z=2, n_arms=3)
    >>> run = simulate(PoLinUCB(3, RidgeMap(5, 2)), env, horizon=200, seed=0)
    >>> bool(run.regret[-1] - run.regret[99] < run.regret[99])
    True
    >>> late = simulate(PoLinUCB(3, RidgeMap(5, 2)), env, horizon=200, seed=0, z_delay=5, reward_delay=50)
    >>> bool(late.regret[-1] > run.regret[-1])
    True
    """
    horizon = integer("horizon", horizon, least=1)
    _refuse_beyond_the_end(environment, horizon)
    if flag("announce", announce):
        require(policy, "expect")
    streams = np.random.SeedSequence(integer("seed", seed, least=0)).spawn(4)
    of_rounds, rng, of_z, of_rewards = map(np.random.default_rng, streams)
    z_delays = delays_of("z_delay", z_delay, horizon, of_z)
    feedback = Feedback(policy, z_delays, delays_of("reward_delay", reward_delay, horizon, of_rewards))
    announced = cast(Announces, policy) if announce else None
    arms, rewards, gaps = np.empty(horizon, dtype=np.int64), np.empty(horizon), np.empty(horizon)
    t = 0
    for rounds in _blocks(environment, horizon, of_rounds):
        for x, z, reward, means, eligible in each(rounds):
            options = z_for_oracle(policy, z=z)
            if eligible is not None:
                options["arms"] = eligible
            feedback.come(t)
            arm = policy.select(x, rng, **options).arm
            i = column_of(arm, eligible, len(means))
            served_x = served(x, i)
            if announced is not None:
                announced.expect(served_x, int(arm))
            feedback.serve(t, served_x, int(arm), served(z, i), float(reward[i]))
            arms[t], rewards[t], gaps[t] = arm, reward[i], means.max() - means[i]
            t += 1
    return Run(arms, rewards, np.cumsum(gaps))


def _blocks(environment: Environment, horizon: int, rng: np.random.Generator) -> Iterator[Rounds]:
    """Whole blocks are drawn and then cut, so that a short run is the beginning of a long one."""
    size = integer("environment.rounds_at_once", getattr(environment, "rounds_at_once", BLOCK), least=1)
    for start in range(0, horizon, size):
        dims = environment.dim_x, environment.dim_z, environment.n_arms
        block = checked(environment.rounds(size, rng), "environment.rounds(n)", size, *dims)
        x, z, rewards, means, ids = block
        left = horizon - start
        yield Rounds(x[:left], z[:left], rewards[:left], means[:left], None if ids is None else ids[:left])


def _refuse_beyond_the_end(environment: Environment, horizon: int) -> None:
    """Raise if the environment says when it ends, in `horizon`, and this is later."""
    end = getattr(environment, "horizon", None)
    if end is not None and horizon > end:
        raise InvalidInput(f"horizon is {horizon}, wanted at most {end}, where the environment ends")
