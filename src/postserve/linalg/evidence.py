"""The prior learnt from the evidence: one variance per block of u, and the noise variance.

With S = sum u u^T, b = sum r u, rho = sum r² and n of each arm, A = S + Lambda, m = A^{-1} b and
lambda_j = sigma²/tau_j², it minimises over p = (log sigma², log tau_j²)

    1/2 sum_a [ n log sigma² + log det A - log det Lambda + (rho - b^T A^{-1} b)/sigma² ]
        + 1/2 ||(p - p0)/sd||²

pooled over arms. The outputs of a map share gram and lambda, each with a sigma² of its own: their objectives
add up. For given lambda the best sigma² needs no factorisation, so Newton's method goes over log lambda
alone. Everything happens in the data's own units, v_j = sum_a tr(S_jj)/N of a block and v_r = sum_a rho/N of
an output, so that p0 is a constant and scaling the data by powers of two changes no bit of the result. Rows
in a frame have variances for units, and columns with their own (`Units`).

A level that all arms share has a flat prior and is integrated out. With M the inverse covariance of the
outputs given the level, in units of sigma², it needs A_0 = 1^T M 1 and c = 1^T M y beside Q = y^T M y, so it
is enough to regress three outputs, y, 1 and y + 1: each of these is quadratic in the output.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.linalg.cholesky import factorise, factorise_all
from postserve.linalg.kernels import evidence as kernels
from postserve.linalg.kernels.evidence import CENTRE_NOISE, LOG_FLOOR
from postserve.linalg.kernels.models import MAX_LOSS
from postserve.types import BoolArray, FloatArray, IntArray

TINY_SQUARE = 1e-200
"""A second moment below this counts as zero: its inverse squared must be finite."""
MAX_EVALUATIONS = 20
LONGEST_STEP = 4.0
FARTHEST_START = 100.0
"""A start further than this from p0 in log lambda fitted other units: they have changed by many orders."""
FLATTEST = 0.01
"""The least curvature that Newton's method uses; the hyperprior alone gives about 0.04."""


class Sums(NamedTuple):
    """Per model: gram (K, d, d), moment (K, outputs, d), squares (K, outputs), pulls (K,)."""

    gram: FloatArray
    moment: FloatArray
    squares: FloatArray
    pulls: FloatArray


class Rows(NamedTuple):
    """The rows of models with few of them, model by model: they take less room than their sums."""

    models: IntArray  # (n,), the model of each
    u: FloatArray  # (n, d)
    y: FloatArray  # (n, outputs)
    rounds: float  # how many rounds they count for


class Units(NamedTuple):
    """Second moments v_j of the blocks and v_r of the outputs; zero before their first value.

    The unit of a column is v_j times its entry of `columns`: where columns have their own units, that is
    their mean square, and v_j counts them.
    """

    blocks: FloatArray
    outputs: FloatArray
    columns: FloatArray | None = None


class Fit(NamedTuple):
    """The result of a refit: lambda_j of each block, sigma² of each output, and the evaluations it took."""

    ridge: FloatArray
    noise_variance: FloatArray
    zero_blocks: BoolArray  # blocks whose inputs were all zero so far
    evaluations: int


class Posterior(NamedTuple):
    """What the evidence needs of the posterior of all weights at one lambda; P inverts its precision."""

    log_det: float  # of the precision, relative to the prior's
    residual: FloatArray  # (outputs,), rho - b^T P b
    trace: FloatArray  # (blocks,), tr_j(P)
    frobenius: FloatArray  # (blocks, blocks), ||P_ij||²_F
    norm: FloatArray  # (outputs, blocks), ||m_j||²
    cross: FloatArray  # (outputs, blocks, blocks), m_i^T P_ij m_j


class _Point(NamedTuple):
    """The objective at log lambda, with the best log sigma² for it."""

    log_ridge: FloatArray  # (blocks,)
    log_noise: FloatArray  # (outputs,)
    value: float
    rounding: float  # how far the value can be trusted: sums of squares cancel in it
    gradient: FloatArray
    hessian: FloatArray
    noise_slope: FloatArray  # (outputs, blocks), d log sigma² / d log lambda along that best


