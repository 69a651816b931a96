"""What the table of verbs is made of: paths, roles, bodies, answers and refusals.

The routes of the app and the OpenAPI document are both made of this, so that they cannot disagree.
"""

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, get_type_hints

from starlette.convertors import Convertor, register_url_convertor

from postserve.errors import InvalidInput, PostserveError
from postserve.service.edge.access import Forbidden, TooMany, Unauthorised
from postserve.service.edge.wire import Id, Place
from postserve.service.experiment import Role
from postserve.service.log.requests import Conflict
from postserve.service.log.stores import StoreError
from postserve.service.log.writer import Overloaded, Unavailable

JSON = "application/json"
PARAMETERS: dict[str, Any] = {"id": Id, "arm": Id, "snapshot": Place}
"""What stands in a path, by its name."""


class _Anything(Convertor[str]):
    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


class NotFound(PostserveError):
    """There is no such thing."""


class TooLarge(PostserveError):
    """The body is too large."""


class Failed(PostserveError):
    """Something is wrong with the service itself; its log says what."""


REFUSALS: dict[type[PostserveError], tuple[int, str]] = {
    Unauthorised: (401, "unauthorised"),
    Forbidden: (403, "forbidden"),
    NotFound: (404, "not_found"),
    Conflict: (409, "conflict"),
    TooLarge: (413, "too_large"),
    InvalidInput: (422, "invalid"),
    TooMany: (429, "too_many"),
    Failed: (500, "failed"),
    Overloaded: (503, "overloaded"),
    Unavailable: (503, "unavailable"),
    StoreError: (503, "unavailable"),
}
"""The status of each refusal, and the word for it."""
COMMITS = (Overloaded, Unavailable)
"""What can happen to all that is committed."""


class Verb:
    """A method of a path: who may use it, and the function that answers.

    The function's annotations say what its body is (`asked`), or its query, and its answer, its docstring
    what it does.
    """

    def __init__(
        self,
        method: str,
        path: str,
        role: Role | None,
        handler: Callable[..., Awaitable[Any]],
        *refuses: type[PostserveError],
        media: str = JSON,
        later: bool = False,
    ) -> None:
        self.method, self.path, self.role, self.handler, self.media = method, path, role, handler, media
        self._refuses, self.later = refuses, later  # whether it is answered before the model has learnt it

    @cached_property
    def body(self) -> Any | None:
        """The type of its body, if it has one."""
        return get_type_hints(self.handler).get("asked")

    @cached_property
    def query(self) -> Any | None:
        """The type of its query, if it has one."""
        return get_type_hints(self.handler).get("query")

    @cached_property
    def answer(self) -> Any:
        """The type of its answer."""
        return get_type_hints(self.handler)["return"]

    @property
    def name(self) -> str:
        """Its method and path."""
        return f"{self.method} {self.path}"

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]

    @property
    def parameters(self) -> list[str]:
        """The names in its path."""
        return re.findall(r"{(\w+)}", self.path)

    @property
    def route(self) -> str:
        """Its path as routes have it: an id may have anything in it, slashes too."""
        return self.path.replace("}", ":anything}")

    @property
    def refuses(self) -> list[type[PostserveError]]:
        """All that it can be refused for, in the order of `REFUSALS`."""
        found = set(self._refuses)
        if self.role is not None:
            found |= {Unauthorised, Forbidden, TooMany, StoreError}  # as all of them look into the store
        if self.body is not None:
            found |= {TooLarge, InvalidInput}
        if self.parameters or self.query is not None:
            found.add(InvalidInput)
        return [kind for kind in REFUSALS if kind in found]


def status_of_error(error: Exception) -> tuple[int, str]:
    """The status of a refusal, and the word for it."""
    return next((found for kind, found in REFUSALS.items() if isinstance(error, kind)), REFUSALS[Failed])
