"""Finished cells, one Parquet file each: what an interrupted study does not run again."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from postserve.errors import InvalidInput
from postserve.files import locked, write_together


class KeptCells:
    """A folder of finished cells, by their fingerprints."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> pl.DataFrame | None:
        """The cell's frame, if it is kept; a file that cannot be read counts as none, and is replaced."""
        try:
            return pl.read_parquet(io.BytesIO((self._folder / f"{key}.parquet").read_bytes()))
        except (pl.exceptions.PolarsError, OSError):
            return None

    def keep(self, key: str, frame: pl.DataFrame) -> None:
        """Write a finished cell, whole or not at all."""
        write_together(self._folder, {f"{key}.parquet": parquet(frame)})


@contextmanager
def kept_cells(folder: Path) -> Iterator[KeptCells]:
    """The folder's cells; no second run may write there."""
    try:
        with locked(folder, wait=False):
            yield KeptCells(folder)
    except BlockingIOError as error:
        raise InvalidInput(f"{folder} is in use by another run, wanted a folder of its own") from error


def parquet(frame: pl.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file."""
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()
