"""Some rounds as the service will have them, so that all is compiled before the first one comes."""

from typing import Any

import numpy as np

from postserve.service.experiment import Experiment
from postserve.service.traffic.worlds import MadeUpWorld
from postserve.state import private

ROUNDS = 40
"""More than there are numbers in x and z: what is learnt from few rows and from many is compiled apart."""


LATE = 3
"""So many rounds are open at once."""


_rehearsed: set[str] = set()
"""The digests of experiments for which this process has compiled all."""


def rehearse(experiment: Experiment, policy: Any) -> None:
    """Announce, follow, credit and take back made-up rounds, with a copy of the policy; once in a process."""
    if experiment.digest in _rehearsed:
        return
    _rehearsed.add(experiment.digest)
    policy, world, rng = private(policy), MadeUpWorld(experiment), np.random.default_rng(0)
    rounds: list[tuple[Any, int, Any, Any]] = []
    for number in range(ROUNDS):
        x, arm = world.visitor(rng), number % policy.n_arms
        z, reward = world.feedback(x, experiment.arms[0], rng)
        rounds.append((x, arm, z if z and policy.dim_z is not None else None, reward))
        policy.expect(x, arm, round_id=str(number))
        _choose(policy, x)
        _follow(policy, number, *rounds[number])
        _choose(policy, x)
        if number >= LATE:
            _end(policy, number - LATE, *rounds[number - LATE])
            _choose(policy, x)


def _choose(policy: Any, x: Any) -> None:
    policy.propensities(x)
    policy.propensities(x, [0])


def _follow(policy: Any, number: int, x: Any, arm: int, z: Any, reward: float) -> None:
    """Of three rounds, one has its z at once, one in two parts, and one has none."""
    if z is None or number % 3 == 2:
        return
    if number % 3 == 1 and len(z) > 1:
        policy.observe(x, arm, dict(list(z.items())[:1]), round_id=str(number))
        _choose(policy, x)
    policy.observe(x, arm, z, round_id=str(number))


def _end(policy: Any, number: int, x: Any, arm: int, z: Any, reward: float) -> None:
    """Of five rounds, one has no reward."""
    if number % 5 == 4:
        policy.withdraw(x, arm, round_id=str(number))
    else:
        policy.credit(x, arm, None if number % 3 == 2 else z, reward, round_id=str(number))
