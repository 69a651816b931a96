"""The lemmas of docs/theory/theorem.md against adversaries, 1,000 sequences of each kind, side by side.

An adversary sees all that came before and chooses rows, noises of the allowed kinds, errors and arms so as to
break a lemma. Beside each lemma is one step outside its assumptions, which does break it. The first two steps
of theorem 4 (docs/theory/default.md) are treated alike.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from postserve import confidence, theory
from postserve.types import FloatArray

N, ROUNDS, DIM, RIDGE, DELTA = 1000, 80, 3, 0.1, 0.1
ARMS = 4
Rows = Callable[[FloatArray, np.random.Generator], FloatArray]


def inner(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ni,ni->n", a, b))


def times(matrices: FloatArray, rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nij,nj->ni", matrices, rows))


def widths(inverse: FloatArray, rows: FloatArray) -> FloatArray:
    return np.sqrt(inner(rows, times(inverse, rows)))


def learnt(inverse: FloatArray, rows: FloatArray) -> FloatArray:
    """The inverses after one more row each."""
    along = times(inverse, rows)
    return inverse - along[:, :, None] * along[:, None, :] / (1.0 + inner(rows, along))[:, None, None]


def fresh(n: int = N) -> FloatArray:
    return np.tile(np.eye(DIM) / RIDGE, (n, 1, 1))


def directions(rng: np.random.Generator) -> FloatArray:
    rows = rng.normal(size=(N, DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def widest(inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Along what is known least."""
    return np.asarray(np.linalg.eigh(inverse)[1][:, :, -1])


