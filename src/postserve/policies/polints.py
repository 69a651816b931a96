"""PoLinTS: poLinUCB's model with Thompson sampling in place of optimism; beyond the paper."""

from collections.abc import Iterator
from typing import Unpack

import numpy as np

from postserve.context_maps.features import Features
from postserve.policies.arms import ArmOptions, check_options
from postserve.policies.choosing import draw
from postserve.policies.polinucb import PoLinUCB
from postserve.protocols import ContextMap
from postserve.types import FloatArray, IntArray, MissingZ
from postserve.validation import integer, number

AT_ONCE, LEAST = 1_000_000, 16
"""Numbers in memory at once: draws come in portions of that size, of at least 16 draws."""


class PoLinTS(PoLinUCB):
    """Draws phi and every w_a from their posteriors, and takes the arm that is best in the draw.

    Algorithm 1 with line 3 replaced: phi(x) by the map's `sample`, w_a ~ N(w_hat_a, zeta² A_a^{-1}), zeta
    being `arm_radius` times `exploration`, where "auto" is 1: draws from the posterior explore by themselves.
    How often each arm is best is counted in `draws` draws, and the arm is drawn from these shares, so its
    propensity is exact and logs can be evaluated. A share `floor` of all choices is spread evenly over the k
    eligible arms, so each has a propensity of at least floor/k. The counting draws have their own stream,
    from `seed` and the number of updates; `select` takes one number from its rng. The other options are those
    of `PoLinUCB`.

    >>> from postserve import RidgeMap
    >>> policy = PoLinTS(n_arms=2, context_map=RidgeMap(dim_x=1, dim_z=1), floor=0.1)
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [2 * x], reward=beta * 2 * x)
    >>> policy.propensities([5.0])
    array([0.95, 0.05])
    """

    def __init__(
        self,
        n_arms: int | None,
        context_map: ContextMap,
        *,
        draws: int = 1000,
        floor: float = 0.001,
        seed: int = 0,
        missing_z: MissingZ = "raise",
        x_features: Features | None = None,
        z_features: Features | None = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        check_options(self, options)  # which has no optimism: draws replace it
        super().__init__(
            n_arms, context_map, missing_z=missing_z, x_features=x_features, z_features=z_features, **options
        )
        self.draws = integer("draws", draws, least=1)
        self.floor = number("floor", floor, least=0.0, most=1.0)
        self.seed = integer("seed", seed, least=0)

    _update, _update_batch = PoLinUCB._update, PoLinUCB._update_batch  # it learns as poLinUCB does

    def _pick(self, scores: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
        return draw(scores, rng)

    def _chances(self, scores: FloatArray) -> FloatArray:
        return scores

    def _radius(self, slots: IntArray) -> FloatArray:
        """Line 7 for draws: with "auto" the posterior itself, not so many of its standard deviations."""
        return self._arms.zeta(slots)

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """The probability of each slot: how often it is best, plus its share of the floor."""
        wins = np.zeros(len(slots))
        for scores in self._drawn_scores(x, slots):
            best = scores == scores.max(axis=1, keepdims=True)
            wins += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)  # ties share a draw
        return (1.0 - self.floor) * wins / self.draws + self.floor / len(slots)

    def _drawn_scores(self, x: FloatArray, slots: IntArray) -> Iterator[FloatArray]:
        """Line 3 in a draw: (x, phi(x))·w_a of each slot, phi and w_a being drawn; (draws, slots)."""
        rng = np.random.default_rng([self.seed, self._arms.models.updates])
        z_hat = self._phi_hat.predict(x, slots)
        if z_hat.ndim == 1:
            z_hat = np.repeat(z_hat[None], len(slots), axis=0)
        u_hat = self._arms.stack(x, z_hat)
        means, beta = self._arms.average(u_hat, slots), self._arms.beta(slots)
        zeta = self._radius(slots)
        portion = max(LEAST, AT_ONCE // z_hat.size)
        for start in range(0, self.draws, portion):
            size = min(portion, self.draws - start)
            moves = self._phi_hat.sample(x, slots, size, rng) - z_hat
            off = self._arms.deviations(u_hat, slots, moves, rng)
            yield means + np.vecdot(moves, beta) + zeta * off
