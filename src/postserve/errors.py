"""The whole tree of exceptions and warnings. Every message says what, got, wanted."""

from collections.abc import Iterable
from typing import Any


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


class ServiceError(PostserveError):
    """A decision service refused a request, or did not answer; `status` is HTTP's, or 0."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ServiceConflict(ServiceError):
    """What was asked contradicts the service's log; nothing was changed."""


class ServiceInvalidInput(ServiceError, InvalidInput):
    """What was sent does not fit the experiment, or is too large; nothing was changed."""


class ServiceNotFound(ServiceError):
    """The service has no such decision, snapshot or address."""


class ServiceForbidden(ServiceError):
    """The key is unknown, or has not the role that is needed."""


class ServiceUnavailable(ServiceError):
    """The service could not be reached, or had too much to do, at every try; the request may be repeated."""


class OutcomesLost(ServiceError):
    """Outcomes that were buffered are not in the service's log.

    `failed` has them, each with its id and why.
    """

    def __init__(self, message: str, failed: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.failed = tuple(failed)
