"""What a result depends on, as a short text: a kept result is used again only where this is the same.

Names are not enough: if a policy changes and keeps its name, its old regret must not be shown. So the
fingerprint is taken of the objects themselves: the code of their classes, their settings and arrays, the
functions they hold and what those refer to, this library's sources, and the versions of numpy and others.
"""

import hashlib
import secrets
import sys
from collections.abc import Iterator
from functools import cache, partial
from importlib.metadata import version
from inspect import getattr_static
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import special

from postserve.state import Persistent

LIBRARY = Path(__file__).resolve().parents[1]
STUDIES = "experiments"
"""The room whose functions are hashed one by one, as a user's are, where a cell refers to them: a new figure
or a change of a drawing does not make the other figures run again."""

NO_BEHAVIOUR = {
    *("__module__", "__doc__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__"),
    *("__annotations__", "__slotnames__", "_abc_impl", "__parameters__", "__orig_bases__"),
}
"""Members of a class that say nothing of what it does."""
MADE_BY_PYTHON = 1 << 9
"""The flag of classes that are not C's own."""
COMPUTES_WITH = ("numpy", "scipy", "numba", "scikit-learn")

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def fingerprint(*values: Any) -> str:
    """Equal for values that are made and behave alike, in this and in any later process.

    What cannot be looked into (a lock, an open file, an endless nesting) is never equal to anything.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    digest = hashlib.sha256(_library().encode())
    try:
        _feed(digest, values, {})
    except RecursionError:
        digest.update(secrets.token_bytes())
    return digest.hexdigest()[:32]


@cache
def _library() -> str:
    digest = hashlib.sha256()
    for path in sorted(LIBRARY.rglob("*.py")):
        if path.relative_to(LIBRARY).parts[0] not in (STUDIES, "conformance", "cli.py", "terminal.py"):
            digest.update(path.relative_to(LIBRARY).as_posix().encode() + path.read_bytes())
    digest.update(" ".join(version(name) for name in COMPUTES_WITH).encode())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, met: dict[int, tuple[int, Any]]) -> None:
    """Hash a value by what it is made of; `met` keeps what was met: for cycles, and so ids stay taken."""
    if type(value) in _PLAIN:
        digest.update(f"{type(value).__name__} {value!r};".encode())
        return
    if id(value) in met:
        digest.update(f"again {met[id(value)][0]};".encode())
        return
    met[id(value)] = (len(met), value)
    digest.update(f"{type(value).__name__}(".encode())
    if type(value) is np.ndarray and value.dtype != object:
        digest.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    else:
        for part in _parts(value):
            _feed(digest, part, met)
    digest.update(b");")


def _parts(value: Any) -> tuple[Any, ...]:
    if type(value) in (list, tuple):
        return tuple(value)
    if type(value) is dict or isinstance(value, MappingProxyType):
        return tuple(part for item in value.items() for part in item)
    if type(value) in (set, frozenset):
        return tuple(sorted(value, key=repr))
    if isinstance(value, FunctionType):
        return _parts_of_function(value)
    if isinstance(value, CodeType):
        counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags
        code = value.co_code, value.co_exceptiontable, value.co_consts
        return counts, value.co_varnames, code, value.co_names
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return _parts_of_partial(value)
    if isinstance(value, ModuleType):
        return (value.__name__,)
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, type):
        return _parts_of_class(value)
    if isinstance(value, np.random.Generator):
        return type(value), value.bit_generator.state
    if isinstance(value, np.ufunc):  # others may share a name: numpy calls each of a user's "f (vectorized)"
        homes = [home.__name__ for home in (np, special) if getattr(home, value.__name__, None) is value]
        return (homes[0], value.__name__) if homes else (secrets.token_bytes(),)
    for inside in ("py_func", "__wrapped__"):  # compiled by Numba, or decorated
        if getattr_static(value, inside, None) is not None:
            return getattr(value, inside), getattr(value, "targetoptions", None)
    if isinstance(value, Persistent):
        return type(value), value._settings, value._arrays(), _attributes_of_a_users(value)
    return _parts_of_object(value)


def _attributes_of_a_users(item: Persistent) -> dict[str, Any]:
    """What a subclass of a user's keeps beside its settings; the library's own caches may still be empty."""
    mine = _is_a_users(type(item).__module__)
    return {
        name: part
        for name, part in vars(item).items()
        if isinstance(part, FunctionType | MethodType)
        or (
            mine
            and (isinstance(part, Persistent) or _is_a_users(type(part).__module__) or type(part) in _PLAIN)
        )
    }


def _parts_of_partial(value: partial[Any]) -> tuple[Any, ...]:
    """Nested or not: Python merges a partial of a partial, but not of one whose attributes were read."""
    function, arguments, keywords = value.func, value.args, value.keywords
    while isinstance(function, partial):
        arguments, keywords = (*function.args, *arguments), {**function.keywords, **keywords}
        function = function.func
    return type(value), function, arguments, keywords


def _parts_of_object(value: Any) -> tuple[Any, ...]:
    """What pickle would write of it: how it is made anew, its state, and what it contains."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # whatever the object raises: it cannot be known again
        return (secrets.token_bytes(),)
    if isinstance(reduced, str):
        return type(value), getattr(value, "__module__", None), reduced
    make, arguments, *more = reduced
    state, items, pairs = (*more, None, None, None)[:3]
    return make, arguments, state, tuple(items or ()), tuple(pairs or ())


def _parts_of_function(function: FunctionType) -> tuple[Any, ...]:
    name = f"{function.__module__}.{function.__qualname__}"
    if not _is_a_users(function.__module__):
        return name, _contents(function)
    defaults = function.__defaults__, function.__kwdefaults__
    return name, function.__code__, *defaults, _contents(function), _used(function), vars(function)


def _used(function: FunctionType) -> dict[str, Any]:
    """The globals of a user's function, and the members of a user's modules, that it names."""
    names = sorted(set(_names(function.__code__)))
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    left = list(found.items())
    while left:
        alias, module = left.pop()
        if isinstance(module, ModuleType) and _is_a_users(module.__name__) and alias.count(".") < 5:
            members = {f"{alias}.{name}": vars(module)[name] for name in names if name in vars(module)}
            left += members.items()
            found |= members
    return found


def _contents(function: FunctionType) -> tuple[Any, ...]:
    """What a function closes over; a name that is not bound yet is nothing."""
    return tuple(cell.cell_contents for cell in function.__closure__ or () if _is_bound(cell))


def _is_bound(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _names(code: CodeType) -> Iterator[str]:
    """The global names, and attributes, that a function and those within it speak of."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _parts_of_class(cls: type) -> tuple[Any, ...]:
    name = f"{cls.__module__}.{cls.__qualname__}"
    if not _is_a_users(cls.__module__) or not cls.__flags__ & MADE_BY_PYTHON:
        return (name,)
    members = {key: part for key, part in vars(cls).items() if key not in NO_BEHAVIOUR}
    return name, type(cls), cls.__bases__, members


def _is_a_users(module: str | None) -> bool:
    """Whether code may change without this library, Python or an installed package changing."""
    if not isinstance(module or "", str):  # as of functions of Cython's
        return False
    top, _, below = (module or "").partition(".")
    if top == __name__.partition(".")[0]:
        return below.partition(".")[0] == STUDIES
    if top in sys.stdlib_module_names - {"__main__", "builtins"}:  # what exec defines may be in the latter
        return False
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return "site-packages" not in Path(file).parts
