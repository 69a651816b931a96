"""Studies: paired, kept as they go, resumed where they stopped, and never shown a stale result."""

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from postserve import (
    InvalidInput,
    LinUCB,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    Study,
    SyntheticEnvironment,
    run_study,
    simulate,
)
from postserve.experiments.cells import kept_cells
from postserve.experiments.statistics import growth
from postserve.experiments.study import recorded_rounds

ENVIRONMENTS: dict[str, Any] = {
    kind: lambda seed, kind=kind: SyntheticEnvironment(kind, dim_x=4, dim_z=2, n_arms=3, seed=seed)
    for kind in ("linear", "periodic")
}
SAME = RandomPolicy(3)
POLICIES: dict[str, Any] = {
    "LinUCB": lambda env: LinUCB(env.n_arms, env.dim_x),
    "poLinUCB": lambda env: PoLinUCB(env.n_arms, RidgeMap(env.dim_x, env.dim_z, features=env.features)),
}


class Counted:
    """A policy's maker that writes down each time a run begins."""

    def __init__(self, file: Path, make: Any) -> None:
        self.file = file
        self.make = make

    def __call__(self, env: Any) -> Any:
        with self.file.open("a") as file:
            file.write("x")
        return self.make(env)


def study(policies: Any = POLICIES, **options: Any) -> Study:
    settings = {"horizon": 40, "seeds": 3, "engine": "local=1", "progress": False, **options}
    return run_study(ENVIRONMENTS, policies, **settings)


def test_each_cell_is_one_simulation() -> None:
    found = study()
    assert found.environments == ["linear", "periodic"]
    assert found.policies == ["LinUCB", "poLinUCB"]
    for kind, make in ENVIRONMENTS.items():
        for name, policy in POLICIES.items():
            for seed in range(3):
                env = make(seed)
                alone = simulate(policy(env), env, 40, seed)
                np.testing.assert_array_equal(found.curves(kind, name)[seed], alone.regret[found.rounds - 1])


def test_processes_give_the_bits_of_one_process() -> None:
    assert study().runs.equals(study(engine="local=2").runs)


def test_the_summary_pairs_seeds() -> None:
    found = study()
    row = next(row for row in found.summary("LinUCB") if row["policy"] == "poLinUCB")
    ratio = found.final("linear", "poLinUCB") / found.final("linear", "LinUCB")
    assert row["ratio_to_oracle"] == pytest.approx(ratio.mean())
    assert row["ratio_to_oracle_se"] == pytest.approx(ratio.std(ddof=1) / np.sqrt(3))
    assert found.summary()[0]["ratio_to_oracle"] is None


def test_an_oracle_without_regret_has_no_ratio() -> None:
    table = {"environment": "e", "policy": ["p", "p", "o", "o"], "seed": [0, 1, 0, 1], "round": 1}
    found = Study(pl.DataFrame({**table, "regret": [1.0, 2.0, 0.0, 1.0]}))
    assert [row["ratio_to_oracle"] for row in found.summary("o")] == [None, None]


def test_pairs_may_have_seeds_of_their_own() -> None:
    rows = [(place, "p", seed, 1, 1.0 * seed) for place, n in (("few", 2), ("many", 4)) for seed in range(n)]
    rows += [("many", "q", seed, 1, 3.0 * seed) for seed in range(1, 3)]
    schema = ["environment", "policy", "seed", "round", "regret"]
    found = Study(pl.DataFrame(rows, schema=schema, orient="row"))
    assert found.seeds == [0, 1, 2, 3]
    assert found.seeds_of("few", "p") == [0, 1]
    assert found.curves("many", "p").tolist() == [[0.0], [1.0], [2.0], [3.0]]
    assert [row["seeds"] for row in found.summary("q")] == [2, 4, 2]
    assert [row["ratio_to_oracle"] for row in found.summary("q")] == [None, None, 1.0]
    with pytest.raises(
        InvalidInput, match=r"'p' has the seeds \[0, 1, 2, 3\] and 'q' \[1, 2\], wanted the same"
    ):
        found.difference("many", "p", "q")
    with pytest.raises(InvalidInput, match="has no 'q' in 'few'"):
        found.seeds_of("few", "q")


