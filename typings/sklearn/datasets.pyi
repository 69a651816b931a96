from collections.abc import Sequence
from typing import Any

def load_digits() -> Any: ...
def load_wine() -> Any: ...
def load_breast_cancer() -> Any: ...
def make_classification(
    n_samples: int = ...,
    *,
    n_features: int = ...,
    n_informative: int = ...,
    n_redundant: int = ...,
    n_classes: int = ...,
    n_clusters_per_class: int = ...,
    weights: Sequence[float] | None = ...,
    random_state: int | None = ...,
) -> tuple[Any, Any]: ...
