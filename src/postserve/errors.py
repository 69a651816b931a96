"""The whole tree of exceptions and warnings. Every message says what, got, wanted."""

from collections.abc import Iterable


class PostserveError(Exception):
    """Base of all errors of this library."""


class InvalidInput(PostserveError, ValueError):
    """An argument that cannot be used; nothing was changed."""


class StateMismatch(PostserveError):
    """A state of another class, version or shape than expected, or cut short."""


class Busy(PostserveError, RuntimeError):
    """Another thread is changing this object; nothing was changed."""


class NoSupport(PostserveError):
    """A log cannot say what a policy is worth: the policy plays arms that could not have been served.

    `rows` has the numbers of the rounds in which it does.
    """

    def __init__(self, message: str, rows: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(rows)


class UnprovenState(UserWarning):
    """A state was loaded whose version has no digest, so that damage may have gone unseen.

    It is a warning, since such states load and go on as they did; saved again, they have a digest.
    """