def test_finished_cells_are_not_run_again(tmp_path: Path) -> None:
    began = tmp_path / "began"
    counted = {name: Counted(began, make) for name, make in POLICIES.items()}
    first = study(counted, out=tmp_path / "out")
    asked = len(began.read_text())
    again = study(counted, out=tmp_path / "out")
    probes = 2 * len(ENVIRONMENTS) * len(POLICIES)  # two of each are made, to know it again
    assert asked == probes + 12
    assert len(began.read_text()) == asked + probes
    assert again.runs.equals(first.runs)
    study(counted, out=tmp_path / "out", seeds=4)
    assert len(began.read_text()) == asked + 2 * probes + 4


def test_a_failing_cell_keeps_the_others(tmp_path: Path) -> None:
    def fails(env: Any) -> Any:
        if env.seed_of_test == 2:
            raise RuntimeError("no such luck")
        return RandomPolicy(env.n_arms)

    def world(seed: int) -> Any:
        env: Any = ENVIRONMENTS["linear"](seed)
        env.seed_of_test = seed
        return env

    settings: Any = {"horizon": 20, "engine": "local=1", "progress": False, "out": tmp_path}
    with pytest.raises(RuntimeError, match="no such luck"):
        run_study({"linear": world}, {"policy": fails}, seeds=3, **settings)
    assert len(list(tmp_path.glob("*.parquet"))) == 2


def test_what_changed_under_its_name_is_run_again(tmp_path: Path) -> None:
    def one(radius: float) -> dict[str, Any]:
        return {"policy": lambda env: LinUCB(env.n_arms, env.dim_x, ridge=1.0, arm_radius=radius)}

    first, second = (study(one(radius), out=tmp_path) for radius in (0.01, 50.0))
    assert not first.runs.equals(second.runs)
    assert second.runs.equals(study(one(50.0)).runs)


def test_a_damaged_cell_is_run_again(tmp_path: Path) -> None:
    first = study(out=tmp_path)
    one, two, *others = sorted(tmp_path.glob("*.parquet"))
    for path, content in zip(others, (b"", b"PAR1", b"junk" * 99), strict=False):
        path.write_bytes(content)
    one.with_suffix(".sha256").unlink()  # as an older version left them
    two.with_suffix(".sha256").write_bytes(b"\xff")
    assert study(out=tmp_path).runs.equals(first.runs)