def just_wide(inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """As short as a row can be whose width is above 1: counted in full, and little learnt."""
    rows = widest(inverse, rng)
    return np.asarray(rows / widths(inverse, rows)[:, None] * 1.000001)


def of_any_length(inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    return directions(rng) * 10.0 ** rng.uniform(-3.0, 3.0, size=(N, 1))


def at_the_clip(inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows of random directions whose widths are near those at which k y is clipped."""
    rows = directions(rng)
    return np.asarray(rows / widths(inverse, rows)[:, None] * 10.0 ** rng.uniform(-1.0, 1.5, size=(N, 1)))


ADVERSARIES = [widest, just_wide, of_any_length, at_the_clip]


# Lemma 1: the potential of rows that are shared out among arms.


def potentials(rows: Rows, longest: float, evenly: bool) -> FloatArray:
    """sum 1 ∧ ||row||² after each round of each sequence; rows are cut to the length `longest`.

    The adversary serves the arm that knows least, so that all learn as much, or any.
    """
    rng, inverse, every = np.random.default_rng(8), np.tile(fresh(), (ARMS, 1, 1, 1)), np.arange(N)
    found = []
    for _ in range(ROUNDS):
        unknown = np.trace(inverse, axis1=2, axis2=3)
        arm = unknown.argmax(axis=0) if evenly else rng.integers(ARMS, size=N)
        row = rows(inverse[arm, every], rng)
        row *= np.minimum(1.0, longest / np.linalg.norm(row, axis=1))[:, None]
        found.append(np.minimum(1.0, widths(inverse[arm, every], row) ** 2))
        inverse[arm, every] = learnt(inverse[arm, every], row)
    return np.cumsum(found, axis=0)


def most_potential(longest: float) -> FloatArray:
    """P after each round."""
    known: Any = {"n_models": ARMS, "dim": DIM, "bound": longest, "ridge": RIDGE}
    return np.array([[2.0 * theory.most_log_det(rounds=t, **known)] for t in range(1, ROUNDS + 1)])


@pytest.mark.parametrize("rows", ADVERSARIES)
@pytest.mark.parametrize("longest", [math.sqrt(RIDGE), 1.0, 1000.0])
@pytest.mark.parametrize("evenly", [True, False])
def test_the_potential_holds_at_all_rounds(rows: Rows, longest: float, evenly: bool) -> None:
    assert (potentials(rows, longest, evenly) <= most_potential(longest) * (1.0 + 1e-9)).all()


def test_the_potential_is_nearly_reached_and_fails_for_longer_rows() -> None:
    """Orthogonal rows of width 1, as many as the arms have dimensions: 1/(2 log 2) = 0.72 of P.

    Outside: they are 1.3 times as long as L is said to be.
    """
    longest = math.sqrt(RIDGE)
    found = potentials(widest, longest, evenly=True)
    assert (found / most_potential(longest)).max(axis=0).min() > 0.72
    assert (found > most_potential(longest / 1.3)).any(axis=0).all()


# Lemma 2: counting.


def clipped_sums(rows: Rows, learns: bool) -> tuple[FloatArray, FloatArray]:
    """Widths by round, and the potential 2 log(det/det) of each sequence after all rounds."""
    rng, inverse, found, potential = np.random.default_rng(0), fresh(), [], np.zeros(N)
    for _ in range(ROUNDS):
        row = rows(inverse, rng)
        found.append(widths(inverse, row))
        if learns:
            inverse = learnt(inverse, row)
        potential += 2.0 * np.log1p(found[-1] ** 2) * (learns or len(found) <= DIM)
    return np.array(found), potential


def above_count(y: FloatArray, potential: FloatArray, k: float) -> FloatArray:
    left = np.minimum(1.0, k * y).sum(axis=0)
    right = [
        theory.counted_steps(k, horizon=ROUNDS, potential=float(v), longest=float(longest))
        for v, longest in zip(potential, y.max(axis=0), strict=True)
    ]
    return np.asarray(left - np.array(right))


@pytest.mark.parametrize("rows", ADVERSARIES)
@pytest.mark.parametrize("k", [1e-3, 0.03, 0.3, 1.0, 10.0])
def test_counting_holds_on_every_sequence(rows: Rows, k: float) -> None:
    y, potential = clipped_sums(rows, learns=True)
    assert (above_count(y, potential, k) <= 1e-9).all()
    assert ((y > 1.0).sum(axis=0) <= potential + 1e-9).all()


def test_counting_fails_if_rows_are_not_learnt() -> None:
    """Outside: the potential is that of a few rows, and the matrix stays as it was."""
    y, potential = clipped_sums(just_wide, learns=False)
    assert (above_count(y, potential, 0.3) > 0.0).all()
    assert ((y > 1.0).sum(axis=0) > potential).all()


# Lemmas 3 and 4: the width of the mean, and the noise of z, which explores. u = (x, phi, 0) + (0, eps).

SIGMA, KURTOSIS = 0.5, 3.0


def two_points(mean: FloatArray, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Both coordinates ± one deviation, which may be more: at times it cancels the mean's part of z."""
    size = np.maximum(SIGMA, np.abs(mean[:, 1:]))
    return np.asarray(size * rng.choice([-1.0, 1.0], size=(len(mean), 2)))


def gaussian(mean: FloatArray, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    return SIGMA * rng.standard_normal((len(mean), 2))


def rare(mean: FloatArray, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """0 but for one round in three, and then along what is known least or most, in turns of its own choice.

    In either basis its coordinates are 0, ± sigma sqrt(3), one after the other independent: kurtosis 3.
    """
    jumps = rng.choice([-1.0, 1.0], size=(len(mean), 2)) * (rng.random((len(mean), 2)) < 1.0 / KURTOSIS)
    basis = np.linalg.eigh(inverse[:, 1:, 1:])[1]
    return np.asarray(SIGMA * math.sqrt(KURTOSIS) * times(basis, jumps))


NOISES = [two_points, gaussian, rare]
Noise = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]
Means = Callable[[int, FloatArray, np.random.Generator], FloatArray]


def restless(t: int, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Along what is known least, of any length, and in random directions, in turns."""
    return widest(inverse, rng) * 10.0 ** rng.uniform(-1.0, 1.0, size=(N, 1)) if t % 2 else directions(rng)


def along_x(t: int, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """So that only noise teaches z."""
    return np.tile([1.0, 0.0, 0.0], (N, 1))


def along_z(t: int, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.tile([0.0, 1.0, 0.0], (N, 1))


class Sums(NamedTuple):
    """sum 1 ∧ ||u||², sum 1 ∧ sigma² mu², how often either was above 1, and V, of each sequence."""

    of_mean: FloatArray
    of_noise: FloatArray
    wide: FloatArray
    bound: FloatArray


def noisy_sums(noise: Noise, seed: int, rounds: int = ROUNDS, means: Means = restless) -> Sums:
    rng, inverse = np.random.default_rng(seed), fresh()
    of_mean, of_noise, wide, log_det = np.zeros((4, N))
    for t in range(rounds):
        mean = means(t, inverse, rng)
        width = widths(inverse, mean) ** 2
        explored = SIGMA**2 * np.linalg.eigvalsh(inverse[:, 1:, 1:])[:, -1]
        of_mean += np.minimum(1.0, width)
        of_noise += np.minimum(1.0, explored)
        wide += (width > 1.0) | (explored > 1.0)
        row = mean + np.hstack([np.zeros((N, 1)), noise(mean, inverse, rng)])
        log_det += np.log1p(widths(inverse, row) ** 2)
        inverse = learnt(inverse, row)
    return Sums(of_mean, of_noise, wide, theory.mean_context_bound(log_det, delta=DELTA))


@pytest.mark.parametrize("noise", NOISES)
def test_the_mean_is_not_much_wider_than_what_is_seen(noise: Noise) -> None:
    found = noisy_sums(noise, seed=1)
    assert np.mean(found.of_mean > found.bound) <= DELTA
    explored = max(2.0, KURTOSIS) * found.bound
    assert np.mean((found.of_noise > explored) | (found.wide > explored)) <= DELTA


def hidden(mean: FloatArray, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Of mean 0, and not symmetric: it hides the mean's part of z but for one round in 1,000."""
    seen = rng.random((len(mean), 1)) < 1e-3
    return np.asarray(np.where(seen, 999.0, -1.0) * mean[:, 1:])


def hardly_ever(mean: FloatArray, inverse: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Symmetric, of variance sigma², with a kurtosis of 10,000."""
    jumps = rng.choice([-1.0, 1.0], size=(len(mean), 2)) * (rng.random((len(mean), 2)) < 1e-4)
    return np.asarray(SIGMA * 100.0 * jumps)


def test_noise_that_is_not_symmetric_breaks_the_width_of_the_mean() -> None:
    found = noisy_sums(hidden, seed=2, rounds=300)
    assert np.mean(found.of_mean > found.bound) > 0.5


def test_noise_that_hardly_ever_comes_does_not_explore() -> None:
    found = noisy_sums(hardly_ever, seed=3, rounds=300, means=along_x)
    assert np.mean(found.of_noise > KURTOSIS * found.bound) > 0.5
    assert np.mean(found.wide > KURTOSIS * found.bound) > 0.5


# One round of lemmas 3 and 4: their sums are so far below V that a wrong constant would not show there.


class Laws(NamedTuple):
    """Inverses, means u, and noises of z: each of some values with its chance, half of it for either sign."""

    inverse: FloatArray
    mean: FloatArray
    noise: FloatArray
    chances: FloatArray


def laws(n: int = 50_000, values: int = 3) -> Laws:
    """Values of all sizes, most of them rare. In half of the laws the first one hides the mean."""
    rng = np.random.default_rng(9)

    def sizes(*shape: int) -> FloatArray:
        return np.asarray(10.0 ** rng.uniform(-2.0, 2.0, size=shape))

    root = rng.normal(size=(n, DIM, DIM))
    mean = rng.normal(size=(n, DIM)) * sizes(n, 1)
    noise = rng.normal(size=(n, values, 2)) * sizes(n, values, 1)
    mean[::2, 0], noise[::2, 0] = 0.0, mean[::2, 1:]
    return Laws(root @ root.transpose(0, 2, 1), mean, noise, rng.dirichlet(np.full(values, 0.3), size=n))


def seen(found: Laws) -> FloatArray:
    """E[1 ∧ ||u + (0, eps)||²]."""
    total = np.zeros(len(found.mean))
    for value, chance in zip(found.noise.swapaxes(0, 1), found.chances.T, strict=True):
        for sign in (-1.0, 1.0):
            row = found.mean + sign * np.hstack([np.zeros((len(value), 1)), value])
            total += 0.5 * chance * np.minimum(1.0, widths(found.inverse, row) ** 2)
    return total


def test_one_round_of_the_width_of_the_mean() -> None:
    """1 ∧ ||u||² <= 2 E[1 ∧ ||u + (0, eps)||²]: nearly equal where half of the noise hides the mean."""
    found = laws()
    factor = float(theory.mean_context_bound(0.0, delta=math.exp(-1.0))) * (1.0 - math.exp(-1.0))  # 2
    ratios = np.minimum(1.0, widths(found.inverse, found.mean) ** 2) / (factor * seen(found))
    assert 0.99 < ratios.max() <= 1.0 + 1e-9


def test_one_round_of_noise_that_explores() -> None:
    """1 ∧ m <= 2 max(2, kappa) E[1 ∧ ||u + (0, eps)||²], m = mu² E[(v·eps)²] and kappa the kurtosis of v·eps.

    No law is above half of it, and two kinds reach that: a mean of 0 with noise that is 0 or large, and
    noise that hides the mean.
    """
    found = laws()
    found.mean[::4] *= 1e-6
    eigenvalues, vectors = np.linalg.eigh(found.inverse[:, 1:, 1:])
    along = np.einsum("nvi,ni->nv", found.noise, vectors[:, :, -1]) ** 2
    second, fourth = inner(found.chances, along), inner(found.chances, along**2)
    left = np.minimum(1.0, eigenvalues[:, -1] * second)
    ratios = left / (2.0 * np.maximum(2.0, fourth / second**2) * seen(found))
    assert min(ratios[::4].max(), ratios[2::4].max()) > 0.49
    assert ratios.max() <= 0.5 + 1e-9


# Lemma 5: the ellipsoid, with rewards' noise that is sub-Gaussian given z.


def missed(kind: str, rounds: int = ROUNDS, share: float = 1.0) -> float:
    """How often w left the ellipsoid at any round. The adversary's rows point where the estimate is wrong.

    `share` of the radius is the ellipsoid's.
    """
    scale = 1.0 / math.sqrt(3.0) if kind == "of z" else 1.0  # R of uniform noise
    rng, inverse, moment, log_det = np.random.default_rng(4), fresh(), np.zeros((N, DIM)), np.zeros(N)
    outside = np.zeros(N, dtype=bool)
    truth = directions(rng)
    for t in range(rounds):
        off = times(inverse, moment) - truth
        mean = off / np.linalg.norm(off, axis=1, keepdims=True) if t % 3 else widest(inverse, rng)
        eps = np.hstack([np.zeros((N, 1)), rng.uniform(-1.0, 1.0, size=(N, 2))])
        row = mean + eps
        if kind == "of z":  # as where rewards come from phi(x), not from the z that is seen
            noise = -inner(eps, truth)
        elif kind == "signs":
            noise = rng.choice([-1.0, 1.0], size=N)
        else:  # as loud as allowed only where little is known
            noise = np.where(widths(inverse, row) > 0.3, 1.0, 0.5) * rng.standard_normal(N)
        log_det += np.log1p(widths(inverse, row) ** 2)
        inverse, moment = learnt(inverse, row), moment + (inner(row, truth) + noise)[:, None] * row
        off = times(inverse, moment) - truth
        radius = share * confidence.arm_radius_determinant(
            ridge=RIDGE, log_det_ratio=log_det, noise_scale=scale, delta=DELTA, w_bound=1.0
        )
        outside |= np.sqrt(inner(off, times(np.linalg.inv(inverse).astype(np.float64), off))) > radius
    return float(outside.mean())


@pytest.mark.parametrize("kind", ["signs", "adaptive"])
def test_the_ellipsoid_holds_at_all_rounds(kind: str) -> None:
    assert missed(kind) <= DELTA
    assert missed(kind, share=0.5) > 0.25


def test_noise_that_depends_on_z_breaks_the_ellipsoid() -> None:
    """Of mean 0 and R-sub-Gaussian (R² = 1/3) given the past, but not given z."""
    assert missed("of z", rounds=400) > 0.5


# Lemma 6: the bias of predictions is a projection, arm by arm.


def biases(excess: float) -> tuple[FloatArray, FloatArray]:
    """||sum err_s u_s||_{A^{-1}} and sqrt(sum e_s²); errors are `excess` times e_s, of the worst sign."""
    rng, inverse, summed, squares = np.random.default_rng(5), fresh(), np.zeros((N, DIM)), np.zeros(N)
    for t in range(ROUNDS):
        row = 10.0 * directions(rng) if t % 4 else 10.0 * widest(inverse, rng)
        error = rng.exponential(size=N) * (t + 1.0) ** -0.5
        worst = np.sign(inner(times(inverse, summed), row) + 1e-300)
        inverse = learnt(inverse, row)
        summed, squares = summed + (excess * worst * error)[:, None] * row, squares + error**2
    return widths(inverse, summed), np.sqrt(squares)


def test_the_bias_is_at_most_the_root_of_the_squares() -> None:
    bias, bound = biases(excess=1.0)
    assert (bias <= bound * (1.0 + 1e-9)).all()


def test_errors_beyond_the_maps_radius_break_it() -> None:
    bias, bound = biases(excess=2.5)
    assert np.mean(bias > bound) > 0.5


# Lemma 7: with one map for all arms, plug-in optimism is enough.


def gaps_and_bounds(one_map: bool) -> tuple[FloatArray, FloatArray]:
    """Two arms; the truth is anywhere in the ellipsoids and the ball, and the better score is served."""
    rng, n = np.random.default_rng(6), 20 * N
    x, z_hat, e = rng.normal(size=(n, 1)), rng.normal(size=(n, 2)), rng.exponential(size=(n, 1))
    u_hat, zeta = np.hstack([x, z_hat]), rng.exponential(size=n)
    root = rng.normal(size=(2, n, DIM, DIM))
    inverse = np.einsum("knij,knlj->knil", root, root) + 0.01 * np.eye(DIM)
    centre, off = rng.normal(size=(2, n, DIM)), rng.normal(size=(2, n, DIM))
    width = np.array([widths(m, u_hat) for m in inverse])
    # On the ellipsoid's surface: A^{-1/2} times a vector of length zeta.
    off /= np.linalg.norm(off, axis=2, keepdims=True)
    weights = centre + zeta[:, None] * np.einsum("knij,knj->kni", np.linalg.cholesky(inverse), off)
    miss = rng.normal(size=(2, n, 2))
    miss *= e / np.linalg.norm(miss, axis=2, keepdims=True)
    if one_map:
        # The worst: the map errs along the difference of the arms' betas, one way or the other.
        along = weights[0, :, 1:] - weights[1, :, 1:]
        along *= e / np.linalg.norm(along, axis=1, keepdims=True) * rng.choice([-1.0, 1.0], size=(n, 1))
        miss[0, n // 2 :] = along[n // 2 :]
        miss[1] = miss[0]
    else:
        # Each arm's own phi: the served arm's is worse than predicted, the other's better.
        for arm in (0, 1):
            beta = weights[arm, :, 1:]
            miss[arm] = beta * e / np.linalg.norm(beta, axis=1, keepdims=True)
    scores = np.array([inner(u_hat, centre[arm]) + zeta * width[arm] for arm in (0, 1)])
    served, every = scores.argmax(axis=0), np.arange(n)
    if not one_map:
        miss[served, every] *= -1.0
    means = np.array([inner(np.hstack([x, z_hat + miss[arm]]), weights[arm]) for arm in (0, 1)])
    gaps = means.max(axis=0) - means[served, every]
    spread = np.linalg.norm(weights[0, :, 1:] - weights[1, :, 1:], axis=1)
    return gaps, 2.0 * zeta * width[served, every] + spread * e[:, 0]


def test_one_map_needs_no_optimism_over_z() -> None:
    gaps, bounds = gaps_and_bounds(one_map=True)
    assert (gaps <= bounds * (1.0 + 1e-9)).all()


def test_a_map_per_arm_does() -> None:
    gaps, bounds = gaps_and_bounds(one_map=False)
    assert np.mean(gaps > bounds) > 0.02


# Lemma 8: errors of an arm's own rounds cost no sqrt(K).


def biased_widths(own: bool, n_arms: int = 16, n: int = N) -> tuple[FloatArray, FloatArray]:
    """sum_t E_t (1 ∧ y_t) and sqrt(sum e² T v), v the largest potential of one arm.

    E_t² is the sum of e_s² of the served arm's rounds (`own`), or of all rounds so far. The adversary serves
    the arm for which E y is largest, or one after the other, and makes errors where they hurt.
    """
    rng, rounds = np.random.default_rng(7), 10 * n_arms
    inverse, squares = np.tile(np.eye(DIM) / RIDGE, (n_arms, n, 1, 1)), np.zeros((n_arms, n))
    potential, left, every = np.zeros((n_arms, n)), np.zeros(n), np.arange(n)
    for t in range(rounds):
        row = rng.normal(size=(n, DIM))
        y = np.array([widths(m, row) for m in inverse])
        arm = (np.sqrt(squares) * y).argmax(axis=0) if t % 3 == 2 else np.full(n, t % n_arms)
        squares[arm, every] += rng.exponential(size=n) if t < rounds // 2 else 0.1
        width = y[arm, every]
        errors = squares[arm, every] if own else squares.sum(axis=0)
        left += np.sqrt(errors) * np.minimum(1.0, width)
        potential[arm, every] += 2.0 * np.log1p(width**2)
        inverse[arm, every] = learnt(inverse[arm, every], row)
    return left, np.sqrt(squares.sum(axis=0) * rounds * potential.max(axis=0))


def test_an_arms_own_errors_cost_no_root_of_the_arms() -> None:
    left, right = biased_widths(own=True)
    assert (left <= right).all()


def test_the_errors_of_all_rounds_do() -> None:
    left, right = biased_widths(own=False)
    assert np.mean(left > right) > 0.5


# Lemma 9: the errors of a map.


def errors_and_bounds(rows: Rows, ridge: float, rate: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """sum w^rate and sum w^(2 rate) of each sequence after all rounds, and the most that they can be.

    Rows are cut to a length of 1, and L_x is said to be `longest`.
    """
    rng, inverse, found = np.random.default_rng(12), fresh() * (RIDGE / ridge), []
    for _ in range(ROUNDS):
        row = rows(inverse, rng)
        row *= np.minimum(1.0, 1.0 / np.linalg.norm(row, axis=1))[:, None]
        found.append(widths(inverse, row) ** 2)
        inverse = learnt(inverse, row)
    known: Any = {"map_dim": DIM, "x_bound": longest, "map_ridge": ridge}
    most = theory.ridge_map_errors(1.0, horizon=ROUNDS, map_rate=rate, **known)
    sums = np.array([np.power(found, power).sum(axis=0) for power in (rate, 2.0 * rate)])
    return sums, np.array(most)[:, None]


@pytest.mark.parametrize("rows", ADVERSARIES)
@pytest.mark.parametrize("ridge", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_the_errors_of_a_map_add_up_to_no_more(rows: Rows, ridge: float, rate: float) -> None:
    left, right = errors_and_bounds(rows, ridge, rate, longest=1.0)
    assert (left <= right * (1.0 + 1e-9)).all()


def test_errors_of_a_map_nearly_reach_their_bounds_and_exceed_them_for_longer_rows() -> None:
    """With a large ridge, 0.97 of both. Outside: rows are 1.1 times as long as L_x is said to be."""
    left, right = errors_and_bounds(widest, 10.0, 0.5, longest=1.0)
    assert (left > 0.97 * right).all()
    left, right = errors_and_bounds(widest, 10.0, 0.5, longest=1.0 / 1.1)
    assert (left > right).all()


# Theorem 4, steps 1 and 2: weights drawn from the prior, contexts of length 1, and a known phi.

Contexts = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]


def least_known(inverse: FloatArray, centre: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Along what one of the arms knows least."""
    return widest(inverse[rng.integers(len(inverse))], rng)


def promising(inverse: FloatArray, centre: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Where one of the arms looks best, and is likely to have been lucky."""
    longest = np.linalg.norm(centre, axis=2).argmax(axis=0)
    row = centre[longest, np.arange(N)] + 1e-9
    return np.asarray(row / np.linalg.norm(row, axis=1, keepdims=True))


class Drawn(NamedTuple):
    """Sums over the rounds of each sequence, and of what is expected given what was seen.

    `missed`: by how much arms are better than their scores; `over`: by how much served arms are worse than
    theirs; `clipped`: 1 ∧ ||u||².
    """

    missed: FloatArray
    expected_missed: FloatArray
    over: FloatArray
    expected_over: FloatArray
    clipped: FloatArray


def drawn(contexts: Contexts, noise: Noise, n_arms: int, rounds: int, prior_scale: float = 1.0) -> Drawn:
    """Weights of deviation `prior_scale`; the policy believes that it is 1."""
    rng, every, sigma = np.random.default_rng(10), np.arange(N), math.sqrt(RIDGE)
    weights = prior_scale * rng.standard_normal((n_arms, N, DIM))
    inverse, moment = np.tile(fresh(), (n_arms, 1, 1, 1)), np.zeros((n_arms, N, DIM))
    found = Drawn(*np.zeros((5, N)))
    for t in range(rounds):
        beta = confidence.posterior_exploration(n_arms, n_arms * DIM, t)
        centre = np.einsum("knij,knj->kni", inverse, moment)
        mean = contexts(inverse, centre, rng)
        spread = sigma * np.array([widths(each, mean) for each in inverse])
        scores = np.array([inner(each, mean) for each in centre]) + beta * spread
        truth = np.array([inner(each, mean) for each in weights])
        arm = scores.argmax(axis=0)
        found.missed[:] += np.maximum(truth - scores, 0.0).sum(axis=0)
        found.expected_missed[:] += spread.sum(axis=0) * theory.expected_excess(beta)
        found.over[:] += (scores - truth)[arm, every]
        found.expected_over[:] += beta * spread[arm, every]
        found.clipped[:] += np.minimum(1.0, spread[arm, every] ** 2 / RIDGE)
        row = mean + np.hstack([np.zeros((N, 1)), noise(mean, inverse[arm, every], rng)])
        reward = inner(row, weights[arm, every]) + sigma * rng.standard_normal(N)
        inverse[arm, every] = learnt(inverse[arm, every], row)
        moment[arm, every] += reward[:, None] * row
    return found


def bayes_bound(n_arms: int, rounds: int) -> theory.BayesBound:
    """1.5 is at least the root mean square of ||(x, z)|| for each of the noises."""
    return theory.bayes_regret_bound(
        horizon=rounds,
        n_arms=n_arms,
        dim_u=DIM,
        dim_z=2,
        prior_scale=1.0,
        noise_scale=math.sqrt(RIDGE),
        u_bound=1.5,
    )


def width_potential(n_arms: int, rounds: int, longest: float) -> float:
    """V of theorem 4."""
    return 4.0 * theory.most_log_det(rounds=rounds, n_models=n_arms, dim=DIM, bound=longest, ridge=RIDGE)


def errors_off(measured: FloatArray, expected: FloatArray) -> float:
    """The mean difference in its standard errors."""
    off = measured - expected
    return float(off.mean() / off.std() * math.sqrt(len(off)))


# Of both steps: an equation for each round given what was seen, and a bound on the sum.


@pytest.mark.parametrize("contexts", [least_known, promising])
@pytest.mark.parametrize("noise", NOISES)
def test_optimism_misses_what_the_prior_says(contexts: Contexts, noise: Noise) -> None:
    """In short runs with many arms, where half of the bound is reached."""
    found = drawn(contexts, noise, 16, 40)
    assert abs(errors_off(found.missed, found.expected_missed)) < 5.0
    assert 0.4 * bayes_bound(16, 40).missed < found.missed.mean() <= bayes_bound(16, 40).missed


@pytest.mark.parametrize("contexts", [least_known, promising])
@pytest.mark.parametrize("noise", NOISES)
def test_scores_are_above_what_is_served_by_the_widths(contexts: Contexts, noise: Noise) -> None:
    """In long runs with few arms, where V is about half of the rounds."""
    found, potential = drawn(contexts, noise, 2, 300), width_potential(2, 300, longest=1.5)
    assert abs(errors_off(found.over, found.expected_over)) < 5.0
    assert found.over.mean() <= bayes_bound(2, 300).width_term
    assert found.clipped.mean() <= potential < 200.0


@pytest.mark.parametrize("contexts", [least_known, promising])
def test_optimism_misses_more_if_the_prior_is_too_narrow(contexts: Contexts) -> None:
    """By a factor of 2."""
    found = drawn(contexts, gaussian, 16, 40, prior_scale=2.0)
    assert errors_off(found.missed, found.expected_missed) > 20.0
    assert found.missed.mean() > 5.0 * bayes_bound(16, 40).missed


def test_widths_add_up_to_more_if_z_is_not_symmetric() -> None:
    """One arm. u is along z, and a row is 0 but for one round in 1,000, when it is 1,000 long."""
    found = noisy_sums(hidden, seed=11, rounds=300, means=along_z)
    assert found.of_mean.mean() > 1.3 * width_potential(1, 300, longest=math.sqrt(1000.0))
