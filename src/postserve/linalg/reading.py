"""What regressions hold, read in full or in part, whichever form it has.

Kernels that read a model in any form take long to compile: dense models, and models that know nothing, are
read with less. The bits are the same.
"""

import numpy as np

from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import DENSE_COUNT, ROW_COUNT, Held
from postserve.types import FloatArray, IntArray


def present(held: Held, models: IntArray) -> Held:
    """What is held, if it has all of these models, which rise: another thread may have removed some."""
    if len(models) and models[-1] >= len(held.place):
        raise RuntimeError("an arm was removed while this was read, wanted arms that stay")
    return held


def knows_nothing(held: Held) -> bool:
    """Whether no model has learnt a row, so that all means are 0."""
    return not held.counts[DENSE_COUNT] and not held.counts[ROW_COUNT]


def vectors(held: Held, plane: int, models: IntArray | None) -> FloatArray:
    """The moment, or the weights, of each, or of all models: (models, outputs, dim)."""
    models = np.arange(len(held.place)) if models is None else models
    found = np.empty((len(models), *held.vectors.shape[2:]))
    kernels.vectors(plane, models, found, *present(held, models))
    return found


def matrices(
    held: Held,
    plane: int,
    models: IntArray | None,
    rows: slice | None = None,
    columns: slice | None = None,
) -> FloatArray:
    """The gram, or A^{-1}, or a block of it, of each, or of all models: (models, rows, columns)."""
    models, whole = np.arange(len(held.place)) if models is None else models, slice(0, len(held.prior))
    rows, columns = rows or whole, columns or whole
    place = present(held, models).place[models]
    found = np.empty((len(models), rows.stop - rows.start, columns.stop - columns.start))
    if rows == columns == whole and _all_dense(place):
        kernels.unpack_some(held.symmetric[plane], place, found)
    else:
        kernels.matrices(plane, models, rows.start, columns.start, found, *held)
    return found


def _all_dense(place: IntArray) -> bool:
    return bool(place[0] >= 0 if len(place) == 1 else (place >= 0).all())
