"""Logged rounds, from a randomised trial or another policy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.types import BoolArray, FloatArray, IntArray
from postserve.validation import matrix, refuse_masked, vector, whole_numbers

MOST_UNNAMED = 10_000
"""Larger ids count as mistakes, unless there are names or as many rows."""
LEAST_PROPENSITY = 1e-9
"""A row must not count for more than a billion."""
SUMS_TO = 1e-6
"""How far propensities may be from what they should be."""
PER_ROW = ("x", "z", "arms", "rewards", "propensities", "weights", "eligible", "all_propensities")


class LoggedRounds:
    """n rounds as they were logged: x, the arm served with its probability, z and the reward.

    `x` is (n, dim_x), and `z` (n, dim_z) may have no column; `arms` are 0 to n_arms - 1, with names
    `arm_names`. `propensities` are the probabilities with which each row's arm was served, or one number for
    all rows. A missing reward is NaN, and so is every entry of a missing z. `weights` (by default 1) say how
    much each row counts in a value, for example to make up for missing rewards
    (`evaluation.missing_weights`). `eligible`, (n, n_arms), says which arms could be served, if not always
    all; `all_propensities`, (n, n_arms), has the probability of each arm, or NaN in rows in which only that
    of the served one is known. `x_encoder` and `z_encoder`, if there are any, made x and z of raw values.

    >>> contexts = {"x": [[0.0], [1.0]], "z": [[2.0], [4.0]]}
    >>> log = LoggedRounds(**contexts, arms=[1, 0], rewards=[1.0, 3.0], propensities=0.5)
    >>> len(log), log.n_arms, log.standardised().z.ravel().tolist()
    (2, 2, [-1.0, 1.0])
    """

    def __init__(
        self,
        *,
        x: npt.ArrayLike,
        z: npt.ArrayLike,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        propensities: npt.ArrayLike,
        weights: npt.ArrayLike = 1.0,
        eligible: npt.ArrayLike | None = None,
        all_propensities: npt.ArrayLike | None = None,
        arm_names: Sequence[str] = (),
        x_names: Sequence[str] = (),
        z_names: Sequence[str] = (),
        x_encoder: Any = None,
        z_encoder: Any = None,
    ) -> None:
        self.x_encoder, self.z_encoder = x_encoder, z_encoder
        self.x = _own(matrix("x", x, None, None))
        n = len(self.x)
        if not self.x.size:
            raise InvalidInput(f"x has shape {self.x.shape}, wanted at least one row and one column")
        self.z = _own(_with_lost_rows("z", z, n))
        self.dim_x, self.dim_z = self.x.shape[1], self.z.shape[1]
        self.arms = _own(whole_numbers("arms", arms))
        if self.arms.shape != (n,):
            raise InvalidInput(f"arms has shape {self.arms.shape}, wanted ({n},)")
        _refuse_rows("arms", self.arms, self.arms < 0, "0, 1 and so on")
        self.arm_names = _texts("arm_names", arm_names)
        if not self.arm_names:
            # A stray large id would make arms of all ids below it.
            _refuse_rows("arms", self.arms, self.arms > max(n, MOST_UNNAMED), "arm_names where ids are large")
            self.arm_names = tuple(map(str, range(int(self.arms.max()) + 1)))
        self.n_arms = len(self.arm_names)
        _refuse_rows("arms", self.arms, self.arms >= self.n_arms, f"0 to {self.n_arms - 1}")
        if self.n_arms < 2:
            raise InvalidInput(f"there is {self.n_arms} arm, wanted at least 2: there is nothing to choose")
        self.rewards = _own(_with_nan("rewards", rewards, n))
        self.propensities = _own(_one_or_many("propensities", propensities, n))
        impossible = (self.propensities < LEAST_PROPENSITY) | (self.propensities > 1.0)
        wanted = f"a probability from {LEAST_PROPENSITY:g} to 1"
        _refuse_rows("propensities", self.propensities, impossible, wanted)
        self.weights = _own(_one_or_many("weights", weights, n))
        _refuse_rows("weights", self.weights, self.weights < 0.0, "a weight of at least 0")
        self.eligible = None if eligible is None else _eligible(eligible, self.arms, self.n_arms)
        self.all_propensities: FloatArray | None = None
        if all_propensities is not None:
            self.all_propensities = _own(_with_lost_rows("all_propensities", all_propensities, n))
            self._check_all_propensities(self.all_propensities)
        self.x_names = _column_names("x", x_names, self.x)
        self.z_names = _column_names("z", z_names, self.z)

    def _check_all_propensities(self, chances: FloatArray) -> None:
        if chances.shape[1] != self.n_arms:
            raise InvalidInput(
                f"all_propensities has shape {chances.shape}, wanted ({len(self)}, {self.n_arms})"
            )
        none = (chances < 0.0).any(axis=1) | (abs(chances.sum(axis=1) - 1.0) > SUMS_TO)
        _refuse_rows("all_propensities", chances, none, "probabilities that sum to 1, or NaN in all of them")
        served = chances[np.arange(len(self)), self.arms]
        other = abs(served - self.propensities) > SUMS_TO
        _refuse_rows("all_propensities", served, other, "what propensities has for the arm that was served")
        if self.eligible is not None:
            outside: BoolArray = np.any((chances > SUMS_TO) & ~self.eligible, axis=1)
            _refuse_rows("all_propensities", chances, outside, "0 for arms that are not eligible")

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        arms = ", ".join(self.arm_names[:5]) + (", …" if self.n_arms > 5 else "")
        missing = int(np.isnan(self.rewards).sum())
        columns = f"{self.dim_x} columns of x, {self.dim_z} of z"
        arms = f"{self.n_arms} arms ({arms})"
        return f"LoggedRounds({len(self):,} rows, {columns}, {arms}, {missing:,} rewards missing)"

    def take(self, rows: npt.ArrayLike) -> "LoggedRounds":
        """Some of the rows, in the given order, by their numbers or a boolean mask."""
        at = np.asarray(rows)
        try:
            columns = {name: getattr(self, name) for name in PER_ROW}
            return self.changed(**{name: each[at] for name, each in columns.items() if each is not None})
        except IndexError as error:
            raise InvalidInput(f"rows is {rows!r:.60} ({error}), wanted rows of {len(self)}") from error

    def standardised(self) -> "LoggedRounds":
        """Each column of x and z with mean 0 and deviation 1 over these rows; constant ones are 0."""
        return self.changed(x=_standard(self.x), z=_standard(self.z), x_encoder=None, z_encoder=None)

    def changed(self, **parts: Any) -> "LoggedRounds":
        """The same with other parts, as the constructor takes them."""
        names = (*PER_ROW, "arm_names", "x_names", "z_names", "x_encoder", "z_encoder")
        for name in parts:
            if name not in names:
                raise InvalidInput(f"there is no part {name!r}, wanted one of {', '.join(names)}")
        return LoggedRounds(**{**{name: getattr(self, name) for name in names}, **parts})


def deviations(columns: FloatArray) -> FloatArray:
    """The deviation of each column, by which it may be divided: 1 for one that never varies.

    >>> deviations(np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]])).round(2)  # that of 0.1 is 1.4e-17
    array([1.  , 0.82])
    """
    scale = columns.std(axis=0)
    return np.where((np.ptp(columns, axis=0) > 0.0) & (scale > 0.0), scale, 1.0)


def _eligible(value: Any, arms: IntArray, n_arms: int) -> BoolArray | None:
    """Which arms could be served in each row; None if all could in all."""
    refuse_masked("eligible", value)
    found = np.asarray(value)
    wanted = (len(arms), n_arms)
    if found.shape != wanted or found.dtype != np.bool_:
        got = f"eligible has shape {found.shape} and dtype {found.dtype}"
        raise InvalidInput(f"{got}, wanted {wanted} truth values, one column per arm")
    lacking = ~found[np.arange(len(arms)), arms]
    _refuse_rows("eligible", found, lacking, "the arm that was served among them")
    return None if found.all() else _own(found)


def _own(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only copy, which neither the caller nor a replayed policy can change."""
    own = array.copy()
    own.flags.writeable = False
    return own


