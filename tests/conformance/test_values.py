"""Encoders, logs and what evaluations find: saved and copied to the bit, and never changed from outside."""

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.untyped import untyped

import postserve
from postserve import (
    DecisionLog,
    Encoder,
    InvalidInput,
    LinUCB,
    LoggedRounds,
    PostserveError,
    RandomPolicy,
    compare,
    evaluate,
    load,
    replay,
)

TABLE: dict[str, list[Any]] = {
    "age": [31, 54, None, 40, 29],
    "plan": ["free", "full", "free", None, "trial"],
    "new": [True, False, True, True, False],
    "height": [1.8, 1.7, 1.6, 1.75, 1.69],
}
ROWS: list[dict[str, Any]] = [
    *({name: column[i] for name, column in TABLE.items()} for i in range(5)),
    {"age": 7.5, "plan": "never seen", "new": None, "height": 2.0, "unknown": "x"},
    {"plan": "full"},
]

ENCODERS: dict[str, Callable[[], Encoder]] = {
    "all": lambda: Encoder.fit(TABLE, list(TABLE), categories=["plan", "new"], gaps="impute"),
    "numbers": lambda: Encoder.fit(TABLE, ["height", "age"], gaps="impute"),
    "unmarked": lambda: ENCODERS["all"]().without_marks(),
    "strict": lambda: Encoder.fit(TABLE, ["new", "height"], categories=["new"]),
    "of a log": lambda: decisions().encoders()[0],
}


def decisions() -> DecisionLog:
    return DecisionLog.of(
        {
            "decision_id": list("abcde"),
            **{f"x.{name}": column for name, column in TABLE.items()},
            "z.minutes": [1.0, 2.0, None, 4.0, 5.0],
            "arm": ["mail", "call", "mail", "call", "call"],
            "eligible": [None, ["mail", "call"], ["mail"], None, ["call", "post"]],
            "propensity": [0.5, 0.25, 1.0, 0.5, 0.5],
            "propensities": [None, [0.75, 0.25], [1.0], None, None],
            "reward": [1.0, None, 0.0, 2.0, 0.5],
        }
    )


def rounds() -> LoggedRounds:
    return next(decisions().rounds())


def trial() -> LoggedRounds:
    rng = np.random.default_rng(0)
    arms, x = rng.integers(2, size=60), rng.normal(size=(60, 1))
    return LoggedRounds(x=x, z=x + 1.0, arms=arms, rewards=x[:, 0] * arms, propensities=0.5)


VALUES: dict[str, Callable[[], Any]] = {
    "Encoder": ENCODERS["all"],
    "DecisionLog": decisions,
    "LoggedRounds": rounds,
    "Evaluation": lambda: evaluate(RandomPolicy(2), trial()),
    "Comparison": lambda: compare([RandomPolicy(2)], trial()),
    "Replay": lambda: replay(LinUCB(2, 1), trial(), np.random.default_rng(0)),
}


def content(value: Any) -> Any:
    """Everything in a value, as text and bytes that can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, DecisionLog):
        return value.frame.collect().to_dicts()
    if isinstance(value, Encoder):
        return value.columns, value.names
    if isinstance(value, dict):
        return {name: content(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [content(each) for each in value]
    return content(vars(value)) if hasattr(value, "__dict__") else repr(value)


def encoded(encoder: Encoder) -> list[Any]:
    """What it makes of every row, an error included."""
    found: list[Any] = []
    for row in ROWS:
        try:
            found.append(content(encoder(row)))
        except InvalidInput as error:
            found.append(str(error))
    return found


def test_every_value_is_a_public_class() -> None:
    for name, make in VALUES.items():
        assert inspect.isclass(getattr(postserve, name))
        assert type(make()).__name__ == name


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    "twin_of", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_copies_are_equal_to_the_bit(name: str, twin_of: Callable[[Any], Any]) -> None:
    value = VALUES[name]()
    twin = twin_of(value)
    assert type(twin) is type(value)
    assert content(twin) == content(value)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_is_saved_and_loaded_to_the_bit(name: str, tmp_path: Path) -> None:
    encoder = ENCODERS[name]()
    encoder.save(tmp_path / "encoder.npz")
    again: Any = load(tmp_path / "encoder.npz")
    assert again.names == encoder.names
    assert again.columns == encoder.columns
    assert encoded(again) == encoded(encoder)
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "encoder.npz").read_bytes()


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_changes_neither_itself_nor_what_it_is_given(name: str) -> None:
    encoder = ENCODERS[name]()
    before, given = content(encoder), copy.deepcopy(ROWS)
    first = encoded(encoder)
    for row in ROWS[:2]:
        encoder(row)[:] = np.nan  # whose array is the caller's own
    for wrong in (
        {"height": "tall", "age": "old"},
        None,
        [1.0],
        np.ones(99),
        {"height": np.inf, "age": np.inf},
    ):
        with pytest.raises(InvalidInput):
            untyped(encoder)(wrong)
    with pytest.raises(InvalidInput):
        encoder.table({"nothing": [1]})
    assert encoded(encoder) == first
    assert content(encoder) == before
    assert given == ROWS


WRONG: list[Any] = [
    3,
    [3],
    [["age"]],
    [["age", "old", "filled"]],
    [["age", 1.0, "sometimes"]],
    [["age", float("nan"), "filled"]],
    [["plan", ["a"], [1.0, 0.5], "filled"]],
    [["plan", [1], [1.0], "filled"]],
    [["age", 1.0, "filled"], ["age", 1.0, "filled"]],
]


@pytest.mark.parametrize("columns", WRONG)
def test_columns_that_are_none_are_refused_and_not_loaded(columns: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"columns .*, wanted"):
        untyped(Encoder)(columns)
    encoder = ENCODERS["numbers"]()
    encoder.columns = columns  # as a file might have it
    encoder.save(tmp_path / "encoder.npz")
    with pytest.raises(PostserveError, match="wanted"):
        load(tmp_path / "encoder.npz")


def test_what_a_log_or_an_evaluation_holds_cannot_be_changed() -> None:
    arrays = [each for each in vars(rounds()).values() if isinstance(each, np.ndarray)]
    assert len(arrays) == 8
    arrays.append(VALUES["Evaluation"]().terms)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_rounds_own_their_arrays() -> None:
    given: dict[str, Any] = {
        "x": np.ones((2, 1)),
        "z": np.ones((2, 1)),
        "arms": np.array([0, 1]),
        "rewards": np.array([1.0, np.nan]),
        "propensities": np.array([1.0, 0.5]),
        "eligible": np.array([[True, False], [True, True]]),
        "all_propensities": np.array([[1.0, 0.0], [0.5, 0.5]]),
    }
    log = LoggedRounds(**given)
    before = content(log)
    for array in given.values():
        array[:] = 0
    assert content(log) == before
    assert content(log.take([0, 1])) == content(log.changed()) == before
