"""Named arrays in one .npz file with a digest, read without trusting a number in it.

Nothing is unpickled, evaluated or decompressed, and no array is allocated from a shape: each member is read
as it stands, and its shape must be that of the bytes that are there. So reading takes no more memory than
the file has bytes.
"""

import hashlib
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput, StateMismatch

Arrays = dict[str, npt.NDArray[Any]]

DIGEST = "digest"
"""The member that proves the others."""
MOST_BYTES = 2**33
"""The largest file that is read, unless the caller allows more."""

SUFFIX = ".npy"
END = struct.Struct("<4s4H2LH")
"""The last record of a zip file: signature, …, size and start of the directory, length of a comment."""
END_64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64 = struct.Struct("<4sLQL")
MAGIC = b"\x93NUMPY\x01\x00"
KINDS = "biufcSU"
"""The kinds of dtypes that are written and read: numbers, booleans and text."""
FIELDS = re.compile(
    rf"\{{'descr': '([<>|][{KINDS}]\d{{1,9}})', 'fortran_order': (True|False), "
    r"'shape': \(([\d, ]*)\), \} *\n",
    re.ASCII,
)


def write(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the arrays and their digest.

    >>> import io
    >>> file = io.BytesIO()
    >>> write(file, {"a": np.zeros(2)})
    >>> _ = file.seek(0)
    >>> sorted(np.load(file).files)
    ['a', 'digest']
    """
    if DIGEST in arrays:
        raise InvalidInput(
            f"an array is named {DIGEST!r}, wanted another name: the file's digest has this one"
        )
    for name, array in arrays.items():
        if array.dtype.kind not in KINDS:
            raise InvalidInput(f"array {name} has dtype {array.dtype}, wanted numbers, booleans or text")
    np.savez(file, **arrays, **{DIGEST: np.array(digest_of(arrays))}, allow_pickle=False)


def digest_of(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """A digest of all names, dtypes, shapes and values, in whatever order they come.

    >>> one, other = np.zeros(2), np.ones(2)
    >>> digest_of({"a": one, "b": other}) == digest_of({"b": other, "a": one})
    True
    >>> digest_of({"a": one}) == digest_of({"a": one.reshape(1, 2)})
    False
    """
    total = hashlib.blake2b(digest_size=32)
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        total.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        if array.size:
            total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def read(path: Path, most_bytes: int) -> tuple[Arrays, bool]:
    """The arrays, which cannot be written to, and whether a digest proves them.

    Raises `StateMismatch` for a file that `write` or `np.savez` did not write, or that was changed since.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            wanted = f"at most {most_bytes}, or load(path, most_bytes={size})"
            raise StateMismatch(f"{path} has {size} bytes, wanted {wanted}")
        try:
            arrays = {name: _array(content) for name, content in _members(file, size)}
            digest = str(arrays.pop(DIGEST)) if DIGEST in arrays else None
        except Exception as error:  # zipfile, struct, zlib and numpy each raise their own
            damage = f"{path} is damaged or no state file ({type(error).__name__}: {error!s:.100})"
            raise StateMismatch(f"{damage}, wanted one that save() wrote") from error
    if digest is not None and digest != digest_of(arrays):
        raise StateMismatch(f"{path} is damaged: its digest is another, wanted the bytes that save() wrote")
    return arrays, digest is not None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file; anything else is refused at once, where reading a pipe would wait for ever."""
    flags = getattr(os, "O_NONBLOCK", 0)
    if not path.is_file() and path.exists() and not path.is_dir():
        raise StateMismatch(f"{path} is no regular file, wanted one that save() wrote")
    with open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags)) as file:
        yield file


def _members(file: BinaryIO, size: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents, once the directory is known to describe no more than the file holds."""
    _check_end(file, size)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        if len(names) < len(members):
            raise ValueError("two members have one name")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
                raise ValueError(f"{member.filename} is compressed")
            if not member.filename.endswith(SUFFIX):
                raise ValueError(f"{member.filename} is no array")
        if sum(member.file_size for member in members) > size:
            raise ValueError("members are larger than the file")
        for member in members:
            yield member.filename.removesuffix(SUFFIX), archive.read(member)


def _check_end(file: BinaryIO, size: int) -> None:
    """Refuse a directory that fills the file: its entries would take many times their bytes in memory."""
    record = _read_at(file, size - END.size, END.size)
    signature, *_, length, _, comment = END.unpack(record)
    if signature != b"PK\x05\x06" or comment:
        raise ValueError("no end of a zip file")
    before = size - END.size - LOCATOR_64.size - END_64.size
    if before >= 0 and (record_64 := _read_at(file, before, END_64.size)).startswith(b"PK\x06\x06"):
        length = END_64.unpack(record_64)[-2]
    if length > size // 2:  # a member has more bytes than its entry: two headers and at least one number
        raise ValueError("a directory and no members")


def _read_at(file: BinaryIO, start: int, length: int) -> bytes:
    file.seek(start)  # raises where the file is shorter
    return file.read(length)


def _array(content: bytes) -> npt.NDArray[Any]:
    """The array that np.save wrote, as a view of these bytes."""
    text = len(MAGIC) + 2
    start = text + int.from_bytes(content[len(MAGIC) : text], "little")
    fields = FIELDS.fullmatch(content[text:start].decode("ascii"))
    if fields is None or not content.startswith(MAGIC):
        raise ValueError("a member is no array of numbers")
    dtype, in_columns = np.dtype(fields[1]), fields[2] == "True"
    shape = tuple(int(side) for side in fields[3].split(",") if side.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"shape {shape} of {dtype} is not that of the bytes that follow")
    array = np.frombuffer(content, dtype, offset=start) if 0 not in shape else np.empty(0, dtype)
    return array.reshape(shape[::-1]).T if in_columns else array.reshape(shape)
