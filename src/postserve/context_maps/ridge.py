"""Recursive ridge regression of z on x or on features of it."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve import confidence
from postserve.changes import Effect, one_version, whole
from postserve.context_maps.announced import Announced
from postserve.context_maps.base import SharedMap, axes_of, share_out
from postserve.context_maps.features import Features, check_probe, count_features, feature_rows, probe
from postserve.errors import InvalidInput
from postserve.linalg import pending
from postserve.linalg.pending import PendingModels
from postserve.linalg.prior import as_given
from postserve.linalg.ridge import RidgeModels, one_regression
from postserve.state import Arrays, Stored, to_merge
from postserve.steps import fast_path
from postserve.types import FloatArray, Intercept, MapRadius, Prior, Ridge
from postserve.validation import (
    has_level,
    integer,
    intercept_option,
    number,
    one_of_or_number,
    scales,
    vector,
)


class RegressionMap(SharedMap, abstract=True):
    """A map that is one regression, with a prior that may be learnt."""

    _models: RidgeModels
    noise_scale: Any

    @property
    @one_version
    def prior(self) -> Prior:
        """The prior in force: noise variance of each output, lambda of each block."""
        return self._models.prior.in_force

    @property
    def shift_free(self) -> bool:
        """True with a level."""
        return self._models.frame is not None

    @whole
    def refit_prior(self) -> None:
        """Learn the prior from the evidence now; does nothing if the ridge is a number."""
        self._models.prior.refit(self._models)

    @whole
    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]."""
        self._models.forget(number("keep", keep, above=0.0, most=1.0))

    def is_taught(self, arm: int) -> bool:
        """Whether it has learnt a z; without a level it starts at 0 instead."""
        return self._models.frame is None or bool(self._models.pulls[0] > 0.0)

    def ball_axes(self, arms: Sequence[int]) -> FloatArray | None:
        """With a level, in proportion to the noise of each output, so that its units do not matter."""
        return None if self._models.frame is None else axes_of(self._noise())

    def _spread(self, X: FloatArray) -> FloatArray:
        """The posterior standard deviation of each output, as wide as the radius is."""
        return share_out(self._radius(X), self._noise())

    def _settling(self) -> list[Effect]:
        return self._models.settling()

    def _noise(self) -> FloatArray:
        """Each output's noise scale, learnt or given."""
        prior = self._models.prior
        return np.sqrt(prior.noise_variance) if prior.evidence else self.noise_scale


