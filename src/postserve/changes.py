"""Changes that are whole, and readings of one version.

A verb that changes an object first prepares: all that can fail is computed beside what is there, as a list of
effects. `commit` then carries them all out in one call of compiled code, in which neither a signal nor
another thread can come between two of them. So an object is always as it was before a verb or as it is after
it. An effect is one of two: a kernel with its arguments, or attributes that get new values, which may be all
those of a copy that was changed in its place (`whole`).

A learner holds the object's lock, and a second one is refused (`Busy`). Readers need no lock: they look at
the version before and after, and read again if it has changed meanwhile.
"""

import copy
import threading
from collections.abc import Callable, Iterable
from functools import partial, wraps
from inspect import isfunction
from operator import call
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from postserve.errors import Busy

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Guarded")
T = TypeVar("T")

Effect: TypeAlias = Callable[[], Any]
GUARD = "_guard"
TRIES = 8
"""After so many readings that a change came between, a reader takes the lock."""


class Guard:
    """Who changes an object, how often it was changed, and whether it is a copy that nobody else can see."""

    __slots__ = ("beside", "holder", "lock", "original", "version")

    def __init__(self, version: int = 0) -> None:
        self.lock = threading.Lock()
        self.holder = 0  # the thread that learns; negative if it reads
        self.version = version
        self.beside = False
        self.original: object = None  # which a copy will take the place of

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Guard":
        twin, made = Guard(self.version), memo.get(GUARD)
        if made is not None:
            twin.beside = True
            made.append(twin)
        return twin

    def __reduce__(self) -> tuple[type["Guard"], tuple[int]]:
        return Guard, (self.version,)

    def refuse_second(self, item: object) -> None:
        """Raise if the lock is a learner's, or this thread's own: only for other readers it may wait."""
        if self.holder > 0 or self.holder == -get_ident():
            names = {each.ident: each.name for each in threading.enumerate()}
            name = names.get(abs(self.holder), str(abs(self.holder)))
            got = f"the {type(item).__name__} is in use by thread {name}"
            raise Busy(f"{got}, wanted one learner at a time: use one thread, or a lock around the verbs")


class Work(list[Effect]):
    """What the steps of a verb have prepared; a copy of an object has nothing prepared."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Work":
        return Work()

    def __reduce__(self) -> tuple[type["Work"], tuple[()]]:
        return Work, ()


class Guarded:
    """Base of objects that change as a whole."""

    _guard: Guard

    def __new__(cls, *_args: Any, **_options: Any) -> Self:
        item = super().__new__(cls)
        item._guard = Guard()
        return item

    @property
    def version(self) -> int:
        """How often it was changed since it was made, or, in a copy, since the first one was.

        A verb is one change, or two if caches had lost digits and were renewed.
        """
        return self._guard.version

    @property
    def thread_safe(self) -> bool:
        """Whether one thread may learn while others read, save and select: each sees one version.

        False if a class of your own overrides a public verb, which may then read two versions, or if a part
        does not say that it is: a map of your own can have an attribute `thread_safe`. Functions that
        compute features are taken to be pure.
        """
        return _keeps_verbs(type(self)) and all(getattr(part, "thread_safe", False) for part in self._parts())

    def _parts(self) -> Iterable[Any]:
        """What it reads that may be a user's own."""
        return ()

    def _copy_to_change(self) -> Any:
        """A copy that shares nothing that verbs change in place."""
        return copy.deepcopy(self)


def _keeps_verbs(cls: type) -> bool:
    """Whether all verbs of this package's classes are theirs, and not overridden elsewhere."""
    package = __name__.split(".")[0]
    others = [base for base in cls.__mro__ if base.__module__.split(".")[0] != package and base is not object]
    ours = {name for base in cls.__mro__ if base not in others for name in vars(base)}
    verbs = (name for base in others for name, part in vars(base).items() if isfunction(part))
    return not any(name in ours and not name.startswith("_") for name in verbs)


def commit(effects: Iterable[Effect]) -> list[Any]:
    """Carry out all effects, in one call of compiled code; returns what each returned."""
    return list(map(call, effects))


def lost_a_cache(results: list[Any]) -> bool:
    """Whether a kernel says that a cache can no longer be trusted."""
    return any(type(result) is tuple and not result[1] for result in results)


def replaced(item: Any, **values: Any) -> Effect:
    """The effect that attributes have new values."""
    return partial(vars(item).update, values)


def replaced_by(item: Any, twin: Any) -> Effect:
    """The effect that an object becomes another one, but for its guard."""
    return partial(vars(item).update, {name: value for name, value in vars(twin).items() if name != GUARD})


def changed(guard: Guard) -> Effect:
    """The effect that the version is the next one."""
    return partial(setattr, guard, "version", guard.version + 1)


def learning(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a verb a learner's: it holds the lock, and must commit by itself."""

    @wraps(method)
    def verb(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        guard = self._guard
        if guard.lock.locked():
            guard.refuse_second(self)
        with guard.lock: return as_holder(guard, get_ident(), method, self, *args, **options)  # noqa: E701 # fmt: skip

    return verb


def as_holder(guard: Guard, holder: int, step: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """A step of the thread that has the lock.

    It is called in the line that takes the lock: an error in a line of its own at the end of the block, as
    debuggers and tests can raise it, would keep the lock for ever.
    """
    guard.holder = holder
    try:
        return step(*args, **options)
    finally:
        guard.holder = 0


def whole(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a verb whole: it changes a copy, which then takes the object's place.

    Of a copy that nobody else can see yet, it changes the copy itself.
    """

    @wraps(method)
    def verb(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        guard = self._guard
        if guard.beside:
            return change(self, method, *args, **options)
        if guard.lock.locked():
            guard.refuse_second(self)
        with guard.lock: return as_holder(guard, get_ident(), change, self, method, *args, **options)  # noqa: E701 # fmt: skip

    return verb


def change(item: S, step: Callable[Concatenate[S, P], R], /, *args: P.args, **options: P.kwargs) -> R:
    """Take a step on a copy of an object, which then takes its place.

    Of a copy that nobody else can see yet, it is taken on the copy itself.
    """
    if (guard := item._guard).beside:
        version = guard.version
        result = step(item, *args, **options)
        guard.version = version + 1  # one change, whatever the step has counted
        return result
    made: list[Guard] = []
    memo: dict[Any, Any] = {GUARD: made}  # where the guards of its parts are found
    twin = copy.deepcopy(item, memo)
    twin._guard.original = item
    result = step(twin, *args, **options)
    in_sight = (partial(setattr, guard, "beside", False) for guard in made)
    commit([replaced_by(item, twin), *in_sight, changed(item._guard)])
    return result


def beside(item: S) -> S:
    """A copy to be changed in place of an object; its verbs change it as it is."""
    twin: S = item._copy_to_change()
    twin._guard.beside = True
    return twin


def shallow(item: T) -> T:
    """A copy that shares everything but its guard, if it has one; faster than `copy.copy`."""
    twin = object.__new__(type(item))
    vars(twin).update(vars(item))
    if isinstance(twin, Guarded):
        twin._guard = Guard(twin.version)
    return twin


def one_version(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a verb read one version: it is called again if the object has changed meanwhile."""

    @wraps(method)
    def verb(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        guard = self._guard
        for _ in range(TRIES):
            version = guard.version
            try:
                result = method(self, *args, **options)
            except Exception:
                if guard.version == version:
                    raise
            else:
                if guard.version == version:
                    return result
        with guard.lock: return as_holder(guard, -get_ident(), method, self, *args, **options)  # noqa: E701 # fmt: skip

    return verb
