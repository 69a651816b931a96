"""Ridge regressions of z on x, one per arm, with a part that all arms have in common."""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.changes import Effect, beside, one_version, replaced_by, whole
from postserve.context_maps.announced import Announced
from postserve.context_maps.base import TaughtByArm, axes_of, context_rows
from postserve.context_maps.features import Features, check_probe, count_features, feature_rows, probe
from postserve.errors import InvalidInput
from postserve.linalg import pending
from postserve.linalg.hybrid import HybridModels
from postserve.linalg.pending import PendingModels
from postserve.linalg.prior import as_given
from postserve.pieces import stacked
from postserve.state import Arrays, Stored, to_merge
from postserve.types import FloatArray, IntArray, Intercept, Prior, Ridge
from postserve.validation import generator, has_level, integer, intercept_option, number, vector
from postserve.validation import whole_numbers as ids_of

UNSEEN = 0
"""The model of all arms without a z: it never learns, so it has the common weights only."""


class _Learnt(NamedTuple):
    """The regressions, and the place of each arm's; replaced as a whole when places change.

    Widths are read from the regressions or, while rounds are announced, from these with their rows too.
    """

    models: HybridModels
    places: dict[int, int]
    widths: HybridModels | PendingModels[HybridModels]

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Learnt":
        models, widths = copy.deepcopy(self.models, memo), copy.deepcopy(self.widths, memo)
        return _Learnt(models, dict(self.places), widths)


