"""Logs of decisions: their schema, Parquet, and other formats."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from postserve import Encoder, InvalidInput
from postserve.data.log import DecisionLog, dsjson, from_dsjson, from_open_bandit, to_dsjson, to_open_bandit

START = datetime(2026, 1, 1, tzinfo=UTC)


def table(n: int = 60, **changes: Any) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    city = rng.choice(["Ulm", "Bonn", "Kiel"], n).tolist()
    whole: dict[str, list[Any]] = {
        "decision_id": [f"d{i}" for i in range(n)],
        "time": [START + timedelta(seconds=i) for i in range(n)],
        "x.age": rng.integers(20, 70, n).tolist(),
        "x.city": [None if i % 10 == 3 else each for i, each in enumerate(city)],
        "arm": rng.choice(["call", "mail"], n).tolist(),
        "eligible": [["mail", "call"] for _ in range(n)],
        "propensity": [0.5] * n,
        "propensities": [[0.5, 0.5] for _ in range(n)],
        "z.minutes": [None if i % 7 == 2 else float(i) for i in range(n)],
        "z_time": [None if i % 7 == 2 else START + timedelta(days=1, seconds=i) for i in range(n)],
        "reward": [None if i % 5 == 0 else float(i % 3) for i in range(n)],
        "reward_time": [None if i % 5 == 0 else START + timedelta(days=9) for i in range(n)],
        "model_version": list(range(n)),
    }
    return {**whole, **changes}


def with_value(name: str, row: int, value: Any) -> dict[str, list[Any]]:
    whole = table()
    whole[name] = [*whole[name][:row], value, *whole[name][row + 1 :]]
    return whole


def test_a_log_is_written_and_read_as_it_is(tmp_path: Path) -> None:
    log = DecisionLog.of(table())
    log.write(tmp_path / "log.parquet")
    again = DecisionLog.read(tmp_path / "log.parquet")
    assert again.frame.collect().equals(log.frame.collect())
    assert (len(again), again.x_names, again.z_names) == (60, ["age", "city"], ["minutes"])
    assert again.arm_names == ("call", "mail")
    assert repr(again) == "DecisionLog(x: age, city; z: minutes)"


def test_a_table_of_pandas_is_read_as_the_same_table_of_polars_without_pyarrow() -> None:
    whole = table()
    frame = pd.DataFrame(whole)
    frame["x.city"] = frame["x.city"].astype("category")
    frame["x.old"] = frame["x.age"] > 40
    frame["time"] = frame["time"].dt.tz_convert("Europe/Berlin")
    frame["model_version"] = frame["model_version"].astype("Int64")
    assert frame[["z.minutes", "reward"]].isna().any().all()
    wanted = DecisionLog.of({**whole, "x.old": [age > 40 for age in whole["x.age"]]}).frame.collect()
    assert DecisionLog.of(frame).frame.collect().equals(wanted)
    columns = {name: frame[name] for name in frame.columns}
    assert DecisionLog.of(columns).frame.collect().equals(wanted)


@pytest.mark.parametrize("name", ["time", "z_time", "reward_time"])
@pytest.mark.parametrize("value", ["2026-01-01 12:00", 1_767_268_800])
def test_texts_and_numbers_are_no_times(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"column '{name}' has type .*, wanted times or dates, in UTC"):
        DecisionLog.of({**table(), name: [value] * 60})


@pytest.mark.parametrize("name", ["reward", "propensity"])
@pytest.mark.parametrize("values", [["0.5"] * 59 + ["n/a"], [START] * 60, [timedelta(days=1)] * 60])
def test_texts_and_times_are_no_numbers(name: str, values: list[Any]) -> None:
    with pytest.raises(InvalidInput, match=f"column '{name}' has type .*, wanted numbers: pl.col"):
        DecisionLog.of({**table(), name: values})


def test_a_column_of_several_types_is_named() -> None:
    mixed = pd.DataFrame(table()).assign(**{"x.age": [31, "forty", *range(58)]})
    with pytest.raises(InvalidInput, match=r"'x.age' cannot be read \(.*forty.\), wanted values of one type"):
        DecisionLog.of(mixed)


def test_a_column_that_cannot_be_converted_is_refused_by_the_check() -> None:
    with pytest.raises(
        InvalidInput, match=r"(?s)cannot be read .*model_version.*wanted the types of the schema"
    ):
        DecisionLog.of(table(model_version=["first"] * 60))


def test_a_folder_of_files_is_one_log(tmp_path: Path) -> None:
    whole = pl.DataFrame(table())
    for i in range(3):
        DecisionLog.of(whole[20 * i : 20 * (i + 1)]).write(tmp_path / f"part{i}.parquet")
    assert DecisionLog.read(tmp_path).frame.collect().equals(DecisionLog.of(whole).frame.collect())


def test_what_is_no_parquet_file_is_told_how_it_becomes_a_log(tmp_path: Path) -> None:
    pl.DataFrame({"decision_id": ["a"], "arm": ["mail"]}).write_csv(tmp_path / "log.csv")
    (tmp_path / "empty.parquet").write_bytes(b"")
    for name in ("log.csv", "empty.parquet"):
        with pytest.raises(
            InvalidInput, match=rf"{name} cannot be read .*wanted a whole Parquet file; .*read_csv"
        ):
            DecisionLog.read(tmp_path / name)
    for path in ("log.csv", tmp_path / "log.csv"):
        with pytest.raises(InvalidInput, match=r"table is .*, wanted .* DecisionLog\.read is for files"):
            DecisionLog.of(path)


USES: dict[str, Any] = {
    "arms": lambda log: log.arm_names,
    "check": lambda log: log.check(),
    "pieces": lambda log: list(log.pieces()),
    "rounds": lambda log: list(log.rounds()),
    "encoders": lambda log: log.encoders(),
    "delays": lambda log: log.delays(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("damage", ["gone", "cut", "noise"])
def test_files_that_are_damaged_or_gone_are_refused(use: str, damage: str, tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    DecisionLog.of(table()).write(file)
    log, whole = DecisionLog.read(file), file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(whole[:500] if damage == "cut" else bytes(len(whole) - 8) + whole[-8:])
    with pytest.raises(InvalidInput, match=r"(?s)the log cannot be read .*, wanted .* whole files"):
        USES[use](log)


def test_arms_named_by_many_digits_have_an_order() -> None:
    names = ["9" * 5000, "10", "9"]
    assert DecisionLog.of(table(3, arm=names, eligible=[None] * 3, propensities=[None] * 3)).arm_names == (
        "9",
        "10",
        "9" * 5000,
    )


def test_names_of_files_are_no_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "of [1]*"
    folder.mkdir()
    for name, n in (("log?.parquet", 5), ("log2.parquet", 7)):
        DecisionLog.of(table(n, decision_id=[f"{name} {i}" for i in range(n)])).write(folder / name)
    assert len(DecisionLog.read(folder / "log?.parquet")) == 5
    assert len(DecisionLog.read(folder)) == 12


def test_only_what_is_required_must_be_there() -> None:
    whole = table()
    few = {name: whole[name] for name in ("decision_id", "x.age", "arm", "propensity", "reward")}
    log = DecisionLog.of(few)
    assert log.frame.collect()["z_time"].null_count() == 60
    for name in ("decision_id", "arm", "propensity", "reward"):
        with pytest.raises(InvalidInput, match=f"no column '{name}', wanted decision_id, arm"):
            DecisionLog.of({key: column for key, column in few.items() if key != name})
    with pytest.raises(InvalidInput, match=r"no column of x, wanted some named x.NAME"):
        DecisionLog.of({key: column for key, column in few.items() if key != "x.age"})
    with pytest.raises(InvalidInput, match="has a column 'age', wanted only decision_id"):
        DecisionLog.of({**few, "age": whole["x.age"]})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("propensity", 0.0, r"'propensity' has 0\.0 at row 7, wanted a probability"),
        ("propensity", 1.5, r"'propensity' has 1\.5 at row 7"),
        ("propensity", float("nan"), "'propensity' has nan at row 7"),
        ("propensity", None, "'propensity' has None at row 7"),
        ("reward", float("inf"), "'reward' has inf at row 7, wanted a finite number, or null"),
        ("z.minutes", float("nan"), "'z.minutes' has nan at row 7"),
        ("arm", None, "'arm' has None at row 7, wanted an arm"),
        ("arm", "post", r"'eligible' has \['mail', 'call'\] at row 7, wanted the arm that was served"),
        ("propensities", [0.9, 0.2], r"'propensities' has \[0\.9, 0\.2\] at row 7, wanted one per eligible"),
        ("propensities", [1.0], "wanted one per eligible arm"),
        ("decision_id", "", "'decision_id' has '' at row 7"),
        ("decision_id", "d3", r"'d3' at rows 3 and 7, wanted each id once \(1 row too many\)"),
    ],
)
def test_the_first_bad_row_is_named_and_nothing_is_written(
    name: str, value: Any, told: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=told):
        DecisionLog.of(with_value(name, 7, value))
    log = DecisionLog(pl.DataFrame(with_value(name, 7, value), strict=False).lazy())
    with pytest.raises(InvalidInput, match=told):
        log.write(tmp_path / "log.parquet")
    assert not list(tmp_path.iterdir())


def test_the_propensity_is_the_one_that_its_arm_has_among_all() -> None:
    whole = table(arm=["call"] * 60, propensities=[[0.7, 0.3] if i == 40 else [0.5, 0.5] for i in range(60)])
    told = "column 'propensity' has 0.5 at row 40, wanted the 0.3 that 'propensities' has for arm 'call'"
    with pytest.raises(InvalidInput, match=told):
        DecisionLog.of(whole)


def test_ids_that_cross_are_each_named_with_their_own_rows() -> None:
    ids = ["a", "b", "b", "a", *(f"d{i}" for i in range(4, 60))]
    with pytest.raises(InvalidInput, match=r"'a' at rows 0 and 3, wanted each id once \(2 rows too many\)"):
        DecisionLog.of(table(decision_id=ids))


def test_different_ids_with_one_code_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl.Expr, "hash", lambda column: column.str.len_chars())
    DecisionLog.of(table())


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no log at .*none.parquet, wanted a Parquet file"):
        DecisionLog.read(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(InvalidInput, match=r"bad\.parquet cannot be read"):
        DecisionLog.read(tmp_path / "bad.parquet")
    with pytest.raises(InvalidInput, match="cannot be read"):
        DecisionLog.of({**table(), "x.age": [1, 2]})
    with pytest.raises(InvalidInput, match=r"'x.pair' has type List"):
        DecisionLog.of({**table(), "x.pair": [[1, 2]] * 60})


@pytest.mark.parametrize("rows", [7, 60, 1000])
def test_pieces_are_encoded_as_one_table_is(rows: int) -> None:
    log = DecisionLog.of(table())
    x_encoder, z_encoder = log.encoders()
    raw = log.frame.collect()
    own = Encoder.fit(
        {"age": raw["x.age"], "city": raw["x.city"]}, ["age", "city"], categories=["city"], gaps="impute"
    )
    assert x_encoder.names == own.names == ("age", "city=Bonn", "city=Kiel", "city=Ulm", "city missing")
    pieces = list(log.rounds(rows=rows))
    x = np.concatenate([piece.x for piece in pieces])
    np.testing.assert_allclose(x, own.table({"age": raw["x.age"], "city": raw["x.city"]}))
    z = np.concatenate([piece.z for piece in pieces])[:, 0]
    np.testing.assert_array_equal(np.isnan(z), raw["z.minutes"].is_null())
    assert np.concatenate([piece.arms for piece in pieces]).tolist() == [
        ["call", "mail"].index(arm) for arm in raw["arm"]
    ]
    rewards = np.concatenate([piece.rewards for piece in pieces])
    np.testing.assert_array_equal(rewards, raw["reward"].fill_null(np.nan))
    assert z_encoder.names == ("minutes", "minutes missing")


def test_rounds_by_given_encoders_and_arms() -> None:
    log = DecisionLog.of(table())
    x_encoder, z_encoder = log.encoders(categories=["city"])
    (piece,) = log.rounds(x_encoder, z_encoder, arm_names=["mail", "post", "call"])
    assert set(piece.arms.tolist()) == {0, 2}
    with pytest.raises(InvalidInput, match=r"'arm' has 'call' at row .* wanted one of mail, post"):
        next(log.rounds(x_encoder, z_encoder, arm_names=["mail", "post"]))
    with pytest.raises(InvalidInput, match=r"'x\.city' has gaps in 6 rows, wanted none, or gaps='impute'"):
        log.encoders(gaps="raise")


def test_columns_that_encoders_take_must_be_there() -> None:
    x_encoder, z_encoder = DecisionLog.of({**table(), "z.watch": [1.0] * 60}).encoders()
    for lost, told in (("x.city", "wanted x.age, x.city"), ("z.watch", "wanted z.minutes, z.watch")):
        whole = {name: each for name, each in table().items() if name != lost}
        with pytest.raises(InvalidInput, match=f"the log has no column {lost!r}, .*, {told};"):
            next(DecisionLog.of(whole).rounds(x_encoder, z_encoder))
    without_z = {name: each for name, each in table().items() if not name.startswith("z.")}
    part = next(DecisionLog.of(without_z).rounds(x_encoder, z_encoder))
    assert part.z_names == z_encoder.names
    assert np.isnan(part.z).all()


def test_dsjson_and_back(tmp_path: Path) -> None:
    log = DecisionLog.of(table())
    to_dsjson(log, tmp_path / "log.dsjson")
    again = from_dsjson(tmp_path / "log.dsjson").frame.collect()
    before = log.frame.collect()
    for name in before.columns:
        if name not in ("eligible", "propensities"):
            assert again[name].equals(before[name].cast(again[name].dtype)), name
    for one, other in zip(again.iter_rows(named=True), before.iter_rows(named=True), strict=True):
        assert sorted(one["eligible"]) == sorted(other["eligible"])
        assert one["eligible"][0] == other["arm"]


def test_a_program_that_read_dsjson_ends_without_a_warning_and_leaves_nothing(tmp_path: Path) -> None:
    to_dsjson(DecisionLog.of(table()), tmp_path / "log.dsjson")
    code = "from postserve.data.log import from_dsjson; print(len(from_dsjson('log.dsjson')))"
    (tmp_path / "temporary").mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == ("60\n", "")
    assert not list((tmp_path / "temporary").iterdir())


def test_dsjson_as_vowpal_wabbit_writes_it(tmp_path: Path) -> None:
    event = {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "Timestamp": "2026-11-16T10:00:00.1000000Z",
        "Version": "1",
        "EventId": "e1",
        "a": [2, 1],
        "c": {"User": {"age": 3, "tags": [1, 0]}, "_multi": [{"A": {"f": 1}}, {"A": {"f": 2}}]},
        "p": [0.8, 0.2],
        "VWState": {"m": "x"},
    }
    other = {**event, "EventId": "e2", "a": [1, 2], "_label_probability": 0.2, "p": [0.2, 0.8]}
    del other["_label_cost"]
    (tmp_path / "log.dsjson").write_text(json.dumps(event) + "\n\n" + json.dumps(other) + "\n")
    rows = from_dsjson(tmp_path / "log.dsjson").frame.collect().to_dicts()
    assert [row["arm"] for row in rows] == ["2", "1"]
    assert [row["reward"] for row in rows] == [1.0, None]
    assert rows[0]["eligible"] == ["2", "1"]
    assert (rows[0]["x.User.age"], rows[0]["x.User.tags.0"], rows[0]["x.User.tags.1"]) == (3, 1, 0)
    assert rows[0]["time"] == datetime(2026, 11, 16, 10, 0, 0, 100000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is no decision"),
        ("[]", "line 2 is no decision"),
        ('{"EventId": "a"}', "line 2 is no decision .KeyError"),
        (
            '{"EventId": "a", "a": [1], "p": [1.0], "c": {"_multi": [{}], "age": "old"}}',
            "line 2 has 'x.age' as a",
        ),
        (
            '{"EventId": "a", "a": [1], "p": [1.0], "c": {"_multi": [{}]}, "_z": 3}',
            "line 2 is no decision .TypeError",
        ),
        (
            '{"EventId": "a", "a": [0, 1], "p": [0.5, 0.5], "c": {"_multi": [{}, {}]}}',
            "line 2 is no decision .IndexError: a has 0, and counts from 1",
        ),
        (
            '{"EventId": "a", "a": [1], "p": [1], "c": {"_multi": [1]}, "Timestamp": "0001-01-01 00:00+23"}',
            "line 2 is no decision .OverflowError",
        ),
        ("[" * 100_000, "line 2 is no decision .RecursionError"),
        ("", None),
    ],
)
def test_a_line_that_is_no_decision_is_named(line: str, told: str | None, tmp_path: Path) -> None:
    to_dsjson(DecisionLog.of(table(1)), tmp_path / "log.dsjson")
    with (tmp_path / "log.dsjson").open("a") as file:
        file.write(line + "\n")
    if told is None:
        assert len(from_dsjson(tmp_path / "log.dsjson")) == 1
    else:
        with pytest.raises(InvalidInput, match=told):
            from_dsjson(tmp_path / "log.dsjson")


def test_a_column_with_the_name_of_the_arms_is_refused_in_dsjson(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the log has a column 'x\._multi', .*, wanted another name"):
        to_dsjson(DecisionLog.of({**table(), "x._multi": [1.0] * 60}), tmp_path / "log.dsjson")
    assert not any(tmp_path.iterdir())


def test_dsjson_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and types that only later pieces have are in all of the log; memory holds some rounds."""
    whole = table()
    whole["x.age"] = [None] * 20 + [7.0] * 20 + [7.5] * 20
    to_dsjson(DecisionLog.of(whole), tmp_path / "log.dsjson")
    text = (tmp_path / "log.dsjson").read_text()
    (tmp_path / "log.dsjson").write_text(text.replace('"age": 7.0', '"age": 7'))  # a whole number there
    late = {"EventId": "late", "a": [1], "p": [1.0], "c": {"tall": True, "_multi": [{"id": "call"}]}}
    with (tmp_path / "log.dsjson").open("a") as file:
        file.write(json.dumps(late) + "\n")
    at_once = from_dsjson(tmp_path / "log.dsjson").frame.collect()
    monkeypatch.setattr(dsjson, "ROWS", 7)
    log = from_dsjson(tmp_path / "log.dsjson")
    assert log.frame.collect().equals(at_once)
    assert at_once["x.age"].to_list() == [*whole["x.age"], None]
    assert at_once["x.tall"].to_list() == [None] * 60 + [True]
    assert log.arm_names == ("call", "mail")


