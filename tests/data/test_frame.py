"""Any table as logged rounds: every kind of table, and the first row that cannot be used."""

from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from postserve import InvalidInput, LoggedRounds, from_frame
from postserve.data import FollowsArm

TABLE: dict[str, list[Any]] = {
    "age": [31, 54, 40, 28, 61],
    "city": ["Ulm", "Bonn", "Bonn", "Kiel", "Ulm"],
    "member": [True, False, True, True, False],
    "visits": [2.0, 0.0, 1.0, 4.0, 0.0],
    "ad": ["b", "a", "b", "c", "a"],
    "spend": [1.5, 0.0, 2.5, 4.0, 0.5],
    "chance": [0.5, 0.25, 0.5, 0.25, 0.25],
}
COLUMNS: dict[str, Any] = {"x": ["age", "member"], "z": "visits", "arm": "ad", "reward": "spend"}


def load(table: Any = None, **changes: Any) -> LoggedRounds:
    return from_frame(TABLE if table is None else table, **{**COLUMNS, "propensity": "chance", **changes})


def changed(name: str, row: int, value: Any) -> dict[str, list[Any]]:
    column = list(TABLE[name])
    column[row] = value
    return {**TABLE, name: column}


def tables(folder: Path) -> dict[str, Any]:
    frame = pl.DataFrame(TABLE)
    for place in (folder, folder / "of [1]*"):  # names are no patterns
        place.mkdir(exist_ok=True)
        frame.write_csv(place / "t.csv")
        frame.write_parquet(place / "t.parquet")
    return {
        "mapping": TABLE,
        "arrays": {name: np.array(column) for name, column in TABLE.items()},
        "polars": frame,
        "lazy": frame.lazy(),
        "categorical": frame.with_columns(pl.col("ad").cast(pl.Categorical)),
        "pandas": pd.DataFrame(TABLE),
        "nullable": pd.DataFrame(TABLE).convert_dtypes(),
        "labels": pd.DataFrame(TABLE, index=["a", "b", "c", "d", "e"]).astype({"ad": "category"}),
        "csv": folder / "t.csv",
        "parquet": str(folder / "t.parquet"),
        "csv [1]*": folder / "of [1]*" / "t.csv",
        "parquet [1]*": folder / "of [1]*" / "t.parquet",
    }


def test_every_kind_of_table_gives_the_same_rounds(tmp_path: Path) -> None:
    for kind, table in tables(tmp_path).items():
        log = load(table)
        np.testing.assert_array_equal(log.x, [[31, 1], [54, 0], [40, 1], [28, 1], [61, 0]], err_msg=kind)
        np.testing.assert_array_equal(log.z[:, 0], TABLE["visits"])
        np.testing.assert_array_equal(log.arms, [1, 0, 1, 2, 0])
        np.testing.assert_array_equal(log.rewards, TABLE["spend"])
        np.testing.assert_array_equal(log.propensities, TABLE["chance"])
        assert (log.arm_names, log.x_names, log.z_names) == (("a", "b", "c"), ("age", "member"), ("visits",))
        assert (len(log), log.n_arms, log.dim_x, log.dim_z) == (5, 3, 2, 1)


def test_arms_have_the_order_that_is_asked_for() -> None:
    assert load(arms=["c", "a", "b"]).arms.tolist() == [2, 1, 2, 0, 1]
    numbers = {**TABLE, "ad": [10, 9, 10, 2, 9]}
    assert load(numbers).arm_names == ("2", "9", "10")
    assert load({**TABLE, "ad": [1, "a", 1, "b", "a"]}).n_arms == 3


def test_categories_are_spread_over_columns() -> None:
    log = load(x=["city", "age"], categories="city")
    assert log.x_names == ("city=Bonn", "city=Kiel", "city=Ulm", "age")
    np.testing.assert_array_equal(log.x[:, :3].sum(axis=1), 1.0)
    two = load(x="member", categories=["member"])
    assert two.x_names == ("member=True",)
    np.testing.assert_array_equal(two.x[:, 0], [1, 0, 1, 1, 0])


def test_one_number_is_an_even_share() -> None:
    np.testing.assert_allclose(load(propensity=0.33).propensities, 1 / 3)
    for wrong in (0.5, 0.0, 1.0, float("nan"), True):
        with pytest.raises(InvalidInput, match=r"propensity is .* with 3 arms, wanted 0\.333"):
            load(propensity=wrong)


