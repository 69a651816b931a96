"""Files that are written completely or not at all."""

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")
"""The name of a file that is being written, or was when its writer was killed; it has that of its target."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only once it is complete and on the disk.

    A file that it replaces gives it its permissions; a link is followed, and stays. What savers of this path
    left behind when they were killed is deleted.
    """
    path = Path(os.path.realpath(path))
    permissions = _permissions_of(path)
    _delete_leftovers(path.parent, (path.name,))
    with _locked_beside(path, permissions) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)  # while it is locked: unlocked it would be a leftover
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files; they get their names in order, once all are on the disk.

    What writers of these files left behind when they were killed is deleted.
    """
    _delete_leftovers(folder, contents)
    with ExitStack() as opened:
        temporaries: dict[str, Path] = {}
        try:
            for name, content in contents.items():
                file = opened.enter_context(_locked_beside(folder / name, None))
                temporaries[name] = Path(file.name)
                file.write(content)
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
    """Make a folder and lock it.

    Raises BlockingIOError if another process has the lock, unless `wait`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _permissions_of(path: Path) -> int | None:
    """The permissions of the file to replace; None if there is none."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "a folder is there, wanted a file or nothing", str(path))
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "a device or pipe is there, wanted a file or nothing", str(path))
    return stat.S_IMODE(mode)


@contextmanager
def _locked_beside(path: Path, permissions: int | None) -> Iterator[BinaryIO]:
    """A new file in the same folder, locked for as long as it is open, so that nobody takes it for left."""
    mode = 0o666 if permissions is None else permissions & 0o600  # never readable by more than it will be
    while True:
        with open(_beside(path), "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if sys.platform != "win32":
                with suppress(OSError):  # a file system without locks: nobody deletes leftovers there, either
                    fcntl.flock(file, fcntl.LOCK_EX)
                if permissions is not None:
                    with suppress(PermissionError):  # a file system without permissions
                        os.fchmod(file.fileno(), permissions)
            if os.path.exists(file.name):  # else it was taken for left before it was locked
                yield file
                return


def _delete_leftovers(folder: Path, names: Container[str]) -> None:
    """Delete the unfinished files of these targets that nobody has locked: their writers were killed."""
    if sys.platform == "win32":  # where files that are open cannot be deleted
        return
    for leftover in folder.glob(".*.part"):
        found = UNFINISHED.fullmatch(leftover.name)
        if found is None or found[1] not in names:
            continue
        with suppress(OSError), open(leftover, "rb", opener=_open_at_once) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where somebody is writing
            leftover.unlink()


def _open_at_once(name: str, flags: int) -> int:
    """Open without waiting for the other end of a pipe, and without following a link."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))


def _beside(path: Path) -> Path:
    """A unique name in the same folder, so that a rename completes the file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
