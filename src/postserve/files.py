"""Files that are there whole or not at all."""

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
    """Open a file for writing that takes its name only once it is complete and on the disk."""
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
    """Write several files, none of which takes its name before all are on the disk; the last one last."""
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
    """Keep others out of a folder, which is made; what a killed writer left half-done in it goes.

    Raises BlockingIOError where another process is in, unless it is waited for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
        yield


def _beside(path: Path) -> Path:
    """A name in the same folder that nobody else has, so that a rename is all that is left to do."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