def test_propensities_in_other_forms() -> None:
    by_arm = load(propensity={"a": 0.4, "b": 0.4, "c": 0.2})
    assert by_arm.propensities.tolist() == [0.4, 0.4, 0.4, 0.2, 0.4]
    assert load(propensity=TABLE["chance"]).propensities.tolist() == TABLE["chance"]
    for wrong, told in (
        (None, "propensity is a NoneType of shape"),
        ([0.5] * 4, r"propensity is a list of shape \(4,\), wanted .*one number per row \(5,\)"),
        ([0.5, 0.5, 0.0, 0.5, 0.5], "propensity has 0 at row 2, wanted a probability"),
        ({"a": 0.5, "b": 0.5}, "propensity has no arm 'c', wanted each of a, b, c"),
        ({"a": 0.5, "b": 0.3, "c": 0.1, "d": 0.1}, "propensity has an arm 'd'"),
        ({"a": 0.5, "b": 0.3, "c": 0.1}, r"sum to 0\.9, wanted 1"),
        ({"a": "x", "b": 0.3, "c": 0.1}, "wanted numbers by arm"),
    ):
        with pytest.raises(InvalidInput, match=told) as caught:
            load(propensity=wrong)
        assert len(str(caught.value)) < 300


def test_the_probability_of_one_arm_is_not_that_of_the_arm_served() -> None:
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.55, 0.9, size=4000)
    served = rng.random(4000) < chance
    table = {"x": rng.normal(size=4000), "a": served.astype(float), "r": rng.normal(size=4000), "p": chance}
    with pytest.raises(InvalidInput, match=r"too large for arm '0': its rows.* wanted about 1: the prob"):
        from_frame(table, x="x", arm="a", reward="r", propensity="p")
    right = np.where(served, chance, 1.0 - chance)
    log = from_frame({**table, "p": right}, x="x", arm="a", reward="r", propensity="p")
    assert log.arm_names == ("0", "1")  # as whole numbers are written, though they came as floats


def test_a_z_that_follows_the_arm_is_told() -> None:
    rng = np.random.default_rng(0)
    arms, z = rng.integers(2, size=600), rng.normal(size=600)
    table = {"x": rng.normal(size=600), "a": arms, "r": rng.normal(size=600), "z": z, "z2": z + arms}
    roles: dict[str, Any] = {"x": "x", "arm": "a", "reward": "r", "propensity": 0.5}
    from_frame(table, z="z", **roles)
    with pytest.warns(
        FollowsArm, match=r"z column 'z2' follows the arm: after '[01]' it differs by \d+ stand"
    ):
        from_frame(table, z=["z", "z2"], **roles)


def test_propensities_that_the_log_belies_are_refused() -> None:
    rng = np.random.default_rng(0)
    arms = rng.choice(["a", "b", "c"], size=4000, p=[0.4, 0.4, 0.2])
    right = np.where(arms == "c", 0.2, 0.4)
    table = {"x": rng.normal(size=4000), "a": arms, "r": rng.normal(size=4000), "p": right, "low": right / 2}
    roles: dict[str, Any] = {"x": "x", "arm": "a", "reward": "r"}
    assert len(from_frame(table, **roles, propensity="p")) == 4000
    with pytest.raises(InvalidInput, match=r"arm 'c' was served in \d+\.\d% of 4,000 rows, wanted a column"):
        from_frame(table, **roles, propensity=1 / 3)
    with pytest.raises(InvalidInput, match=r"'low' is too small for arm 'a': its rows.* are \d\.\d+ times"):
        from_frame(table, **roles, propensity="low")


def test_a_log_without_follow_ups_has_no_z() -> None:
    assert load(z=()).z.shape == (5, 0)


def test_decimals_are_numbers() -> None:
    assert load(changed("visits", 0, Decimal("2.0"))).z[0, 0] == 2.0


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_rewards_that_never_came(missing: Any) -> None:
    table = changed("spend", 3, missing)
    with pytest.raises(
        InvalidInput, match=r"reward has gaps: 'spend' in 1 row .first at row 3.*missing_reward"
    ):
        load(table)
    kept = load(table, missing_reward="keep")
    assert np.flatnonzero(np.isnan(kept.rewards)).tolist() == [3]
    table["ad"] = ["b", "a", "b", "a", "a"]
    dropped = load(table, missing_reward="drop")
    assert (len(dropped), dropped.x[:, 0].tolist()) == (4, [31, 54, 40, 61])


