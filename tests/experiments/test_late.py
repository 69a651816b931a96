"""Late rewards as a figure: the generator of shows, the filter by brute force, and the policies by hand."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from postserve import LinUCB, RotatingEnvironment, simulate
from postserve.experiments.figures.late import anchor, filtering, policies, shows, worlds
from postserve.types import Decision, FloatArray, IntArray

SMALL = shows.Setting(past=15, alive=3, days=8, decisions=4)


def test_shows_have_the_moments_of_their_description() -> None:
    found = shows.draw_shows(4000, np.random.default_rng(0))
    log_odds = np.log(found.returns / (1.0 - found.returns))
    t = np.arange(1, shows.DAYS + 1)
    np.testing.assert_allclose(log_odds.mean(axis=0), -0.5 - 0.55 * abs(np.sin(np.pi * t / 7)), atol=0.03)
    weeks = log_odds[:, 6::7]  # |sin| is 0 there
    wanted = 0.01 * 1.2 * np.exp(-abs(t[6::7, None] - t[6::7]) / 8.0)
    np.testing.assert_allclose(np.cov(weeks.T), wanted, atol=0.0012)
    assert (np.diff(found.stays, axis=1) < 0.0).all()


def test_traces_have_the_daily_means() -> None:
    """By listeners with a p of their own, as the description has it, and as they are drawn here."""
    rng = np.random.default_rng(1)
    found = shows.draw_shows(1, rng)
    drawn = found.traces(np.zeros(40_000, dtype=np.int64), rng.random((40_000, shows.DAYS + 1)))
    np.testing.assert_allclose(drawn.mean(axis=0), found.daily[0], atol=0.012)
    assert 1.0 + drawn.sum(axis=1).mean() == pytest.approx(found.means[0], rel=0.02)


def test_staying_is_geometric_with_a_chance_of_its_own_for_each_listener() -> None:
    rng = np.random.default_rng(2)
    state = rng.bit_generator.state
    stays = shows.draw_shows(1, rng).stays[0]
    rng.bit_generator.state = state
    rng.standard_normal((1, shows.DAYS))
    rng.uniform(size=(1, 1))
    a, k = 1.0 / (1.0 + np.exp(0.4 - 0.1 * rng.standard_normal())), rng.uniform(0.7, 1.5)
    p = np.maximum(rng.beta(k * a, k * (1.0 - a), size=100_000), 1e-12)
    days = rng.geometric(p) - 1
    np.testing.assert_allclose([(days >= t).mean() for t in (1, 7, 59)], stays[[0, 6, 58]], atol=0.007)


def test_one_show_enters_and_one_leaves_each_day() -> None:
    assert SMALL.alive_on(0).tolist() == [15, 16, 17]
    assert SMALL.alive_on(7).tolist() == [22, 23, 24]
    assert SMALL.alive_on(7).max() < SMALL.shows


@pytest.mark.parametrize("sampler", ["PROGRESSIVE", "DAY_TWO", "WAITING", "AT_ONCE"])
def test_the_filter_is_gaussian_conditioning(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Day by day against a joint Gaussian of a show's daily means and its traces' known days."""
    chosen = getattr(filtering, sampler)
    catalogue = shows.draw_catalogue(SMALL, 0)
    belief = filtering.belief_from(catalogue.past[..., chosen.days])
    dim = len(belief.mean)
    known: dict[int, list[tuple[int, FloatArray]]] = {}
    days: list[tuple[FloatArray, FloatArray]] = []
    solve = np.linalg.solve

    def watched(precision: Any, right: Any) -> Any:
        found = solve(precision, right)
        sums = found.sum(axis=1)
        days.append((sums[:, 0], sums[:, 1]))
        return found

    served: list[IntArray] = []
    traces_of = shows.Shows.traces

    def remembered(self: Any, ids: IntArray, uniforms: FloatArray) -> FloatArray:
        traces = traces_of(self, ids, uniforms)
        for arm, trace in zip(ids.tolist(), traces, strict=True):
            known.setdefault(arm, []).append((len(served), trace[chosen.days]))
        served.append(ids)
        return traces

    monkeypatch.setattr(np.linalg, "solve", watched)
    monkeypatch.setattr(shows.Shows, "traces", remembered)
    regret = filtering.sampled_regret(chosen, catalogue, np.random.default_rng(0))
    assert len(regret) == len(days) == SMALL.days
    assert (regret >= 0.0).all()
    for day, (means, variances) in enumerate(days):
        for arm, mean, variance in zip(SMALL.alive_on(day).tolist(), means, variances, strict=True):
            seen = [(chosen.known(day - then), trace) for then, trace in known.get(arm, []) if then < day]
            rows = [trace[:k] for k, trace in seen if k]
            wanted, spread = belief.mean, belief.covariance
            if rows:
                pick = np.vstack([np.eye(dim)[: len(row)] for row in rows])
                noise = np.zeros((len(pick), len(pick)))
                at = 0
                for row in rows:
                    k = len(row)
                    noise[at : at + k, at : at + k] = belief.noise[:k, :k]
                    at += k
                gain = spread @ pick.T @ np.linalg.inv(pick @ spread @ pick.T + noise)
                wanted = wanted + gain @ (np.concatenate(rows) - pick @ wanted)
                spread = spread - gain @ pick @ spread
            assert mean == pytest.approx(wanted.sum(), rel=1e-5, abs=1e-7)
            assert variance == pytest.approx(spread.sum(), rel=1e-4)