def _standard(columns: FloatArray) -> FloatArray:
    """Columns with mean 0 and deviation 1; 0 for one that never varies."""
    lost = np.isnan(columns).any(axis=1)
    seen = columns[~lost]
    scale = np.abs(seen).max(axis=0, initial=0.0)  # first to size 1, so that no square underflows
    seen = seen / np.where(scale > 0.0, scale, 1.0)
    varies: BoolArray = np.asarray(np.ptp(seen, axis=0) > 0.0)
    found = np.full(columns.shape, np.nan)
    found[~lost] = np.where(varies, (seen - seen.mean(axis=0)) / deviations(seen), 0.0)
    return found


def _column_names(kind: str, names: Sequence[str], columns: FloatArray) -> tuple[str, ...]:
    found = _texts(f"{kind}_names", names) or tuple(f"{kind}{i}" for i in range(columns.shape[1]))
    if len(found) != columns.shape[1]:
        raise InvalidInput(f"{kind}_names has {len(found)} names, wanted {columns.shape[1]}: one per column")
    return found


def _texts(name: str, names: Sequence[str]) -> tuple[str, ...]:
    listed = tuple(names) if isinstance(names, Sequence) and not isinstance(names, str) else (None,)
    if not all(isinstance(text, str) for text in listed) or len(set(listed)) < len(listed):
        raise InvalidInput(f"{name} is {names!r:.60}, wanted a list of different names")
    return tuple(map(str, listed))


def _with_nan(name: str, value: Any, n: int) -> FloatArray:
    """Finite numbers, or NaN for missing ones."""
    refuse_masked(name, value)
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} is not an array ({error}), wanted numbers") from error
    lost = np.isnan(given) if given.dtype.kind == "f" else np.zeros(given.shape, dtype=bool)
    found = vector(name, np.where(lost, 0.0, given) if lost.any() else given, n).copy()
    found[lost] = np.nan
    return found


def _with_lost_rows(name: str, value: Any, n: int) -> FloatArray:
    """Finite numbers, or NaN in the whole row."""
    refuse_masked(name, value)
    given = np.asarray(value)
    lost = np.isnan(given) if given.dtype.kind == "f" and given.ndim == 2 else np.zeros((1, 1), dtype=bool)
    if not lost.any():
        return matrix(name, value, n, None)
    partly = np.flatnonzero(lost.any(axis=1) & ~lost.all(axis=1))
    if len(partly):
        raise InvalidInput(
            f"{name} has NaN in a part of row {partly[0]}, wanted numbers, or NaN in all of it"
        )
    found = matrix(name, np.where(lost, 0.0, given), n, None).copy()
    found[lost] = np.nan
    return found


def _one_or_many(name: str, value: Any, n: int) -> FloatArray:
    return vector(name, np.full(n, value) if np.ndim(value) == 0 else value, n)


def _refuse_rows(name: str, values: npt.NDArray[Any], bad: npt.NDArray[np.bool_], wanted: str) -> None:
    """Raise for the first bad row."""
    rows = np.flatnonzero(bad)
    if len(rows):
        raise InvalidInput(f"{name} has {values[rows[0]]} at row {rows[0]}, wanted {wanted}")