class RidgeMap(RegressionMap):
    """phi_hat(x) = Phi^T f(x), Phi = F^{-1} sum f z^T, F = Lambda + sum f f^T.

    `ridge`: "evidence" (one lambda per block, shared by all outputs, each in units of its own variance), a
    number, or with an intercept a pair (features, intercept). `intercept`: "level" (z varies around a level
    with a flat prior; columns of features are centred and have their own units), True (a constant feature,
    with a ridge of its own), False or "auto" ("level" with evidence and no theory's radius, else False).
    `features`: any callable on x or fitted scikit-learn transformer. `map_radius`, the radius e, is
    multiplied by `radius_scale`: "posterior" (the posterior standard deviation), "determinant" (the
    self-normalised bound, from `noise_scale` R_j, the bound `row_bound` S_j on each output's weights, and
    `delta`), "assumption" (Assumption 1 with `map_rate`), or a number that multiplies ||f||_{F^{-1}}. With
    evidence the learnt noise replaces `noise_scale`.

    >>> phi_hat = RidgeMap(dim_x=1, dim_z=1, features=lambda x: x**2)
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     phi_hat.update([x], 0, [3 * x**2])
    >>> phi_hat.predict([5.0], arms=[0, 1]).round(1)
    array([[74.6],
           [74.6]])
    """

    _copied_by_reference = ("features",)
    order_free = True  # the order of summands does not matter

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        *,
        ridge: Ridge = "evidence",
        features: Features | None = None,
        intercept: Intercept = "auto",
        map_radius: MapRadius = "posterior",
        radius_scale: float = 1.0,
        noise_scale: npt.ArrayLike = 1.0,
        row_bound: npt.ArrayLike = 1.0,
        delta: float = 0.05,
        map_rate: float = 0.5,
    ) -> None:
        super().__init__(dim_x, dim_z)
        self.features = features
        self._dim_f = count_features(features, self.dim_x)
        kinds = ("posterior", "determinant", "assumption")
        self.map_radius = one_of_or_number("map_radius", map_radius, kinds, least=0.0)
        self.radius_scale = number("radius_scale", radius_scale, least=0.0)
        self.noise_scale = scales("noise_scale", noise_scale, self.dim_z)
        self.row_bound = scales("row_bound", row_bound, self.dim_z)
        self.delta = number("delta", delta, above=0.0, below=1.0)
        self.map_rate = number("map_rate", map_rate, above=0.0, most=0.5)
        self.intercept = intercept_option(intercept)
        level = has_level("map_radius", self.map_radius, self.intercept, ridge)
        self._constant = self.intercept is True  # a level's constant is appended by its frame
        self._plain = features is None and not self._constant  # then f(x) is x
        blocks = {"features": self._dim_f, **({"intercept": 1} if level or self._constant else {})}
        self._models = one_regression(
            blocks, n_outputs=self.dim_z, ridge=ridge, centring={"features": "shrunk"} if level else None
        )
        # Where widths are read from: the models, or, while rounds are announced, these with their rows too.
        self._widths: RidgeModels | PendingModels[RidgeModels] = self._models
        self.ridge = as_given(ridge)
        self._forgot = False

    @property
    def scale_free(self) -> bool:
        """True with evidence, the posterior radius and no features."""
        return self._models.prior.evidence and self.features is None and self.map_radius == "posterior"

    @property
    def column_free(self) -> bool:
        """True with a level, the posterior radius and no features."""
        return self._models.frame is not None and self.scale_free

    @property
    @one_version
    def weights(self) -> FloatArray:
        """Phi, (dim_z, features), with a last column for the intercept: z where all features are 0."""
        weights: FloatArray = self._models.weights_of()[0]
        frame = self._models.frame
        return weights if frame is None else frame.raw_weights(weights, frame.y_centre)

    @whole
    def merge(self, other: "RidgeMap") -> None:
        """Add what another map with the same settings has learnt."""
        other = to_merge(self, other)
        self._models.merge(other._models)
        self._forgot |= other._forgot
        if isinstance(self._widths, PendingModels):
            self._widths.rebuild()
        if isinstance(other._widths, PendingModels):
            self._widths = pending.announce_all(self._widths, *other._widths.rows())

    @whole
    def expect(self, x: npt.ArrayLike, arm: int) -> None:
        """A z at x is out: until it is withdrawn, the radius and draws count it as if it were known."""
        integer("arm", arm, least=0)
        f = _f(self, vector("x", x, self.dim_x)[None])[0]
        self._widths = pending.announce(self._widths, 0, f)

    @whole
    def withdraw(self, x: npt.ArrayLike, arm: int) -> None:
        """Take back what `expect` announced: the z came, or never will."""
        integer("arm", arm, least=0)
        f = _f(self, vector("x", x, self.dim_x)[None])[0]
        if not isinstance(self._widths, PendingModels) or not self._widths.has(0, f):
            raise InvalidInput(f"x is {x!r} with arm {arm}, wanted one that was announced by expect()")
        self._widths = pending.withdraw(self._widths, 0, f)
        self._follow()

    def _has_announced(self, rounds: Sequence[Announced]) -> bool:
        """Whether all of these could be taken back."""
        rows = _f_each(self, [x for x, _ in rounds])
        return isinstance(self._widths, PendingModels) and self._widths.has_all([0] * len(rows), rows)

    @whole
    def _expect_all(self, X: FloatArray, arms: Sequence[int]) -> None:
        """As `expect` row by row."""
        places = np.zeros(len(arms), dtype=np.int64)
        self._widths = pending.announce_all(self._widths, places, _f_each(self, X))

    @whole
    def _withdraw_all(self, X: FloatArray, arms: Sequence[int]) -> None:
        """As `withdraw` row by row, of rows that are announced."""
        places = np.zeros(len(arms), dtype=np.int64)
        self._widths = pending.withdraw_all(self._widths, places, _f_each(self, X))
        self._follow()

    def settled(self) -> "RidgeMap":
        """The map as if nothing were announced, to read from."""
        settled = self
        if self._widths is not self._models:
            settled = copy.copy(self)
            settled._widths = self._models
        return settled

    @whole
    def refit_prior(self) -> None:
        """Learn the prior from the evidence now; does nothing if the ridge is a number."""
        super().refit_prior()
        self._follow()

    def _follow(self) -> None:
        if isinstance(self._widths, PendingModels):
            self._widths.follow()

    @whole
    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]."""
        keep = number("keep", keep, above=0.0, most=1.0)
        super().forget(keep)
        self._forgot |= keep < 1.0
        if isinstance(self._widths, PendingModels):
            self._widths.rebuild()

    def _predict(self, X: FloatArray) -> FloatArray:
        return self._models.predict(X if self._plain else _f(self, X))

    def _radius(self, X: FloatArray) -> FloatArray:
        return self._radius_of(self._widths.project(self._models.centred(_f(self, X))).widths)

    @fast_path
    def _ball(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        Z_hat, widths = self._widths.predict_with_widths(X if self._plain else _f(self, X))
        return Z_hat, self._radius_of(widths)

    @fast_path
    def _predict_and_spread(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        Z_hat, widths = self._widths.predict_with_widths(X if self._plain else _f(self, X))
        if self.map_radius == "posterior":
            return Z_hat, (self.radius_scale * widths)[:, None] * self._noise()
        return Z_hat, share_out(self._radius_of(widths), self._noise())

    def _radius_of(self, width: FloatArray) -> FloatArray:
        """e for a given width ||f||_{F^{-1}}."""
        models, common = self._models, {"width": width, "noise_scale": self._noise()}
        if self.map_radius == "posterior":
            e = confidence.map_radius_posterior(**common)
        elif self.map_radius == "determinant":
            e = confidence.map_radius_determinant(
                log_det_ratio=float(models.log_det[0]),
                ridge=models.ridge,
                row_bound=self.row_bound,
                delta=self.delta,
                dim_z=self.dim_z,
                **common,
            )
        elif self.map_radius == "assumption":
            pairs, rate = float(models.pulls[0]), self.map_rate
            e = confidence.map_radius_assumption(pairs=pairs, delta=self.delta, map_rate=rate, **common)
        else:
            e = np.asarray(self.map_radius * width)
        return self.radius_scale * e

    def _deviations(self, X: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """From draws of Phi, so that similar rows have correlated deviations."""
        if (X[:1] == X).all():  # one context: its width is enough
            return super()._deviations(X[:1], size, rng)
        F = self._models.centred(_f(self, X))
        off = self._widths.draws(size * self.dim_z, rng) @ F.T
        width = self._widths.project(F).widths
        scale = self._spread(X) / np.where(width > 0.0, width, 1.0)[:, None]
        return np.asarray(off.reshape(size, self.dim_z, len(X)).transpose(0, 2, 1) * scale)

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        self._models.update(0, x if self._plain else _f(self, x[None])[0], z)
        if self._widths is not self._models:
            self._follow()

    @fast_path
    def _prepare(self, x: FloatArray, z: FloatArray) -> list[Effect]:
        if self._widths is not self._models:
            return super()._prepare(x, z)
        return self._models.prepare(0, x if self._plain else _f(self, x[None])[0], z)

    @fast_path
    def _learn_batch(self, X: FloatArray, Z: FloatArray) -> None:
        self._models.update_batch(np.zeros(len(X), dtype=np.int64), _f(self, X), Z)
        self._follow()

    @one_version
    def squared_errors(self) -> tuple[FloatArray, float]:
        """As if each pair were left out of the fit, by generalised cross-validation.

        Nothing where the fit goes through all pairs, or where some were forgotten: it needs equal weights.
        """
        models, pairs = self._models, float(self._models.pulls[0])
        weights, sums = models.weights_of()[0], models.centred_sums(np.zeros(1, dtype=np.int64))
        gram, moment, squares = (part[0] for part in sums)
        residual = squares - np.vecdot(weights, 2.0 * moment - weights @ gram)
        degrees_left = 1.0 - float(np.vdot(gram, models.inverse_of()[0])) / max(pairs, 1.0)
        if degrees_left < 1e-6 or self._forgot:
            return np.zeros(self.dim_z), 0.0
        rounding = 1e-14 * squares  # a difference of large sums says no more than this
        return np.maximum(residual, rounding) / degrees_left**2, pairs

    def _arrays(self) -> Arrays:
        forgot = {"forgot": np.array(True)} if self._forgot else {}
        announced = pending.arrays(self._widths)
        return {**self._models.arrays(), **announced, **forgot, "probe": probe(self.features, self.dim_x)}

    def _restore(self, arrays: Stored) -> None:
        check_probe("features", probe(self.features, self.dim_x), arrays.take("probe", (None,)))
        self._models.restore(arrays, 1)
        self._widths = pending.restored(self._models, arrays, self._dim_f + self._constant)
        self._forgot = arrays.has("forgot")


def _f(phi_hat: RidgeMap, X: FloatArray) -> FloatArray:
    """f(x) of every row."""
    if phi_hat._plain:
        return X
    F = feature_rows("features(x)", phi_hat.features, X, phi_hat._dim_f)
    return np.concatenate([F, np.ones((len(F), 1))], axis=1) if phi_hat._constant else F


def _f_each(phi_hat: RidgeMap, X: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """f(x) of every row with the bits of one by one, as rounds are announced."""
    return (
        _f(phi_hat, np.asarray(X))
        if phi_hat.features is None
        else np.array([_f(phi_hat, x[None])[0] for x in X])
    )
