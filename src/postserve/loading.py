"""Loading what `save` wrote: every class that can be saved is imported here."""

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, overload

from postserve import archive, context_maps, data, policies
from postserve.archive import MOST_BYTES, Arrays
from postserve.errors import StateMismatch, UnprovenState
from postserve.state import FORMAT, HEADER, VERSION, Persistent, Stored

P = TypeVar("P", bound=Persistent)

IN_SIGHT = (context_maps, data, policies)  # a class is found by its name once it is imported
PROVEN_SINCE = 3
"""The first version whose files have a digest."""
DEEPEST = 32
"""Objects within objects, at most: those in use have five levels, and Python's stack is finite."""


@overload
def load(
    path: str | os.PathLike[str], objects: Mapping[str, Any] | None = None, *, most_bytes: int = MOST_BYTES
) -> Any: ...
@overload
def load(
    path: str | os.PathLike[str],
    objects: Mapping[str, Any] | None = None,
    *,
    kind: type[P],
    most_bytes: int = MOST_BYTES,
) -> P: ...
def load(
    path: str | os.PathLike[str],
    objects: Mapping[str, Any] | None = None,
    *,
    kind: type[Persistent] = Persistent,
    most_bytes: int = MOST_BYTES,
) -> Any:
    """Rebuild what `save` wrote.

    `objects` has, by dotted name, what arrays cannot carry: callables, scikit-learn estimators, maps of your
    own, as they were when the state was saved. `kind` is the expected class. A file of more than `most_bytes`
    bytes (8 GiB) is not read. A state of another class, version or shape, cut short, or in which any bit
    changed since it was saved, raises `StateMismatch`. States of versions 1 and 2 have no digest that could
    show this: they load with the warning `UnprovenState`.

    >>> import tempfile
    >>> from postserve import LinUCB, PoLinUCB, RidgeMap
    >>> folder = Path(tempfile.mkdtemp())
    >>> LinUCB(n_arms=2, dim_x=3).save(folder / "one.npz")
    >>> load(folder / "one.npz", kind=LinUCB)
    LinUCB(n_arms=2, dim_x=3)
    >>> def squares(x):
    ...     return x**2
    >>> PoLinUCB(2, RidgeMap(3, 1, features=squares)).save(folder / "other.npz")
    >>> policy = load(folder / "other.npz", objects={"context_map.features": squares})
    """
    state, arrays = _read(Path(path), most_bytes)
    name = state["class"]
    if not issubclass(_find_class(name), kind):
        raise StateMismatch(f"{path} holds a {name}, wanted a {kind.__name__}")
    given = dict(objects or {})
    item = _build(state, "", arrays, given)
    if given:
        unknown = ", ".join(sorted(given))
        raise StateMismatch(f"the state has no object {unknown}, wanted only those it names")
    return item


def _read(path: Path, most_bytes: int) -> tuple[dict[str, Any], Arrays]:
    """The description of the saved object, and its arrays."""
    arrays, proven = archive.read(path, most_bytes)
    try:
        header = json.loads(str(arrays.pop(HEADER)))
        got = header["format"], header["version"]
        _check_node(header["state"], 0)
    except Exception as error:  # whatever a header is instead
        damage = f"{path} is damaged or no state file ({type(error).__name__}: {error!s:.100})"
        raise StateMismatch(f"{damage}, wanted one that save() wrote") from error
    if got[0] != FORMAT or type(got[1]) is not int or not 1 <= got[1] <= VERSION:
        raise StateMismatch(f"{path} has format {got[0]} version {got[1]}, wanted {FORMAT} 1 to {VERSION}")
    if not proven:
        if got[1] >= PROVEN_SINCE:
            raise StateMismatch(f"{path} has no digest, wanted one, as save() writes it")
        lack = f"{path} has version {got[1]}, which has no digest: damage may go unseen"
        warnings.warn(f"{lack}. Save it again to add one.", UnprovenState, stacklevel=3)
    return header["state"], arrays


def _check_node(node: dict[str, Any], depth: int) -> None:
    """Raise TypeError, KeyError or RecursionError unless this has the form that `_describe` gives."""
    str.strip(node["class"])
    for entry in dict.values(node["settings"]):
        _check_entry(entry, depth + 1)


def _check_entry(entry: dict[str, Any], depth: int) -> None:
    if depth > DEEPEST:
        raise RecursionError(f"objects within objects, deeper than {DEEPEST} levels")
    ((kind, content),) = dict.items(entry)
    if kind == "state":
        _check_node(content, depth)
    elif kind == "object":
        str.strip(content)
    elif kind == "list":
        for part in list.copy(content):
            _check_entry(part, depth + 1)
    elif kind != "value":
        raise KeyError(kind)


def _build(node: dict[str, Any], prefix: str, arrays: Arrays, objects: dict[str, Any]) -> Persistent:
    cls, stored = _find_class(node["class"]), Stored(arrays, prefix)
    settings = node["settings"].items()
    arguments = {name: _build_entry(entry, prefix + name, arrays, objects) for name, entry in settings}
    _check_sizes(cls, arguments, stored)
    with _errors_as_mismatch(f"the state's settings do not fit {node['class']}"):
        item = cls(**arguments)
    with _errors_as_mismatch(f"the state's arrays do not fit {node['class']}"):
        item._restore(stored)
    return item


def _check_sizes(cls: type[Persistent], arguments: Mapping[str, Any], stored: Stored) -> None:
    """Refuse sizes that the arrays do not bear out, before anything is allocated."""
    stored.check_sides(cls._sides, arguments)
    for name, value in arguments.items():
        if name.startswith(("n_", "dim_")) and isinstance(value, int | float):
            stored.allow_size(value, name)


@contextmanager
def _errors_as_mismatch(what: str) -> Iterator[None]:
    """A constructor that meets other arguments than it was saved with may raise anything."""
    try:
        yield
    except StateMismatch:
        raise
    except Exception as error:
        raise StateMismatch(f"{what}: {error}") from error


def _build_entry(entry: dict[str, Any], name: str, arrays: Arrays, objects: dict[str, Any]) -> Any:
    if "state" in entry:
        return _build(entry["state"], f"{name}.", arrays, objects)
    if "value" in entry:
        return entry["value"]
    if "list" in entry:
        return [_build_entry(part, f"{name}.{i}", arrays, objects) for i, part in enumerate(entry["list"])]
    if name in objects:
        return objects.pop(name)
    raise StateMismatch(
        f"the state needs the object {name} as it was when saved (a {entry['object']}), "
        f"wanted load(path, objects={{{name!r}: …}})"
    )


def _find_class(name: str) -> type[Persistent]:
    if name not in Persistent._classes:
        raise StateMismatch(f"the state is of class {name}, wanted one of postserve or one defined by now")
    return Persistent._classes[name]
