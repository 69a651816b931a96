from collections.abc import Callable, Set
from typing import TypeVar

_F = TypeVar("_F", bound=Callable[..., object])

def njit(
    *, cache: bool = ..., error_model: str = ..., fastmath: Set[str] = ..., inline: str = ...
) -> Callable[[_F], _F]: ...
