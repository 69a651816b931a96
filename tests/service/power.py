"""A disk that can lose power: an SQLite VFS that knows which writes were synced.

Files are read and written as always, in a folder. Beside that, what would still be there after a power loss
is known: of each file what was synced, and of the folder the entries that were, as SQLite's own VFS for Unix
syncs them. An image of the disk can be taken at any moment, without the moment noticing.
"""

import itertools
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import apsw

SECTOR = 512
JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
"""Files whose first sync syncs the folder, too."""
Change: TypeAlias = tuple[int, bytes] | int
"""Bytes at a place, or a length to cut a file to."""
_numbers = itertools.count()


class Content:
    """A file: what is on the disk for certain, and changes that may get there."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[Change] = []

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.synced, change)
        self.pending.clear()

    def image(self, survives: Callable[[], bool]) -> bytes:
        """The file after a power loss: each sector of each pending change is there or not."""
        found = bytearray(self.synced)
        for change in self.pending:
            for part in _parts(change):
                if survives():
                    _apply(found, part)
        return bytes(found)


class Disk(apsw.VFS):
    """The VFS; `before` is called before each change of the disk, in the thread that makes it."""

    def __init__(self) -> None:
        self.vfs = f"power {next(_numbers)}"
        super().__init__(self.vfs, "")
        self.lock = threading.RLock()
        self.before: Callable[[], None] = lambda: None
        self.entries: dict[str, Content] = {}
        self.synced_entries: dict[str, Content] = {}

    def image(self, folder: Path, rng: random.Random, share: float) -> None:
        """Write what a power loss at this moment would leave, if this share of what was not synced is."""

        def survives() -> bool:
            return rng.random() < share

        with self.lock:
            for name in self.entries.keys() | self.synced_entries.keys():
                entries = self.entries if survives() else self.synced_entries
                if name in entries:
                    (folder / Path(name).name).write_bytes(entries[name].image(survives))

    def sync_entries(self) -> None:
        self.synced_entries = dict(self.entries)

    def xOpen(self, name: Any, flags: list[int]) -> "DiskFile":
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        with self.lock:
            if flags[0] & apsw.SQLITE_OPEN_CREATE:
                self.entries.setdefault(path, Content())
            return DiskFile(self, name, path, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.lock:
            self.before()
            super().xDelete(filename, False)
            self.entries.pop(filename, None)
            if syncdir:
                self.sync_entries()


class DiskFile(apsw.VFSFile):
    """An open file."""

    def __init__(self, disk: Disk, name: Any, path: str, flags: list[int]) -> None:
        self._disk, self._content = disk, disk.entries[path]
        self._syncs_folder = bool(flags[0] & JOURNALS and flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._disk.lock:
            self._disk.before()
            super().xWrite(data, offset)
            self._content.pending.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        with self._disk.lock:
            self._disk.before()
            super().xTruncate(newsize)
            self._content.pending.append(newsize)

    def xSync(self, flags: int) -> None:
        with self._disk.lock:
            self._disk.before()
            self._content.sync()
            if self._syncs_folder:
                self._disk.sync_entries()
                self._syncs_folder = False


def _apply(content: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del content[change:]
        return
    offset, data = change
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _parts(change: Change) -> list[Change]:
    """A change as the disk makes it, sector by sector."""
    if isinstance(change, int):
        return [change]
    offset, data = change
    first = -offset % SECTOR
    cuts = [0, *range(first, len(data), SECTOR), len(data)]
    return [(offset + start, data[start:end]) for start, end in itertools.pairwise(cuts) if start < end]
