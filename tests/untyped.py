"""Values as a caller without a type checker may pass them."""

from typing import Any


def untyped(value: object) -> Any:
    """The same value, as Any: for an argument of a type that is wrong on purpose, or not declared."""
    return value
