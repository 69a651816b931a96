"""How kernels are told of a storage: by addresses, which must never outlive its arrays."""

import copy
import gc
import pickle
import weakref
from pathlib import Path

import joblib
import numpy as np
import pytest

from postserve import LinUCB
from postserve.changes import commit
from postserve.linalg import forms
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import (
    DENSE_COUNT,
    N_ARRAYS,
    N_MODELS,
    OWNER,
    ROW_COUNT,
    ROW_ROOM,
    Storage,
    arrays_at,
)
from postserve.linalg.regressions import Regressions
from postserve.types import Model


def regressions(n_models: int = 3, dim: int = 4) -> Regressions:
    models, rng = Regressions(n_models, np.ones(dim), n_outputs=2), np.random.default_rng(0)
    for i in range(30):
        models.learn(i % (n_models - 1), rng.normal(size=dim), rng.normal(size=2))
    return models


def test_addresses_and_sizes_are_those_of_the_arrays() -> None:
    storage = regressions().storage
    assert storage.where[:N_ARRAYS].tolist() == [array.ctypes.data for array in storage]
    sizes = len(storage.place), 2, 4, len(storage.owner), len(storage.links)
    assert tuple(storage.where[N_MODELS:]) == sizes
    assert len(storage.where) == ROW_ROOM + 1


def test_kernels_see_every_array_as_it_is() -> None:
    storage = regressions().storage
    for name, seen, array in zip(storage._fields, arrays_at(storage.where), storage, strict=True):
        assert (seen.shape, seen.dtype) == (array.shape, array.dtype), name
        assert np.array_equal(seen, array), name


def test_the_arrays_stay_as_long_as_their_addresses() -> None:
    models = regressions()
    where, tally = models.storage.where, weakref.ref(models.storage.tally)
    del models
    gc.collect()
    assert tally() is not None
    del where
    gc.collect()
    assert tally() is None


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_has_addresses_of_its_own(twin_of: object) -> None:
    storage = regressions().storage
    assert storage.where is not None
    twin = twin_of(storage)  # type: ignore[operator]
    assert isinstance(twin, Storage)
    assert "where" not in vars(twin)
    assert twin.where[:N_ARRAYS].tolist() == [array.ctypes.data for array in twin]


def test_new_arrays_have_new_addresses() -> None:
    storage = regressions().storage
    assert storage.where is storage.where
    assert storage._replace(tally=storage.tally.copy()).where[1] != storage.where[1]


@pytest.mark.parametrize("model", ["disjoint", "shared", "hybrid"])
def test_a_policy_in_a_file_that_cannot_be_written_to_selects(tmp_path: Path, model: Model) -> None:
    policy, rng = LinUCB(3, 200, model=model), np.random.default_rng(0)
    for i in range(320):
        policy.update(rng.normal(size=200), i % 3, None, float(rng.normal()))
    joblib.dump(policy, tmp_path / "policy.joblib")
    twin = joblib.load(tmp_path / "policy.joblib", mmap_mode="r")
    for x in rng.normal(size=(5, 200)):
        assert np.array_equal(policy._scores(x, np.arange(3)), twin._scores(x, np.arange(3)))


@pytest.mark.parametrize("spoil", [np.asfortranarray, lambda array: array[:, ::-1], "read-only"])
def test_arrays_that_kernels_could_not_use_are_refused(spoil: object) -> None:
    tally = np.ones((5, 6))
    if callable(spoil):
        tally = spoil(tally)
    else:
        tally.flags.writeable = False
    storage = forms.add_cold(forms.empty(2, 2), 5)._replace(tally=tally)
    with pytest.raises(RuntimeError, match="not writeable or not in order"):
        _ = storage.where


@pytest.mark.parametrize("rows", [1, 40])  # with its rows, and dense
def test_an_old_storage_never_sees_a_model_that_was_added_later(rows: int) -> None:
    """A reader may hold it while an arm is added and learnt: it has no room for that arm's numbers."""
    models, rng, U = regressions(), np.random.default_rng(1), np.ones((1, 4))
    old, everyone = models.storage, np.arange(3)
    before = models.average(U, everyone)
    commit([models.adding()])
    for _ in range(rows):
        models.learn(3, rng.normal(size=4), rng.normal(size=2))
    assert old.links[: old.counts[ROW_COUNT], OWNER].max(initial=0) < 3
    assert old.owner[: old.counts[DENSE_COUNT]].max(initial=0) < 3
    means = np.empty((3, 2))
    kernels.average(U, everyone, np.empty(3), means, old.where)
    assert np.array_equal(means, before)
