"""Ratings from an R workspace, in the form of the package recommenderlab."""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.data.finding import MATRIX, extra
from postserve.errors import InvalidInput
from postserve.validation import errors_as_invalid_input


def ratings_of(content: bytes, name: str) -> npt.NDArray[np.float32]:
    """The `realRatingMatrix` of that name in an .rda's content, dense, with NaN where there is no rating.

    It is S4, its slot `data` a sparse matrix by columns (`dgCMatrix`). Every stored value is a rating, zeros
    too, and so is the smallest positive number, which float32 rounds to zero.
    """
    rdata = extra("rdata", ", which reads R's files")

    def as_it_is(value: Any, attributes: Any) -> Any:
        return value

    # Without these two classes rdata would warn; latin-1 accepts every byte of the texts, which are not used.
    classes = {"realRatingMatrix": as_it_is, "dgCMatrix": as_it_is, **rdata.conversion.DEFAULT_CLASS_MAP}
    encoding = {"default_encoding": "latin-1", "force_default_encoding": True}
    # It raises all kinds of errors.
    with errors_as_invalid_input("the .rda cannot be read by rdata", f"{name} in it"):
        found = rdata.read_rda(io.BytesIO(content), constructor_dict=classes, **encoding)
    if name not in found:
        raise InvalidInput(f"the .rda has {', '.join(found) or 'nothing'}, wanted {name}")
    return _dense(name, getattr(found[name], "data", None))


def as_npz(ratings: npt.NDArray[np.float32]) -> bytes:
    """The same numbers as the content of the .npz that is kept.

    >>> content = as_npz(np.zeros((2, 3), dtype=np.float32))
    >>> np.load(io.BytesIO(content))["ratings"].shape
    (2, 3)
    """
    file = io.BytesIO()
    arrays: dict[str, Any] = {MATRIX: ratings}
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _dense(name: str, sparse: Any) -> npt.NDArray[np.float32]:
    slots = ("i", "p", "x", "Dim")
    if not isinstance(sparse, SimpleNamespace) or not all(hasattr(sparse, slot) for slot in slots):
        raise InvalidInput(f"{name} is another object, wanted a realRatingMatrix with a dgCMatrix in it")
    rows, starts, values, shape = (np.asarray(getattr(sparse, slot)) for slot in slots)
    if not (len(shape) == 2 and len(starts) == shape[1] + 1 and len(rows) == len(values) == starts[-1]):
        lengths = f"{len(rows)} rows, {len(values)} values, {len(starts)} columns and dimensions {shape}"
        raise InvalidInput(f"{name} has {lengths}, wanted a dgCMatrix, where these agree")
    dense = np.full(shape, np.nan, dtype=np.float32)
    dense[rows, np.repeat(np.arange(shape[1]), np.diff(starts))] = values
    return dense
