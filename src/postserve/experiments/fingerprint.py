"""What a result depends on, as a short text: a kept result is used again only where this is the same.

Names are not enough: someone who changes a policy and keeps its name must not be shown the old
one's regret. So the fingerprint is taken of the objects themselves: their classes' code, their
settings and arrays, the functions they hold, and this library's sources.
"""

import hashlib
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from postserve.state import Persistent

LIBRARY = Path(__file__).resolve().parents[1]
SHOWN_ONLY = ("cli.py", "claims.py", "drawing.py", "expected.py", "report.py", "style.py", "tables.py")
"""Files that tell of results and cannot change them."""

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def fingerprint(*values: Any) -> str:
    """Equal for values that are made and behave alike, in this and in any later process.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    digest = hashlib.sha256(_library().encode())
    _feed(digest, values, {})
    return digest.hexdigest()[:32]


@cache
def _library() -> str:
    digest = hashlib.sha256()
    for path in sorted(LIBRARY.rglob("*.py")):
        if path.name not in SHOWN_ONLY:
            digest.update(path.relative_to(LIBRARY).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, met: dict[int, tuple[int, Any]]) -> None:
    """Hash a value by what it is made of; `met` keeps what was met: for cycles, and so ids stay taken."""
    if isinstance(value, _PLAIN):
        digest.update(f"{type(value).__name__} {value!r};".encode())
        return
    if id(value) in met:
        digest.update(f"again {met[id(value)][0]};".encode())
        return
    met[id(value)] = (len(met), value)
    digest.update(f"{type(value).__name__}(".encode())
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        digest.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    else:
        for part in _parts(value):
            _feed(digest, part, met)
    digest.update(b");")


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        return tuple(part for item in value.items() for part in item)
    if isinstance(value, set | frozenset):
        return tuple(sorted(value, key=repr))
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        return tuple(value)
    if isinstance(value, FunctionType):
        closure = tuple(cell.cell_contents for cell in value.__closure__ or ())
        return value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, closure
    if isinstance(value, CodeType):
        return value.co_code, value.co_consts, value.co_names
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, type):
        return _parts_of_class(value)
    if hasattr(value, "py_func"):  # compiled by Numba
        return (value.py_func,)
    if isinstance(value, Persistent):  # its other attributes are caches, some of them still empty
        return type(value), value._settings, value._arrays()
    state = value.__getstate__() if hasattr(value, "__getstate__") else None
    return type(value), getattr(value, "__qualname__", None), state


def _parts_of_class(cls: type) -> tuple[Any, ...]:
    name = f"{cls.__module__}.{cls.__qualname__}"
    if cls.__module__.partition(".")[0] in ("builtins", "numpy", __name__.partition(".")[0]):
        return (name,)  # the library's own code is hashed as a whole
    behaviour = (FunctionType, property, staticmethod, classmethod, *_PLAIN)
    members = {key: part for key, part in vars(cls).items() if isinstance(part, behaviour)}
    ignored = ("__module__", "__doc__", "__firstlineno__", "__static_attributes__")
    return name, cls.__bases__, {key: part for key, part in members.items() if key not in ignored}
