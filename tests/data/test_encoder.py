"""Raw rows as numbers: single rows and tables alike, to the bit, and saved with a policy."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postserve import Encoder, InvalidInput, PoLinUCB, RidgeMap, from_frame, load, replay

TABLE: dict[str, list[Any]] = {
    "age": [31, 54, None, 28, 61, 40],
    "city": ["Ulm", "Bonn", "Bonn", None, "Ulm", "Kiel"],
    "member": [True, False, True, True, False, True],
    "grade": [1.0, 2.0, 2.0, 3.0, 1.0, 2.0],
}
NAMES = list(TABLE)
CATEGORIES = ["city", "member", "grade"]


def encoder() -> Encoder:
    return Encoder.fit(TABLE, NAMES, categories=CATEGORIES, gaps="impute")


def test_names_and_numbers() -> None:
    names = ("age", "age missing", "city=Bonn", "city=Kiel", "city=Ulm", "city missing", "member=True")
    assert encoder().names == (*names, "grade=1", "grade=2", "grade=3")
    assert encoder()({"age": 3, "city": "Kiel", "member": False, "grade": 2}).tolist() == [
        *(3.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        *(0.0, 1.0, 0.0),
    ]


numbers_or_gaps = st.one_of(
    st.none(), st.just(float("nan")), st.floats(-1e9, 1e9), st.integers(-(2**40), 2**40), st.booleans()
)
levels = st.sampled_from(["Ulm", "Bonn", "Kiel", "never seen", "", None])
grades = st.sampled_from([1, 1.0, 2, 3.0, 7, np.int64(2), np.float64(3.0), None])


@given(st.lists(st.tuples(numbers_or_gaps, levels, st.booleans(), grades), min_size=1, max_size=8))
def test_a_row_is_encoded_as_its_table_is_to_the_bit(rows: list[tuple[Any, ...]]) -> None:
    """With gaps, categories never seen, and columns that are new."""
    encode = encoder()
    named = [{**dict(zip(NAMES, row, strict=True)), "new": 1.0} for row in rows]
    table = encode.table({name: [row[name] for row in named] for name in [*NAMES, "new"]})
    assert table.shape == (len(rows), len(encode.names))
    for row, encoded in zip(named, table, strict=True):
        assert encode(row).tobytes() == encoded.tobytes()


def test_every_kind_of_table_is_encoded_alike() -> None:
    encode, frame = encoder(), pd.DataFrame(TABLE)
    wanted = encode.table(TABLE)
    for table in (frame, frame.convert_dtypes(), pl.DataFrame(TABLE)):
        np.testing.assert_array_equal(encode.table(table), wanted)
        np.testing.assert_array_equal(
            Encoder.fit(table, NAMES, categories=CATEGORIES, gaps="impute").names, encode.names
        )


def test_what_was_never_seen_is_as_the_shares_say() -> None:
    assert encoder()({"age": 1, "city": "Rome", "member": True, "grade": 9})[2:].tolist() == [
        *(0.4, 0.2, 0.4, 0.0, 1.0),
        *(1 / 3, 1 / 2, 1 / 6),
    ]


def test_truth_values_may_come_as_1_and_0() -> None:
    encodes = Encoder.fit({"member": [True, False, None]}, ["member"], categories=["member"], gaps="impute")
    for yes, no in ((True, False), (1, 0), (1.0, 0.0), ("true", "false"), (np.True_, np.False_)):
        assert (encodes({"member": yes})[0], encodes({"member": no})[0]) == (1.0, 0.0)
        np.testing.assert_array_equal(encodes.table({"member": [yes, no]})[:, 0], [1.0, 0.0])
    assert encodes({"member": 2})[0] == encodes({"member": None})[0] == 0.5
    of_texts = Encoder.fit({"grade": ["1", "0"]}, ["grade"], categories=["grade"])
    assert of_texts({"grade": True})[0] == 1.0
    of_grades = Encoder.fit({"grade": ["1", "2"]}, ["grade"], categories=["grade"])
    assert of_grades({"grade": True})[0] == 0.5  # a value that was never seen


MIXED = [True, 0, False, 1, 1.0, "1", "True", Decimal("1.0"), Decimal(1), np.int64(1), np.True_, None, "a"]
VALUES = st.lists(st.sampled_from(MIXED), min_size=1)


@given(VALUES, VALUES)
@example([True, 1, "a"], [True, 1.0])
def test_equal_values_are_encoded_alike_in_tables_and_rows(fitted: list[Any], asked: list[Any]) -> None:
    """In Python True is 1, and Decimal cannot be compared with all of numpy's numbers."""
    encodes = Encoder.fit({"c": fitted}, ["c"], categories=["c"], gaps="impute")
    rows = [encodes({"c": value}) for value in asked]
    np.testing.assert_array_equal(encodes.table({"c": asked}), rows)


def test_gaps_are_refused_unless_imputed() -> None:
    with pytest.raises(
        InvalidInput, match=r"'age' in 1 row \(first at row 2\), 'city' in 1 row .*gaps='impute'"
    ):
        Encoder.fit(TABLE, NAMES, categories=CATEGORIES)
    strict = Encoder.fit({"age": [1.0, 2.0], "city": ["a", "b"]}, ["age", "city"], categories=["city"])
    for row in ({"city": "a"}, {"age": None, "city": "a"}, {"age": math.nan, "city": "a"}):
        with pytest.raises(InvalidInput, match="column 'age' has no value, wanted a number; or an encoder"):
            strict(row)
    with pytest.raises(InvalidInput, match="column 'city' has no value, wanted a category"):
        strict({"age": 1.0, "city": ""})
    with pytest.raises(InvalidInput, match=r"gaps: 'age' in 1 row \(first at row 0\), wanted none"):
        strict.table({"age": [None], "city": ["a"]})


