"""What follow-ups would gain: policies play against each other in rounds resampled from the log.

A world is made from rows drawn from the log with replacement. Lines are fitted to them, shrunk towards what
the arms share, for z in the features of x and for the reward in (x, z). A round is one of the rows: its x,
what the lines say for every arm, and the row's own residuals of z and of the reward; for the arm that was
served, that is what happened. The spread over worlds is what the log leaves open.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import t as student

from postserve.context_maps import HybridMap, RidgeMap
from postserve.data.rounds import LoggedRounds
from postserve.diagnosis.features import rows_of
from postserve.diagnosis.predicting import deviations, percent, ridge
from postserve.diagnosis.sample import Sample
from postserve.experiments.runner import simulate
from postserve.policies import LinUCB, PoLinUCB
from postserve.types import FloatArray, IntArray, Rounds

WORLDS, RUNS = 8, 9
MOST_RUNS = 36
"""Runs in each world: doubled up to this many until the share saved is known well enough."""
WELL_ENOUGH = 0.1
"""Half the width of its interval."""
HORIZON = 600
POINTS = 50
FEW = 10
"""With fewer rows an arm has no line of its own."""
MOST_OF_LUCK = 0.5
"""The largest share of the spread over worlds that is attributed to luck."""
SUGGESTED, WITHOUT = "suggested", "LinUCB(x)"


class Gain(NamedTuple):
    """Reward per round that the suggested policy earns above LinUCB(x), over worlds, with a 95% interval.

    `saved` is the share of LinUCB's regret that it saves; `curves` are mean regrets by policy, at `rounds`.
    """

    value: float
    low: float
    high: float
    saved: float
    saved_low: float
    saved_high: float
    z_delay: float
    reward_delay: float
    rounds: list[int]
    curves: dict[str, list[float]]

    @property
    def share(self) -> str:
        """The share saved, with its interval, in words."""
        words = percent(self.saved, self.saved_low, self.saved_high)
        return words if self.saved >= 0.005 else f"nothing ({words})"


class Plan(NamedTuple):
    """The suggested policy: the features of phi, whether arms have their own, and the model of the arms."""

    features: str
    own: bool
    model: Literal["disjoint", "hybrid"]

    def policy(self, rounds: LoggedRounds, features: Any) -> PoLinUCB:
        """An untaught one."""
        make = HybridMap if self.own else RidgeMap
        phi_hat = make(rounds.dim_x, rounds.dim_z, features=features)
        return PoLinUCB(
            rounds.n_arms, phi_hat, model=self.model, optimism="posterior" if self.own else "plugin"
        )


def horizon_of(sample: Sample) -> int:
    """How many rounds are played: as many as there are complete ones, and not more than it takes to see."""
    return min(HORIZON, int(sample.complete.sum()))


class Resampled:
    """One world: rounds with every arm's z and reward."""

    def __init__(
        self, x: FloatArray, phi: FloatArray, means: FloatArray, beta: FloatArray, left: Any
    ) -> None:
        self.dim_x, self.dim_z, self.n_arms = x.shape[1], phi.shape[2], phi.shape[1]
        self._x, self._phi, self._means, self._beta = x, phi, means, beta
        self._z_left, self._reward_left = left

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n of the rows."""
        rows = rng.integers(len(self._x), size=n)
        noise = self._z_left[rows]
        means = self._means[rows]
        rewards = means + noise @ self._beta.T + self._reward_left[rows][:, None]
        return Rounds(self._x[rows], self._phi[rows] + noise[:, None, :], rewards, means)


def make_world(sample: Sample, features: FloatArray, own: bool, rng: np.random.Generator) -> Resampled:
    """A world from complete rows, drawn with replacement; without `own`, all arms have one phi."""
    rows = rng.choice(np.flatnonzero(sample.complete), size=int(sample.complete.sum()))
    rounds, n_arms = sample.rounds, sample.rounds.n_arms
    x, z, arms, f = rounds.x[rows], rounds.z[rows], rounds.arms[rows], features[rows]
    of_z = [
        fit_lines(f, arms, column, n_arms)
        if own
        else np.tile(fit_lines(f, np.zeros_like(arms), column, 1), (n_arms, 1))
        for column in z.T
    ]
    phi = np.stack([weights[:, :-1] @ f.T + weights[:, -1:] for weights in of_z], axis=-1).swapaxes(0, 1)
    w = fit_lines(np.hstack([x, z]), arms, rounds.rewards[rows], n_arms)
    beta = w[:, rounds.dim_x : -1]
    means = x @ w[:, : rounds.dim_x].T + np.einsum("naz,az->na", phi, beta) + w[:, -1]
    at = np.arange(len(rows))
    z_left = z - phi[at, arms]
    reward_left = rounds.rewards[rows] - means[at, arms] - (z_left * beta[arms]).sum(axis=1)
    return Resampled(x, phi, means, beta, (z_left, reward_left))


def fit_lines(inputs: FloatArray, arms: IntArray, targets: FloatArray, n_arms: int) -> FloatArray:
    """Weights and intercept of each arm: a common line, and what the arm's own rows say beyond it.

    Both are ridge regressions whose ridge is chosen on held-out rows; where arms do not differ, the second is
    all but zero. An arm with hardly any rows has the common line.
    """
    centre, scale = inputs.mean(axis=0), deviations(inputs)
    scale = np.where(scale > 0.0, scale, 1.0)
    rows = (inputs - centre) / scale
    level, targets = targets[0], targets - targets[0]  # one that never varies has slopes of exactly 0
    common = ridge().fit(np.hstack([rows, np.eye(n_arms)[arms]]), targets)
    slopes = np.tile(common.coef_[: inputs.shape[1]], (n_arms, 1))
    left = targets - rows @ common.coef_[: inputs.shape[1]]
    levels = np.full(n_arms, left.mean())
    for arm in range(n_arms):
        mine = arms == arm
        if np.count_nonzero(mine) < FEW:
            continue
        own = ridge().fit(rows[mine], left[mine])
        slopes[arm] += own.coef_
        levels[arm] = own.intercept_
    slopes = slopes / scale
    return np.hstack([slopes, (levels - slopes @ centre + level)[:, None]])


class Remembered:
    """Features of the log's own rows, which are computed once: the worlds have no other x."""

    def __init__(self, x: FloatArray, rows: FloatArray) -> None:
        self._rows: dict[bytes, FloatArray] = {key.tobytes(): row for key, row in zip(x, rows, strict=True)}
        self._unknown = np.zeros(rows.shape[1])

    def __call__(self, x: FloatArray) -> FloatArray:
        return self._rows.get(x.tobytes(), self._unknown)


