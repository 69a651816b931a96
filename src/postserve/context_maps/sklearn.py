"""Any scikit-learn regressor as a context map."""

import copy
import json
import math
import warnings
from typing import Any

import numpy as np

from postserve.changes import whole
from postserve.context_maps.pairs import ALL, WINDOW, Pairs, PairsMap
from postserve.errors import InvalidInput, StateMismatch
from postserve.state import Arrays, Stored
from postserve.types import FloatArray
from postserve.validation import errors_as_invalid_input, flag, integer, matrix, number

BATCH = 64
"""Predictions for this many pairs at once take little longer than for one."""
FAR = 1e20
"""The length of a step that partial_fit may not survive; shorter ones are not checked, which takes time."""


class SklearnMap(PairsMap):
    """phi_hat by a regressor: partial_fit where it has one, else refits when the pairs have grown enough.

    The regressor is cloned, gets a fixed random_state if it has none, and is wrapped in a
    MultiOutputRegressor if it predicts a single number. Before the first fit (after `first_fit` pairs; with
    partial_fit the first pair) the mean of the pairs is predicted. Refits use all pairs, and come when there
    are `refit_growth` times as many as at the last one: if a fit takes time proportional to its pairs, all
    fits together take refit_growth/(refit_growth - 1) times that of the last. One that fails warns, and is
    tried again at the next refit. On loading, hand back the fitted `regressor` if it has partial_fit,
    otherwise any equal one, which is refitted on the kept pairs. With `centred`, fits learn z minus its mean
    (partial_fit: minus the first z), so that the level of z does not matter; None: unless scikit-learn says
    that the regressor needs positive numbers. The radius is Assumption 1's, and grows with the distance from
    the newest 1,000 pairs; without partial_fit its errors are found for 64 pairs at once, since most of the
    time goes into predictions.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> phi_hat = SklearnMap(dim_x=1, dim_z=2, regressor=DecisionTreeRegressor())
    >>> for x in range(16):
    ...     phi_hat.update([x], 0, [x % 2, x])
    >>> phi_hat.predict([7.0])
    array([[1., 7.]])
    """

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        regressor: Any,
        *,
        first_fit: int = 8,
        refit_growth: float = 2.0,
        centred: bool | None = None,
        ridge: float = 1.0,
        map_rate: float = 0.5,
        delta: float = 0.05,
        radius_scale: float = 1.0,
    ) -> None:
        super().__init__(dim_x, dim_z, ridge=ridge, map_rate=map_rate, delta=delta, radius_scale=radius_scale)
        self.first_fit = integer("first_fit", first_fit, least=1)
        self.refit_growth = number("refit_growth", refit_growth, above=1.0)
        self.regressor = _prepare(regressor, self.dim_z)
        self.incremental = hasattr(self.regressor, "partial_fit")
        self.centred = _learns_any_number(self.regressor) if centred is None else flag("centred", centred)
        self._given = regressor
        self._pairs = Pairs(dim_x, dim_z, capacity=WINDOW if self.incremental else ALL)
        self._fitted_on = (0, 0)  # the range of pairs used by the present fit
        self._tried = 0  # the number of pairs at the last attempt to refit
        self._centre = np.zeros(self.dim_z)  # what the regressor predicts is relative to it
        self._compared = 0  # the number of pairs whose errors are known

    @whole
    def forget(self, keep: float) -> None:
        """Let the next refit use only the newest share `keep` of the pairs that counted so far."""
        if self.incremental:
            raise InvalidInput(
                f"{self.regressor!r} learns by partial_fit and cannot forget, wanted one that is refitted"
            )
        keep = number("keep", keep, above=0.0, most=1.0)
        if keep < 1.0:
            self._compare()
        super().forget(keep)

    @property
    def shift_free(self) -> bool:
        """As `centred` is."""
        return self.centred

    def _predict_relative(self, X: FloatArray) -> FloatArray:
        if self._fitted_on[1] == 0 or len(X) == 0:  # regressors refuse to predict nothing
            return np.repeat(self._mean()[None], len(X), axis=0)
        rows = np.asarray(self.regressor.predict(X)).reshape(len(X), -1)
        return matrix("regressor.predict(x)", rows, len(X), self.dim_z) + self._centre

    def _learn_relative(self, x: FloatArray, z: FloatArray) -> None:
        at_once = self.incremental or self._fitted_on[1] == 0  # before the first fit the mean moves
        error = self._errors_at(x[None], z)[0] if at_once else np.zeros(self.dim_z)
        taught = self._taught(x, z, error) if self.incremental else self.regressor
        self._keep(x, z, error)
        seen = self._pairs.seen
        if self.incremental:
            self.regressor, self._fitted_on = taught, (0, seen)
        due = not self.incremental and seen >= max(self.first_fit, self.refit_growth * self._tried)
        if at_once:
            self._compared = seen
        elif due or seen - self._compared >= BATCH:
            self._compare()
        if due:
            self._tried = seen
            try:
                self._fit(self._pairs.first, seen)
            except ValueError as failure:
                warnings.warn(
                    f"{type(self.regressor).__name__} fails on {seen} pairs ({failure}); it is tried again "
                    f"at {math.ceil(self.refit_growth * seen)}, wanted a larger first_fit or "
                    "another centred",
                    stacklevel=4,
                )

    def _taught(self, x: FloatArray, z: FloatArray, error: FloatArray) -> Any:
        """A copy of the regressor that has learnt one more pair.

        Refused if it cannot predict at x afterwards: a step of gradient descent, which is proportional to
        error and x, went so far that it would not find back.
        """
        wanted = "a pair that it learns, such as one on the scale of the others"
        with errors_as_invalid_input("regressor.partial_fit(x, z) fails", wanted):
            taught = copy.deepcopy(self.regressor)
            taught.partial_fit(x[None], self._target(z[None]))
            if np.abs(error).max() * (1.0 + np.vdot(x, x)) > FAR:
                rows = np.asarray(taught.predict(x[None])).reshape(1, -1)
                matrix("regressor.predict(x), after learning x,", rows, 1, self.dim_z)
        return taught

    def _error_squares(self) -> FloatArray:
        if self._compared == self._pairs.seen:
            return super()._error_squares()
        X, Z = self._pairs.at(np.arange(self._compared, self._pairs.seen))
        return np.asarray(super()._error_squares() + (self._errors_at(X, Z) ** 2).sum(axis=0))

    def _compare(self) -> None:
        """Add the errors of the newest pairs under the present fit."""
        self._errors.squares[0] = self._error_squares()
        self._compared = self._pairs.seen

    def _fit(self, start: int, stop: int) -> None:
        from sklearn.base import clone

        X, Z = self._pairs.at(np.arange(start, stop))
        centre = Z.mean(axis=0) if self.centred else np.zeros(self.dim_z)
        fitted = clone(self.regressor)
        fitted.fit(X, self._target(Z - centre))
        fitted.predict(X[:1])  # some, such as nearest neighbours, only now notice too few pairs
        self.regressor, self._centre, self._fitted_on = fitted, centre, (start, stop)

    def _target(self, Z: FloatArray) -> FloatArray:
        return Z[:, 0] if self.dim_z == 1 else Z

    def _mean(self) -> FloatArray:
        seen, n_kept = self._pairs.seen, self._pairs.n_kept
        newest_first = np.arange(seen - n_kept, seen)[::-1]
        return np.asarray(self._pairs.at(newest_first)[1].mean(axis=0)) if n_kept else np.zeros(self.dim_z)

    def _arrays(self) -> Arrays:
        return {
            "regressor": np.array(_parameters(self.regressor)),
            "fitted_on": np.array([*self._fitted_on, self._tried], dtype=np.int64),
            "compared": np.array([self._compared], dtype=np.int64),
            **super()._arrays(),
        }

    def _restore(self, arrays: Stored) -> None:
        got, wanted = _parameters(self.regressor), arrays.text("regressor")
        if got != wanted:
            raise StateMismatch(f"the regressor handed back is {got}, wanted {wanted}")
        self.centred = self.centred and arrays.has("first_z")  # states of earlier versions hold z as it is
        if self.incremental and not arrays.has("usual_distance"):  # and kept one pair
            self._pairs = Pairs(self.dim_x, self.dim_z, capacity=1)
        super()._restore(arrays)
        start, stop, self._tried = (int(end) for end in arrays.take("fitted_on", (3,), np.int64))
        sound = 0 <= start <= stop <= self._pairs.seen and 0 <= self._tried <= self._pairs.seen
        arrays.require(sound, "fitted_on", "a range of the pairs")
        self._compared = self._pairs.seen
        if arrays.has("compared"):  # in states of earlier versions all errors are known
            self._compared = int(arrays.take("compared", (1,), np.int64)[0])
            sound = self._pairs.seen - BATCH < self._compared <= self._pairs.seen and self._compared >= 0
            arrays.require(sound, "compared", "a count of the pairs")
        if self.incremental and stop > 0:
            self.regressor = _fitted_copy(self._given)
            self._fitted_on = (start, stop)
        elif stop > 0:
            self._fit(start, stop)


