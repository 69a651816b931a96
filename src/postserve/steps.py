"""Fast paths, and which classes may take them.

A class works in steps: protected methods, any of which a subclass may override. A fast path is a method
that skips some of them. It belongs to the class that defines it: a subclass that overrides any step goes
the general way, the method of the same name in a base class, unless its body says that the fast path still
leads to the same place (``_leaders = PoLinUCB._leaders``). That is decided once, when the subclass is made.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from postserve.state import Persistent

F = TypeVar("F", bound=Callable[..., Any])


def general_way(method: F) -> F:
    """Mark a method that takes the steps one by one, which a subclass may replace by a fast path."""
    method.__dict__["is_way"] = True
    return method


def fast_path(method: F) -> F:
    """Mark a method as a fast path past steps of its class; a base class has the general way."""
    method.__dict__["is_way"] = method.__dict__["is_fast_path"] = True
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
        for name in [name for name in dir(cls) if _is(getattr(cls, name), "is_fast_path")]:
            owner = next(base for base in cls.__mro__ if name in vars(base))
            below = cls.__mro__[: cls.__mro__.index(owner)]
            if any(_overrides_a_step(base, owner) for base in below):
                general = (vars(base)[name] for base in owner.__mro__ if name in vars(base))
                setattr(cls, name, next(way for way in general if not _is(way, "is_fast_path")))


def steps_of(cls: type) -> list[str]:
    """The names of the steps of a class: its protected methods, but for those that say which way they go."""
    found = ((name, getattr(cls, name)) for name in dir(cls) if _is_protected(name))
    return [name for name, method in found if callable(method) and not _is(method, "is_way")]


def _overrides_a_step(base: type, owner: type) -> bool:
    protected = ((name, value) for name, value in vars(base).items() if _is_protected(name))
    return any(hasattr(owner, name) and not _is(value, "is_fast_path") for name, value in protected)


def _is_protected(name: str) -> bool:
    """Whether it is one that subclasses may override, and no matter of their state."""
    return name.startswith("_") and not name.startswith("__") and not hasattr(HasSteps, name)


def _is(method: Any, mark: str) -> bool:
    return bool(getattr(method, mark, False))
