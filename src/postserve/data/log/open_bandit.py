"""The columns of the Open Bandit Dataset (Saito, Aihara, Matsutani and Narita 2021)."""

from typing import Any

from postserve.data.finding import PathLike, as_path, extra
from postserve.data.log.decisions import DecisionLog
from postserve.data.log.schema import X
from postserve.errors import InvalidInput
from postserve.files import whole_file

TIME, ARM, REWARD, PROPENSITY, POSITION = "timestamp", "item_id", "click", "propensity_score", "position"
X_PARTS = ("user_feature_", "user-item_affinity_")


def from_open_bandit(path: PathLike) -> DecisionLog:
    """The rounds of one of its files: clicks are rewards, the user's columns and the position are x.

    The affinities to all items are kept, too.
    """
    pl, place = extra("polars"), as_path("path", path)
    try:
        frame = pl.read_csv(place, infer_schema_length=None)
    except Exception as error:
        raise InvalidInput(f"{place} cannot be read ({error!s:.100}), wanted a CSV file") from error
    for name in (TIME, ARM, REWARD, PROPENSITY, POSITION):
        if name not in frame.columns:
            raise InvalidInput(f"{place} has no column {name!r}, wanted those of the Open Bandit Dataset")
    x = [name for name in frame.columns if name.startswith(X_PARTS)]
    rows = frame.with_row_index("row")
    columns: list[Any] = [
        pl.col("row").cast(pl.String).alias("decision_id"),
        pl.col(TIME).str.to_datetime(time_zone="UTC", time_unit="us").alias("time"),
        pl.col(ARM).cast(pl.String).alias("arm"),
        pl.col(PROPENSITY).alias("propensity"),
        pl.col(REWARD).cast(pl.Float64).alias("reward"),
        pl.col(POSITION).cast(pl.String).alias(X + POSITION),
    ]
    return DecisionLog.of(rows.select(*columns, *(pl.col(name).alias(X + name) for name in x)))


def to_open_bandit(log: DecisionLog, path: PathLike) -> None:
    """Write a log with these columns, whole or not at all; z has no place there."""
    pl = extra("polars")
    names = [pl.col(X + name).alias(name) for name in log.x_names if name != POSITION]
    position = pl.col(X + POSITION) if POSITION in log.x_names else pl.lit("1")
    columns = [
        pl.col("time").dt.to_string("iso").alias(TIME),
        pl.col("arm").alias(ARM),
        position.alias(POSITION),
        pl.col("reward").alias(REWARD),
        pl.col("propensity").alias(PROPENSITY),
    ]
    with whole_file(as_path("path", path)) as file:
        log.frame.select(*columns, *names).with_row_index("").sink_csv(file)
