"""The whole exception tree. Every message says what, got, wanted."""


class PostserveError(Exception):
    """Base of all errors of this library."""


class InvalidInput(PostserveError, ValueError):
    """An argument that cannot be used; nothing was changed."""


class StateMismatch(PostserveError):
    """A state of another class, version or shape than expected, or cut short."""


class Busy(PostserveError, RuntimeError):
    """Another thread is changing this object; nothing was changed."""