def test_what_is_wrong_in_a_row_that_is_dropped_does_not_matter() -> None:
    table = changed("spend", 1, None)
    table["age"] = [31, "unknown", 40, 28, 61]
    assert len(load(table, missing_reward="drop")) == 4


@pytest.mark.parametrize("name", ["age", "visits", "spend", "chance"])
@pytest.mark.parametrize(("value", "told"), [("n/a", "'n/a'"), (float("inf"), "inf")])
def test_what_is_no_number_is_named_with_its_row(name: str, value: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=rf"column '{name}' has {told} at row 2, wanted a"):
        load(changed(name, 2, value))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("age", r"x has gaps: 'age' in 1 row \(first at row 4\), .*missing_x='drop' or 'impute'"),
        ("member", r"x has gaps: 'member' in 1 row \(first at row 4\)"),
        ("visits", r"z has gaps: 'visits' in 1 row .*missing_z='drop', 'impute' or 'keep'"),
        ("ad", r"arm has gaps: 'ad' in 1 row .*missing_arm='drop'"),
        ("spend", r"reward has gaps: 'spend' in 1 row .*missing_reward='drop' or 'keep'"),
        ("chance", "column 'chance' has no value at row 4"),
    ],
)
@pytest.mark.parametrize("value", [None, float("nan"), pd.NA, ""])
def test_what_is_missing_is_named_with_its_row(name: str, told: str, value: Any) -> None:
    table = changed(name, 4, value)
    for frame in (table, pd.DataFrame(table), *([pl.DataFrame(table)] if value is None else [])):
        with pytest.raises(InvalidInput, match=told):
            load(frame)


def test_all_gaps_are_told_at_once() -> None:
    table = {**TABLE, "age": [None, 54, 40, None, 61], "member": [True, False, None, True, False]}
    told = r"'age' in 2 rows \(first at row 0\), 'member' in 1 row \(first at row 2\)"
    with pytest.raises(InvalidInput, match=told):
        load(table)


def test_rows_with_gaps_are_dropped_if_asked() -> None:
    table = {**TABLE, "age": [None, 54, 40, 28, 61], "ad": ["b", "a", "b", None, "a"]}
    table = {name: column * 3 for name, column in table.items()}
    log = load(table, missing_x="drop", missing_arm="drop", propensity=0.5)
    assert log.x[:, 0].tolist() == [54, 40, 61] * 3
    assert log.arm_names == ("a", "b")


def test_gaps_in_x_are_imputed_and_marked() -> None:
    table = {**TABLE, "age": [None, 54, 40, 28, 61], "city": ["Ulm", "Bonn", "Bonn", None, "Ulm"]}
    log = load(table, x=["age", "city", "member"], categories="city", missing_x="impute")
    assert log.x_names == ("age", "age missing", "city=Ulm", "city missing", "member")
    assert log.x[0].tolist() == [(54 + 40 + 28 + 61) / 4, 1.0, 1.0, 0.0, 1.0]
    assert log.x[3].tolist() == [28.0, 0.0, 0.5, 1.0, 1.0]


def test_a_z_with_gaps_is_kept_as_missing_and_not_marked() -> None:
    log = load({**TABLE, "visits": [2.0, None, 1.0, 4.0, 0.0]}, missing_z="keep")
    assert log.z_names == ("visits",)
    assert np.isnan(log.z[:, 0]).tolist() == [False, True, False, False, False]


def test_a_text_deep_in_a_file_is_found_there(tmp_path: Path) -> None:
    """The whole column is text then; the row without a number is reported, not the first one."""
    rng = np.random.default_rng(0)
    ages = [str(age) for age in rng.integers(20, 80, size=5000)]
    ages[4321] = "forty"
    table = {"age": ages, "ad": rng.integers(2, size=5000), "won": rng.random(5000)}
    pl.DataFrame(table).write_csv(tmp_path / "t.csv")
    for frame in (tmp_path / "t.csv", table):
        with pytest.raises(InvalidInput, match="x column 'age' has 'forty' at row 4321, wanted a number"):
            from_frame(frame, x="age", arm="ad", reward="won", propensity=0.5)


