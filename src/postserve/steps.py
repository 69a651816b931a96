"""Fast paths, and which objects may take them.

A class works in steps: protected methods, which a subclass may override. A fast path is a method that skips
some of them. It is used only by objects that have exactly the steps of the class that states the path; all
others use the general way, the method of the same name in a base class. So a fast path cannot disagree with a
step. A subclass that overrides steps, but none that matters to a path, states the path again in its body:
``_argmax_scores = PoLinUCB._argmax_scores``.
"""

from abc import ABC
from collections.abc import Callable
from inspect import getattr_static, isfunction
from types import MethodType
from typing import Any, TypeVar

from postserve.state import Persistent

F = TypeVar("F", bound=Callable[..., Any])


def general_way(method: F) -> F:
    """Mark a method that takes the steps one by one; a subclass may have a fast path of that name."""
    method.__dict__["is_way"] = True
    return method


class fast_path:  # a decorator
    """Mark a method as a fast path past steps of its class; a base class has the general way.

    >>> from postserve import LinUCB
    >>> class Doubles(LinUCB):
    ...     def _credit(self, x, slot, z, reward, z_hat):
    ...         super()._credit(x, slot, z, 2.0 * reward, z_hat)
    >>> policy = Doubles(n_arms=2, dim_x=1, ridge=1.0)
    >>> policy.update_batch([[1.0]], [0], None, [1.0])  # not by the fast path, which skips _credit
    >>> policy.weights
    array([[1.],
           [0.]])
    """

    is_way = True

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__
        self._stated_by: list[type] = []
        self._ways: dict[type, Callable[..., Any]] = {}  # decided once for each class

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._stated_by.append(owner)

    def __get__(self, item: Any, cls: type | None = None) -> Any:
        if item is None:
            return self
        try:
            return MethodType(self._ways[type(item)], item)
        except KeyError:
            return MethodType(self._way_of(type(item)), item)

    def _way_of(self, cls: type) -> Callable[..., Any]:
        stated_by = [base for base in cls.__mro__ if base in self._stated_by]
        if any(self._same_steps(cls, base) for base in stated_by):
            way = self.method
        else:
            beyond = cls.__mro__[cls.__mro__.index(stated_by[-1]) + 1 :]
            general = [vars(base)[self._name] for base in beyond if self._name in vars(base)]
            if not general:
                raise TypeError(
                    f"{cls.__name__} overrides steps that the fast path {self._name} skips, "
                    f"wanted the general way, a {self._name} in a base class"
                )
            way = general[0]
        self._ways[cls] = way
        return way

    def _same_steps(self, cls: type, stated_by: type) -> bool:
        names = (name for name in dir(stated_by) if _is_protected(name) and name != self._name)
        return all(getattr_static(cls, name) is getattr_static(stated_by, name) for name in names)


class HasSteps(Persistent, ABC, abstract=True):
    """Base of classes that work in steps; `conformance` overrides them one by one."""


def steps_of(cls: type) -> list[str]:
    """The names of the steps of a class: its protected methods, except fast paths and general ways."""
    found = (name for name in dir(cls) if _is_protected(name) and isfunction(getattr_static(cls, name)))
    ways = {name for base in cls.__mro__ for name, method in vars(base).items() if hasattr(method, "is_way")}
    return [name for name in found if name not in ways]


def _is_protected(name: str) -> bool:
    """Whether subclasses may override it as a step: neither state nor a hook such as `_repr_html_`."""
    hook = name.startswith(("__", "_abc")) or name.endswith("_")
    return name.startswith("_") and not hook and not hasattr(HasSteps, name)
