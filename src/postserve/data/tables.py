"""Published tables, held to the rows and types that they are known to have."""

import io
from collections.abc import Mapping
from typing import Any

from postserve.data.finding import PathLike, extra, read_checked
from postserve.errors import InvalidInput


def checked_table(
    name: str, path: PathLike | None, rows: int, types: Mapping[str, str], *, separator: str = ","
) -> Any:
    """A set's CSV file as a polars table with these columns, types and rows, or a word on what differs."""
    content = io.BytesIO(read_checked(name, path))
    pl = extra("polars")
    try:
        table = pl.read_csv(content, separator=separator, infer_schema_length=None, null_values=["NA"])
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(
            f"{name} cannot be read ({error}), wanted a table of {len(types)} columns"
        ) from error
    for column, wanted in types.items():
        if column not in table.columns:
            raise InvalidInput(f"{name} has no column {column!r}, wanted {', '.join(types)}")
        if str(table[column].dtype) != wanted:
            raise InvalidInput(f"{name} has {table[column].dtype} in column {column!r}, wanted {wanted}")
    if len(table) != rows:
        raise InvalidInput(f"{name} has {len(table):,} rows, wanted {rows:,}")
    return table
