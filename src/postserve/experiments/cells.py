"""Finished cells, each a Parquet file with its sha256: what a resumed study does not run again."""

import hashlib
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
        """The cell's frame, if it is kept and undamaged: polars may panic on damaged bytes."""
        try:
            content, digest = ((self._folder / name).read_bytes() for name in _names(key))
            return pl.read_parquet(io.BytesIO(content)) if digest == _digest(content) else None
        except (pl.exceptions.PolarsError, OSError):
            return None

    def keep(self, key: str, frame: pl.DataFrame) -> None:
        content = parquet(frame)
        write_together(self._folder, dict(zip(_names(key), (content, _digest(content)), strict=True)))


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


def _names(key: str) -> tuple[str, str]:
    return f"{key}.parquet", f"{key}.sha256"


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
