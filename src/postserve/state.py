"""State as named arrays and a JSON header with a version: no pickle, nothing executed on loading.

A saved object is its constructor's arguments and its arrays. Arguments that are themselves
persistent nest under a dotted name (``context_map.gram``), those in a list under their place in it
(``maps.0.gram``); objects that arrays cannot carry (a callable, a scikit-learn estimator) are named in
the header and handed back on loading. `archive.py` has the file itself.
"""

import copy
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, Unpack, get_args, get_origin

import numpy as np
import numpy.typing as npt

from postserve import archive
from postserve.archive import Arrays as Arrays
from postserve.changes import GUARD, Guarded, one_version
from postserve.errors import InvalidInput, StateMismatch
from postserve.files import whole_file
from postserve.validation import fits

P = TypeVar("P", bound="Persistent")

FORMAT = "postserve"
VERSION = 3
HEADER = "header"
WHOLE = "whole"
"""Where a copy in progress says what it is of; its parts are of the same version."""
UNPROVEN_SIZE = 2**16
"""Sizes up to this may be set without an array of that size, as those of an untaught policy are."""


class Persistent(Guarded):
    """Base of everything that can be saved; subclasses are registered by their names."""

    _classes: ClassVar[dict[str, type["Persistent"]]] = {}
    _settings_from: ClassVar[tuple[str, ...]] = ()
    """Attributes that hold some of the constructor's arguments for it."""
    _option_defaults: ClassVar[Mapping[str, Any]] = {}
    """Names and defaults of the options that the constructor takes as **options."""
    _copied_by_reference: ClassVar[tuple[str, ...]] = ()
    """Arguments that are never written: copies refer to the same objects, so they can be compared."""
    _sides: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Arrays whose sides are arguments: on loading they are compared before the constructor allocates any."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not abstract:
            Persistent._classes[_class_name(cls)] = cls

    @property
    def _settings(self) -> dict[str, Any]:
        """The constructor's arguments by name, from the attributes with these names."""
        parts, found = [getattr(self, part) for part in self._settings_from], {}
        for name in constructor_arguments(type(self)):
            theirs = [part for part in parts if name in constructor_arguments(type(part))]
            holder = self if name in vars(self) or not theirs else theirs[0]
            if hasattr(holder, name):
                found[name] = _plain(getattr(holder, name))
        return found

    def _arrays(self) -> Arrays:
        """Everything learnt, as named arrays."""
        return {}

    def _restore(self, arrays: "Stored") -> None:
        """Take back what `_arrays` gave."""

    def __repr__(self) -> str:
        defaults = constructor_arguments(type(self))
        given = {n: v for n, v in self._settings.items() if not (_is_plain(v) and v == _plain(defaults[n]))}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one .npz file, whole or not at all."""
        content = content_of(self)  # the object is read here, and not while the file is written
        with whole_file(Path(path)) as file:
            archive.write(file, content)

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Persistent":
        if WHOLE in memo:  # a part of what is copied
            return _copy(self, memo)
        found = _copies(self, memo)
        memo.update(found)
        twin: Persistent = found[id(self)]
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """What pickle writes: one version, whoever teaches it meanwhile."""
        return vars(out_of_sight(self))

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))  # without `__getstate__`, whose parts are copies
        vars(twin).update(vars(self))
        return twin


def constructor_arguments(cls: Any) -> Mapping[str, Any]:
    """The names and defaults of a constructor's arguments.

    ``**options`` stands for the options it is typed with (``Unpack[…]``), and otherwise for the arguments of
    the next constructor.
    """
    return _constructor_arguments(cls)


@cache
def _constructor_arguments(cls: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = list(signature(vars(base)["__init__"]).parameters.values())[1:]
        rest = [each for each in parameters if each.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
        found = {**{each.name: each.default for each in parameters if each not in rest}, **found}
        if rest and get_origin(rest[-1].annotation) is Unpack:
            (options,) = get_args(rest[-1].annotation)
            return {**found, **{name: cls._option_defaults.get(name) for name in options.__annotations__}}
        if not rest:
            break
    return found


class Stored:
    """The arrays of one saved object; each is checked and copied when it is taken."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> None:
        self._arrays = arrays
        self._prefix = prefix

    def take(self, name: str, shape: tuple[int | None, ...], kind: type[Any] = np.float64) -> Any:
        """The named array, copied; None leaves a side free."""
        label = self._prefix + name
        if label not in self._arrays:
            raise StateMismatch(f"the state has no array {label}, wanted one of shape {shape}")
        array = self._arrays[label]
        if not fits(array.shape, shape):
            raise StateMismatch(f"{label} has shape {array.shape}, wanted {shape}")
        if array.dtype != np.dtype(kind):
            raise StateMismatch(f"{label} has dtype {array.dtype}, wanted {np.dtype(kind)}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise StateMismatch(f"{label} has values that are not finite, wanted finite numbers")
        return array.copy(order="C")

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return self._prefix + name in self._arrays

    def require(self, condition: bool, name: str, wanted: str) -> None:
        """Refuse a state in which the named array is not what it must be."""
        if not condition:
            raise StateMismatch(f"{self._prefix}{name} is not what save() wrote, wanted {wanted}")

    def text(self, name: str) -> str:
        """A string stored as an array."""
        return str(self._arrays.get(self._prefix + name, ""))

    def allow_size(self, size: float, name: str) -> None:
        """Refuse to allocate a size far above the number of values that were saved."""
        if size > UNPROVEN_SIZE and size > (held := self._count()):
            wanted = f"at most {max(held, UNPROVEN_SIZE)}: the state has {held} numbers"
            raise StateMismatch(f"{self._prefix}{name} is {size}, wanted {wanted}")

    def _count(self) -> int:
        arrays = self._arrays.items()
        return sum(array.size for name, array in arrays if name.startswith(self._prefix))

    def check_sides(self, sides: Mapping[str, tuple[str, ...]], arguments: Mapping[str, Any]) -> None:
        """Refuse arrays with other sides than the arguments that they are named after."""
        for name, named in sides.items():
            if all(side in arguments for side in named):
                wanted = tuple(0 if arguments[side] is None else arguments[side] for side in named)
                array = self._arrays.get(self._prefix + name)
                got = f"has shape {array.shape}" if array is not None else "is not there"
                if array is None or array.shape != wanted:
                    what = ", ".join(named)
                    raise StateMismatch(f"{self._prefix}{name} {got}, wanted {wanted}: ({what})")

    def below(self, prefix: str) -> "Stored":
        """The arrays with this prefix, which is left out of their names."""
        return Stored(self._arrays, self._prefix + prefix)


def objects_of(item: Persistent) -> dict[str, Any]:
    """The objects that must be handed to `load`, by their dotted names."""
    return {name: value for name, value in _walk(item, "") if not isinstance(value, Persistent)}


def arrays_of(item: Persistent) -> Arrays:
    """All arrays of an object and of what is nested in it, by their dotted names."""
    found: Arrays = dict(item._arrays())
    for name, value in _walk(item, ""):
        if isinstance(value, Persistent):
            found.update({f"{name}.{key}": array for key, array in value._arrays().items()})
    return found


def restore_all(item: Persistent, arrays: "Stored") -> None:
    """Take back what `arrays_of` gave: the arrays of an object and of what is nested in it."""
    for name, value in _walk(item, ""):
        if isinstance(value, Persistent):
            value._restore(arrays.below(f"{name}."))
    item._restore(arrays)


def refuse_other_settings(one: Persistent, other: Any) -> None:
    """Raise if two learners are the same object or differ in their settings, naming those."""
    if other is one or (other is not None and other is one._guard.original):
        raise InvalidInput(f"cannot merge a {type(one).__name__} with itself, wanted another learner")
    if not isinstance(other, Persistent) or type(one) is not type(other):
        raise InvalidInput(f"cannot merge a {type(other).__name__}, wanted a {type(one).__name__}")
    _require_settings(one)
    if differ := differing_settings(one, other):
        raise InvalidInput(f"cannot merge: {', '.join(differ)} differ, wanted the same settings")


def to_merge(one: P, other: P) -> P:
    """One version of another learner; raises as `refuse_other_settings` does."""
    refuse_other_settings(one, other)
    return out_of_sight(other)


def out_of_sight(item: P) -> P:
    """A copy of one version of an object that no other thread can see, or the object if it is such a copy."""
    return item if item._guard.beside else private(item)


def private(item: P) -> P:
    """A new copy of one version of an object, to be changed before others may see it.

    Verbs change it as it is, where they would otherwise copy the whole object each, so many of them cost one
    copy. Input that is refused leaves it as it was; after any other error, drop it.

    >>> from postserve import LinUCB
    >>> policy = LinUCB(n_arms=2, dim_x=1)
    >>> twin = private(policy)
    >>> for x in ([1.0], [2.0]):
    ...     twin.expect(x, 0)
    >>> policy.version, twin.version
    (0, 2)
    """
    memo: dict[Any, Any] = {GUARD: []}
    return copy.deepcopy(item, memo)


def _require_settings(item: Persistent) -> None:
    """Raise if an argument of the constructor is not kept as an attribute."""
    if lost := [name for name in constructor_arguments(type(item)) if name not in item._settings]:
        got = f"{type(item).__name__} has no attribute {', '.join(lost)}"
        raise InvalidInput(f"{got}, wanted each of its constructor's arguments under its name")


def differing_settings(one: Persistent, other: Persistent) -> list[str]:
    """The arguments, by dotted name, in which two objects differ; their class is "class"."""
    if type(one) is not type(other):
        return ["class"]
    differ = []
    ours, others = dict(_flat(one._settings)), dict(_flat(other._settings))
    for name in sorted({*ours, *others}):
        mine, theirs = ours.get(name), others.get(name)
        if isinstance(mine, Persistent) and isinstance(theirs, Persistent):
            differ += [f"{name}.{below}" for below in differing_settings(mine, theirs)]
        elif type(mine) is type(theirs) and hasattr(mine, "merge"):
            pass  # a user's own object: its merge decides
        elif mine is not theirs and not (_is_plain(mine) and mine == theirs):
            differ.append(name)
    return differ


def _walk(item: Persistent, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in _flat(item._settings):
        if isinstance(value, Persistent):
            yield prefix + name, value
            yield from _walk(value, f"{prefix}{name}.")
        elif not _is_plain(value):
            yield prefix + name, value


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings by name, the parts of lists that are not plain by their place in them."""
    for name, value in settings.items():
        if isinstance(value, list | tuple) and not _is_plain(value):
            yield from _flat({f"{name}.{i}": part for i, part in enumerate(value)})
        else:
            yield name, value


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's; anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | str)


def _describe(item: Persistent) -> dict[str, Any]:
    _require_settings(item)
    settings = {name: _entry(value) for name, value in item._settings.items()}
    return {"class": _class_name(type(item)), "settings": settings}


def _entry(value: Any) -> dict[str, Any]:
    if isinstance(value, Persistent):
        return {"state": _describe(value)}
    if _is_plain(value):
        return {"value": value}
    if isinstance(value, list | tuple):
        return {"list": [_entry(part) for part in value]}
    return {"object": type(value).__name__}


def _class_name(cls: type) -> str:
    """The name of a class, with its module unless it is of this package."""
    inside = cls.__module__.split(".")[0] == __name__.split(".")[0]
    return cls.__name__ if inside else f"{cls.__module__}.{cls.__qualname__}"


@one_version
def _copies(item: Persistent, memo: dict[Any, Any]) -> dict[Any, Any]:
    """Copies of one version of an object and of its parts, by their ids."""
    found: dict[Any, Any] = {**memo, WHOLE: item}
    _copy(item, found)
    del found[WHOLE]
    return found


def _copy(item: Persistent, memo: dict[int, Any]) -> Persistent:
    for name in item._copied_by_reference:
        memo[id(getattr(item, name))] = getattr(item, name)
    twin = memo[id(item)] = type(item).__new__(type(item))
    twin.__dict__.update({name: copy.deepcopy(part, memo) for name, part in list(vars(item).items())})
    return twin


@one_version
def content_of(item: Persistent) -> Arrays:
    """Header and arrays of one version of an object: copies, so that it may go on learning."""
    header = {"format": FORMAT, "version": VERSION, "state": _describe(item)}
    arrays = {name: np.array(array, order="C") for name, array in arrays_of(item).items()}
    if HEADER in arrays:
        raise InvalidInput(f"an array is named {HEADER!r}, wanted another name: the settings have this one")
    return {HEADER: np.array(json.dumps(header)), **arrays}