def gains(
    sample: Sample, plan: Plan, delays: Mapping[str, tuple[float, float]], rng: np.random.Generator
) -> dict[str, Gain]:
    """Play in the same worlds with each of these delays of z and rewards, in rounds."""
    rounds, horizon = sample.rounds, horizon_of(sample)
    rows = rows_of(plan.features, rounds.x)
    known = None if plan.features == "line" else Remembered(rounds.x, rows)
    at = np.unique(np.linspace(1, horizon, POINTS).astype(int)) - 1
    worlds = [make_world(sample, rows, plan.own, rng) for _ in range(WORLDS)]

    def play(number: int, run: int, delay: tuple[float, float]) -> dict[str, FloatArray]:
        """The regret of both policies in one run; a run has the same rounds with all delays."""
        policies: dict[str, Any] = {
            SUGGESTED: plan.policy(rounds, known),
            WITHOUT: LinUCB(rounds.n_arms, rounds.dim_x, model=plan.model),
        }
        world: Any = worlds[number]  # `simulate` asks it for rounds only
        options: Any = dict(zip(("z_delay", "reward_delay"), delay, strict=True))
        seed = number * MOST_RUNS + run
        played = {name: simulate(each, world, horizon, seed, **options) for name, each in policies.items()}
        return {name: each.regret[at] for name, each in played.items()}

    def gain(delay: tuple[float, float]) -> Gain:
        curves: dict[str, list[list[FloatArray]]] = {
            name: [[] for _ in worlds] for name in (SUGGESTED, WITHOUT)
        }
        runs = 0
        while True:
            for number in range(WORLDS):
                for run in range(runs, 2 * runs or RUNS):
                    for name, curve in play(number, run, delay).items():
                        curves[name][number].append(curve)
            runs = 2 * runs or RUNS
            found = _gain({name: np.array(each) for name, each in curves.items()}, at + 1, delay)
            known_well = (found.saved_high - found.saved_low) / 2.0 <= WELL_ENOUGH
            if known_well or 2 * runs > MOST_RUNS:
                return found

    return {name: gain(delay) for name, delay in delays.items()}


def _gain(curves: dict[str, FloatArray], at: IntArray, delays: tuple[float, float]) -> Gain:
    """From curves of shape (worlds, runs, points)."""
    lost, ours = (curves[name][:, :, -1] / at[-1] for name in (WITHOUT, SUGGESTED))
    value, low, high = _interval(lost - ours)
    saved, all_lost = [0.0, 0.0, 0.0], float(lost.mean())
    if all_lost > 0.0:  # a ratio of means: its error is that of what it leaves of both
        share = value / all_lost
        _, below, above = _interval((lost - ours - share * lost) / all_lost)
        saved = [min(share + off, 1.0) for off in (0.0, below, above)]  # regret is at least 0
    means = {name: np.mean(each, axis=(0, 1)).tolist() for name, each in curves.items()}
    return Gain(value, low, high, saved[0], saved[1], saved[2], delays[0], delays[1], at.tolist(), means)


def _interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean, and 95% for what it would be with endless runs in the world that the log came from.

    Worlds differ as far as the log leaves open, which more of them would not make less; runs within a world
    differ by luck, which more would. Luck is subtracted from the spread over worlds, but at most half of it:
    both are estimates, and where they are of one size their difference is often far too small, or 0.
    """
    worlds, runs = values.shape
    means = values.mean(axis=1)
    luck = float(values.var(axis=1, ddof=1).mean()) / runs
    between = float(means.var(ddof=1))
    error = math.sqrt(between - min(luck, MOST_OF_LUCK * between) + between / worlds)
    width = float(student.ppf(0.975, worlds - 1)) * error
    mean = float(means.mean())
    return mean, mean - width, mean + width
