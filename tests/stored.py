"""Saved states as a test changes them: the arrays in a file, and a file of arrays with a valid digest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from postserve import UnprovenState, archive, load

STATES = Path(__file__).parent / "states"
OLD_OBJECTS = {"version1_sklearn": {"regressor": LinearRegression()}}
"""What must be handed back on loading, by the name of the state."""


def arrays_in(path: Path) -> dict[str, Any]:
    """Header and arrays, without the digest."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name != archive.DIGEST}


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """A file with these and their digest, as a forger would write it."""
    with path.open("wb") as file:
        archive.write(file, {name: np.asarray(array) for name, array in arrays.items()})


def load_old(name: str) -> Any:
    """A state of `tests/states`, which says that it has no digest."""
    with pytest.warns(UnprovenState, match=f"version {name[len('version')]}, which has no digest"):
        return load(STATES / f"{name}.npz", objects=OLD_OBJECTS.get(name))
