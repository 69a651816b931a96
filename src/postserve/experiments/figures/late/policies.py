"""What is compared in the worlds of the figure: baselines made by hand, and ours."""

from typing import Any

import numpy as np

from postserve.context_maps import HybridMap, PerArmMap, RidgeMap
from postserve.environments import RotatingEnvironment
from postserve.experiments import contenders as c
from postserve.policies import LinUCB, PoLinUCB
from postserve.types import Decision, Exploration, FloatArray, Model

GUESS_ERROR = 0.5
"""Length of the error of guessed weights; the weights have length 1."""


class SignalAsReward:
    """LinUCB(x) that takes one entry of z, with a sign, for the reward: a proxy."""

    def __init__(self, policy: LinUCB, signal: int, sign: float) -> None:
        self.policy, self.signal, self.sign = policy, signal, sign

    def select(self, x: FloatArray, rng: np.random.Generator, arms: Any = None) -> Decision:
        return self.policy.select(x, rng, arms)

    def observe(self, x: FloatArray, arm: int, z: FloatArray) -> None:
        self.policy.update(x, arm, None, self.sign * float(z[self.signal]))

    def credit(self, x: FloatArray, arm: int, z: FloatArray, reward: float, *, z_hat: None) -> None:
        """The reward is ignored."""

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float) -> None:
        self.observe(x, arm, z)


class SurrogateIndex:
    """LinUCB(x) on r_hat(x, z), a ridge regression on all rounds with a reward: what one does by hand.

    From time to time r_hat is fitted again, and LinUCB learns the whole log anew. Until the first fit, no
    round teaches.
    """

    FIRST, EVERY = 10, 250
    """Rewards until the first fit, which are doubled until the next, and at most so many between fits."""

    def __init__(self, fresh: Any) -> None:
        self._fresh = fresh
        self._policy: LinUCB = fresh()
        self._weights: FloatArray | None = None
        self._x: list[FloatArray] = []
        self._z: list[FloatArray] = []
        self._arms: list[int] = []
        self._rewarded: list[int] = []
        self._rewards: list[float] = []
        self._next_fit = self.FIRST

    def select(self, x: FloatArray, rng: np.random.Generator, arms: Any = None) -> Decision:
        return self._policy.select(x, rng, arms)

    def observe(self, x: FloatArray, arm: int, z: FloatArray) -> int:
        """Log the round, and learn its index; returns its row, which `credit` gets back as z_hat."""
        self._x.append(x)
        self._z.append(z)
        self._arms.append(arm)
        if self._weights is not None:
            self._policy.update(x, arm, None, float(_with_one(x[None], z[None])[0] @ self._weights))
        return len(self._x) - 1

    def credit(self, x: FloatArray, arm: int, z: FloatArray, reward: float, *, z_hat: int) -> None:
        self._rewarded.append(z_hat)
        self._rewards.append(reward)
        if len(self._rewards) >= self._next_fit:
            self._next_fit += min(self.EVERY, len(self._rewards))
            self._rebuild()

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float) -> None:
        self.credit(x, arm, z, reward, z_hat=self.observe(x, arm, z))

    def _rebuild(self) -> None:
        X, rows = np.array(self._x), _with_one(np.array(self._x), np.array(self._z))
        known = rows[self._rewarded]
        gram = known.T @ known + np.eye(known.shape[1])
        self._weights = np.linalg.solve(gram, known.T @ np.array(self._rewards))
        self._policy = self._fresh()
        self._policy.update_batch(X, self._arms, None, rows @ self._weights)


def _with_one(X: FloatArray, Z: FloatArray) -> FloatArray:
    return np.hstack([np.ones((len(X), 1)), X, Z])


def _linucb(env: RotatingEnvironment) -> LinUCB:
    return LinUCB(env.n_arms, env.dim_x, model="hybrid", exploration=1.0)


def _best_signal(env: RotatingEnvironment) -> SignalAsReward:
    """Known in hindsight: the entry of z with the largest weight, with its sign."""
    signal = int(abs(env.common_beta).argmax())
    return SignalAsReward(_linucb(env), signal, float(np.sign(env.common_beta[signal])))


def _index(env: RotatingEnvironment) -> SurrogateIndex:
    return SurrogateIndex(lambda: _linucb(env))


def _maps_per_arm(env: RotatingEnvironment) -> PoLinUCB:
    maps = PerArmMap(RidgeMap(env.dim_x, env.dim_z))
    return PoLinUCB(env.n_arms, maps, model=_model(env), optimism="plugin", exploration=1.0)


def _pooled(env: RotatingEnvironment, *, guessed: bool = False, exploration: Exploration = 1.0) -> PoLinUCB:
    """Ours: the only place that makes it."""
    return PoLinUCB(
        env.n_arms,
        HybridMap(env.dim_x, env.dim_z),
        model=_model(env),
        optimism="posterior",
        exploration=exploration,
        prior_weights=guessed_weights(env) if guessed else None,
    )


def _model(env: RotatingEnvironment) -> Model:
    """Shared weights where it is known that z and x make the reward alike for all arms."""
    return "shared" if env.own_weights == 0.0 else "hybrid"


def guessed_weights(env: RotatingEnvironment) -> FloatArray:
    """The common weights of z with an error of length 0.5, in a direction of each world's own."""
    bits = env.common_beta.view(np.uint64).tolist()
    error = np.random.default_rng(bits).standard_normal(env.dim_z)
    return np.asarray(env.common_beta + GUESS_ERROR * error / np.linalg.norm(error))


RANDOM = c.RANDOM
X_ONLY = c.Contender("LinUCB(x), hybrid weights", _linucb, "#E69F00", prior="evidence")
PROXY = c.Contender("the best signal of z as the reward", _best_signal, "#D55E00", c.DASHED, "evidence")
INDEX = c.Contender("surrogate index by hand", _index, "#0072B2", c.DASHED, "evidence")
PER_ARM = c.Contender("one map per arm, plugin", _maps_per_arm, "#CC79A7", c.DOTTED, "evidence")
OURS = c.Contender("pooled map, posterior", _pooled, "#009E73", prior="evidence")
AUTO = c.Contender("pooled map, posterior, auto", _pooled, "#56B4E9", c.DASHED, "evidence").with_options(
    exploration="auto"
)
PENDING = c.Contender("pooled map, posterior, pending", _pooled, "#332288", c.DOTTED, "evidence")
GUESSED = c.Contender(
    "pooled map, posterior, guessed weights", _pooled, "#000000", prior="evidence"
).with_options(guessed=True)
ANNOUNCED = (PENDING,)
"""These are told of each round that is served."""
CONTENDERS = (RANDOM, X_ONLY, PROXY, INDEX, PER_ARM, OURS, AUTO, PENDING, GUESSED)
