"""A policy's value from rounds that another one served at random.

Li, Chu, Langford and Wang (2011): go through the log in order, let the policy choose for each x, and keep the
rows in which it chose the arm that was served. If arms were served at random, the policy would have met
rounds like these.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.evaluation.asking import arms_at, floats, require_takes_arms
from postserve.evaluation.delays import Delay, Feedback, delays_of, require
from postserve.evaluation.serving import checked, column_of, each, served
from postserve.protocols import z_for_oracle
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import generator, one_of

Method = Literal["rejection", "weighted"]


class Replay(NamedTuple):
    """The rows of the log that a replay counted, in order, with their arms, rewards and weights.

    `offered` is the total weight of all rows with a reward: their number, unless the log has weights.
    """

    rows: IntArray
    arms: IntArray
    rewards: FloatArray
    weights: FloatArray
    offered: float

    def __repr__(self) -> str:
        return f"Replay(value {self.value:.4g}, from {len(self.rows):,} of {self.offered:,.0f} rounds)"

    @property
    def value(self) -> float:
        """The mean reward: sum of weight·reward over the sum of weights; NaN if no row counted."""
        total = float(self.weights.sum())
        return float(self.weights @ self.rewards) / total if total > 0.0 else float("nan")

    @property
    def unbiased_value(self) -> float:
        """Sum of weight·reward over the weight offered: without bias in logs of any length, but noisier."""
        return float(self.weights @ self.rewards) / self.offered if self.offered > 0.0 else float("nan")


def replay(
    policy: Any,
    log: LoggedRounds | Rounds,
    rng: np.random.Generator,
    *,
    method: Method = "rejection",
    z_delay: Delay = 0,
    reward_delay: Delay = 0,
) -> Replay:
    """Let a policy choose for each logged x in turn and learn from what it may see; returns what it earned.

    "rejection": only rows with the arm that the policy chose count, and it learns only from these: it plays
    as it would have, for fewer rounds. If arms were not equally likely, such a row is kept with a probability
    inversely proportional to its propensity. "weighted": the policy learns from every row, and a row counts
    with the probability that the policy gives to its arm at that time, over its propensity: more rows, for a
    policy that need not explore.

    If `log` is a `Rounds` block, every arm's reward is known and every row counts. A log's missing rewards
    (NaN) do not count; the z of these rows still teaches phi. Where only some arms were eligible, the policy
    chooses among these.

    `z_delay` and `reward_delay` are as in `simulate`: a number, a function, a distribution, or a column with
    one entry per row of the log. They count the rounds that the policy plays: in "rejection", the rows that
    are kept. What is due after the last row never comes, but its reward counts: it was earned.

    >>> from postserve import LinUCB, LoggedRounds
    >>> rng = np.random.default_rng(0)
    >>> arms, x = rng.integers(2, size=2000), rng.normal(size=(2000, 1))
    >>> rewards = np.where(arms == (x[:, 0] > 0), 1.0, 0.0)  # arm 1 is right where x > 0
    >>> log = LoggedRounds(x=x, z=np.empty((2000, 0)), arms=arms, rewards=rewards, propensities=0.5)
    >>> found = replay(LinUCB(2, 1, intercept=True), log, rng)
    >>> 900 < len(found.rows) < 1100, found.value > 0.9
    (True, True)
    """
    one_of("method", method, ("rejection", "weighted"))
    generator(rng)
    if isinstance(policy, type):
        raise InvalidInput(f"policy is the class {policy.__name__}, wanted an object: {policy.__name__}(…)")
    if isinstance(log, Rounds):
        log = checked(log, "log")
        require(policy, "select", "update")
    elif isinstance(log, LoggedRounds):
        gaps = ["observe"] if np.isnan(log.rewards).any() else []
        asks = "propensities" if method == "weighted" else "select"
        require(policy, asks, "update", *gaps)
        require_arms(policy, log.n_arms)
        require_takes_arms(policy, asks, log)
    else:
        raise InvalidInput(f"log is a {type(log).__name__}, wanted LoggedRounds, or Rounds")
    n = len(log.rewards)
    z_delays, reward_delays = (
        delays_of(name, delay, n, rng)
        for name, delay in (("z_delay", z_delay), ("reward_delay", reward_delay))
    )
    feedback = Feedback(policy, z_delays, reward_delays)
    if isinstance(log, Rounds):
        return _full_information(policy, log, rng, feedback)
    if method == "rejection":
        return by_rejection(policy, log, rng, feedback)[0]
    return _weighted(policy, log, feedback)


def by_rejection(
    policy: Any, log: LoggedRounds, rng: np.random.Generator, feedback: Feedback
) -> tuple[Replay, IntArray]:
    """The replay, and the arm that the policy chose in each row of the log, counted or not."""
    least = log.propensities.min()
    keep = least / log.propensities  # 1 throughout where arms were equally likely
    counted: list[int] = []
    choices = np.empty(len(log), dtype=np.int64)
    for row in range(len(log)):
        x, z, arm = log.x[row].copy(), log.z[row].copy(), int(log.arms[row])
        feedback.come(len(counted))
        option = arms_at(log, row)
        chosen = policy.select(x, rng, **z_for_oracle(policy, z=z), **option).arm
        eligible = np.array(option["arms"]) if option else np.arange(log.n_arms)
        choices[row] = eligible[column_of(chosen, eligible, len(eligible))]
        if choices[row] == arm and (keep[row] == 1.0 or rng.random() < keep[row]):
            feedback.serve(len(counted), x, arm, z, float(log.rewards[row]), row=row)
            counted.append(row)
    rows = np.array(counted, dtype=np.int64)
    return _replay(log, rows, log.weights[rows] / least), choices


def _weighted(policy: Any, log: LoggedRounds, feedback: Feedback) -> Replay:
    chances = np.empty(len(log))
    for row in range(len(log)):
        x, z, arm = log.x[row].copy(), log.z[row].copy(), int(log.arms[row])
        feedback.come(row)
        given = policy.propensities(x, **z_for_oracle(policy, z=z), **arms_at(log, row))
        found = floats(given)
        if found is None or found.shape != (log.n_arms,) or not 0.0 <= found[arm] <= 1.0 + 1e-9:
            got = f"the policy's propensities are {given!r:.60}"
            raise InvalidInput(f"{got}, wanted {log.n_arms} probabilities, one per arm")
        chances[row] = found[arm]
        feedback.serve(row, x, arm, z, float(log.rewards[row]))
    return _replay(log, np.arange(len(log)), log.weights * chances / log.propensities)


def _full_information(policy: Any, rounds: Rounds, rng: np.random.Generator, feedback: Feedback) -> Replay:
    n, k = rounds.rewards.shape
    if rounds.arms is None:
        require_arms(policy, k)
    arms, rewards = np.empty(n, dtype=np.int64), np.empty(n)
    for row, (x, z, all_rewards, _, eligible) in enumerate(each(rounds)):
        arms_option = {} if eligible is None else {"arms": eligible}
        feedback.come(row)
        chosen = policy.select(x, rng, **z_for_oracle(policy, z=z), **arms_option).arm
        i = column_of(chosen, eligible, k)
        arms[row], rewards[row] = chosen, all_rewards[i]
        feedback.serve(row, served(x, i), int(arms[row]), served(z, i), float(rewards[row]))
    return Replay(np.arange(n), arms, rewards, np.ones(n), float(n))


def require_arms(policy: Any, n_arms: int) -> None:
    """Raise if the policy's arms are not the log's; a policy for decision sets has none."""
    arms = tuple(getattr(policy, "arms", ()))
    if arms and arms != tuple(range(n_arms)):
        raise InvalidInput(f"the policy has arms {arms!r:.60}, wanted 0 to {n_arms - 1} as the log has")


def _replay(log: LoggedRounds, rows: IntArray, weights: FloatArray) -> Replay:
    came = ~np.isnan(log.rewards)
    counts = came[rows] & (weights > 0.0)
    rows = rows[counts]
    return Replay(rows, log.arms[rows], log.rewards[rows], weights[counts], float(log.weights[came].sum()))
