"""Learning from logs: in one pass, in parts, and on engines, with the same weights."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from postserve import (
    HybridMap,
    InvalidInput,
    KernelMap,
    LinUCB,
    LoggedRounds,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    fit_log,
    load,
)
from postserve.data.log import DecisionLog

N, K, DIM = 900, 3, 4


def log_of(path: Path, *, gaps: bool = False) -> DecisionLog:
    rng = np.random.default_rng(0)
    x, arms = rng.normal(size=(N, DIM)), rng.integers(K, size=N)
    z = x[:, :2] ** 2 + rng.normal(size=(N, 2))
    beta = rng.normal(size=(K, 2))
    rewards = 5.0 + x[:, 0] + np.vecdot(beta[arms], z) + 0.3 * rng.normal(size=N)
    table: dict[str, Any] = {
        "decision_id": [str(i) for i in range(N)],
        "arm": [f"arm{i}" for i in arms],
        "propensity": np.full(N, 1 / K),
        "reward": [None if gaps and i % 9 == 4 else float(r) for i, r in enumerate(rewards)],
        **{f"x.{i}": x[:, i] for i in range(DIM)},
        **{
            f"z.{i}": [None if gaps and t % 11 == 5 else float(v) for t, v in enumerate(z[:, i])]
            for i in range(2)
        },
    }
    for part in range(3):
        some = pl.DataFrame(table)[300 * part : 300 * (part + 1)]
        DecisionLog.of(some).write(path / f"part{part}.parquet")
    return DecisionLog.read(path)


def policies() -> dict[str, Any]:
    return {
        "x alone": lambda: LinUCB(K, DIM),
        "paper": lambda: PoLinUCB(K, RidgeMap(DIM, 2, ridge=1.0), ridge=1.0),
        "evidence": lambda: PoLinUCB(K, RidgeMap(DIM, 2), missing_z="drop"),
        "hybrid": lambda: PoLinUCB(K, HybridMap(DIM, 2), model="hybrid"),
        "shared": lambda: PoLinUCB(K, RidgeMap(DIM, 2), model="shared"),
    }


@pytest.mark.parametrize("name", list(policies()))
@pytest.mark.parametrize(("parts", "rows"), [(1, 100), (2, 1000), (5, 77)])
def test_parts_give_the_weights_of_one_pass(name: str, parts: int, rows: int, tmp_path: Path) -> None:
    log, make = log_of(tmp_path), policies()[name]
    whole = fit_log(make(), log)
    folded = fit_log(make(), log, parts=parts, rows=rows)
    np.testing.assert_allclose(folded.weights, whole.weights, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(folded.pulls, whole.pulls)
    if whole.context_map is not None:
        x = np.ones(DIM)
        arms = whole.arms
        np.testing.assert_allclose(
            folded.context_map.predict(x, arms), whole.context_map.predict(x, arms), rtol=1e-9, atol=1e-9
        )


def test_two_processes_give_the_weights_of_one(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    whole, folded = fit_log(LinUCB(K, DIM), log), fit_log(LinUCB(K, DIM), log, engine="local=2")
    np.testing.assert_allclose(folded.weights, whole.weights, rtol=1e-9, atol=1e-9)


def test_a_log_in_memory_is_learnt_as_one_in_files_is(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    (rounds,) = log.rounds(rows=10_000)
    assert isinstance(rounds, LoggedRounds)
    make = policies()["evidence"]
    np.testing.assert_allclose(fit_log(make(), rounds).weights, fit_log(make(), log).weights, rtol=1e-9)
    np.testing.assert_allclose(
        fit_log(make(), rounds, parts=3).weights, fit_log(make(), log).weights, rtol=1e-9
    )


def test_what_lacks_z_or_a_reward_teaches_what_it_can(tmp_path: Path) -> None:
    log = log_of(tmp_path, gaps=True)
    policy = fit_log(PoLinUCB(K, RidgeMap(DIM, 2), missing_z="drop"), log)
    rows = log.frame.collect()
    whole = rows.filter(pl.col("reward").is_not_null() & pl.col("z.0").is_not_null())
    assert policy.pulls.sum() == len(whole)
    phi_hat = RidgeMap(DIM, 2)
    for row in rows.filter(pl.col("z.0").is_not_null()).iter_rows(named=True):
        phi_hat.update([row[f"x.{i}"] for i in range(DIM)], 0, [row["z.0"], row["z.1"]])
    phi_hat.refit_prior()
    x = np.ones(DIM)
    np.testing.assert_allclose(policy.context_map.predict(x, [0]), phi_hat.predict(x, [0]), rtol=1e-9)
    with pytest.raises(InvalidInput, match="z is None"):
        fit_log(PoLinUCB(K, RidgeMap(DIM, 2)), log)


def test_a_policy_goes_on_from_the_log(tmp_path: Path) -> None:
    policy = fit_log(PoLinUCB(K, RidgeMap(DIM, 2)), log_of(tmp_path))
    policy.save(tmp_path / "policy.npz")
    twin, rng = load(tmp_path / "policy.npz"), np.random.default_rng(1)
    for one in (policy, twin):
        one.update(np.ones(DIM), 1, [0.0, 1.0], reward=2.0)
    assert twin.select(np.ones(DIM), rng).arm == policy.select(np.ones(DIM), rng).arm
    taught = fit_log(policy, log_of(tmp_path), parts=2)  # what it knew is kept
    assert taught.pulls.sum() == 2 * N + 1


def test_who_cannot_learn_parts_says_why(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    with pytest.raises(InvalidInput, match="PoLinUCB cannot learn parts side by side: its map, KernelMap"):
        fit_log(PoLinUCB(K, KernelMap(DIM, 2)), log, parts=2)
    with pytest.raises(InvalidInput, match="log is a dict, wanted a DecisionLog"):
        fit_log(LinUCB(K, DIM), {})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"policy is <class .*LinUCB.*>, wanted a policy"):
        fit_log(LinUCB, log)  # type: ignore[type-var]
    with pytest.raises(InvalidInput, match="engine is 'cloud', wanted local"):
        fit_log(LinUCB(K, DIM), log, engine="cloud")
    with pytest.raises(InvalidInput, match="it learns nothing"):
        fit_log(RandomPolicy(K), log, parts=2)
    grown = LinUCB(K, DIM)
    grown.add_arm()
    grown.remove_arm(3)
    grown.add_arm()
    with pytest.raises(InvalidInput, match="arms have changed"):
        fit_log(grown, log, parts=2)