def mean_squares(u: FloatArray, y: FloatArray, rounds: float, blocks: Sequence[int]) -> Units:
    """v_j and v_r from sums of squares of each coordinate of u and of each output."""
    if rounds == 0.0:
        return Units(np.zeros(len(blocks)), np.zeros(len(y)))
    return Units(or_zero(np.add.reduceat(u, _starts(blocks)) / rounds), or_zero(y / rounds))


def or_zero(squares: FloatArray) -> FloatArray:
    """Mean squares as they are, and 0 where their inverse would not be finite."""
    return np.where(squares > TINY_SQUARE, squares, 0.0)


def in_units(sums: Sums, scales: "Scales") -> Sums:
    """The sums in units, of those blocks and outputs that have one."""
    coordinates, scale, alive, outputs = scales
    gram, moment, squares, pulls = sums
    if not (coordinates.all() and alive.all()):
        gram, moment = gram[:, coordinates][:, :, coordinates], moment[:, alive][:, :, coordinates]
        squares = squares[:, alive]
    gram, moment = gram * (scale[:, None] * scale), moment * (outputs[:, None] * scale)
    return Sums(gram, moment, squares * outputs**2, pulls)


class Scales(NamedTuple):
    """Which coordinates are in a block with a unit, and one over their own; the same for the outputs."""

    coordinates: BoolArray
    scale: FloatArray
    alive: BoolArray
    outputs: FloatArray


def scales_of(blocks: Sequence[int], units: Units) -> Scales:
    """How sums get their units."""
    active, alive = units.blocks > 0.0, units.outputs > 0.0
    coordinates, unit = np.repeat(active, blocks), np.repeat(units.blocks, blocks)
    unit = (unit if units.columns is None else unit * units.columns)[coordinates]
    scale = 1.0 / np.sqrt(np.where(unit > 0.0, unit, np.inf))
    return Scales(coordinates, scale, alive, 1.0 / np.sqrt(units.outputs[alive]))


def equal_parts(n_blocks: int) -> FloatArray:
    """One over the share that p0 gives to each block: the same for all."""
    return np.full(n_blocks, float(n_blocks))


def centre(units: Units, parts: FloatArray | None = None) -> Fit:
    """The prior before any refit: p0 at the present units."""
    parts = equal_parts(len(units.blocks)) if parts is None else parts
    ridge = np.where(units.blocks > 0.0, CENTRE_NOISE * parts * units.blocks, 1.0)
    return Fit(ridge, CENTRE_NOISE * units.outputs, units.blocks == 0.0, 0)


def maximise(objective: "Objective", *, tolerance: float, start: FloatArray | None = None) -> Fit:
    """The best prior under an objective, by Newton's method in log lambda.

    The search starts at lambda = `start`, with p0 for blocks where that is 0 or far away, or at p0.
    """
    units = objective.units
    active, alive = units.blocks > 0.0, units.outputs > 0.0
    if not active.any() or not alive.any():
        return centre(units, objective.parts)
    log_ridge = np.log(CENTRE_NOISE) - objective.log_tau2_centre
    if start is not None:
        known = np.flatnonzero(start[active])
        given = np.log(start[active][known] / units.blocks[active][known])
        near = np.abs(given - log_ridge[known]) <= FARTHEST_START
        log_ridge[known[near]] = given[near]
    log_ridge, log_noise = _minimise(objective, log_ridge, tolerance)
    ridge, noise = np.ones(len(active)), np.zeros(len(alive))
    ridge[active] = np.exp(log_ridge) * units.blocks[active]
    noise[alive] = np.exp(log_noise) * units.outputs[alive]
    return Fit(ridge, noise, ~active, objective.evaluations)