class HybridMap(TaughtByArm):
    """phi_hat_a(x) = (Phi_0 + Delta_a)^T f(x): what one arm learns helps all, as far as arms are alike.

    The prior says how far that is: Phi_0 ~ N(0, sigma² Lambda_0^{-1}), Delta_a ~ N(0, sigma² Lambda_1^{-1}),
    both learnt from the evidence. An arm without a z is expected at Phi_0^T f(x), and is as uncertain as arms
    differ. `ridge`, `features` and `intercept` are those of `RidgeMap`, a numeric ridge being that of both
    levels. The radius is the posterior standard deviation; with a numeric ridge the noise of z counts as 1.

    >>> phi_hat = HybridMap(dim_x=1, dim_z=1, ridge=1.0)
    >>> phi_hat.update([1.0], 7, [3.0])
    >>> phi_hat.predict([1.0], arms=[7, 8])  # the other arm has learnt half as much
    array([[2.],
           [1.]])
    >>> phi_hat.radius([1.0], arms=[7, 8]).round(2)
    array([0.82, 1.29])
    """

    _copied_by_reference = ("features",)

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        *,
        ridge: Ridge = "evidence",
        features: Features | None = None,
        intercept: Intercept = "auto",
    ) -> None:
        self.dim_x = integer("dim_x", dim_x, least=1)
        self.dim_z = integer("dim_z", dim_z, least=1)
        self.features = features
        self._dim_f = count_features(features, self.dim_x)
        self.intercept = intercept_option(intercept)
        level = has_level("the radius", "posterior", self.intercept, ridge)
        self._constant = self.intercept is True  # a level's constant is appended by its frame
        blocks = {"features": self._dim_f, **({"intercept": 1} if level or self._constant else {})}
        models = HybridModels(
            1, blocks, n_outputs=self.dim_z, ridge=ridge, centring={"features": "shrunk"} if level else None
        )
        self.ridge = as_given(ridge)
        self._learnt = _Learnt(models, {}, models)
        self._forgot = False

    @property
    @one_version
    def prior(self) -> Prior:
        """The prior in force: noise variance of each output, lambda of each block of both levels."""
        return self._learnt.models.prior.in_force

    @property
    def order_free(self) -> bool:
        """False with evidence after an arm is removed: what it taught was weighed by an earlier prior."""
        return self._learnt.models.order_free

    @property
    def scale_free(self) -> bool:
        """True with evidence and no features."""
        return self._learnt.models.prior.evidence and self.features is None

    @property
    def column_free(self) -> bool:
        """True with a level and no features."""
        return self.shift_free and self.scale_free

    @property
    def shift_free(self) -> bool:
        """True with a level."""
        return self._learnt.models.frame is not None

    @one_version
    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat_a(x), one row per arm; x may have one row per arm too."""
        (models, *_), rows, places = self._asked(x, arms)
        return _with_level(models, models.average(rows, places))

    @one_version
    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The posterior standard deviation of phi_a(x), over all coordinates of z."""
        (models, _, widths), rows, places = self._asked(x, arms)
        return np.asarray(widths.project(rows, places).widths * np.linalg.norm(_noise(models)))

    @one_version
    def spread(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The posterior standard deviation of each coordinate of phi_a(x), one row per arm."""
        return self._predict_and_spread(x, arms)[1]

    def _predict_and_spread(self, x: npt.ArrayLike, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """`predict` and `spread`, for the price of one of them."""
        (models, _, widths), rows, places = self._asked(x, arms)
        means, deviations = widths.project(rows, places)
        return _with_level(models, means), np.asarray(deviations[:, None] * _noise(models))

    @one_version
    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """A draw of phi_a(x), or `size` of them along the first axis; Phi_0 is drawn once for all arms."""
        rng, n = generator(rng), 1 if size is None else integer("size", size, least=0)
        (models, _, widths), rows, places = self._asked(x, arms)
        unmoved = np.zeros((n * self.dim_z, len(places), 0))
        off = widths.deviations(rows, places, slice(0, 0), unmoved, rng)
        off = off.reshape(n, self.dim_z, len(places)).transpose(0, 2, 1) * _noise(models)
        drawn = _with_level(models, models.average(rows, places)) + off
        return np.asarray(drawn[0] if size is None else drawn)

    def _prepare_for(self, x: FloatArray, arm: int, z: FloatArray) -> list[Effect]:
        f, (models, places, widths) = self._f(x[None])[0], self._learnt
        if arm in places and widths is models:
            return models.prepare(places[arm], f, z)
        if self._guard.beside:
            return [partial(self._learn, f, arm, z)]
        twin = beside(self)
        twin._learn(f, arm, z)
        return [replaced_by(self, twin)]

    def _learn(self, f: FloatArray, arm: int, z: FloatArray) -> None:
        self._learnt.models.update(self._place(arm), f, z)
        self._follow()

    def _settling(self) -> list[Effect]:
        return self._learnt.models.settling()

    def _place(self, arm: int) -> int:
        """The place of an arm's regression, which is made if it has none."""
        models, places, _ = self._learnt
        if arm not in places:
            models.add()
            self._follow()
            places[arm] = models.n_models - 1
        return places[arm]

    @whole
    def remove_arm(self, arm: int) -> None:
        """Drop Delta_a and what is announced of it; what the arm taught Phi_0 stays."""
        if arm not in self._learnt.places:
            return
        models, places, widths = self._learnt
        gone = places.pop(arm)
        models.remove(gone)
        places = {one: at - (at > gone) for one, at in places.items()}
        self._learnt = _Learnt(models, places, pending.dropped(widths, gone))

    @whole
    def expect(self, x: npt.ArrayLike, arm: int) -> None:
        """A z at x is out: until it is withdrawn, the radius and draws count it as if it were known."""
        arm = integer("arm", arm, least=0)
        f, place = self._f(vector("x", x, self.dim_x)[None])[0], self._place(arm)
        self._learnt = self._learnt._replace(widths=pending.announce(self._learnt.widths, place, f))

    @whole
    def withdraw(self, x: npt.ArrayLike, arm: int) -> None:
        """Take back what `expect` announced: the z came, or never will."""
        arm, (_, places, widths) = integer("arm", arm, least=0), self._learnt
        f, place = self._f(vector("x", x, self.dim_x)[None])[0], places.get(arm, UNSEEN)
        if not isinstance(widths, PendingModels) or not widths.has(place, f):
            raise InvalidInput(f"x is {x!r} with arm {arm}, wanted one that was announced by expect()")
        self._learnt = self._learnt._replace(widths=pending.withdraw(widths, place, f))
        self._follow()

    def _has_announced(self, rounds: Sequence[Announced]) -> bool:
        """Whether all of these could be taken back."""
        _, places, widths = self._learnt
        rows = self._f_each(stacked([x for x, _ in rounds]))
        at = [places.get(arm, UNSEEN) for _, arm in rounds]
        return isinstance(widths, PendingModels) and widths.has_all(at, rows)

    @whole
    def _expect_all(self, X: FloatArray, arms: Sequence[int]) -> None:
        """As `expect` row by row."""
        places = np.array([self._place(arm) for arm in arms], dtype=np.int64)
        widths = pending.announce_all(self._learnt.widths, places, self._f_each(X))
        self._learnt = self._learnt._replace(widths=widths)

    @whole
    def _withdraw_all(self, X: FloatArray, arms: Sequence[int]) -> None:
        """As `withdraw` row by row, of rows that are announced."""
        _, known, widths = self._learnt
        places = np.array([known.get(arm, UNSEEN) for arm in arms], dtype=np.int64)
        self._learnt = self._learnt._replace(widths=pending.withdraw_all(widths, places, self._f_each(X)))
        self._follow()

    def settled(self) -> "HybridMap":
        """The map as if nothing were announced, to read from."""
        settled = copy.copy(self)
        settled._learnt = self._learnt._replace(widths=self._learnt.models)
        return settled

    def _follow(self, *, rebuild: bool = False) -> None:
        """Let the widths follow what the regressions learnt."""
        widths = self._learnt.widths
        if isinstance(widths, PendingModels):
            widths.rebuild() if rebuild else widths.follow()

    def is_taught(self, arm: int) -> bool:
        """Whether it has learnt a z, of any arm; without a level it starts at 0 instead."""
        frame = self._learnt.models.frame
        return frame is None or frame.started

    def ball_axes(self, arms: Sequence[int]) -> FloatArray | None:
        """With a level, in proportion to the noise of each output, so that its units do not matter."""
        return axes_of(_noise(self._learnt.models)) if self.shift_free else None

    @whole
    def refit_prior(self) -> None:
        """Learn the prior from the evidence now; does nothing if the ridge is a number."""
        self._learnt.models.prior.refit(self._learnt.models)
        self._follow()

    @whole
    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]."""
        keep = number("keep", keep, above=0.0, most=1.0)
        self._learnt.models.forget(keep)
        self._forgot |= keep < 1.0
        self._follow(rebuild=True)

    @whole
    def merge(self, other: "HybridMap") -> None:
        """Add what another map with the same settings has learnt, arm by arm."""
        other = to_merge(self, other)
        if not (self.order_free and other.order_free):
            raise InvalidInput("cannot merge hybrid maps after an arm was removed, wanted a numeric ridge")
        merged, theirs = copy.deepcopy(self), other._learnt
        at = np.array([UNSEEN, *(merged._place(arm) for arm in theirs.places)])
        merged._learnt.models.merge(theirs.models, at)
        merged._follow(rebuild=True)
        models, places, widths = merged._learnt
        if isinstance(theirs.widths, PendingModels):
            out, rows = theirs.widths.rows()
            widths = pending.announce_all(widths, at[out], rows)
        self._learnt = _Learnt(models, places, widths)
        self._forgot |= other._forgot

    @one_version
    def squared_errors(self) -> tuple[FloatArray, float]:
        """As if each pair were left out of the fit, by generalised cross-validation within each arm.

        Of the arms that are present. Nothing where some pairs were forgotten: it needs equal weights.
        """
        models, nothing = self._learnt.models, (np.zeros(self.dim_z), 0.0)
        arms = np.flatnonzero(models.pulls)
        if self._forgot or not len(arms):
            return nothing
        pulls, weights = models.pulls[arms], models.weights_of(arms)
        gram, moment, squares = models.own.centred_sums(arms)
        residual = squares - np.vecdot(weights, 2.0 * moment - weights @ gram)
        degrees_left = 1.0 - np.vecdot(gram, models.inverse_of(arms)).sum(axis=1) / pulls
        known = degrees_left >= 1e-6
        rounding = 1e-14 * squares  # a difference of large sums says no more than this
        errors = np.maximum(residual, rounding)[known] / degrees_left[known, None] ** 2
        return errors.sum(axis=0), float(pulls[known].sum())

    def _asked(self, x: npt.ArrayLike, arms: Sequence[int]) -> tuple[_Learnt, FloatArray, IntArray]:
        """What is learnt, x as centred rows of features, and the place of each arm."""
        models, places, _ = learnt = self._learnt
        ids = ids_of("arms", arms).tolist()
        rows = models.centred(self._f(context_rows(x, self.dim_x, ids)))
        return learnt, rows, np.array([places.get(arm, UNSEEN) for arm in ids], dtype=np.int64)

    def _f(self, X: FloatArray) -> FloatArray:
        """f(x) of every row."""
        F = feature_rows("features(x)", self.features, X, self._dim_f)
        return np.concatenate([F, np.ones((len(F), 1))], axis=1) if self._constant else F

    def _f_each(self, X: FloatArray) -> FloatArray:
        """f(x) of every row with the bits of one by one, as rounds are announced."""
        return self._f(X) if self.features is None else np.array([self._f(x[None])[0] for x in X])

    def _arrays(self) -> Arrays:
        models, places, widths = self._learnt
        forgot = {"forgot": np.array(True)} if self._forgot else {}
        arms = np.array(sorted(places, key=lambda arm: places[arm]), dtype=np.int64)
        found = {**models.arrays(), **pending.arrays(widths), **forgot}
        return {**found, "arms": arms, "probe": probe(self.features, self.dim_x)}

    def _restore(self, arrays: Stored) -> None:
        check_probe("features", probe(self.features, self.dim_x), arrays.take("probe", (None,)))
        arms = arrays.take("arms", (None,), np.int64).tolist()
        arrays.require(len(set(arms)) == len(arms), "arms", "each arm once")
        models = self._learnt.models
        models.restore(arrays, 1 + len(arms))
        places = {arm: place for place, arm in enumerate(arms, start=1)}
        widths = pending.restored(models, arrays, self._dim_f + self._constant)
        self._learnt = _Learnt(models, places, widths)
        self._forgot = arrays.has("forgot")


def _noise(models: HybridModels) -> FloatArray:
    """Each output's noise scale as learnt; 1 with a numeric ridge."""
    prior = models.prior
    return np.sqrt(prior.noise_variance) if prior.evidence else np.ones(len(prior.noise_variance))


def _with_level(models: HybridModels, means: FloatArray) -> FloatArray:
    """Means around the level of z, if there is one, as z are."""
    frame = models.frame
    return means if frame is None else np.asarray((means + frame.y[1]) + frame.y[0])
