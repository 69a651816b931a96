"""Finished cells, one Parquet file each: what an interrupted study does not run again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from postserve.errors import InvalidInput
from postserve.files import whole_file

if sys.platform != "win32":
    import fcntl


class KeptCells:
    """A folder of finished cells, by their fingerprints."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> pl.DataFrame | None:
        """The cell's frame, if it is kept; a file that cannot be read counts as none, and is replaced."""
        path = self._folder / f"{key}.parquet"
        try:
            return pl.read_parquet(path) if path.exists() else None
        except (pl.exceptions.PolarsError, OSError):
            return None

    def keep(self, key: str, frame: pl.DataFrame) -> None:
        """Write a finished cell, whole or not at all."""
        with whole_file(self._folder / f"{key}.parquet") as file:
            frame.write_parquet(file)


@contextmanager
def kept_cells(folder: Path) -> Iterator[KeptCells]:
    """The folder's cells; no second run may write there, and what a killed one left half-done goes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        if sys.platform != "win32":
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InvalidInput(
                    f"{folder} is in use by another run, wanted a folder of its own"
                ) from error
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
        yield KeptCells(folder)
