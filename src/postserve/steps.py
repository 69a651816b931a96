"""Fast paths, and which classes may take them.

A class works in steps: protected methods, any of which a subclass may override. A fast path is a method
that skips some of them. It belongs to the class that defines it: a subclass that overrides any step goes
the general way, the method of the same name in a base class, unless its body says that the fast path still
leads to the same place (``_leaders = PoLinUCB._leaders``). That is decided once, when the subclass is made.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from postserve.state import Persistent

F = TypeVar("F", bound=Callable[..., Any])


def fast_path(method: F) -> F:
    """Mark a method as a fast path past steps of its class; a base class has the general way."""
    method.__dict__["is_fast_path"] = True
    return method


class HasSteps(Persistent, abstract=True):
    """Base of classes with fast paths: a subclass that overrides a step loses those it has not restated.

    >>> from postserve import LinUCB
    >>> class Doubles(LinUCB):
    ...     def _credit(self, x, slot, z, reward, z_hat):
    ...         super()._credit(x, slot, z, 2.0 * reward, z_hat)
    >>> Doubles._update_batch is LinUCB._update_batch  # which would not have doubled anything
    False
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in [name for name in dir(cls) if is_fast_path(cls, name)]:
            owner = next(base for base in cls.__mro__ if name in vars(base))
            if any(step in vars(base) for base in _below(cls, owner) for step in steps_of(owner)):
                setattr(cls, name, _general_way(owner, name))


def is_fast_path(cls: type, name: str) -> bool:
    """Whether a class takes a fast path by that name."""
    return bool(getattr(getattr(cls, name, None), "is_fast_path", False))


def steps_of(cls: type) -> list[str]:
    """The protected names of a class that a subclass may override, but for fast paths and state."""
    protected = (name for name in dir(cls) if name.startswith("_") and not name.startswith("__"))
    return [name for name in protected if not (hasattr(HasSteps, name) or is_fast_path(cls, name))]


def _below(cls: type, owner: type) -> Iterator[type]:
    """The classes whose methods come before those of the owner."""
    return (base for base in cls.__mro__[: cls.__mro__.index(owner)])


def _general_way(owner: type, name: str) -> Any:
    ways = (vars(base)[name] for base in owner.__mro__[1:] if name in vars(base))
    return next(way for way in ways if not getattr(way, "is_fast_path", False))