@pytest.mark.parametrize(("name", "value"), [("age", 40), ("visits", 0.0), ("spend", 1.0)])
def test_a_column_that_never_varies_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=rf"column '{name}' has {value}.* in every row, from row 0 on"):
        load({**TABLE, name: [value] * 5})


def test_a_category_that_never_varies_is_refused() -> None:
    with pytest.raises(InvalidInput, match="x column 'city' has Ulm in every row, from row 0 on"):
        load({**TABLE, "city": ["Ulm"] * 5}, x=["age", "city"], categories="city")


def test_unknown_arms_are_named_with_their_row() -> None:
    with pytest.raises(InvalidInput, match="arm column 'ad' has 'c' at row 3, wanted one of 'a', 'b'"):
        load(arms=["a", "b"])
    with pytest.raises(InvalidInput, match="arms has 'd', which arm column 'ad' never has"):
        load(arms=["a", "b", "c", "d"])
    with pytest.raises(InvalidInput, match="'a' in every row, from row 0 on, wanted 2 arms or more"):
        load({**TABLE, "ad": ["a"] * 5})
    with pytest.raises(InvalidInput, match="wanted each once"):
        load(arms=["a", "b", "c", "c"])


@pytest.mark.parametrize("value", [0.0, -0.1, 1.5])
def test_propensities_are_probabilities(value: float) -> None:
    with pytest.raises(
        InvalidInput, match=r"propensity column 'chance' has .* at row 1, wanted a probability"
    ):
        load(changed("chance", 1, value))


def test_a_column_has_one_place() -> None:
    with pytest.raises(InvalidInput, match="column 'spend' is in x and in reward"):
        load(x=["age", "spend"])
    with pytest.raises(InvalidInput, match="column 'visits' is in x and in z"):
        load(x=["age", "visits"])
    with pytest.raises(InvalidInput, match="categories has 'city', wanted columns of x or z"):
        load(categories="city")


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"no column 'spent' \(there is 'spend'\), wanted one"):
        load(reward="spent")
    twice = pd.DataFrame(TABLE).rename(columns={"city": "age"})
    with pytest.raises(InvalidInput, match="2 columns 'age', wanted one"):
        load(twice)
    with pytest.raises(InvalidInput, match="column 'visits' has 2 rows, wanted 5 as 'age' has"):
        load({**TABLE, "visits": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match="x names no column"):
        load(x=[])
    with pytest.raises(InvalidInput, match="reward is 3, wanted the name of a column"):
        load(reward=3)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="frame is a list, wanted a pandas or polars table"):
        load([1, 2])
    with pytest.raises(InvalidInput, match=r"there is no file .*none\.csv"):
        load(tmp_path / "none.csv")
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"ends in '\.xlsx', wanted \.csv or \.parquet"):
        load(tmp_path / "t.xlsx")
    pl.DataFrame(TABLE).write_parquet(tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match=r"cannot be read .*wanted a whole \.parquet file"):
        load(tmp_path / "t.parquet")
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"cannot be read .*wanted a whole \.csv file"):
        load(tmp_path / "empty.csv")
    (tmp_path / "head.csv").write_text(",".join(TABLE) + "\n")
    with pytest.raises(InvalidInput, match=r"0 rows without gaps, wanted at least 2"):
        load(tmp_path / "head.csv")


def test_polars_whole_numbers_stay_whole_beside_a_gap() -> None:
    large = 2**53
    ids = [large, large + 1, None, large + 2, large]
    rewards = [1.0, 2.0, None, 4.0, 5.0]
    frame = pl.DataFrame({**TABLE, "ad": ids, "spend": rewards})
    log = load(frame, missing_reward="drop")
    assert log.arm_names == (str(large), str(large + 1), str(large + 2))


def test_whole_numbers_of_128_bits_are_numbers() -> None:
    ages = pl.Series([31, 54, 2**70, 28, 61], dtype=pl.Int128)  # which polars cannot give to numpy
    assert load(pl.DataFrame({**TABLE, "age": ages})).x[2, 0] == 2.0**70
    arms = pl.Series([7, 2**70, 7, 2**71, 2**70], dtype=pl.Int128)
    assert load({**TABLE, "ad": arms}).arm_names == ("7", str(2**70), str(2**71))


