"""Feedback that comes late: in which order, by which verb, and what never comes."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.untyped import untyped

from postserve import (
    DecisionLog,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LoggedRounds,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    Rounds,
    SyntheticEnvironment,
    evaluate,
    replay,
    simulate,
)
from postserve.evaluation.delays import delays_of

NEVER = np.inf


class Told:
    """Serves arm 0 and notes what it is told, rounds being named by x."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def select(self, x: Any, rng: Any) -> Any:
        self.notes.append(f"select {x[0]:g}")
        return SimpleNamespace(arm=0)

    def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
        self.notes.append(f"update {x[0]:g}")

    def observe(self, x: Any, arm: int, z: Any) -> Any:
        self.notes.append(f"z {x[0]:g}")
        return [10.0 * x[0]]

    def credit(self, x: Any, arm: int, z: Any, reward: float, *, z_hat: Any) -> None:
        assert z_hat == [10.0 * x[0]]  # what its own observe returned
        assert z[0] == reward == x[0]
        self.notes.append(f"reward {x[0]:g}")

    def expect(self, x: Any, arm: int) -> None:
        self.notes.append(f"expect {x[0]:g}")


class Numbered:
    """The t-th round has x = z = reward = t."""

    dim_x = dim_z = n_arms = 1
    horizon = rounds_at_once = 4

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        t = np.arange(float(n))[:, None]
        return Rounds(t, t, t, t)

    def phi(self, x: Any) -> Any:
        return np.asarray(x)

    def means(self, x: Any) -> Any:
        return np.asarray(x)


def told(n: int = 4, announce: bool = False, **delays: Any) -> str:
    policy = Told()
    simulate(policy, Numbered(), n, seed=0, announce=announce, **delays)
    return ", ".join(policy.notes)


ORDERS: list[tuple[Any, Any, str]] = [
    (0, 0, "select 0, update 0, select 1, update 1, select 2, update 2, select 3, update 3"),
    (0, 1, "select 0, z 0, reward 0, select 1, z 1, reward 1, select 2, z 2, reward 2, select 3, z 3"),
    (1, 2, "select 0, z 0, select 1, reward 0, z 1, select 2, reward 1, z 2, select 3"),
    # Due together: by update. A reward that is early waits for z.
    (2, 2, "select 0, select 1, update 0, select 2, update 1, select 3"),
    (2, 0, "select 0, select 1, update 0, select 2, update 1, select 3"),
    # A column: what is due in one round comes in the order of the rounds served.
    ([3, 2, 1, 0], 9, "select 0, select 1, select 2, z 0, z 1, z 2, select 3, z 3"),
    (
        [0, 2, 0, 0],
        [3, 2, 1, 0],
        "select 0, z 0, select 1, select 2, z 2, reward 0, update 1, reward 2, select 3, update 3",
    ),
    (NEVER, 0, "select 0, select 1, select 2, select 3"),
    (2, NEVER, "select 0, select 1, z 0, select 2, z 1, select 3"),
    (0.5, 0.5, "select 0, update 0, select 1, update 1, select 2, update 2, select 3"),
]


@pytest.mark.parametrize(("z_delay", "reward_delay", "wanted"), ORDERS)
def test_feedback_comes_in_the_order_in_which_it_is_due(z_delay: Any, reward_delay: Any, wanted: str) -> None:
    assert told(z_delay=z_delay, reward_delay=reward_delay) == wanted


@pytest.mark.parametrize(("z_delay", "reward_delay", "wanted"), ORDERS)
def test_a_replay_has_the_same_order(z_delay: Any, reward_delay: Any, wanted: str) -> None:
    t = np.arange(4.0)[:, None]
    logs = (
        Rounds(t, t, t, t),
        LoggedRounds(x=t, z=t, arms=[0] * 4, rewards=t[:, 0], propensities=1.0, arm_names=("a", "b")),
    )
    for log in logs:
        policy = Told()
        found = replay(policy, log, np.random.default_rng(0), z_delay=z_delay, reward_delay=reward_delay)
        assert ", ".join(policy.notes) == wanted
        assert found.rewards.tolist() == [0.0, 1.0, 2.0, 3.0]  # earned, whether or not the policy was told


def test_announced_rounds_are_told_after_the_choice() -> None:
    # Round 1's z is due with round 0's reward: round 0 was served first.
    wanted = (
        "select 0, expect 0, select 1, expect 1, z 0, select 2, expect 2, reward 0, z 1, select 3, expect 3"
    )
    assert told(announce=True, z_delay=2, reward_delay=3) == wanted


