"""Changes that are whole, and readings of one version.

A verb that changes an object first prepares: all that can fail is computed beside what is there, as a list of
effects. `commit` then carries them all out in one call of compiled code, in which no signal can come between
two of them. So an object is always as it was before a verb or as it is after it. An effect is one of two: a
kernel with its arguments, or attributes that get new values, which may be all those of a copy that was
changed in its place (`whole`).

A learner holds the object's lock, and a second one is refused (`Busy`). Readers need no lock: they note the
version, read, and read again if a change has begun since (`counted`). Threads can switch in the middle of a
commit too, as what an effect replaces may have a finalizer in Python, or start the garbage collector.
"""

import copy
import threading
import time
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


PATIENCE = 60.0
"""Seconds after which a change that has begun, and does not end, is taken to have failed."""


class Guard:
    """Who changes an object, how often it was changed, and whether it is a copy that nobody else can see."""

    __slots__ = ("begun", "beside", "holder", "lock", "original", "version")

    def __init__(self, version: int = 0) -> None:
        self.lock = threading.Lock()
        self.holder = 0  # the thread that learns; negative if it reads
        self.version = self.begun = version  # changes that are complete, and those that have begun
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

    def _changed_within(self) -> Iterable[Any]:
        """The parts that its changes change too."""
        return self._parts()

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


def counted(guard: Guard, effects: Iterable[Effect]) -> list[Effect]:
    """The effects of one change, between those that count it.

    Readers note `version`, then read, then compare it with `begun`: equal numbers say that the last change
    was complete before they began, and that no other has begun since.
    """
    after = guard.version + 1
    begins = partial(setattr, guard, "begun", after)
    # Twice, as a reader whose patience ended may have declared it over.
    return [begins, *effects, begins, partial(setattr, guard, "version", after)]


def over(item: Guarded) -> None:
    """No change of an object and its parts is under way any more: one that had begun has failed."""
    item._guard.begun = item._guard.version
    for part in item._changed_within():
        if isinstance(part, Guarded):
            over(part)


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
        guard.version = guard.begun = version + 1  # one change, whatever the step has counted
        return result
    made: list[Guard] = []
    memo: dict[Any, Any] = {GUARD: made}  # where the guards of its parts are found
    twin = copy.deepcopy(item, memo)
    twin._guard.original = item
    result = step(twin, *args, **options)
    in_sight = (partial(setattr, guard, "beside", False) for guard in made)
    commit(counted(item._guard, [replaced_by(item, twin), *in_sight]))
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
                if guard.begun == version:
                    raise
            else:
                if guard.begun == version:
                    return result
        return with_patience(guard, method, self, *args, **options)[0]

    return verb


def with_patience(
    guard: Guard, method: Callable[Concatenate[S, P], R], item: S, /, *args: P.args, **options: P.kwargs
) -> tuple[R, int]:
    """A reading and its version, while learners are kept out: for readers that they left no time."""
    if guard.holder == get_ident():  # a user's own part reads what it is about to change
        return method(item, *args, **options), guard.version
    if guard.holder == -get_ident():  # a reading within a reading
        return _until_whole(guard, method, item, *args, **options)
    reading = partial(_until_whole, guard, method, item, *args, **options)
    with guard.lock: return as_holder(guard, -get_ident(), reading)  # noqa: E701 # fmt: skip


def _until_whole(
    guard: Guard, method: Callable[Concatenate[S, P], R], item: S, /, *args: P.args, **options: P.kwargs
) -> tuple[R, int]:
    """Read until no change comes between: what the object is a part of may still have a learner."""
    known, since = guard.version, time.monotonic()
    while True:
        version = guard.version
        if version != known:
            known, since = version, time.monotonic()
        elif time.monotonic() > since + PATIENCE:
            guard.begun = version  # it was interrupted twice: in a change, and while that was undone
        try:
            result = method(item, *args, **options)
        except Exception:
            if guard.begun == version:
                raise
        else:
            if guard.begun == version:
                return result, version
        time.sleep(1e-4)