@pytest.mark.parametrize(
    ("value", "told"),
    [("31", "'31', wanted a number"), (1j, "1j"), ([1], r"\[1\]"), (1e300, "1e\\+300"), (10**400, "finite")],
)
def test_what_is_no_number_is_told(value: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"column 'age' has .*{told}" if told == "finite" else told):
        encoder()({"age": value, "city": "Ulm", "member": True, "grade": 1})


def test_numbers_of_any_kind_are_numbers() -> None:
    for value in (3, 3.0, Decimal(3), np.float32(3), np.int8(3)):
        assert encoder()({"age": value})[0] == 3.0


def test_what_is_no_row_is_told() -> None:
    for wrong in ([1.0, 2.0], "Ulm", None, np.zeros(3)):
        with pytest.raises(InvalidInput, match=r"a row is .* wanted a mapping from age, city, member, grade"):
            encoder()(wrong)
    with pytest.raises(InvalidInput, match="a row has Age, town, wanted some of age, city, member, grade"):
        encoder()({"Age": 31, "town": "Ulm"})
    with pytest.raises(InvalidInput, match="categories has 'x', wanted some of age"):
        Encoder.fit(TABLE, ["age"], categories=["x"])
    with pytest.raises(InvalidInput, match="no column 'agee'"):
        Encoder.fit(TABLE, ["agee"])
    with pytest.raises(InvalidInput, match=r"column 'city' has \[1\] at row 1, wanted a category"):
        Encoder.fit({"city": ["a", [1]]}, ["city"], categories=["city"])


def test_a_row_that_is_encoded_stays_as_it_is() -> None:
    row = np.arange(10.0)
    assert encoder()(row) is row


def test_a_policy_takes_raw_rows_and_saves_how(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 300
    table = {
        "age": rng.integers(20, 70, n).tolist(),
        "plan": rng.choice(["free", "basic", "full"], n).tolist(),
        "minutes": rng.exponential(30.0, n).tolist(),
        "offer": rng.integers(2, size=n).tolist(),
        "paid": rng.normal(size=n).tolist(),
    }
    log = from_frame(
        table, x=["age", "plan"], z="minutes", categories="plan", arm="offer", reward="paid", propensity=0.5
    )
    policy = PoLinUCB(2, RidgeMap(log.dim_x, log.dim_z), x_features=log.x_encoder, z_features=log.z_encoder)
    twin = PoLinUCB(2, RidgeMap(log.dim_x, log.dim_z))
    assert repr(replay(policy, log, np.random.default_rng(1))) == repr(
        replay(twin, log, np.random.default_rng(1))
    )
    policy.update({"age": 33, "plan": "full"}, 1, {"minutes": 12.0}, reward=1.0)
    twin.update([33.0, 0.0, 0.0, 1.0][: log.dim_x], 1, [12.0], reward=1.0)
    policy.save(tmp_path / "policy.npz")
    loaded = load(tmp_path / "policy.npz")
    assert loaded.x_features.columns == log.x_encoder.columns
    for row in ({"age": 20, "plan": "free", "new": 3}, {"age": 50, "plan": "unheard of"}):
        x = log.x_encoder(row)
        one, other = (each._scores(x, np.arange(2)) for each in (loaded, twin))
        assert one.tobytes() == other.tobytes()
        assert loaded.select(row, rng).arm == twin.select(x, rng).arm


def test_a_row_in_parts_is_the_row_where_it_is_known() -> None:
    made = Encoder([["a", 0.0, "refused"], ["b", ["u", "v", "w"], [0.2, 0.3, 0.5], "refused"]])
    whole = made({"a": 1.0, "b": "v"})
    assert [made.is_part(row) for row in ({"a": 1.0}, {"b": "v"}, {"a": 1.0, "b": "v"}, {}, whole)] == [
        *(True, True, False, False, False)
    ]
    for row in ({"a": 1.0}, {"b": "v"}, {"a": None, "b": "v"}):
        part = made.part(row)
        known = ~np.isnan(part)
        assert known.any()
        assert not known.all()
        np.testing.assert_array_equal(part[known], whole[known])


def test_a_gap_that_is_filled_is_no_part() -> None:
    assert not encoder().is_part({"city": "Ulm", "member": True, "grade": 1.0})


def test_a_named_z_comes_in_parts() -> None:
    made = Encoder([["week", 0.0, "refused"], ["plan", ["free", "full"], [0.5, 0.5], "refused"]])
    by_name, plain = (PoLinUCB(2, RidgeMap(1, 2), z_features=each) for each in (made, None))
    inputs: list[tuple[PoLinUCB, list[Any]]] = [
        (by_name, [{"week": 3.0}, {"week": 3.0, "plan": "full"}]),
        (plain, [[3.0, np.nan], [3.0, 1.0]]),
    ]
    for policy, parts in inputs:
        policy.expect([1.0], 0)
        for part in parts:
            policy.observe([1.0], 0, part)
        policy.credit([1.0], 0, None, 2.0)
        policy.update([0.5], 1, parts[-1], 1.0)
    np.testing.assert_array_equal(by_name.context_map.predict([2.0]), plain.context_map.predict([2.0]))
    with pytest.raises(InvalidInput, match="no open round"):
        by_name.observe([1.0], 0, {"week": 3.0})
