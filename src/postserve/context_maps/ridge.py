"""Recursive ridge regression of z on x or on features of it."""

from numbers import Real

import numpy as np
import numpy.typing as npt

from postserve import confidence
from postserve.context_maps.base import SharedMap
from postserve.context_maps.features import Features, apply_features, check_probe, count_features, probe
from postserve.errors import InvalidInput
from postserve.linalg.ridge import ONLY, RidgeModels
from postserve.state import Arrays, Stored, refuse_other_settings
from postserve.types import FloatArray, MapRadius, Prior, Ridge
from postserve.validation import flag, number, one_of, vector


class RidgeMap(SharedMap):
    """phi_hat(x) = Phi^T f(x), Phi = F^{-1} sum f z^T, F = Lambda + sum f f^T.

    `ridge`: "evidence" (one lambda a block shared by all outputs, each in units of its own second
    moment), a number, or with an intercept a pair (features, intercept). `features`: any callable
    on x or fitted scikit-learn transformer. `map_radius`, the radius e, times `radius_scale`:
    "posterior" (the posterior standard deviation), "determinant" (the self-normalised bound, from
    `noise_scale` R_j, the bound `row_bound` on each output's weights S_j, and `delta`),
    "assumption" (Assumption 1 with `map_rate`), or a number that multiplies ||f||_{F^{-1}}. With
    evidence the learnt noise takes the place of `noise_scale`.

    >>> phi_hat = RidgeMap(dim_x=1, dim_z=1, features=lambda x: x**2)
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     phi_hat.update([x], 0, [3 * x**2])
    >>> phi_hat.predict([5.0], arms=[0, 1]).round(1)
    array([[74.8],
           [74.8]])
    """

    _shared = ("features",)

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        *,
        ridge: Ridge = "evidence",
        features: Features | None = None,
        intercept: bool = False,
        map_radius: MapRadius = "posterior",
        radius_scale: float = 1.0,
        noise_scale: npt.ArrayLike = 1.0,
        row_bound: npt.ArrayLike = 1.0,
        delta: float = 0.05,
        map_rate: float = 0.5,
    ) -> None:
        super().__init__(dim_x, dim_z)
        self.features = features
        self.intercept = flag("intercept", intercept)
        self._dim_f = count_features(features, self.dim_x)
        if isinstance(map_radius, str):
            one_of("map_radius", map_radius, ("posterior", "determinant", "assumption"))
        else:
            map_radius = number("map_radius", map_radius, least=0.0)
        self.map_radius = map_radius
        self.radius_scale = number("radius_scale", radius_scale, least=0.0)
        self.noise_scale = _per_output("noise_scale", noise_scale, self.dim_z)
        self.row_bound = _per_output("row_bound", row_bound, self.dim_z)
        self.delta = number("delta", delta, above=0.0, below=1.0)
        self.map_rate = number("map_rate", map_rate, above=0.0, most=0.5)
        blocks = {"features": self._dim_f, **({"intercept": 1} if self.intercept else {})}
        self._models = RidgeModels(1, blocks, n_outputs=self.dim_z, ridge=ridge)
        self._settings = {
            "dim_x": self.dim_x,
            "dim_z": self.dim_z,
            "ridge": ridge if isinstance(ridge, str) else np.asarray(ridge, dtype=np.float64).tolist(),
            "features": features,
            "intercept": self.intercept,
            "map_radius": map_radius,
            "radius_scale": self.radius_scale,
            "noise_scale": self.noise_scale.tolist(),
            "row_bound": self.row_bound.tolist(),
            "delta": self.delta,
            "map_rate": self.map_rate,
        }

    @property
    def scale_free(self) -> bool:
        """True with evidence, the posterior radius and no features."""
        return self._models.evidence and self.features is None and self.map_radius == "posterior"

    @property
    def order_free(self) -> bool:
        """True: the sums do not know the order in which they were added."""
        return True

    @property
    def prior(self) -> Prior:
        """The prior in force: noise variance of each output, lambda of each block."""
        return self._models.prior

    @property
    def weights(self) -> FloatArray:
        """Phi, of shape (dim_z, features), a trailing column for the intercept."""
        weights: FloatArray = self._models.weights[0].copy()
        return weights

    def refit_prior(self) -> None:
        """Learn the prior from the evidence now; nothing to do with a numeric ridge."""
        self._models.refit_prior()

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]."""
        self._models.forget(number("keep", keep, above=0.0, most=1.0))

    def merge(self, other: "RidgeMap") -> None:
        """Add what another map of the same settings has learnt."""
        refuse_other_settings(self, other)
        self._models.merge(other._models)

    def _predict(self, x: FloatArray) -> FloatArray:
        z_hat: FloatArray = self._models.project(self._f(x)[None], ONLY).means[0]
        return z_hat

    def _radius(self, x: FloatArray) -> float:
        models = self._models
        width = float(models.project(self._f(x)[None], ONLY).widths[0])
        noise = self._noise()
        if self.map_radius == "posterior":
            e = confidence.map_radius_posterior(width=width, noise_scale=noise)
        elif self.map_radius == "determinant":
            e = confidence.map_radius_determinant(
                width=width,
                log_det_ratio=float(models.log_det[0]),
                ridge=models.ridge,
                noise_scale=noise,
                row_bound=self.row_bound,
                delta=self.delta,
                dim_z=self.dim_z,
            )
        elif self.map_radius == "assumption":
            e = confidence.map_radius_assumption(
                width=width,
                pairs=float(models.pulls[0]),
                noise_scale=noise,
                delta=self.delta,
                map_rate=self.map_rate,
            )
        else:
            e = np.asarray(self.map_radius * width)
        return self.radius_scale * float(e)

    def _spread(self, x: FloatArray) -> FloatArray:
        """The posterior standard deviation of each output, as wide as the radius is."""
        noise = self._noise()
        total = float(np.linalg.norm(noise))
        return noise * (self._radius(x) / total) if total > 0.0 else super()._spread(x)

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        self._models.update(0, self._f(x), z)

    def _f(self, x: FloatArray) -> FloatArray:
        f = apply_features(self.features, x, self._dim_f)
        return np.append(f, 1.0) if self.intercept else f

    def _noise(self) -> FloatArray:
        return np.sqrt(self._models.noise_variance) if self._models.evidence else self.noise_scale

    def _arrays(self) -> Arrays:
        return {**self._models.arrays(), "probe": probe(self.features, self.dim_x)}

    def _restore(self, arrays: Stored) -> None:
        check_probe("features", self.features, self.dim_x, arrays.take("probe", (None,)))
        self._models.restore(arrays, 1)


def _per_output(name: str, value: npt.ArrayLike, dim_z: int) -> FloatArray:
    single = isinstance(value, Real | np.bool_)
    scales = vector(name, [number(name, value)] * dim_z if single else value, dim_z).copy()
    if (scales < 0.0).any():
        raise InvalidInput(f"{name} is {value!r}, wanted numbers of at least 0")
    return scales
