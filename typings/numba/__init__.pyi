# numba's own types do not know no_cfunc_wrapper and no_cpython_wrapper.
from collections.abc import Callable, Set
from typing import Any, TypeVar

types: Any
carray: Any

_F = TypeVar("_F", bound=Callable[..., object])

def njit(
    *,
    cache: bool = ...,
    error_model: str = ...,
    fastmath: bool | Set[str] = ...,
    inline: str = ...,
    no_cfunc_wrapper: bool = ...,
    no_cpython_wrapper: bool = ...,
) -> Callable[[_F], _F]: ...