def test_complex_numbers_are_refused_in_every_kind_of_table() -> None:
    for kind in (complex, np.complex64, np.complex128):
        table = {**TABLE, "age": [kind(age, 1) for age in TABLE["age"]]}
        tables = [table, pd.DataFrame(table), {**TABLE, "age": np.array(table["age"])}]
        for each in (*tables, pl.DataFrame({**table, "age": pl.Series(table["age"], dtype=pl.Object)})):
            with pytest.raises(
                InvalidInput, match=r"x column 'age' has .*31.*1j.* at row 0, wanted a number"
            ):
                load(each)
        with pytest.raises(InvalidInput, match=r"x column 'age' has .*40.*at row 2, wanted a number"):
            load(changed("age", 2, kind(40, 1)))


@pytest.mark.parametrize("value", [10**400, Decimal("sNaN"), Decimal("Infinity"), np.longdouble("1e400")])
def test_numbers_that_are_none_are_refused_not_raised(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"x column 'age' has|x has gaps: 'age' in 1 row"):
        load(changed("age", 2, value))
    with pytest.raises(InvalidInput, match=r"x column 'age' has|x has gaps: 'age' in 5 rows"):
        load({**TABLE, "age": np.full(5, value)})


def test_masked_columns_are_refused() -> None:
    hidden = np.ma.array(TABLE["spend"], mask=[False, False, False, False, True])
    with pytest.raises(InvalidInput, match="column 'spend' has masked entries"):
        load({**TABLE, "spend": hidden})


@pytest.mark.parametrize("column", [5, "abcde", None, {1, 2}, np.zeros((5, 1)), [[1], [2], [3], [4], [5]]])
def test_what_is_no_column_is_refused(column: Any) -> None:
    with pytest.raises(InvalidInput, match="column 'age' "):
        load({**TABLE, "age": column})


def test_arms_that_are_no_labels_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"arm column 'ad' has \['a'\] at row 1"):
        load(changed("ad", 1, ["a"]))
    pairs = np.array([(1, 2), (3, 4), (1, 2), (3, 4), (5, 6)], dtype="i4,i4")
    with pytest.raises(InvalidInput, match=r"arm column 'ad' has .* at row 0, wanted an arm"):
        load(pl.DataFrame({**TABLE, "ad": pairs}))
    for arms in ([], {"a", "b", "c"}, [["a"], ["b"]]):
        with pytest.raises(InvalidInput, match="wanted a list of the values that arm column 'ad' may have"):
            load(arms=arms)
    with pytest.raises(InvalidInput, match="with different names"):
        load({**TABLE, "ad": [1, "1", 1, "1", 1]})


def test_the_row_with_the_odd_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x,a,r\n1,0,1\n2,1,2\n" 3",0,3\n+4,1,4\n')
    with pytest.raises(InvalidInput, match="x column 'x' has ' 3' at row 2"):
        from_frame(tmp_path / "t.csv", x="x", arm="a", reward="r", propensity=0.5)
    with pytest.raises(InvalidInput, match="x column 'age' has '54' at row 1"):
        load({**TABLE, "age": [31, "54", "x", 28, 61]})


@pytest.mark.parametrize(("k", "told"), [(6, 0.17), (8, 0.12), (8, 0.13), (12, 0.08), (15, 0.07), (34, 0.03)])
def test_even_shares_of_two_digits_are_taken(k: int, told: float) -> None:
    table = {"x": range(2 * k), "a": [*range(k)] * 2, "r": range(2 * k)}
    log = from_frame(table, x="x", arm="a", reward="r", propensity=told)
    assert log.propensities[0] == pytest.approx(1 / k)


def test_a_damaged_parquet_is_refused_however_polars_takes_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pl.DataFrame(TABLE).write_parquet(tmp_path / "t.parquet")
    whole = bytearray((tmp_path / "t.parquet").read_bytes())
    for _ in range(40):
        damaged = whole.copy()
        for at in rng.integers(
            4, len(whole) // 2, size=3
        ):  # not the footer: wrong sizes there can end the process
            damaged[at] ^= 0xFF
        (tmp_path / "t.parquet").write_bytes(damaged)
        with suppress(InvalidInput):  # some damage only changes a number
            load(tmp_path / "t.parquet")


# Rounds made by hand.


def rounds(**changes: Any) -> LoggedRounds:
    parts: dict[str, Any] = {"x": [[0.0, 1.0], [2.0, 5.0]], "z": [[1.0], [3.0]], "arms": [0, 1]}
    return LoggedRounds(**{**parts, "rewards": [1.0, np.nan], "propensities": 0.5, **changes})