def test_no_damaged_byte_comes_to_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In which some end in a panic, which is no Exception, and some in the end of the process."""
    frame = pl.DataFrame({"regret": [0.5, 1.5]})
    shown: list[bytes] = []
    read = pl.read_parquet

    def showing(file: io.BytesIO) -> pl.DataFrame:
        shown.append(file.getvalue())
        return read(file)

    monkeypatch.setattr(pl, "read_parquet", showing)
    with kept_cells(tmp_path) as kept:
        kept.keep("key", frame)
        file = tmp_path / "key.parquet"
        whole = file.read_bytes()
        for at in range(len(whole)):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            assert kept.find("key") is None
        assert shown == []
        kept.keep("key", frame)
        found = kept.find("key")
    assert found is not None
    assert found.equals(frame)
    assert shown == [whole]


def test_a_cell_that_is_anothers_is_run_again(tmp_path: Path) -> None:
    first = study(out=tmp_path)
    one, two, three, four, *_ = sorted(tmp_path.glob("*.parquet"))
    with kept_cells(tmp_path) as kept:
        kept.keep(one.stem, pl.read_parquet(two))
        kept.keep(three.stem, pl.read_parquet(three).rename({"regret": "other"}))
        kept.keep(four.stem, pl.read_parquet(four).with_columns(pl.lit(float("nan")).alias("regret")))
    assert study(out=tmp_path).runs.equals(first.runs)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with kept_cells(tmp_path), pytest.raises(InvalidInput, match="in use by another run"):
        study(out=tmp_path)
    study(out=tmp_path)


def test_what_a_killed_run_left_half_written_goes(tmp_path: Path) -> None:
    study(out=tmp_path)
    cell = next(tmp_path.glob("*.parquet"))
    cell.unlink()
    left, others = (tmp_path / f".{name}.0123456789abcdef.part" for name in (cell.name, "others"))
    for path in (left, others):
        path.write_bytes(b"half")
    study(out=tmp_path)
    assert cell.exists()
    assert not left.exists()
    assert others.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"seeds": 1}, "seeds is 1, wanted a whole number of at least 2"),
        ({"seeds": [3, 3]}, "different"),
        ({"seeds": [-1, 2]}, "seed is -1"),
        ({"policies": {}}, "policies is {}, wanted at least one, by name"),
        ({"policies": [LinUCB]}, "wanted at least one, by name"),
        ({"policies": {"p": lambda env: SAME}}, "the same object each time"),
        ({"seeds": 2.5}, "seeds is 2.5"),
        ({"policies": {"p": RandomPolicy(3)}}, "wanted a function that makes a fresh one"),
        ({"engine": "spark"}, "engine is 'spark', wanted"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        study(**options)


def test_a_study_says_what_it_does_not_have() -> None:
    found = study()
    with pytest.raises(InvalidInput, match="has no 'nobody' in 'linear'"):
        found.curves("linear", "nobody")
    with pytest.raises(InvalidInput, match="no policy 'nobody', wanted one of LinUCB, poLinUCB"):
        found.summary("nobody")
    with pytest.raises(InvalidInput, match="no round 17"):
        found.final("linear", "LinUCB", 1700)


@pytest.mark.parametrize("horizon", [1, 7, 999, 1000, 5000, 20_000])
def test_recorded_rounds(horizon: int) -> None:
    rounds = recorded_rounds(horizon)
    assert rounds[0] == 1
    assert rounds[-1] == horizon
    assert (np.diff(rounds) > 0).all()
    assert horizon < 1000 or 1000 in rounds


def test_no_regret_has_no_growth() -> None:
    assert growth(np.array([1, 10, 100]), np.zeros((3, 3)), start=1).value == 0.0


@pytest.mark.parametrize(("start", "value"), [(1000, 1.0), (100, 1.0), (1, np.nan)])
def test_growth_that_cannot_be_told(start: int, value: float) -> None:
    with pytest.raises(InvalidInput, match="no slope from round"):
        growth(np.array([1, 10, 100]), np.full((3, 3), value), start)


def test_a_cell_that_fails_says_which() -> None:
    class Fails(RandomPolicy):
        def update(self, *args: Any, **options: Any) -> None:
            raise ZeroDivisionError("by my own hand")

    with pytest.raises(ZeroDivisionError) as caught:
        study({"mine": lambda env: Fails(env.n_arms)})
    assert "in the cell of 'mine' in 'linear', seed 0" in caught.value.__notes__


def test_threads_may_run_studies_side_by_side() -> None:
    found: list[Study] = []
    threads = [threading.Thread(target=lambda: found.append(study(engine="local=2"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert all(one.runs.equals(found[0].runs) for one in found)


@pytest.mark.parametrize("name", ["out[1]", "~", "out*", "file:x", "a b", "ü"])
def test_folders_of_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    began = tmp_path / "began"
    counted = {"poLinUCB": Counted(began, POLICIES["poLinUCB"])}
    for _ in range(2):
        study(counted, out=name)
    assert len(began.read_text()) == 2 * 2 * 2 + 6  # twice the examples, once the cells


def test_growth_finds_an_exponent_and_its_spread() -> None:
    rounds = recorded_rounds(10_000)
    rng = np.random.default_rng(0)
    curves = rng.uniform(1.0, 3.0, size=(20, 1)) * rounds ** rng.normal(0.75, 0.02, size=(20, 1))
    found = growth(rounds, curves, start=1000)
    assert found.low < 0.75 < found.high
    assert found.high - found.low < 0.1
