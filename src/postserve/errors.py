"""The whole exception tree. Every message says what, got, wanted."""


class PostserveError(Exception):
    """Whatever this library raises on purpose."""


class InvalidInput(PostserveError, ValueError):
    """An argument that cannot be used; nothing was changed."""


class StateMismatch(PostserveError):
    """A state that is not what it is asked to be: another class, version or shape, or cut short."""
