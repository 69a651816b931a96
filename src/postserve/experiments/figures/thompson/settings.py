"""Thompson sampling, and what its logs tell of a policy that was never served."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.experiments.contenders import FLOORED, POLINUCB, RANDOM, THOMPSON, evidence
from postserve.experiments.figure import Size
from postserve.experiments.runner import simulate
from postserve.experiments.study import (
    Cell,
    Curve,
    MakeEnvironment,
    MakePolicy,
    cells_of,
    recorded_rounds,
    regret_cells,
    seed_list,
)
from postserve.policies import PoLinTS, PoLinUCB, RandomPolicy
from postserve.types import Decision, FloatArray

SIZE = Size(horizon=250, seeds=80, quick=False)
"""Many logs rather than long ones: bias and coverage are judged over logs."""
QUICK = Size(horizon=150, seeds=3, quick=True)
WORLD = "polynomial"
NOISES: Any = {"z_noise": 3.0, "reward_noise": 3.0}
FLOOR = 0.1
"""The share of choices that is spread evenly over the arms for the log's sake, against 0.001 by default."""

TARGET = "by x·theta alone"
LOGGERS = (evidence(THOMPSON), evidence(FLOORED))


def estimated(logger: str) -> str:
    """The name of what a logger's log says of the target."""
    return f"{TARGET}, from the log of {logger.removesuffix(', evidence')}"


class ByThetaAlone:
    """Serves the arm that is best by its true theta, z being ignored: fixed, and seldom what learners do."""

    def __init__(self, theta: FloatArray) -> None:
        self.theta = theta

    def choose(self, x: FloatArray) -> int:
        """The arm for x."""
        return int((self.theta @ x).argmax())

    def select(self, x: FloatArray, rng: np.random.Generator) -> Decision:
        """Always the same for the same x."""
        return Decision(self.choose(x), 1.0)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, reward: float) -> None:
        """Nothing is learnt."""


class Logging:
    """Plays as a policy does and keeps what a log has: x, the arm, its propensity, the reward."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.decisions: list[tuple[FloatArray, Decision]] = []

    def select(self, x: FloatArray, rng: np.random.Generator) -> Decision:
        """As the policy does."""
        decision: Decision = self.policy.select(x, rng)
        self.decisions.append((x, decision))
        return decision

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, reward: float) -> None:
        """As the policy does."""
        self.policy.update(x, arm, z, reward)


def estimated_regret(
    make_environment: MakeEnvironment, make_logger: MakePolicy, horizon: int, seed: int
) -> Curve:
    """The target's regret as another policy's log tells it, by inverse propensities.

    sum over rounds of max_a mean_a(x) - 1{the target serves a_t at x_t} r_t/p_t. Each term has the mean of
    the target's own, whatever the logger has learnt. The best mean is the truth's: the estimate and the
    target's regret then differ in nothing but how the target's rewards are known.
    """
    environment: Any = make_environment(seed)
    target, logging = ByThetaAlone(environment.theta), Logging(make_logger(environment))
    run = simulate(logging, environment, horizon, seed)
    gaps = np.empty(horizon)
    for t, ((x, decision), reward) in enumerate(zip(logging.decisions, run.rewards, strict=True)):
        served = target.choose(x) == decision.arm
        gaps[t] = environment.means(x).max() - (reward / decision.propensity if served else 0.0)
    rounds = recorded_rounds(horizon)
    return Curve(rounds, np.cumsum(gaps)[rounds - 1])


def environment(seed: int) -> SyntheticEnvironment:
    """A polynomial world."""
    return SyntheticEnvironment("polynomial", dim_x=10, dim_z=3, n_arms=5, seed=seed, **NOISES)


def policies() -> dict[str, MakePolicy]:
    """PoLinTS with little and with more for the log, poLinUCB, Random, and the policy to be evaluated."""
    return {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        TARGET: lambda env: ByThetaAlone(env.theta),
        evidence(POLINUCB): lambda env: PoLinUCB(env.n_arms, _on_h(env)),
        evidence(THOMPSON): lambda env: PoLinTS(env.n_arms, _on_h(env)),
        evidence(FLOORED): lambda env: PoLinTS(env.n_arms, _on_h(env), floor=FLOOR),
    }


def _on_h(env: Any) -> RidgeMap:
    return RidgeMap(env.dim_x, env.dim_z, features=env.features)


def cells(size: Size) -> list[Cell]:
    """Regret of each policy, and the target's as each of two logs tells it."""
    seeds, made = seed_list(size.seeds), policies()
    world = (WORLD, environment)
    told = [
        cell
        for logger in LOGGERS
        for cell in cells_of(estimated_regret, world, (estimated(logger), made[logger]), size.horizon, seeds)
    ]
    return regret_cells(dict([world]), made, size.horizon, seeds) + told


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "world": "polynomial phi, x uniform on [-10, 10]^10, z in 3 dimensions, 5 arms, noises 3; the map is "
        "given h",
        "PoLinTS": f"1,000 draws a choice; a share 0.001, or {FLOOR:g}, of the choices spread over all arms",
        TARGET: "serves the arm with the largest x·theta_a, in the same rounds",
        "from the log": "inverse propensities: a round counts r/p if the log served what the policy would",
        "settled late": "three other sizes were run before, and in each a claim on the logs failed: "
        "docs/figures.md has what they told",
        "policies": "with the learnt prior",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired",
    }