class Objective:
    """The negative log evidence and its hyperprior, in units, over the blocks that are not zero.

    `rows` belong to models that are not among the sums. The models' weights are independent of each other; a
    subclass with another model has its own `posterior` and `n_weights`, the number of weights per lambda.
    `parts` is one over the share of each block in p0. With a `level`, the last coordinate of the sums is the
    constant, whether it is in a block of its own or in none.
    """

    def __init__(
        self,
        sums: Sums,
        blocks: Sequence[int],
        units: Units,
        rows: Rows | None = None,
        *,
        parts: FloatArray | None = None,
        level: bool = False,
    ) -> None:
        pulled = sums.pulls > 0.0  # arms never pulled contribute nothing
        self.units, self.level = units, level
        self.n_outputs = int((units.outputs > 0.0).sum())
        sums = sums if pulled.all() else Sums(*(part[pulled] for part in sums))
        self.scales = scales_of(blocks, units)
        scaled = self._scaled(sums)
        self.sizes = np.array(blocks)[units.blocks > 0.0]
        self.starts = _starts(self.sizes)
        self.gram, self.moment, self.dense_squares = scaled.gram, scaled.moment, scaled.squares
        self.squares = scaled.squares.sum(axis=0)
        self.rounds = float(sums.pulls.sum())
        self.rows, self.row_starts = None, np.zeros(1, dtype=np.int64)
        if rows is not None and len(rows.u):
            coordinates, scale, alive, outputs = self.scales
            u, y = rows.u[:, : len(coordinates)][:, coordinates] * scale, rows.y[:, alive] * outputs
            y = and_level(y, rows.u[:, -1:]) if level else y
            self.rows = rows._replace(u=np.ascontiguousarray(u), y=np.ascontiguousarray(y))
            firsts = np.flatnonzero(np.diff(rows.models, prepend=-1))
            self.row_starts = np.append(firsts, len(rows.u))
            self.squares += (self.rows.y**2).sum(axis=0)
            self.rounds += rows.rounds
        self.n_weights = (len(self.gram) + len(self.row_starts) - 1) * self.sizes
        self.parts = equal_parts(len(units.blocks)) if parts is None else parts
        self.log_tau2_centre = -np.log(self.parts[units.blocks > 0.0])
        self.evaluations = 0
        self._known: tuple[FloatArray, FloatArray, FloatArray, float] | None = None

    def _scaled(self, sums: Sums) -> Sums:
        """The sums in units; with a level, those of the outputs y, 1 and y + 1."""
        if not self.level:
            return in_units(sums, self.scales)
        coordinates, scale, alive, outputs = self.scales
        dim = len(coordinates)
        ones = sums.gram[:, :dim, -1][:, None, coordinates] * scale
        totals, n = sums.moment[:, alive, -1] * outputs, sums.gram[:, -1, -1:]
        sums = sums._replace(gram=sums.gram[:, :dim, :dim], moment=sums.moment[:, :, :dim])
        scaled = in_units(sums, self.scales)
        squares = np.concatenate([scaled.squares, n, scaled.squares + 2.0 * totals + n], axis=1)
        return scaled._replace(moment=and_level(scaled.moment, ones, axis=1), squares=squares)

    def set_known_point(
        self, log_ridge: FloatArray, inverse: FloatArray, weights: FloatArray, log_det: float
    ) -> None:
        """Give the models' inverses and weights at one lambda, not in units: it needs no factorisation.

        log_det is the sum over these models, relative to the prior's.
        """
        unit = np.repeat(self.units.blocks, self.sizes)
        size = np.sqrt(unit if self.units.columns is None else unit * self.units.columns)
        solution = weights * size / np.sqrt(self.units.outputs)[:, None]
        inverse = inverse * (size[:, None] * size)
        if self.level:  # the weights of the output 1, the last column of u, are e - lambda A^{-1} e
            g = -np.exp(log_ridge[-1]) * inverse[:, -1:]
            g[:, :, -1] += 1.0
            solution = and_level(solution, g, axis=1)
        self._known = log_ridge, inverse, solution, log_det

    def posterior(self, log_ridge: FloatArray) -> Posterior:
        """The sums over models that depend on lambda: O(dim³) each, or O(n² dim) with only n rows."""
        ridge = np.repeat(np.exp(log_ridge), self.sizes)
        outputs, n, dim = len(self.squares), len(log_ridge), len(ridge)  # with a level, of y, 1 and y + 1
        log_det, residual = -float((self.n_weights * log_ridge).sum()), np.zeros(outputs)
        parts = np.zeros(n), np.zeros((n, n)), np.zeros((outputs, n)), np.zeros((outputs, n, n))
        edges = np.append(self.starts, dim)
        lost = np.zeros(len(self.row_starts) - 1, dtype=np.bool_)
        if self.rows is not None:
            _, u, y, _ = self.rows
            work = np.empty(u.shape), np.empty(y.shape), np.empty((outputs, dim)), np.empty((len(u), n))
            log_det += kernels.add_row_blocks(
                self.row_starts, u, y, ridge, edges, MAX_LOSS, *work, lost, residual, *parts
            )
            log_det += float((~lost).sum() * (self.sizes * log_ridge).sum())
        for arm in np.flatnonzero(lost):
            assert self.rows is not None  # some were lost
            own = slice(self.row_starts[arm], self.row_starts[arm + 1])
            u, y = self.rows.u[own], self.rows.y[own]
            moment, squares = y.T @ u, (y**2).sum(axis=0)
            factor = factorise(u.T @ u, ridge, moment)
            log_det += factor.log_det
            sums = moment[None], squares[None]
            kernels.add_blocks(factor.inverse[None], factor.solution[None], *sums, edges, residual, *parts)
        if self._known and np.array_equal(log_ridge, self._known[0]):
            _, inverse, solution, known_log_det = self._known
            log_det += known_log_det + len(inverse) * float((self.sizes * log_ridge).sum())
        else:
            inverse, solution, log_dets = factorise_all(self.gram, ridge, self.moment)
            log_det += float(log_dets.sum())
        sums = self.moment, self.dense_squares
        kernels.add_blocks(inverse, solution, *sums, edges, residual, *parts)
        return Posterior(log_det, residual, *parts)

    def posterior_of_outputs(self, log_ridge: FloatArray) -> Posterior:
        """`posterior` with the level, if there is one, integrated out."""
        full = self.posterior(log_ridge)
        if not self.level:
            return full
        log_level = kernels.integrate_level(self.n_outputs, float(self.squares[self.n_outputs]), *full[1:])
        return full._replace(log_det=full.log_det + log_level)

    def at(self, log_ridge: FloatArray) -> _Point:
        """Value, gradient and Hessian."""
        self.evaluations += 1
        outputs, n = self.n_outputs, len(log_ridge)
        log_det, *parts = self.posterior_of_outputs(log_ridge)
        log_noise, gradient = np.zeros(outputs), np.zeros(n)
        hessian, noise_slope = np.zeros((n, n)), np.zeros((outputs, n))
        arrays = (*parts, log_noise, gradient, hessian, noise_slope)
        centre, weights, degrees = self.log_tau2_centre, self.n_weights, self._degrees
        value = kernels.differentiate(log_ridge, centre, weights, degrees, log_det, *arrays)
        rounding = 1e-14 * (float((self.squares[:outputs] * np.exp(-log_noise)).sum()) + abs(value))
        return _Point(log_ridge, log_noise, value, rounding, gradient, hessian, noise_slope)

    @property
    def _degrees(self) -> float:
        """The number of rounds, less one for a level; where rounds were forgotten, not below half of them."""
        return max(self.rounds - 1.0, 0.5 * self.rounds) if self.level else self.rounds

    def _blocks(self, values: FloatArray) -> FloatArray:
        """Sums over each block along the last axis."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=-1))

    def _block_pairs(self, values: FloatArray) -> FloatArray:
        """Sums over each pair of blocks along the last two axes."""
        return np.asarray(np.add.reduceat(self._blocks(values), self.starts, axis=-2))


def and_level(y: FloatArray, ones: FloatArray, axis: int = -1) -> FloatArray:
    """y, 1 and y + 1 side by side."""
    return np.concatenate([y, ones, y + ones], axis=axis)


def _minimise(objective: Objective, log_ridge: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Newton's method with a floor on the curvature, halving steps that do not descend."""
    point = objective.at(log_ridge)
    while objective.evaluations < MAX_EVALUATIONS:
        step = _newton_step(point.gradient, point.hessian)
        if np.abs(step).max() <= tolerance:  # the remaining error is of the order of its square
            return point.log_ridge + step, np.maximum(point.log_noise + point.noise_slope @ step, LOG_FLOOR)
        trial = objective.at(point.log_ridge + step)
        while trial.value > point.value + point.rounding and objective.evaluations < MAX_EVALUATIONS:
            step = 0.5 * step
            trial = objective.at(point.log_ridge + step)
        if trial.value > point.value + point.rounding:
            break
        point = trial
    return point.log_ridge, point.log_noise


def _newton_step(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(hessian)
    step = -vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), FLATTEST))
    longest = float(np.abs(step).max())
    return np.asarray(step * min(1.0, LONGEST_STEP / longest) if longest > 0.0 else step)


def _starts(sizes: npt.ArrayLike) -> npt.NDArray[np.intp]:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