def test_a_short_run_with_random_delays_begins_a_long_one() -> None:
    notes = [told(n, z_delay=stats.expon(scale=0.7), reward_delay=stats.poisson(1.5)) for n in (3, 4)]
    assert notes[1].startswith(notes[0])


def test_rejection_counts_the_rows_that_were_kept() -> None:
    t = np.arange(6.0)[:, None]
    log = LoggedRounds(x=t, z=t, arms=[0, 1, 1, 0, 0, 1], rewards=t[:, 0], propensities=0.5)
    policy = Told()
    replay(policy, log, np.random.default_rng(0), z_delay=0, reward_delay=[2, 0, 0, 1, 0, 0])
    wanted = (
        "select 0, z 0, select 1, select 2, select 3, z 3, reward 0, reward 3, select 4, update 4, select 5"
    )
    assert ", ".join(policy.notes) == wanted


def test_rewards_that_never_come_leave_z() -> None:
    t = np.arange(3.0)[:, None]
    log = LoggedRounds(
        x=t, z=t, arms=[0] * 3, rewards=[0.0, np.nan, 2.0], propensities=1.0, arm_names=("a", "b")
    )
    policy = Told()
    replay(policy, log, np.random.default_rng(0), z_delay=1, reward_delay=1)
    assert ", ".join(policy.notes) == "select 0, update 0, select 1, z 1, select 2"


class Asked(Told):
    """The same in an evaluation, which asks for probabilities."""

    def propensities(self, x: Any) -> Any:
        self.notes.append(f"select {x[0]:g}")
        return np.array([1.0, 0.0])

    def __deepcopy__(self, memo: Any) -> "Asked":
        return self


@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize(("z_delay", "reward_delay", "wanted"), ORDERS)
def test_an_evaluation_has_the_same_order_from_one_part_of_the_log_to_the_next(
    z_delay: Any, reward_delay: Any, wanted: str, parts: int
) -> None:
    t = np.arange(4.0)[:, None]
    log = LoggedRounds(x=t, z=t, arms=[0] * 4, rewards=t[:, 0], propensities=1.0, arm_names=("a", "b"))
    policy, rows = Asked(), np.split(np.arange(4), parts)
    options: Any = {"estimator": "ips", "learns": True, "z_delay": z_delay, "reward_delay": reward_delay}
    found = evaluate(policy, [log.take(each) for each in rows], **options)
    assert ", ".join(policy.notes) == wanted
    assert found.value == 1.5


def test_delays_in_an_evaluation_that_cannot_be_used() -> None:
    t = np.arange(4.0)[:, None]
    log = LoggedRounds(x=t, z=t, arms=[0] * 4, rewards=t[:, 0], propensities=1.0, arm_names=("a", "b"))
    for options, told in (
        ({"z_delay": 1}, "z_delay is given for a fixed policy, wanted it with learns=True"),
        ({"learns": True, "reward_delay": 1, "estimator": "replay"}, "reward_delay is given for 'replay'"),
        ({"learns": True, "z_delay": [1] * 5}, r"z_delay has shape \(5,\), wanted \(4,\), one per round"),
        ({"learns": True, "z_delay": [1] * 3}, r"z_delay has shape \(\d,\), wanted"),
        ({"learns": True, "z_delay": "soon"}, "z_delay is 'soon'"),
    ):
        with pytest.raises(InvalidInput, match=told):
            untyped(evaluate)(Asked(), [log.take([0, 1]), log.take([2, 3])], **options)


def test_the_delays_of_a_log_are_those_of_its_times() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def after(*hours: float | None) -> list[datetime | None]:
        return [None if each is None else start + timedelta(hours=each) for each in hours]

    log = DecisionLog.of(
        {
            "decision_id": list("abcde"),
            "x.a": [1.0] * 5,
            "arm": ["0", "1", "0", "1", "0"],
            "propensity": [0.5] * 5,
            "time": after(0, 1, 1, 3, 4),
            "z.b": [1.0] * 5,
            "z_time": after(0, 1, 2, None, 9),
            "reward": [1.0] * 5,
            "reward_time": after(1, 3.5, 99, 3, 4),
        }
    )
    z_delay, reward_delay = log.delays()
    assert z_delay.tolist() == [0, 0, 1, 0, 1]
    assert reward_delay.tolist() == [1, 3, 3, 0, 0]
    back = log.frame.collect().reverse().lazy()
    with pytest.raises(InvalidInput, match=r"'time' is null, or before the one above it, at row 1, wanted"):
        DecisionLog(back).delays()


