"""Downloading data sets from their publishers; only complete and correct files are kept."""

import errno
import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from pathlib import Path

from postserve.data.finding import (
    HERE_ALREADY,
    PathLike,
    as_path,
    check_size,
    checked,
    data_folder,
    extra,
    find,
    read_checked,
)
from postserve.data.rda import as_npz, ratings_of
from postserve.data.registry import MOST_BYTES, DataSet, data_set
from postserve.errors import InvalidInput
from postserve.files import locked, whole_file
from postserve.validation import errors_as_invalid_input

_TIMEOUT = 30.0
"""Seconds without a byte after which a download fails."""
_CHUNK = 2**16

Progress = Callable[[int, int], object]
"""Called with the number of bytes so far and in all (0 if the server does not say)."""


def fetch(
    name: str, *, folder: PathLike | None = None, address: str | None = None, progress: Progress | None = None
) -> Path:
    """Get a set from its publisher, and return its file.

    It goes into `folder`, by default `data_folder()`, where `find` looks for it. A correct file is not
    downloaded again; a wrong one in the set's own folder is replaced, and nothing else is touched. `address`
    is another place with the same bytes, such as a mirror. The terms of use are `data_set(name).terms`.

    >>> fetch("movielens-100k", address="ml-100k.zip")
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: address is 'ml-100k.zip', wanted one that begins with http:// or https://
    """
    known = data_set(name)
    address = str(known.address if address is None else address)
    if not address.startswith(("http://", "https://")):
        raise InvalidInput(f"address is {_shown(address)!r}, wanted one that begins with http:// or https://")
    root = data_folder() if folder is None else as_path("folder", folder)
    if root.is_file():
        raise InvalidInput(f"folder {root} is a file, wanted a folder")
    with suppress(InvalidInput):  # it is missing or wrong
        read_checked(name, root)
        return find(name, root)
    content = _kept(known, _shown(address), _download(known, address, progress))
    checked(known, content, f"{known.file}, made of {_shown(address)},")
    file = root / known.place  # nowhere else: other files of that name may be the user's
    try:
        with locked(file.parent, wait=True), whole_file(file) as writing:
            writing.write(content)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        wanted = "more room" if full else "a folder that can"
        got = f"{file} cannot be written ({error.strerror or error})"
        raise InvalidInput(f"{got}, wanted {wanted}; nothing was changed") from error
    return file


def _download(known: DataSet, address: str, progress: Progress | None) -> bytes:
    """The publisher's bytes, in memory."""
    body = bytearray()
    with closing(_chunks(known, address)) as chunks:
        for chunk, sent, total in chunks:
            body += chunk
            if len(body) > MOST_BYTES:  # after decompression: a short download may unpack to much
                raise InvalidInput(
                    f"{_shown(address)} goes on after {MOST_BYTES:,} bytes, wanted {known.name}, "
                    "which is shorter; nothing was changed"
                )
            if progress is not None:
                progress(sent, total)
    algorithm, digits = known.download.split(":")
    got = hashlib.new(algorithm, body, usedforsecurity=False).hexdigest()
    if got != digits:
        changed = f"{_shown(address)} gave other bytes than its publisher did ({got})"
        raise InvalidInput(f"{changed}, wanted {known.download}; nothing was changed")
    return bytes(body)


def _chunks(known: DataSet, address: str) -> Generator[tuple[bytes, int, int]]:
    """The body in pieces, each with the bytes sent so far and in all; only the server's errors are caught."""
    requests = extra("requests", HERE_ALREADY)
    try:
        # Passed apart from the address, user and password are in no error's text.
        user = requests.utils.get_auth_from_url(address)
        asked = requests.get(_shown(address), auth=user if any(user) else None, stream=True, timeout=_TIMEOUT)
        with asked as answer:
            answer.raise_for_status()
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else 0
            for chunk in answer.iter_content(_CHUNK):
                yield chunk, answer.raw.tell(), total  # as sent, maybe compressed
    except Exception as error:  # requests lets OSError and ValueError through
        status = getattr(getattr(error, "response", None), "status_code", None)
        got = f"answered {status}" if status is not None else f"could not be read ({_shown(_cause(error))})"
        raise InvalidInput(f"{_shown(address)} {got}, wanted {known.name}; nothing was changed") from error


def _kept(known: DataSet, address: str, download: bytes) -> bytes:
    """The content of the file that is kept from a download."""
    if known.form == "rda":
        return as_npz(ratings_of(download, known.inside))
    if known.form == "file":
        return download
    # zipfile and zlib raise many kinds of errors on damaged files
    with (
        errors_as_invalid_input(f"{address} is not a complete zip", f"one with {known.inside}"),
        zipfile.ZipFile(io.BytesIO(download)) as archive,
    ):
        names = archive.namelist()
        if known.inside not in names:
            among = ", ".join(names[:5]) or "nothing"
            raise InvalidInput(f"{address} has {among}, wanted {known.inside} in it")
        size = archive.getinfo(known.inside).file_size
        check_size(known, size, f"{known.inside} in {address}")
        with archive.open(known.inside) as member:
            return member.read(size)  # no more than that is unpacked


def _cause(error: BaseException) -> str:
    """The innermost reason, without what requests and urllib3 wrap around it."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    reason = getattr(error, "reason", None)
    return str(reason if reason is not None else error)


def _shown(address: str) -> str:
    """An address without user and password.

    >>> _shown("https://me:secret@example.org/ml-100k.zip")
    'https://example.org/ml-100k.zip'
    """
    return re.sub(r"(^|//)[^/?#\s]*@", r"\1", address)
