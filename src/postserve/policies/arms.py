"""The arms' reward models: one ridge regression per arm, and the ellipsoid around its weights."""

import copy
import math
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any, Literal, TypedDict

import numpy as np

from postserve import confidence, optimism
from postserve.changes import Effect, commit, replaced_by, shallow
from postserve.errors import InvalidInput
from postserve.linalg.frame import Centring
from postserve.linalg.hybrid import HybridModels
from postserve.linalg.kernels.models import UNDECIDED, widths_of_moving
from postserve.linalg.level import LevelModels
from postserve.linalg.pending import PendingModels, announce, announce_all, withdraw, withdraw_all
from postserve.linalg.prior import as_given
from postserve.linalg.ridge import RidgeModels, one_regression
from postserve.state import Stored, constructor_arguments
from postserve.types import ArmRadius, Ball, Exploration, FloatArray, IntArray, Intercept, Model, Ridge
from postserve.validation import has_level, intercept_option, number, one_of, one_of_or_number, vector

ONE, NOTHING = np.ones(1), np.zeros(1)
FULL: Centring = "full"
CENTRING: dict[str, Centring] = {"x": "shrunk", "intercept": "none"}
"""How blocks of u are centred; all others, which hold z or predictions of it, fully."""


class ArmOptions(TypedDict, total=False):
    """Keyword options of every linear policy; `ArmModels` describes them and has the defaults."""

    model: Model
    ridge: Ridge
    prior_weights: Sequence[float] | FloatArray | None
    arm_radius: ArmRadius
    exploration: Exploration
    intercept: Intercept
    noise_scale: float
    w_bound: float
    u_bound: float | None
    delta: float


