"""Loading what `save` wrote: every class that can be saved is imported here."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from postserve import context_maps, policies
from postserve.state import Persistent, rebuild

P = TypeVar("P", bound=Persistent)

IN_SIGHT = (context_maps, policies)  # a class is found by its name once it is imported


@overload
def load(path: str | os.PathLike[str], objects: Mapping[str, Any] | None = None) -> Any: ...
@overload
def load(path: str | os.PathLike[str], objects: Mapping[str, Any] | None = None, *, kind: type[P]) -> P: ...
def load(
    path: str | os.PathLike[str],
    objects: Mapping[str, Any] | None = None,
    *,
    kind: type[Persistent] = Persistent,
) -> Any:
    """Rebuild what `save` wrote.

    `objects` has, by dotted name, what arrays cannot carry: callables, scikit-learn estimators, maps of your
    own, as they were when the state was saved. `kind` is the expected class. A state of another class,
    version or shape, or cut short, raises `StateMismatch`.

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
    return rebuild(Path(path), objects or {}, kind)