def test_rounds_of_arrays() -> None:
    log = rounds()
    assert (log.x_names, log.z_names, log.arm_names) == (("x0", "x1"), ("z0",), ("0", "1"))
    told = "LoggedRounds(2 rows, 2 columns of x, 1 of z, 2 arms (0, 1), 1 rewards missing)"
    assert repr(log) == told
    np.testing.assert_array_equal(log.take([1]).changed(arms=[0]).x, [[2.0, 5.0]])
    np.testing.assert_allclose(log.standardised().x, [[-1.0, -1.0], [1.0, 1.0]])
    assert rounds(z=[[1.0], [1.0]]).standardised().z.tolist() == [[0.0], [0.0]]
    lost = rounds(
        x=[[0.0], [2.0], [4.0]], z=[[1.0], [np.nan], [3.0]], arms=[0, 1, 0], rewards=[1.0, 2.0, 3.0]
    )
    np.testing.assert_allclose(lost.standardised().z, [[-1.0], [np.nan], [1.0]])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"x": [[1.0], [np.nan]]}, "x has nan"),
        ({"x": []}, "x has shape"),
        ({"z": [[1.0]]}, "z has shape"),
        ({"arms": [0, -1]}, "arms has -1 at row 1"),
        ({"arms": [0, 2], "arm_names": ["a", "b"]}, "arms has 2 at row 1, wanted 0 to 1"),
        ({"arms": [0, 0]}, "there is 1 arm"),
        ({"arms": [0.0, 1.0]}, "arms is"),
        ({"arms": [0]}, "arms has shape"),
        ({"rewards": [np.inf, 0.0]}, "rewards has inf"),
        ({"rewards": [0.0]}, "rewards has shape"),
        ({"rewards": ["a", "b"]}, "rewards"),
        ({"propensities": [0.5, 0.0]}, "propensities has 0.0 at row 1"),
        ({"weights": [-1.0, 1.0]}, "weights has -1.0 at row 0"),
        ({"x_names": ["a"]}, "x_names has 1 names, wanted 2"),
        ({"x_names": 5}, "x_names is 5, wanted a list of different names"),
        ({"arm_names": "ab"}, "arm_names is 'ab', wanted a list"),
        ({"arm_names": ["a", "a"]}, "wanted a list of different names"),
        ({"arms": [0, 10**12]}, "arms has 1000000000000 at row 1, wanted arm_names"),
        ({"propensities": 1e-300}, "propensities has 1e-300 at row 0"),
        ({"rewards": np.ma.array([1.0, 2.0], mask=[False, True])}, "rewards has masked entries"),
        ({"rewards": [[1.0], [1.0, 2.0]]}, "rewards is not an array"),
    ],
)
def test_rounds_that_do_not_fit_are_refused(changes: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        rounds(**changes)


def test_rounds_are_nobody_elses() -> None:
    x, chances = np.array([[0.0, 1.0], [2.0, 5.0]]), np.array([0.5, 0.5])
    log = rounds(x=x, propensities=chances)
    x[:], chances[:] = 9.0, -1.0
    assert log.x.tolist() == [[0.0, 1.0], [2.0, 5.0]]
    assert log.propensities.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        log.x[0, 0] = 3.0


@pytest.mark.parametrize("rows", [[], [999], [0.5], [True]])
def test_rows_that_are_not_there_are_refused(rows: Any) -> None:
    with pytest.raises(InvalidInput, match="wanted"):
        rounds().take(rows)


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no part 'reward', wanted one of x, z"):
        rounds().changed(reward=[1.0])


@pytest.mark.parametrize("value", [0.1, 123.456, 1e-200])
@pytest.mark.parametrize("n", [2, 7, 200])
def test_constant_columns_are_constant_however_they_round(value: float, n: int) -> None:
    arms = np.arange(n) % 2
    log = LoggedRounds(
        x=np.full((n, 1), value), z=np.empty((n, 0)), arms=arms, rewards=arms, propensities=0.5
    )
    assert not log.standardised().x.any()
    varied = log.changed(x=value * np.arange(1.0, n + 1.0)[:, None])
    np.testing.assert_allclose(varied.standardised().x.std(), 1.0)