class ArmModels:
    """Per arm: w_hat = A^{-1} b, A = Lambda + sum u u^T, b = sum r u, and ||w - w_hat||_A <= zeta.

    `ridge`: "evidence" (prior and noise learnt from the rounds), a number (the paper), or a pair for x and z
    (an intercept goes with x). `prior_weights`: what a unit of each z is worth, roughly, as far as that is
    known: the prior mean of z's weights in every arm, 0 by default (arms learn r - prior_weights·z, and so
    need few rewards where the guess is good). `arm_radius`, zeta: "posterior" (the noise scale: the width is
    then the posterior standard deviation), "determinant" or "closed_form" (the Confidence Ellipsoid lemma,
    from the noise scale R, `w_bound` >= ||w||, `u_bound` >= ||u|| and `delta` per arm), or a number.
    `exploration` multiplies zeta: a number, or "auto", which with "posterior" grows with arms and rounds
    (`confidence.posterior_exploration`; candidates that share weights count as at most dim) and otherwise is
    1. The noise scale is `noise_scale`, or learnt with evidence. `intercept`: "level" (rewards vary around a
    common level, which is integrated out, and around an intercept of each arm, a block of its own; columns
    are centred and have their own units, so that constants added to rewards or z, and the units of any
    column, change no choice), True (a constant 1 in u, a block of its own), False (rewards vary around 0) or
    "auto" ("level" with evidence and no theory's radius, else False). `model`: "disjoint" (one w per arm),
    "shared" (one w for all arms, for arms that differ in their contexts and for decision sets, where `n_arms`
    is None) or "hybrid" (w_a = w_0 + delta_a, after Li et al. 2010: what an arm teaches w_0 helps all arms
    and stays when it is removed; `w_bound` then bounds all these weights together).
    """

    def __init__(
        self,
        n_arms: int | None,
        blocks: Mapping[str, int],
        *,
        model: Model = "disjoint",
        ridge: Ridge = "evidence",
        prior_weights: Sequence[float] | FloatArray | None = None,
        arm_radius: ArmRadius = "posterior",
        exploration: Exploration = "auto",
        intercept: Intercept = "auto",
        noise_scale: float = 1.0,
        w_bound: float = 2.0,
        u_bound: float | None = None,
        delta: float = 0.05,
    ) -> None:
        forms = ("posterior", "determinant", "closed_form")
        self.arm_radius = one_of_or_number("arm_radius", arm_radius, forms, least=0.0)
        if arm_radius == "closed_form" and u_bound is None:
            raise InvalidInput("u_bound is None, wanted a number with arm_radius='closed_form'")
        self.exploration = one_of_or_number("exploration", exploration, ("auto",), least=0.0)
        self.noise_scale = number("noise_scale", noise_scale, least=0.0)
        self.w_bound = number("w_bound", w_bound, least=0.0)
        self.u_bound = None if u_bound is None else number("u_bound", u_bound, above=0.0)
        self.delta = number("delta", delta, above=0.0, below=1.0)
        self.intercept = intercept_option(intercept)
        level = has_level("arm_radius", self.arm_radius, self.intercept, ridge)
        if level or self.intercept is True:
            blocks = {**blocks, "intercept": 1}
        self._constant = self.intercept is True  # a level's constant is appended by its frame
        self.model = one_of("model", model, ("disjoint", "shared", "hybrid"))
        centring = dict.fromkeys(blocks, FULL) | CENTRING if level else None
        self.models = _models(self.model, n_arms, blocks, _block_ridges(ridge, blocks), centring)
        # Where widths are read from: the models, or, while rounds are announced, these with their rows too.
        self.widths: RidgeModels | HybridModels | PendingModels[Any] = self.models
        self.ridge = as_given(ridge)
        self._own = self.model != "shared"  # whether each arm has a model, in the arm's slot
        self._zeros = np.zeros(n_arms or 0, dtype=np.int64)
        block = self.models.prior.block
        self._blocks = [block(name) for name in blocks if self._constant or name != "intercept"]
        self.dim_u = self._blocks[-1].stop
        starts = [block(name).start for name in blocks if name not in ("x", "intercept")]
        self._moving = np.array(starts, dtype=np.int64), blocks.get("z", 0)
        self.prior_weights, self._beta_0 = _prior_weights(prior_weights, blocks.get("z", 0))
        self._z = block("z") if prior_weights is not None else None  # None: nothing is known of its weights
        self._reward = np.zeros(1)  # an array of one, made once
        self._follows_rule = self.exploration == "auto" and self.arm_radius == "posterior"
        self.multiplier = 1.0 if self.exploration == "auto" else self.exploration
        constant = not isinstance(self.arm_radius, str)
        self._constant_radius = np.array([self.multiplier * self.arm_radius]) if constant else None

    def __deepcopy__(self, memo: dict[int, Any]) -> "ArmModels":
        twin = shallow(self)
        twin.models, twin.widths = copy.deepcopy(self.models, memo), copy.deepcopy(self.widths, memo)
        twin._reward = self._reward.copy()
        return twin

    @property
    def scale_free(self) -> bool:
        """Whether scores scale exactly with the rewards, and do not change with the scale of u.

        Prior weights would have to be scaled, too.
        """
        return self.models.prior.evidence and self.arm_radius == "posterior" and self._z is None

    def stack(self, *parts: FloatArray) -> FloatArray:
        """u = (parts, and 1 for an intercept) in rows: one row if no part has rows."""
        if self._constant:
            parts = (*parts, ONE)
        for rows in parts:
            if rows.ndim == 2:
                break
        else:
            return (parts[0] if len(parts) == 1 else np.concatenate(parts))[None]
        if len(parts) == 1:
            return rows
        U = np.empty((len(rows), self.dim_u))
        for block, part in zip(self._blocks, parts, strict=True):
            U[:, block] = part
        return U

    def prepare(self, slot: int, *parts: FloatArray, reward: float) -> list[Effect]:
        """One more round in the least squares of Equation (3), whose sums are those of (4): its effects."""
        u = parts[0] if len(parts) == 1 and not self._constant else self.stack(*parts)[0]
        self._reward[0] = reward if self._z is None else reward - float(u[self._z] @ self._beta_0)
        return self.models.prepare(slot if self._own else 0, u, self._reward)

    def prepare_batch(self, slots: IntArray, U: FloatArray, rewards: FloatArray) -> list[Effect]:
        """`prepare`, round after round."""
        rewards = rewards - self._known_part(U)
        return self.models.prepare_batch(self.models_of(slots), U, rewards[:, None])

    def learn(self, slot: int, *parts: FloatArray, reward: float) -> None:
        """`prepare`, and its effects."""
        commit(self.prepare(slot, *parts, reward=reward))
        commit(self.models.settling())

    def follow(self) -> None:
        """Count what is out, after rounds were learnt or withdrawn."""
        if isinstance(self.widths, PendingModels):
            self.widths.follow()

    def expect(self, slot: int, u: FloatArray) -> None:
        """A round is out: its row u counts in the widths."""
        self.widths = announce(self.widths, slot if self._own else 0, u)

    def expect_all(self, slots: IntArray, U: FloatArray) -> None:
        """As `expect` row by row."""
        self.widths = announce_all(self.widths, slots if self._own else np.zeros_like(slots), U)

    def withdraw(self, slot: int, u: FloatArray) -> None:
        """A row that counted in the widths does so no more."""
        self.widths = withdraw(self.widths, slot if self._own else 0, u)

    def withdraw_all(self, slots: IntArray, U: FloatArray) -> None:
        """As `withdraw` row by row."""
        self.widths = withdraw_all(self.widths, slots if self._own else np.zeros_like(slots), U)

    def renew_widths(self) -> None:
        """Count what is out again, after a change of the models other than by learning rounds."""
        if isinstance(self.widths, PendingModels):
            self.widths.rebuild()

    def models_of(self, slots: IntArray) -> IntArray:
        """The regression of each slot."""
        if self._own:
            return slots
        return self._zeros if len(slots) == len(self._zeros) else np.zeros(len(slots), dtype=np.int64)

    def prepare_add(self) -> list[Effect]:
        """One more arm, in the last slot: the effects."""
        if not self._own:
            return []
        if self.widths is self.models:
            return [self.models.adding()]
        twin = copy.deepcopy(self)
        commit([twin.models.adding()])
        twin.renew_widths()
        return [replaced_by(self, twin)]

    def remove(self, slot: int) -> None:
        """Remove an arm; what it taught a shared model stays."""
        if self._own:
            self.models.remove(slot)
            if isinstance(self.widths, PendingModels):
                self.widths.drop(slot)

    def restore(self, stored: Stored, n_arms: int) -> None:
        """Take back what the models' `arrays` gave."""
        self.models.restore(stored, n_arms if self._own else 1)
        self.renew_widths()

    def noise(self) -> float:
        """R: sigma as learnt, or the given noise scale."""
        prior = self.models.prior
        return math.sqrt(prior.noise_variance.item(0)) if prior.evidence else self.noise_scale

    def radius(self, slots: IntArray) -> FloatArray:
        """zeta of each of the eligible arms times exploration; one number if it is the same for all."""
        if not self._follows_rule:
            return self.zeta(slots)
        n, dim = len(slots), self.dim_u
        candidates, n_weights = (n, n * dim) if self._own else (min(n, dim), dim)
        rounds = self.models.updates  # which neither forgetting nor removing an arm lowers
        return np.array([confidence.posterior_exploration(candidates, n_weights, rounds) * self.noise()])

    def zeta(self, slots: IntArray) -> FloatArray:
        """zeta of each arm times exploration, "auto" counting as 1; one number if it is the same for all."""
        if self._constant_radius is not None:
            return self._constant_radius
        prior = self.models.prior
        noise = math.sqrt(prior.noise_variance.item(0)) if prior.evidence else self.noise_scale
        if self.arm_radius == "posterior":
            return np.array([self.multiplier * noise])
        ellipsoid = self.models.ellipsoid(self.models_of(slots))
        ridge, bounds = ellipsoid.ridge, {"delta": self.delta, "w_bound": self.w_bound}
        common: Any = {"ridge": ridge, "noise_scale": noise, **bounds}
        if self.arm_radius == "determinant":
            zeta = confidence.arm_radius_determinant(log_det_ratio=ellipsoid.log_det, **common)
        else:
            assert self.u_bound is not None  # checked on construction
            n, longest = ellipsoid.pulls, self.u_bound * ellipsoid.stretch
            zeta = confidence.arm_radius_closed_form(pulls=n, dim_u=len(ridge), u_bound=longest, **common)
        return np.asarray(self.multiplier * zeta)

    def score(self, U: FloatArray, slots: IntArray, zeta: FloatArray) -> FloatArray:
        """max over the ellipsoid of u·w = u·w_hat + zeta ||u||_{A^{-1}}, for row i under slots[i].

        Scores that cannot be the best may be inexact, here and below (`Regressions.score`).
        """
        if self._z is None or len(U) == 1:  # the same for all arms
            return self.widths.score(U, slots if self._own else self.models_of(slots), zeta)
        means, widths = self.widths.project(self.models.centred(U), self.models_of(slots))
        return np.asarray(means[:, 0] + self._known_part(U) + zeta * widths)

    def posterior_score(
        self, U: FloatArray, slots: IntArray, zeta: FloatArray, spread: FloatArray, n_phi: int
    ) -> FloatArray:
        """u·w_hat + sqrt(zeta² (u^T A^{-1} u + tr(M V)) + c² beta^T V beta).

        The blocks of u that hold phi_hat(x) have an independent error with covariance V: `spread` has the
        standard deviations, one row per slot or one for all, or one root R of V = R R^T per slot. beta and M
        are the parts of w_hat and A^{-1} for these blocks. zeta is c sigma, c being the exploration. Only
        "auto" is another one for phi: the expected maximum of n_phi standard normals, n_phi being the number
        of different phi, which grows no more with the rounds.
        """
        (starts, size), models, U_centred = self._moving, self.models_of(slots), self.models.centred(U)
        if spread.ndim == 3:
            means, widths, beta, _, M = self.widths.project_around(U_centred, models, starts, size)
            squares = widths**2 + np.maximum((spread * (M @ spread)).sum(axis=(1, 2)), 0.0)
            moved = np.square((beta + self._beta_0)[:, None] @ spread).sum(axis=(1, 2))
        else:
            means, squares, moved = self.widths.project_moving(
                U_centred, models, starts, spread**2, self._beta_0
            )
        c = max(1.0, confidence.expected_maximum(n_phi)) if self._follows_rule else self.multiplier
        widths_of_moving(float(zeta[0]), float(c), squares, moved)
        return np.asarray(squares + means + self._known_part(U))

    def argmax_scores(self, U: FloatArray, slots: IntArray, zeta: FloatArray) -> IntArray:
        """The index of each row's best `score`, UNDECIDED at a near tie, or if arms share weights."""
        if self.model == "disjoint" and isinstance(self.widths, RidgeModels):
            return self.widths.argmax_scores(self.models.centred(U), slots, zeta)
        return np.full(len(U), UNDECIDED)

    def optimistic(
        self,
        U: FloatArray,
        slots: IntArray,
        zeta: FloatArray,
        ball: Ball,
        *,
        kind: Literal["joint", "bound"],
    ) -> FloatArray:
        """max over the ellipsoid of w and over the ball of z, or a bound above it; Algorithm 1, line 3.

        The blocks of u that hold phi_hat(x) move with z, within the ball.
        """
        models, known, U = self.models_of(slots), self._known_part(U), self.models.centred(U)
        means, widths, beta, cross, block = self.widths.project_around(U, models, *self._moving)
        if self._z is not None:
            means, beta = means + known, beta + self._beta_0
        radius = np.empty(len(slots))
        radius[:] = zeta  # np.full takes four times as long
        if ball.axes is not None:  # in other units of z the ellipsoid is a ball
            axes = ball.axes
            beta *= axes
            cross *= axes
            block *= axes[:, :, None] * axes[:, None, :]
        candidates = optimism.Candidates(means, widths, radius, ball.radius, beta, cross, block)
        return optimism.bound(candidates) if kind == "bound" else optimism.joint_contenders(candidates)

    def weights(self, slots: IntArray) -> FloatArray:
        """w_hat of each slot; an intercept is the reward where x and z are 0."""
        weights, frame = self.models.weights_of(self.models_of(slots))[:, 0], self.models.frame
        weights = weights if frame is None else frame.raw_weights(weights, frame.y_centre)
        if self._z is not None:
            weights = weights.copy()
            weights[:, self._z] += self._beta_0
        return weights

    def beta(self, slots: IntArray) -> FloatArray:
        """The block of w_hat for z, of each slot."""
        weights = self.models.weights_of(self.models_of(slots))[:, 0]
        return weights[:, self.models.prior.block("z")] + self._beta_0

    def average(self, U: FloatArray, slots: IntArray) -> FloatArray:
        """u·w_hat, for row i under slots[i]; with a level, relative to a reward that is the same for all."""
        average = self.models.average(self.models.centred(U), self.models_of(slots))[:, 0]
        return average + self._known_part(U)

    def surprise(self, slot: int, *parts: FloatArray, reward: float) -> float:
        """The reward less what the arm expected at u.

        0 before the first reward of all, if the level is learnt.
        """
        frame, U = self.models.frame, self.stack(*parts)
        reward -= float(np.sum(self._known_part(U)))
        mean = float(self.models.average(self.models.centred(U), self.models_of(np.array([slot])))[0, 0])
        if frame is None:
            return reward - mean
        return float(frame.outputs(np.array([reward]))[0]) - mean if frame.started else 0.0

    def _known_part(self, U: FloatArray) -> FloatArray:
        """What the prior weights say of the reward at each u; 0 if there are none."""
        return NOTHING if self._z is None else U[:, self._z] @ self._beta_0

    def deviations(
        self, U: FloatArray, slots: IntArray, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), w ~ N(w_hat, A^{-1}), of each row under its slot: (size, rows).

        In draw m, moves[m, i] is added to z in row i. Shared weights are drawn once for all rows.
        """
        z, U = self.models.prior.block("z"), self.models.centred(U)
        if self._own or isinstance(self.widths, HybridModels):
            return self.widths.deviations(U, slots, z, moves, rng)
        off = self.widths.draws(len(moves), rng)
        if (U[:1] == U).all():  # equal rows tie; BLAS may end equal columns of a product in different bits
            U = U[:1]
        return np.asarray(off @ U.T + np.vecdot(moves, off[:, None, z]))


def check_options(policy: object, options: Mapping[str, Any]) -> None:
    """Raise in the policy's name if it has no such option."""
    if unknown := [name for name in options if name not in DEFAULTS]:
        has = constructor_arguments(type(policy)).items()
        wanted = ", ".join(name for name, default in has if default is not Parameter.empty)
        raise TypeError(f"{type(policy).__name__} has no option {', '.join(unknown)}, wanted {wanted}")


