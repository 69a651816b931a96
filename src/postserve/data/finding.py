"""Where a data set is on this machine, and whether it is as published."""

import hashlib
import io
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from postserve.data.registry import DataSet, data_set
from postserve.errors import InvalidInput
from postserve.validation import errors_as_invalid_input

PathLike = str | os.PathLike[str]

MATRIX = "ratings"
"""The name of a kept matrix in its .npz."""
HERE_ALREADY = ", or the folder of data that are here already, as an argument or in $POSTSERVE_DATA"


def find(name: str, path: PathLike | None = None) -> Path:
    """The file of a set: in a folder of sets, in the set's own folder, or `path` itself.

    The default path is `data_folder()`, where `postserve data fetch` puts it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "ml-100k").mkdir()
    ...     _ = (Path(folder) / "ml-100k" / "u.data").write_text("")
    ...     find("movielens-100k", folder).name, find("movielens-100k", f"{folder}/ml-100k").name
    ('u.data', 'u.data')
    """
    known = data_set(name)
    place = data_folder() if path is None else as_path("path", path)
    # What `fetch` writes comes before a file of that name in the folder itself.
    for file in (place, place / known.place, place / known.file):
        if os.path.isfile(file):  # False for a folder that cannot be read, where Path raises
            return file
    command = _command(known, path)
    raise InvalidInput(f"{name} is not at {place}, wanted a folder with {known.place}; {command} gets it")


def read_checked(name: str, path: PathLike | None = None) -> bytes:
    """The bytes of a set's file, or of the matrix in it, checked to be as published.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "u.data"
    ...     _ = file.write_text("196")
    ...     try:
    ...         read_checked("movielens-100k", file)
    ...     except InvalidInput as error:
    ...         print(str(error).replace(folder, ""))
    /u.data is cut short: it has 3 bytes, wanted 1,979,173; `postserve data fetch movielens-100k` refetches it
    """
    known, file = data_set(name), find(name, path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror}), wanted a file that can") from error
    try:
        return checked(known, content, str(file))
    except InvalidInput as error:
        raise InvalidInput(f"{error}; {_command(known, path)} refetches it") from error


def checked(known: DataSet, content: bytes, title: str) -> bytes:
    """What `read_checked` returns for a file with this content; `title` is for messages."""
    if known.form == "rda":
        content, title = _matrix(known, content, title), f"the matrix in {title}"
    check_size(known, len(content), title)
    if known.sha256 is not None:
        digits = hashlib.sha256(content).hexdigest()
        if digits != known.sha256:
            raise InvalidInput(f"{title} was changed: its sha256 is {digits}, wanted {known.sha256}")
    return content


def check_size(known: DataSet, size: int, title: str) -> None:
    """Refuse another number of bytes than the set has."""
    if size != known.size:
        how = "is cut short" if size < known.size else "is too long"
        raise InvalidInput(f"{title} {how}: it has {size:,} bytes, wanted {known.size:,}")


def data_folder() -> Path:
    """Where sets are kept: $POSTSERVE_DATA, or $POSTSERVE_CACHE, or the system's cache folder.

    >>> data_folder().is_absolute()
    True
    """
    for name in ("POSTSERVE_DATA", "POSTSERVE_CACHE"):
        if chosen := os.environ.get(name):
            folder = as_path(f"${name}", chosen).absolute()
            if os.path.isfile(folder):  # which would be found as every set
                raise InvalidInput(f"${name} is {folder}, a file, wanted the folder that sets are kept in")
            return folder
    return Path(extra("pooch", HERE_ALREADY).os_cache("postserve"))


def extra(library: str, more: str = "") -> Any:
    """A library of the extra for data; `more` is appended to the message if it is missing."""
    try:
        return import_module(library)
    except ModuleNotFoundError as missing:
        wanted = f"pip install 'postserve[data]'{more}"
        raise InvalidInput(f"{missing.name} is not installed, wanted: {wanted}") from missing


def as_path(name: str, path: PathLike) -> Path:
    """A user's path, in which ~ is home."""
    try:
        return Path(path).expanduser()
    except (TypeError, RuntimeError) as error:  # not a path, or ~ of an unknown user
        raise InvalidInput(f"{name} is {path!r:.60} ({error}), wanted a path") from error


def _command(known: DataSet, path: PathLike | None) -> str:
    into = f" --folder {path}" if path is not None and not os.path.isfile(path) else ""
    return f"`postserve data fetch {known.name}{into}`"


def _matrix(known: DataSet, content: bytes, title: str) -> bytes:
    # numpy, zipfile and zlib raise many kinds of errors on damaged files
    with errors_as_invalid_input(f"{title} is not a complete .npz", f"one with {MATRIX!r}"):
        matrix = np.load(io.BytesIO(content), allow_pickle=False)[MATRIX]
    if matrix.dtype != np.float32:
        raise InvalidInput(f"{title} has {MATRIX} of dtype {matrix.dtype}, wanted float32")
    content = bytes(matrix.astype("<f4", copy=False).tobytes())
    if len(content) == known.size and matrix.shape != known.shape:
        raise InvalidInput(f"{title} has {MATRIX} of shape {matrix.shape}, wanted {known.shape}")
    return content
