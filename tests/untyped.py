"""Values as a caller without a type checker may pass them."""

from typing import Any


def untyped(value: object) -> Any:
    """The same value, as Any: for an argument whose type is wrong on purpose, or not among those declared."""
    return value
