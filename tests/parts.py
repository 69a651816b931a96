"""Parts of regressions by their names."""

from typing import Any

from postserve.linalg.regressions import Regressions
from postserve.types import FloatArray


def part(models: Regressions, name: str) -> FloatArray:
    """The gram, moment, inverse or weights of all models, or an attribute of them."""
    found: Any = getattr(models, f"{name}_of", None)
    of_all: FloatArray = found() if found else getattr(models, name)
    return of_all
