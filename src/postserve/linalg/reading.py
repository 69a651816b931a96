"""Regressions in full or in part, whatever their form.

Kernels that read a model in any form take long to compile, so dense and cold models are read by simpler ones,
with the same bits.
"""

import numpy as np

from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import DENSE_COUNT, ROW_COUNT, Storage
from postserve.types import FloatArray, IntArray


def present(storage: Storage, models: IntArray) -> Storage:
    """The storage, if it has all of these models: another thread may have removed some."""
    if len(models) and models[models.argmax()] >= len(storage.place):  # `max` takes ten times as long
        raise RuntimeError("an arm was removed while this was read, wanted arms that stay")
    return storage


def has_no_rows(storage: Storage) -> bool:
    """Whether no model has a row, so that all means are 0."""
    return not storage.counts[DENSE_COUNT] and not storage.counts[ROW_COUNT]


def vectors(storage: Storage, plane: int, models: IntArray | None) -> FloatArray:
    """The moment, or the weights, of each, or of all models: (models, outputs, dim)."""
    models = np.arange(len(storage.place)) if models is None else models
    found = np.empty((len(models), *storage.vectors.shape[2:]))
    kernels.vectors(plane, models, found, present(storage, models).where)
    return found


def matrices(
    storage: Storage,
    plane: int,
    models: IntArray | None,
    rows: slice | None = None,
    columns: slice | None = None,
) -> FloatArray:
    """The gram, or A^{-1}, or a block of it, of each, or of all models: (models, rows, columns)."""
    models, whole = np.arange(len(storage.place)) if models is None else models, slice(0, len(storage.prior))
    rows, columns = rows or whole, columns or whole
    place = present(storage, models).place[models]
    found = np.empty((len(models), rows.stop - rows.start, columns.stop - columns.start))
    if rows == columns == whole and (place[0] >= 0 if len(place) == 1 else (place >= 0).all()):
        kernels.unpack_some(storage.symmetric[plane], place, found)
    else:
        kernels.matrices(plane, models, rows.start, columns.start, found, storage.where)
    return found
