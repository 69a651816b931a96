"""Features in which phi may be a line; each is a scikit-learn transformer, as a context map takes it."""

from functools import partial
from typing import Any

import numpy as np

from postserve.types import FloatArray

BENT = {
    "products": "squares and products of x explain",
    "bumps": "smooth bumps around 100 rounds explain",
}
"""What is tried beside a line, in words."""
_ROWS = "# x: the log's x as numbers, np.vstack([part.x for part in log.rounds()]) of a DecisionLog\n"
_PIPELINE = "from sklearn.pipeline import make_pipeline\n"
CODE = {
    "products": (
        _PIPELINE + "from sklearn.preprocessing import PolynomialFeatures, StandardScaler",
        _ROWS
        + "features = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False)).fit(x)",
        ", features=features",
    ),
    "bumps": (
        "from sklearn.kernel_approximation import Nystroem\n"
        + _PIPELINE
        + "from sklearn.preprocessing import StandardScaler",
        _ROWS + "features = make_pipeline(StandardScaler(), Nystroem(random_state=0)).fit(x)",
        ", features=features",
    ),
}
"""The same as Python: imports, features of the log's rows x, and the option of a map."""


def transformer(name: str, x: FloatArray) -> Any:
    """Fitted to x; None for a line."""
    from sklearn.kernel_approximation import Nystroem  # here, as it takes a second
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    made = {
        "products": partial(PolynomialFeatures, 2, include_bias=False),
        "bumps": partial(Nystroem, n_components=min(100, len(x)), random_state=0),
    }
    return make_pipeline(StandardScaler(), made[name]()).fit(x) if name in made else None


def rows_of(name: str, x: FloatArray) -> FloatArray:
    """The features of each row."""
    found = transformer(name, x)
    return x if found is None else np.asarray(found.transform(x))