DEFAULTS: dict[str, Any] = dict(ArmModels.__init__.__kwdefaults__ or {})


def _prior_weights(weights: Any, dim_z: int) -> tuple[list[float] | None, FloatArray]:
    """The setting, and the weights themselves."""
    if weights is None:
        return None, np.zeros(dim_z)
    if not dim_z:
        raise InvalidInput(f"prior_weights is {weights!r}, wanted None: there is no z here")
    values = vector("prior_weights", weights, dim_z)
    return values.tolist(), values


def _models(
    model: Model,
    n_arms: int | None,
    blocks: Mapping[str, int],
    ridge: Ridge,
    centring: Mapping[str, Centring] | None,
) -> RidgeModels | HybridModels:
    if model == "shared":
        return one_regression(blocks, ridge=ridge, centring=centring)
    if n_arms is None:
        raise InvalidInput(f"model is {model!r}, wanted 'shared' if n_arms is None: candidates have no ids")
    if model == "hybrid":
        return HybridModels(n_arms, blocks, ridge=ridge, centring=centring)
    kind = RidgeModels if centring is None else LevelModels
    return kind(n_arms, blocks, ridge=ridge, centring=centring)


def _block_ridges(ridge: Ridge, blocks: Mapping[str, int]) -> Ridge:
    """One number per block: of a pair, the first for x and the intercept, the second for z and z_hat."""
    ridge = ridge.tolist() if isinstance(ridge, np.ndarray) else ridge
    if not isinstance(ridge, list | tuple):
        return ridge
    if len(ridge) != 2 or "z" not in blocks:
        wanted = "a number or a pair for x and z" if "z" in blocks else "a number: there is no z here"
        raise InvalidInput(f"ridge is {ridge!r}, wanted {wanted}")
    return [ridge[0] if name in ("x", "intercept") else ridge[1] for name in blocks]
