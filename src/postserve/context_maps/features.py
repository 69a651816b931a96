"""Features of x: any callable on one x, or any fitted scikit-learn transformer."""

import warnings
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput, StateMismatch
from postserve.types import FloatArray
from postserve.validation import errors_as_invalid_input, matrix, vector


class Transformer(Protocol):
    """What a fitted scikit-learn transformer offers: rows in, rows out."""

    def transform(self, X: Any) -> Any: ...


def is_transformer(features: Any) -> bool:
    """As isinstance with the protocol, which takes thirty times as long."""
    return hasattr(features, "transform")


Features: TypeAlias = Callable[[FloatArray], npt.ArrayLike] | Transformer


def raw_features(features: Any, x: FloatArray) -> Any:
    """The features of x, unchecked; x itself without features."""
    if features is None:
        return x
    if is_transformer(features):
        return raw_rows(features, x[None].copy())[0]
    return features(x.copy())  # a copy: a callable may work in place


def raw_rows(features: Transformer, X: Any) -> Any:
    """A transformer's output for many rows, as an array, unchecked."""
    rows = features.transform(X)
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def feature_rows(name: str, features: Any, X: FloatArray, dim: int) -> FloatArray:
    """The features of every row, checked to be `dim` finite numbers each."""
    if features is None:
        return X
    if len(X) == 0:  # which transformers refuse
        return np.empty((0, dim))
    if is_transformer(features):
        return matrix(name, raw_rows(features, X.copy()), len(X), dim)
    if len(X) == 1:
        return vector(name, features(X[0].copy()), dim)[None]
    return np.array([vector(name, features(x.copy()), dim) for x in X]).reshape(len(X), dim)


def count_features(features: Features | None, dim_x: int) -> int:
    """The number of features, computed at x = 0 (where their values need not be finite)."""
    if features is not None:
        check_callable("features", features)
    wanted = f"a callable or fitted transformer on {dim_x} numbers"
    with errors_as_invalid_input("features fail at x = 0", wanted), np.errstate(all="ignore"):
        shape = np.shape(raw_features(features, np.zeros(dim_x)))
    if len(shape) != 1 or shape[0] == 0:
        raise InvalidInput(f"features(x) has shape {shape}, wanted (n,)")
    return int(shape[0])


def check_callable(name: str, features: Any) -> None:
    """Refuse anything but a callable or a transformer."""
    if isinstance(features, type) or not (is_transformer(features) or callable(features)):
        raise InvalidInput(f"{name} is a {type(features).__name__}, wanted a callable or fitted transformer")


def probe(function: Any, dim_x: int) -> FloatArray:
    """A callable's answer at one fixed x, to recognise it when it is handed back on loading."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as that a transformer expected names
            answer = np.asarray(raw_features(function, np.linspace(0.1, 0.9, dim_x)), dtype=np.float64)
    except Exception:
        answer = np.empty(0)  # no answer, so nothing to compare
    return np.nan_to_num(answer.ravel())


def check_probe(name: str, now: FloatArray, stored: FloatArray) -> None:
    """Raise if the callable handed back does not answer as the saved one did."""
    if now.shape != stored.shape or not np.allclose(now, stored, atol=1e-9 * np.abs(stored).max(initial=0.0)):
        raise StateMismatch(f"the {name} handed back answers differently than when saved, wanted the same")