WORLD = SyntheticEnvironment("linear", dim_x=3, dim_z=2, n_arms=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PoLinUCB(3, RidgeMap(3, 2)),
        lambda: LinUCB(3, 3),
        lambda: LinUCBOracle(3, 3, 2),
        lambda: RandomPolicy(3),
    ],
)
def test_no_delay_decides_as_update_does_and_a_long_one_as_no_feedback(make: Any) -> None:
    now, late, none = (
        simulate(make(), WORLD, 60, seed=1, z_delay=d, reward_delay=d).arms.tolist() for d in (0, 60, NEVER)
    )
    assert now == simulate(make(), WORLD, 60, seed=1).arms.tolist()
    assert late == none
    policy, rounds = make(), WORLD.rounds(1000, np.random.default_rng(np.random.SeedSequence(1).spawn(2)[0]))
    rng = np.random.default_rng(np.random.SeedSequence(1).spawn(2)[1])
    for t, arm in enumerate(now):
        sees = {"z": rounds.z[t]} if getattr(policy, "sees_z", False) else {}
        assert policy.select(rounds.x[t], rng, **sees).arm == arm
        policy.update(rounds.x[t], arm, rounds.z[t], rounds.rewards[t, arm])


def test_random_delays_come_from_the_seed_and_leave_the_rounds_alone() -> None:
    delay = stats.geom(0.1)
    one, again = (simulate(PoLinUCB(3, RidgeMap(3, 2)), WORLD, 80, 2, reward_delay=delay) for _ in range(2))
    assert all(map(np.array_equal, one, again))
    on_time, late = (simulate(RandomPolicy(3), WORLD, 80, 2, z_delay=each) for each in (0, delay))
    assert all(map(np.array_equal, on_time, late))


def test_delays_of_every_kind() -> None:
    def rng() -> np.random.Generator:
        return np.random.default_rng(0)

    assert delays_of("d", 3, 2, rng()).tolist() == [3.0, 3.0]
    assert delays_of("d", [1.2, NEVER], 2, rng()).tolist() == [2.0, NEVER]
    assert delays_of("d", lambda rng, n: rng.integers(9, size=n), 5, rng()).tolist() == (
        rng().integers(9, size=5).tolist()
    )
    drawn = stats.expon(scale=20).rvs(size=5, random_state=rng())
    assert delays_of("d", stats.expon(scale=20), 5, rng()).tolist() == np.ceil(drawn).tolist()


@pytest.mark.parametrize(
    ("delay", "wanted"),
    [
        (-1, "z_delay has -1, wanted rounds from 0 on"),
        (np.nan, "z_delay has NaN, wanted rounds from 0 on"),
        ([0, 1, -2, 0], "z_delay has -2"),
        ([0, 1], r"z_delay has shape \(2,\), wanted \(4,\), one per round, or a number"),
        (True, "z_delay is True, of dtype bool, wanted a number"),
        ("soon", "z_delay is 'soon', .*, wanted a number"),
        ("5", "z_delay is '5', .*, wanted a number"),
        (np.arange(4).astype("M8[D]"), r"z_delay is .*, of dtype datetime64\[D\], wanted a number"),
        (np.ma.masked_equal([0, 1, 2, 3], 1), "z_delay has masked entries"),
        (None, "z_delay"),
        (lambda rng: 3, "z_delay fails on 4 rounds"),
        (lambda rng, n: 3, r"z_delay has shape \(\), wanted \(4,\)"),
        (stats.norm(-5.0, 0.1), "z_delay has -"),
    ],
)
def test_delays_that_are_none(delay: Any, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=wanted):
        told(z_delay=delay)


def test_verbs_that_are_missing() -> None:
    class OnlyUpdates:
        def select(self, x: Any, rng: Any) -> Any:
            return SimpleNamespace(arm=0)

        def update(self, x: Any, arm: int, z: Any, reward: float) -> None: ...

    simulate(OnlyUpdates(), Numbered(), 4, 0, z_delay=2, reward_delay=2)
    with pytest.raises(InvalidInput, match="a OnlyUpdates, has no observe, wanted one that does"):
        simulate(OnlyUpdates(), Numbered(), 4, 0, reward_delay=2)
    with pytest.raises(InvalidInput, match="a OnlyUpdates, has no expect, wanted one that does"):
        simulate(OnlyUpdates(), Numbered(), 4, 0, announce=True)
    with pytest.raises(InvalidInput, match="announce is 1"):
        told(announce=1)  # type: ignore[arg-type]


def test_an_environment_that_ends() -> None:
    with pytest.raises(InvalidInput, match="horizon is 5, wanted at most 4, where the environment ends"):
        told(5)
