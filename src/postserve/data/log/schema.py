"""The columns of a log of decisions, and what their values must be.

======================  ==========================================================================
`decision_id`           a text, of which no other round has the same
`time`                  when the arm was chosen, in UTC
`x.NAME`                what was known then, raw: numbers, texts or truth values
`arm`                   what was served
`eligible`              the arms that could be served; all arms of the log if it is empty or null
`propensity`            the probability with which `arm` was
`propensities`          those of all `eligible` arms in their order, if known
`z.NAME`, `z_time`      what followed, and when that came; null where it did not
`reward`, `reward_time`  the same for the reward
`model_version`         which version of the model decided, if known
======================  ==========================================================================
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from postserve.data.finding import extra
from postserve.data.rounds import SUMS_TO
from postserve.errors import InvalidInput

X, Z = "x.", "z."
REQUIRED = ("decision_id", "arm", "propensity", "reward")
MOMENTS = ("time", "z_time", "reward_time")
LEAST_PROPENSITY = 1e-9
"""A round must not count for more than a billion."""


def kinds() -> dict[str, Any]:
    """The type of each column that every log has."""
    pl = extra("polars")
    moment = pl.Datetime("us", "UTC")
    return {
        "decision_id": pl.String,
        "time": moment,
        "arm": pl.String,
        "eligible": pl.List(pl.String),
        "propensity": pl.Float64,
        "propensities": pl.List(pl.Float64),
        "z_time": moment,
        "reward": pl.Float64,
        "reward_time": moment,
        "model_version": pl.Int64,
    }


def in_schema(frame: Any) -> Any:
    """A lazy frame with exactly the columns of the schema; those that are optional become null."""
    pl, wanted = extra("polars"), kinds()
    there = frame.collect_schema()
    if lacking := [name for name in REQUIRED if name not in there]:
        raise InvalidInput(f"the log has no column {lacking[0]!r}, wanted {', '.join(REQUIRED)} and x.NAME")
    sides = [name for name in there if name.startswith((X, Z))]
    if not any(name.startswith(X) for name in sides):
        raise InvalidInput(f"the log has no column of x, wanted some named {X}NAME")
    if unknown := [name for name in there if name not in wanted and name not in sides]:
        listed = ", ".join([*wanted, "x.NAME", "z.NAME"])
        raise InvalidInput(f"the log has a column {unknown[0]!r}, wanted only {listed}")
    for name in sides:
        kind = there[name]
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.String, pl.Null) or kind == pl.Categorical):
            raise InvalidInput(f"column {name!r} has type {kind}, wanted numbers, texts or truth values")
    for name in ("propensity", "reward"):
        if not (there[name].is_numeric() or there[name] in (pl.Boolean, pl.Null)):
            hint = f"pl.col({name!r}).cast(pl.Float64, strict=False) makes null of what is none"
            raise InvalidInput(f"column {name!r} has type {there[name]}, wanted numbers: {hint}")
    for name in MOMENTS:
        kind = there.get(name, pl.Null)
        if not (kind.is_(pl.Null) or kind in (pl.Datetime, pl.Date)):
            raise InvalidInput(f"column {name!r} has type {kind}, wanted times or dates, in UTC")
    columns = [
        (pl.col(name) if name in there else pl.lit(None)).cast(kind).alias(name)
        for name, kind in wanted.items()
    ]
    numbers = [pl.col(name).cast(pl.Float64) if there[name].is_decimal() else name for name in sides]
    return frame.select(*columns, *numbers)


@contextmanager
def reading(what: str, wanted: str) -> Iterator[None]:
    """What polars raises inside becomes InvalidInput: files may be damaged, or gone since they were named."""
    try:
        yield
    except (InvalidInput, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # polars panics on damaged files, which is no Exception
        got = f"{what} cannot be read ({type(error).__name__}: {error!s:.200})"
        raise InvalidInput(f"{got}, wanted {wanted}") from error


def reading_rows() -> AbstractContextManager[None]:
    """`reading`, of the rows of a log."""
    return reading("the log", "the types of the schema, in whole files")


def collected(frame: Any, engine: str = "streaming") -> Any:
    """The rows of a lazy frame."""
    with reading_rows():
        return frame.collect(engine=engine)


def check(frame: Any) -> None:
    """Raise for the first row that breaks the schema; the log is read once, piece by piece."""
    pl = extra("polars")
    reward, propensity = pl.col("reward"), pl.col("propensity")
    chances, eligible = pl.col("propensities"), pl.col("eligible")
    served = eligible.list.contains(pl.col("arm"))
    rules = {
        "decision_id": (pl.col("decision_id").is_null() | (pl.col("decision_id") == ""), "a text"),
        "arm": (pl.col("arm").is_null() | (pl.col("arm") == ""), "an arm"),
        "propensity": (
            propensity.is_null() | ~propensity.is_between(LEAST_PROPENSITY, 1.0),
            f"a probability from {LEAST_PROPENSITY:g} to 1",
        ),
        "reward": (reward.is_not_null() & ~reward.is_finite(), "a finite number, or null"),
        "eligible": (
            (eligible.list.len() > 0)
            & (
                ~served
                | (eligible.list.n_unique() < eligible.list.len())
                | eligible.list.eval(pl.element().is_null() | (pl.element() == "")).list.any()
            ),
            "the arm that was served among them, each once and with a name",
        ),
        "propensities": (
            chances.is_not_null()
            & (
                (chances.list.len() != eligible.list.len().fill_null(0))
                | ((chances.list.sum() - 1.0).abs() > SUMS_TO)
                | chances.list.eval(pl.element().is_null() | (pl.element() < 0.0)).list.any()
            ),
            "one per eligible arm, none below 0, which sum to 1",
        ),
    }
    for name, kind in frame.collect_schema().items():
        if name.startswith((X, Z)) and kind.is_float():
            rules[name] = (pl.col(name).is_infinite() | pl.col(name).is_nan(), "a finite number, or null")
    numbered = frame.with_row_index("row")
    firsts = [pl.col("row").filter(bad).min().alias(name) for name, (bad, _) in rules.items()]
    # Polars converts only what is asked for: columns without a rule are counted, so that they are read too.
    others = [pl.col(name).count().alias(name) for name in kinds() if name not in rules]
    found = collected(numbered.select(*firsts, *others)).row(0, named=True)
    broken = {name: found[name] for name in rules if found[name] is not None}
    if broken:
        name = min(broken, key=lambda each: broken[each])
        value = collected(frame.select(name).slice(broken[name], 1)).item()
        shown = value.to_list() if hasattr(value, "to_list") else value
        raise InvalidInput(
            f"column {name!r} has {shown!r:.60} at row {broken[name]}, wanted {rules[name][1]}"
        )
    _refuse_other_propensity(numbered)
    _refuse_twice(frame)


def _refuse_other_propensity(numbered: Any) -> None:
    """Raise if `propensities` have another number for the arm that was served than `propensity`."""
    pl = extra("polars")
    listed = numbered.filter(pl.col("propensities").list.len() > 0).explode("eligible", "propensities")
    other = (pl.col("propensity") - pl.col("propensities")).abs() > SUMS_TO
    found = listed.filter((pl.col("eligible") == pl.col("arm")) & other)
    names = ["row", "arm", "propensity", "propensities"]
    for row, arm, one, among in collected(found.select(names).sort("row").head(1)).rows():
        wanted = f"the {among:g} that 'propensities' has for arm {arm!r:.60}"
        raise InvalidInput(f"column 'propensity' has {one:g} at row {row}, wanted {wanted}")


def _refuse_twice(frame: Any) -> None:
    """Raise if two rows have the same id; eight bytes are kept of each, however long it is."""
    pl = extra("polars")
    code = pl.col("decision_id").hash()
    codes = np.sort(collected(frame.select(code)).to_series().to_numpy())
    again = np.unique(codes[1:][codes[1:] == codes[:-1]])
    if not len(again):
        return
    numbered = frame.select("decision_id").with_row_index("row")
    alike = collected(numbered.filter(code.is_in(pl.Series(again).implode())))
    twice = alike.filter(pl.col("decision_id").is_duplicated()).sort("row")
    if not len(twice):  # different ids with one code
        return
    name = twice["decision_id"][0]
    first, second = twice.filter(pl.col("decision_id") == name)["row"][:2].to_list()
    more = len(twice) - twice["decision_id"].n_unique()
    raise InvalidInput(
        f"column 'decision_id' has {name!r:.60} at rows {first} and {second}, wanted each id once "
        f"({more:,} row{'' if more == 1 else 's'} too many)"
    )