def _prepare(regressor: Any, dim_z: int) -> Any:
    """A clone that is deterministic and predicts dim_z numbers."""
    from sklearn.base import clone, is_classifier
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.utils import get_tags

    fits = all(hasattr(regressor, verb) for verb in ("fit", "predict", "get_params"))
    if not fits or isinstance(regressor, type) or is_classifier(regressor):
        raise InvalidInput(f"regressor is a {type(regressor).__name__}, wanted a scikit-learn regressor")
    own = clone(regressor)
    unset = [name for name, value in own.get_params().items() if value is None]
    own.set_params(**dict.fromkeys([name for name in unset if name.endswith("random_state")], 0))
    if dim_z > 1 and not get_tags(own).target_tags.multi_output:
        own = MultiOutputRegressor(own)
    return own


def _learns_any_number(regressor: Any) -> bool:
    """Whether z may be negative, as far as the regressor says."""
    from sklearn.utils import get_tags

    parts = [regressor, getattr(regressor, "estimator", regressor)]
    return not any(get_tags(part).target_tags.positive_only for part in parts)


def _parameters(regressor: Any) -> str:
    """Class and parameters, to recognise a regressor; of objects among them only the type."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        known = value is None or isinstance(value, bool | int | float | str | list | tuple)
        return value if known else type(value).__name__

    parameters = {name: plain(value) for name, value in sorted(regressor.get_params().items())}
    return json.dumps([type(regressor).__name__, parameters], default=lambda value: type(value).__name__)


def _fitted_copy(regressor: Any) -> Any:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(regressor)
    except NotFittedError as error:
        raise StateMismatch(
            f"the regressor handed back is an unfitted {type(regressor).__name__}, wanted the fitted one"
        ) from error
    return copy.deepcopy(regressor)