def test_the_proxy_learns_one_signal_when_z_comes() -> None:
    policy = policies.SignalAsReward(LinUCB(2, 1, ridge=1.0), signal=1, sign=-1.0)
    twin = LinUCB(2, 1, ridge=1.0)
    x = np.array([2.0])
    policy.observe(x, 1, np.array([5.0, 3.0]))
    policy.credit(x, 1, np.array([5.0, 3.0]), 100.0, z_hat=None)
    policy.update(x, 0, np.array([0.0, 1.0]), 100.0)
    twin.update(x, 1, None, -3.0)
    twin.update(x, 0, None, -1.0)
    for each in (x, -x):
        rngs = (np.random.default_rng(0) for _ in range(2))
        assert policy.select(each, next(rngs)) == twin.select(each, next(rngs))


def test_the_index_by_hand_is_linucb_on_a_ridge_of_the_rewards() -> None:
    rng = np.random.default_rng(0)
    index = policies.SurrogateIndex(lambda: LinUCB(3, 2, ridge=1.0))
    n = policies.SurrogateIndex.FIRST
    X, Z, arms = rng.standard_normal((n + 5, 2)), rng.standard_normal((n + 5, 1)), rng.integers(3, size=n + 5)
    rewards = rng.standard_normal(n)
    rows = [index.observe(X[i], int(arms[i]), Z[i]) for i in range(n + 3)]
    for i in reversed(range(n)):  # rewards come in any order
        index.credit(X[i], int(arms[i]), Z[i], float(rewards[i]), z_hat=rows[i])
    for i in range(n + 3, n + 5):
        index.observe(X[i], int(arms[i]), Z[i])
    U = np.column_stack([np.ones(n + 5), X, Z])
    weights = np.linalg.solve(U[:n].T @ U[:n] + np.eye(4), U[:n].T @ rewards)
    twin = LinUCB(3, 2, ridge=1.0)
    twin.update_batch(X, arms, None, U @ weights)
    for x in rng.standard_normal((30, 2)):
        rngs = (np.random.default_rng(0) for _ in range(2))
        assert index.select(x, next(rngs)) == twin.select(x, next(rngs))


def test_guesses_are_off_by_a_given_length_and_the_same_each_time() -> None:
    env, other = RotatingEnvironment(seed=0), RotatingEnvironment(seed=1)
    guess = policies.guessed_weights(env)
    assert np.linalg.norm(guess - env.common_beta) == pytest.approx(policies.GUESS_ERROR)
    np.testing.assert_array_equal(guess, policies.guessed_weights(RotatingEnvironment(seed=0)))
    assert not np.allclose(guess - env.common_beta, policies.guessed_weights(other) - other.common_beta)


@pytest.mark.parametrize("contender", policies.CONTENDERS, ids=str)
def test_every_contender_plays_with_delays(contender: Any) -> None:
    for own_weights in (0.0, worlds.OWN_WEIGHTS):
        env = worlds.environment(50, own_weights, 60, 0)
        run = simulate(contender.maker(env), env, 60, 0, z_delay=2, reward_delay=20)
        assert len(run.regret) == 60


def test_z_comes_with_the_reward_where_that_is_earlier() -> None:
    """At delay 0 both come at once, in one update, so that no policy waits for z there."""
    for reward_delay, z_delay in ((0, 0), (7, 7), (20, 20), (500, 20)):
        wanted = {"z_delay": z_delay, "reward_delay": reward_delay}
        assert worlds.FULL.delays(reward_delay) == wanted

    served: list[int] = []

    class Waits:
        def select(self, x: FloatArray, rng: np.random.Generator, arms: Any = None) -> Decision:
            served.append(0)
            return Decision(int(arms[0]), 1.0)

        def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float) -> None:
            served[-1] += 1

    make = partial(worlds.environment, 50, 0.0, 30)
    worlds.late_regret(make, lambda env: Waits(), {**worlds.FULL.delays(0)}, 30, 0)
    assert served == [1] * 30


def test_whole_traces_at_once_are_better_than_waiting_for_them() -> None:
    setting = shows.Setting(past=40, alive=8, days=30, decisions=10)
    waiting, at_once = (
        np.mean([anchor.mean_regret(each.play, setting, 30, seed).values[-1] for seed in range(3)])
        for each in (anchor.WAITING, anchor.ORACLE)
    )
    assert at_once < waiting


@pytest.mark.parametrize("player", anchor.PLAYERS, ids=lambda player: str(player.contender.name))
def test_every_player_meets_the_same_shows_again(player: Any) -> None:
    one, again = (anchor.mean_regret(player.play, SMALL, SMALL.days, 3) for _ in range(2))
    np.testing.assert_array_equal(one.values, again.values)
    assert (one.values >= 0.0).all()
