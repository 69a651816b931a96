"""Files that are there whole or not at all."""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
    """Write several files, none of which takes its name before all are on the disk."""
    temporaries = {name: _beside(folder / name) for name in contents}
    try:
        for name, temporary in temporaries.items():
            with whole_file(temporary) as file:
                file.write(contents[name])
        for name, temporary in temporaries.items():
            os.replace(temporary, folder / name)
    except BaseException:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
        raise


def _beside(path: Path) -> Path:
    """A name in the same folder that nobody else has, so that a rename is all that is left to do."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
