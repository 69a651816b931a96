"""A dictionary whose copies cost little, however much is in it.

Copies share a base that nobody changes, and each has its own changes on top. When these are many compared
with the base, the two are made a new base, so that a change costs, in the long run, no more than about the
square root of what is there.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
LEAST = 64
"""Changes that are always allowed on top."""


class _Gone:
    """Stands for a key of the base that was deleted; a class, as pickle keeps its identity."""


GONE: Any = _Gone


class Layered(MutableMapping[K, V]):
    """A mapping in the order of insertion, as a dictionary is; it begins with the content of one.

    >>> import copy
    >>> one = Layered({"a": 1})
    >>> one["b"] = 2
    >>> other = copy.copy(one)
    >>> del other["a"]
    >>> dict(one), dict(other)
    ({'a': 1, 'b': 2}, {'b': 2})
    """

    __slots__ = ("_base", "_changes", "_gone")

    def __init__(self, content: dict[K, V] | None = None) -> None:
        self._base: dict[K, V] = {} if content is None else dict(content)
        self._changes: dict[K, V] = {}
        self._gone = 0

    def __copy__(self) -> "Layered[K, V]":
        twin = Layered[K, V]()
        twin._base, twin._changes, twin._gone = self._base, dict(self._changes), self._gone
        return twin

    def __getitem__(self, key: K) -> V:
        found = self._changes[key] if key in self._changes else self._base[key]
        if found is GONE:
            raise KeyError(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        if self._changes.get(key) is GONE:
            self._merge()  # it comes back at the end
        self._changes[key] = value
        self._merge_if_many()

    def __delitem__(self, key: K) -> None:
        self[key]  # which raises if it is not there
        if key in self._base:
            self._changes[key] = GONE
            self._gone += 1
            self._merge_if_many()
        else:
            del self._changes[key]

    def __iter__(self) -> Iterator[K]:
        changes, base = self._changes, self._base
        yield from (key for key in base if changes.get(key) is not GONE) if self._gone else base
        yield from (key for key in changes if key not in base)

    def __len__(self) -> int:
        return len(self._base) - self._gone + sum(key not in self._base for key in self._changes)

    def __contains__(self, key: object) -> bool:
        return self._changes[key] is not GONE if key in self._changes else key in self._base

    def __bool__(self) -> bool:
        return next(iter(self), GONE) is not GONE

    def as_dict(self) -> dict[K, V]:
        """A dictionary with the same content, faster than by asking for each key."""
        merged = self._base | self._changes
        if self._gone:
            for key in [key for key, value in self._changes.items() if value is GONE]:
                del merged[key]
        return merged

    def _merge_if_many(self) -> None:
        if len(self._changes) > LEAST and len(self._changes) ** 2 > 16 * len(self._base):
            self._merge()

    def _merge(self) -> None:
        self._base, self._changes, self._gone = self.as_dict(), {}, 0
