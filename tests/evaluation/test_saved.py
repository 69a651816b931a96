"""`postserve evaluate`: saved policies on a log in files."""

import errno
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from postserve import LinUCB, PoLinUCB, RandomPolicy, RidgeMap, compare, fit_log
from postserve.cli import app
from postserve.data.log import DecisionLog

N = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, and three policies that know half of it."""
    path, rng = tmp_path_factory.mktemp("saved"), np.random.default_rng(0)
    age, arms = rng.normal(size=N), rng.integers(2, size=N)
    z = age + rng.normal(size=N)
    table = {
        "decision_id": [str(i) for i in range(N)],
        "x.age": age,
        "x.plan": rng.choice(["free", "full"], N),
        "arm": np.array(["call", "mail"])[arms],
        "propensity": np.full(N, 0.5),
        "z.minutes": z,
        "reward": np.where(arms == 1, 1.0, -1.0) * z + 0.1 * rng.normal(size=N),
    }
    DecisionLog.of(table).write(path / "log.parquet")
    log = DecisionLog.read(path / "log.parquet")
    x_encoder, z_encoder = log.encoders()
    features: Any = {"x_features": x_encoder, "z_features": z_encoder}
    fit_log(PoLinUCB(2, RidgeMap(2, 1), **features), log).save(path / "ours.npz")
    fit_log(LinUCB(2, 2, x_features=x_encoder), log).save(path / "plain.npz")
    LinUCB(2, 2).save(path / "raw.npz")
    LinUCB(2, 9).save(path / "wide.npz")
    RandomPolicy(2).save(path / "coin.npz")
    RandomPolicy(3).save(path / "three.npz")
    return path


def run(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["evaluate", str(folder / "log.parquet"), *words])


def test_policies_are_compared_in_words_numbers_and_a_picture(folder: Path, tmp_path: Path) -> None:
    ours = ["--policy", str(folder / "ours.npz")]
    result = run(folder, *ours, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "ours" in result.output
    assert result.output.splitlines()[0] == "arms 0, 1 are call, mail"
    content = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert content["policies"]["ours"]["low"] > content["policies"]["as served"]["high"]
    assert content["differences"]["ours"]["low"] > 0.0
    assert (tmp_path / "out" / "evaluation.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_only_the_picture_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(folder, "--policy", str(folder / "ours.npz"), "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "not drawn: " in result.output
    assert "wanted: pip install 'postserve[experiments]'" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation.json"]


def test_a_picture_that_is_not_finished_replaces_none(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evaluation.png").write_bytes(b"the last one")

    def fails(made: Figure, file: Any, **options: Any) -> None:
        with open(file, "wb") if isinstance(file, Path) else file as target:
            target.write(b"the beginning")
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fails)
    assert run(folder, "--policy", str(folder / "ours.npz"), "--out", str(tmp_path)).exit_code == 2
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"the last one"]


def test_the_values_are_those_of_compare(folder: Path, tmp_path: Path) -> None:
    from postserve import load

    log = DecisionLog.read(folder / "log.parquet")
    policy = load(folder / "ours.npz")
    rounds = list(log.rounds(policy.x_features, policy.z_features))
    wanted = compare({"ours": policy}, rounds, estimator="snips").evaluations["ours"]
    result = run(folder, "--policy", str(folder / "ours.npz"), "--estimator", "snips", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "evaluation.json").read_text())["policies"]["ours"]
    assert found == {"value": wanted.value, "error": wanted.error, "low": wanted.low, "high": wanted.high}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--policy", "none.npz"], "none.npz"),
        (["--policy", "ours.npz", "--estimator", "best"], "estimator is 'best'"),
        (["--policy", "ours.npz", "--policy", "raw.npz"], "ours and raw encode x differently"),
        (["--policy", "ours.npz", "--policy", "ours.npz"], "wanted files of different names"),
        (["--policy", "ours.npz", "--arm", "mail", "--arm", "post"], "'arm' has 'call'"),
        (["--policy", "ours.npz", "--level", "2"], "level is 2"),
        (
            ["--policy", "coin.npz", "--policy", "three.npz"],
            "three: the policy has arms (0, 1, 2), wanted",
        ),
        (["--policy", "raw.npz", "--policy", "wide.npz"], "wide: X has shape"),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_line(
    folder: Path, words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = run(folder, *words, "--out", str(tmp_path / "out"))
    assert result.exit_code != 0
    assert told in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("order", [("ours", "plain", "coin"), ("coin", "plain", "ours")])
def test_policies_that_ignore_z_are_compared_with_those_that_use_it(
    folder: Path, tmp_path: Path, order: tuple[str, ...]
) -> None:
    words = [word for name in order for word in ("--policy", str(folder / f"{name}.npz"))]
    result = run(folder, *words, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "evaluation.json").read_text())["policies"]
    assert min(found["ours"]["low"], found["plain"]["low"]) > found["coin"]["high"]


def test_a_random_policy_needs_no_encoder(folder: Path, tmp_path: Path) -> None:
    result = run(folder, "--policy", str(folder / "coin.npz"), "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    rewards = DecisionLog.read(folder / "log.parquet").frame.select(pl.col("reward").mean()).collect().item()
    found = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert found["policies"]["as served"]["value"] == pytest.approx(rewards)
