"""Files that are written completely or not at all."""

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only once it is complete and on the disk."""
    temporary = _beside(path)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files; they get their names in order, once all are on the disk."""
    temporaries = {name: _beside(folder / name) for name in contents}
    try:
        for name, temporary in temporaries.items():
            with temporary.open("xb") as file:
                file.write(contents[name])
                file.flush()
                os.fsync(file.fileno())
        for name, temporary in temporaries.items():
            os.replace(temporary, folder / name)
    except BaseException:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
        raise


@contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[None]:
    """Make a folder and lock it; leftovers of a killed writer are deleted.

    Raises BlockingIOError if another process has the lock, unless `wait`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
        yield


def _beside(path: Path) -> Path:
    """A unique name in the same folder, so that a rename completes the file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