@pytest.mark.parametrize("last", ["{", '{"EventId": "d1", "a": [1], "p": [1.0], "c": {"_multi": [{}]}}'])
def test_a_file_that_is_refused_leaves_nothing(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_dsjson(DecisionLog.of(table()), tmp_path / "log.dsjson")
    with (tmp_path / "log.dsjson").open("a") as file:
        file.write(last + "\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(dsjson, "ROWS", 7)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with pytest.raises(InvalidInput, match=r"line 61 is no decision|'d1' at rows 1 and 60"):
        from_dsjson(tmp_path / "log.dsjson")
    assert not list((tmp_path / "temporary").iterdir())
    with pytest.raises(InvalidInput, match=r"none cannot be read .* wanted a file of dsjson"):
        from_dsjson(tmp_path / "none")


def test_open_bandit_columns_and_back(tmp_path: Path) -> None:
    rows = "0,2019-11-24 00:00:34.762830+00:00,14,3,0,0.0125,aa,bb,0.5\n"
    rows += "1,2019-11-24 00:00:35.000000+00:00,2,1,1,0.0125,aa,cc,0.25\n"
    names = "user_feature_0,user_feature_1,user-item_affinity_0"
    (tmp_path / "all.csv").write_text(f",timestamp,item_id,position,click,propensity_score,{names}\n{rows}")
    log = from_open_bandit(tmp_path / "all.csv")
    assert log.arm_names == ("2", "14")
    assert log.x_names == ["position", "user_feature_0", "user_feature_1", "user-item_affinity_0"]
    assert log.frame.collect()["reward"].to_list() == [0.0, 1.0]
    to_open_bandit(log, tmp_path / "again.csv")
    assert from_open_bandit(tmp_path / "again.csv").frame.collect().equals(log.frame.collect())
    (tmp_path / "bad.csv").write_text("timestamp,item_id\n1,2\n")
    with pytest.raises(InvalidInput, match="has no column 'click'"):
        from_open_bandit(tmp_path / "bad.csv")


def test_truth_values_and_numbers_as_categories_are_those_of_a_row() -> None:
    seen, size = [i % 2 == 0 for i in range(60)], [1.0 + 1.5 * (i % 3 == 0) for i in range(60)]
    log = DecisionLog.of({**table(), "x.seen": seen, "x.size": size})
    encoder, _ = log.encoders(categories=["seen", "size", "city"])
    assert encoder.names[-2:] == ("seen=True", "size=2.5")
    assert encoder({"age": 30, "city": "Ulm", "seen": True, "size": 2.5})[-2:].tolist() == [1.0, 1.0]
    rows = next(log.rounds(x_encoder=encoder)).x
    np.testing.assert_array_equal(rows[:, -2:], np.c_[seen, np.array(size) > 1.0])
    np.testing.assert_array_equal(next(log.rounds()).x[:, -2], seen)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("eligible", ["mail", "call", None], r"'eligible' has \['mail', 'call', None\] at row 3, wanted"),
        ("eligible", ["mail", "call", ""], r"'eligible' has \['mail', 'call', ''\] at row 3, wanted"),
        ("propensities", [None, 1.0], r"'propensities' has \[None, 1.0\] at row 3, wanted one per"),
        ("propensities", [-0.5, 1.5], r"'propensities' has \[-0.5, 1.5\] at row 3, wanted one per"),
    ],
)
def test_lists_of_arms_without_names_and_of_no_probabilities_are_refused(
    name: str, value: Any, told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        DecisionLog.of(with_value(name, 3, value))


def test_decimals_are_numbers(tmp_path: Path) -> None:
    prices = [Decimal("1.5") * i for i in range(60)]
    to_dsjson(DecisionLog.of({**table(), "x.price": prices}), tmp_path / "log.dsjson")
    back = from_dsjson(tmp_path / "log.dsjson").frame.collect()["x.price"]
    assert back.to_list() == [1.5 * i for i in range(60)]


def test_an_empty_log_is_read_and_has_no_rounds(tmp_path: Path) -> None:
    DecisionLog.of(pl.DataFrame(table()).head(0)).write(tmp_path / "log.parquet")
    log = DecisionLog.read(tmp_path / "log.parquet")
    assert (len(log), log.arm_names, list(log.rounds())) == (0, (), [])


def test_a_program_that_read_dsjson_ends_without_a_warning(tmp_path: Path) -> None:
    to_dsjson(DecisionLog.of(table()), tmp_path / "log.dsjson")
    code = "import sys; from postserve.data.log import from_dsjson; from_dsjson(sys.argv[1])"
    run = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code, str(tmp_path / "log.dsjson")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert run.stderr == ""
    assert [each.name for each in tmp_path.iterdir()] == ["log.dsjson"]


@pytest.mark.parametrize("other", [{"x.new": [1.0] * 60}, {"x.age": ["young"] * 60}])
def test_files_of_a_folder_that_differ_are_named(other: dict[str, Any], tmp_path: Path) -> None:
    pl.DataFrame(table()).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({**table(), **other}).write_parquet(tmp_path / "b.parquet")
    told = rf"b\.parquet differs from .*a\.parquet in column '{min(other)}', wanted equal columns"
    with pytest.raises(InvalidInput, match=told):
        DecisionLog.read(tmp_path)
