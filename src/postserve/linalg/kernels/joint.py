"""Joint optimism over z and w, one arm at a time.

Kernels that Python calls take the fields of `Candidates` as `*arrays`, in their order: handing over a tuple
costs more. No sum is reordered: an arm's score has the same bits wherever the compiler inlines it, so that
equal arms tie, and no score is above its bound.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit

from postserve.types import FloatArray

Array: TypeAlias = Any

EPS = float(np.finfo(np.float64).eps)
CLIMBS = 8  # enough to come near a maximum
POLISHES = 60  # a cap: three or so reach the last digit, unless maxima nearly merge
QL_STEPS = 60  # a cap: two or so make an eigenvalue
LIKELY_STARTS = 6  # b, c and the widest axis, both ways
PROVED = 8.0 * EPS  # of a gain of at most one
SPHERE_ROWS = 8  # of scratch: b, c, the diagonal of L, the best point, a point, the next, and two gradients


class Candidates(NamedTuple):
    """What line 3 of Algorithm 1 needs of each of ``K`` arms."""

    mean: FloatArray  # (K,) u_hat . w_hat
    width: FloatArray  # (K,) sqrt(q0), q0 = u_hat' A^-1 u_hat
    arm_radius: FloatArray  # (K,) zeta
    map_radius: FloatArray  # (K,) e
    beta: FloatArray  # (K, dim_z) z-block of w_hat
    cross: FloatArray  # (K, dim_z) c, the z-block of A^-1 u_hat
    block: FloatArray  # (K, dim_z, dim_z) M, the z-block of A^-1


class Sphere(NamedTuple):
    """The gain of one arm over its `plugin_score`, ``b.n + t (sqrt(w^2 + 2 c.n + n'Ln) - w)``, ``||n|| = 1``.

    It is free of units: ``L`` is diagonal, of trace one.
    """

    t: float
    w: float
    b: FloatArray
    c: FloatArray
    diagonal: FloatArray  # of L, ascending


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def plugin_score(arms: Candidates, k: int) -> float:
    """The reward of arm k at its most optimistic w, at the predicted z."""
    score: float = arms.mean[k] + arms.arm_radius[k] * arms.width[k]
    return score


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def score_of(lowest: float, reward: float, gain: float) -> float:
    """The lowest score plus a gain in units of `reward`."""
    return lowest + reward * gain


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def or_one(divisor: float) -> float:
    """A divisor that makes 0/0 count as 0."""
    return divisor if divisor > 0.0 else 1.0


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def dot(x: FloatArray, y: FloatArray) -> float:
    """x·y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def make_unit(x: FloatArray) -> None:
    """x / ||x||, in place; a zero vector stays zero."""
    norm = or_one(np.sqrt(dot(x, x)))
    for i in range(x.shape[0]):
        x[i] /= norm


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def move(n: FloatArray, there: FloatArray) -> None:
    """n[:] = there, as a loop, which compiles much faster."""
    for i in range(n.shape[0]):
        n[i] = there[i]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def units_of(arms: Candidates, k: int) -> tuple[float, float]:
    """The most that moving z by e adds to the reward, and to the variance: the trace of e² M."""
    width, arm_radius, map_radius = arms.width[k], arms.arm_radius[k], arms.map_radius[k]
    beta, block = arms.beta[k], arms.block[k]
    trace = 0.0
    for i in range(beta.shape[0]):
        trace += block[i, i]
    # so that w, a multiple of its root, stays finite as e vanishes
    variance = max(map_radius * map_radius * trace, EPS**4 * (width * width))
    return map_radius * np.sqrt(dot(beta, beta)) + arm_radius * np.sqrt(variance), variance


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def tridiagonalise(
    matrix: FloatArray, b: FloatArray, c: FloatArray, diagonal: FloatArray, beside: FloatArray, v: FloatArray
) -> None:
    """Householder's reflections of a symmetric matrix; b and c are reflected with it.

    No axes are kept: reflecting b and c is O(dim²), keeping the axes would be O(dim³).
    """
    dim = matrix.shape[0]
    image = diagonal  # entries below k are final, those above unused so far
    for k in range(dim - 1):
        below = 0.0
        for i in range(k + 2, dim):
            below += matrix[k, i] * matrix[k, i]
        diagonal[k], beside[k] = matrix[k, k], matrix[k, k + 1]
        if below == 0.0:
            continue
        head = matrix[k, k + 1]
        length = np.sqrt(head * head + below)
        beside[k] = -length if head > 0.0 else length
        for i in range(k + 1, dim):
            v[i] = matrix[k, i]
            image[i] = 0.0
        v[k + 1] = head - beside[k]
        twice = 2.0 / (v[k + 1] * v[k + 1] + below)
        along_b = along_c = 0.0
        for i in range(k + 1, dim):
            along_b += v[i] * b[i]
            along_c += v[i] * c[i]
            for j in range(k + 1, dim):
                image[j] += matrix[i, j] * v[i]
        along = 0.0
        for i in range(k + 1, dim):
            b[i] -= twice * along_b * v[i]
            c[i] -= twice * along_c * v[i]
            along += v[i] * image[i]
        for i in range(k + 1, dim):
            image[i] = twice * (image[i] - twice * along / 2.0 * v[i])
        for i in range(k + 1, dim):
            for j in range(k + 1, dim):
                matrix[i, j] -= v[i] * image[j] + image[i] * v[j]
    diagonal[dim - 1] = matrix[dim - 1, dim - 1]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def diagonalise(diagonal: FloatArray, beside: FloatArray, b: FloatArray, c: FloatArray) -> None:
    """Francis' implicit QL steps, until nothing stands beside the diagonal; b and c turn with it."""
    dim = diagonal.shape[0]
    beside[dim - 1] = 0.0
    for first in range(dim):
        for _ in range(QL_STEPS):
            last = first
            while abs(beside[last]) > EPS * (abs(diagonal[last]) + abs(diagonal[min(last + 1, dim - 1)])):
                last += 1
            if last == first:
                break
            slant = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first])
            reach = np.sqrt(slant * slant + 1.0)
            ahead = (
                diagonal[last]
                - diagonal[first]
                + beside[first] / (slant + (reach if slant >= 0.0 else -reach))
            )
            sine = cosine = 1.0
            shift = 0.0
            for i in range(last - 1, first - 1, -1):
                across, along = sine * beside[i], cosine * beside[i]
                reach = np.sqrt(across * across + ahead * ahead)
                beside[i + 1] = reach
                if reach == 0.0:  # the block has split: go on with the next
                    diagonal[i + 1] -= shift
                    break
                sine, cosine = across / reach, ahead / reach
                ahead = diagonal[i + 1] - shift
                turned = (diagonal[i] - ahead) * sine + 2.0 * cosine * along
                shift = sine * turned
                diagonal[i + 1] = ahead + shift
                ahead = cosine * turned - along
                b[i], b[i + 1] = cosine * b[i] - sine * b[i + 1], sine * b[i] + cosine * b[i + 1]
                c[i], c[i + 1] = cosine * c[i] - sine * c[i + 1], sine * c[i] + cosine * c[i + 1]
            if reach != 0.0:
                diagonal[first] -= shift
                beside[first] = ahead
            beside[last] = 0.0


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def on_sphere(arms: Candidates, k: int, work: FloatArray, matrix: FloatArray) -> tuple[float, Sphere]:
    """What a gain of one is worth for arm k, and its sphere, without units; its vectors lie in `work`."""
    arm_radius, map_radius = arms.arm_radius[k], arms.map_radius[k]
    beta, cross, block = arms.beta[k], arms.cross[k], arms.block[k]
    b, c, diagonal = work[0], work[1], work[2]
    dim = beta.shape[0]
    reward, variance = units_of(arms, k)
    t, w = arm_radius * np.sqrt(variance) / or_one(reward), arms.width[k] / np.sqrt(or_one(variance))
    reward, variance = or_one(reward), or_one(variance)
    for i in range(dim):
        b[i] = map_radius * beta[i] / reward
        c[i] = map_radius * cross[i] / variance
        for j in range(dim):
            matrix[i, j] = map_radius * map_radius * block[i, j] / variance
    tridiagonalise(matrix, b, c, diagonal, work[3], work[4])
    diagonalise(diagonal, work[3], b, c)
    for i in range(dim):  # sort by insertion
        here, its_b, its_c = max(diagonal[i], 0.0), b[i], c[i]
        j = i
        while j > 0 and diagonal[j - 1] > here:
            diagonal[j], b[j], c[j] = diagonal[j - 1], b[j - 1], c[j - 1]
            j -= 1
        diagonal[j], b[j], c[j] = here, its_b, its_c
    return reward, Sphere(t, w, b, c, diagonal)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def largest_gain(sphere: Sphere) -> float:
    """``||b|| + t sqrt(L_max)``: both parts at their maxima, which may be at different points."""
    gain: float = np.sqrt(dot(sphere.b, sphere.b)) + sphere.t * np.sqrt(sphere.diagonal[-1])
    return gain


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def variance_change(sphere: Sphere, n: FloatArray) -> float:
    """``q(n) - w^2``."""
    c, diagonal = sphere.c, sphere.diagonal
    change = 0.0
    for i in range(n.shape[0]):
        change += n[i] * (2.0 * c[i] + diagonal[i] * n[i])
    return max(change, -(sphere.w * sphere.w))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def gain_at(sphere: Sphere, n: FloatArray) -> float:
    """``b.n + t (sqrt(q) - w)``, the difference as ``(q - w^2) / (sqrt(q) + w)`` against cancellation."""
    change, w = variance_change(sphere, n), sphere.w
    return dot(sphere.b, n) + sphere.t * change / or_one(np.sqrt(w * w + change) + w)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def climb(sphere: Sphere, n: FloatArray, there: FloatArray) -> None:
    """Maximise the tangent plane, which is below a convex function: the gain never falls."""
    t, w, b, c, diagonal = sphere
    s = t / max(np.sqrt(w * w + variance_change(sphere, n)), EPS)
    for i in range(n.shape[0]):
        there[i] = b[i] + s * (c[i] + diagonal[i] * n[i])
    make_unit(there)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def leap(
    sphere: Sphere, n: FloatArray, stride: float, there: FloatArray, gradient: FloatArray, g: FloatArray
) -> None:
    """Newton's step ``h``: ``H h = gradient - k n`` and ``h.n = 0``, with ``H = mu I - s L + s g g'``.

    ``H`` is inverted as diagonal plus rank one; if it is singular the step is useless, and not taken.  Near a
    saddle Newton's step goes down, and is reversed.
    """
    t, w, b, c, diagonal = sphere
    root = max(np.sqrt(w * w + variance_change(sphere, n)), EPS)
    s = t / root
    mu = 0.0
    for i in range(n.shape[0]):
        g[i] = (c[i] + diagonal[i] * n[i]) / root
        gradient[i] = b[i] + t * g[i]
        mu += gradient[i] * n[i]
    gg = gx = gn = nx = nn = 0.0  # products of g, the gradient x and n, by the inverse of mu I - s L
    for i in range(n.shape[0]):
        inverse = 1.0 / (mu - s * diagonal[i])
        there[i] = inverse
        gg += inverse * g[i] * g[i]
        gx += inverse * g[i] * gradient[i]
        gn += inverse * g[i] * n[i]
        nx += inverse * n[i] * gradient[i]
        nn += inverse * n[i] * n[i]
    factor = s / (1.0 + s * gg)
    k = (nx - factor * gx * gn) / (nn - factor * gn * gn)
    along_g = factor * (gx - k * gn)
    slope = 0.0
    for i in range(n.shape[0]):
        there[i] *= gradient[i] - k * n[i] - along_g * g[i]
        slope += there[i] * gradient[i]
    if slope < 0.0:
        stride = -stride
    for i in range(n.shape[0]):
        there[i] = n[i] + stride * there[i]
    make_unit(there)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def polish(sphere: Sphere, n: FloatArray, there: FloatArray, gradient: FloatArray, g: FloatArray) -> float:
    """Climb and leap while the gain rises by more than rounding; returns it."""
    gain, stride = gain_at(sphere, n), 1.0
    for _ in range(POLISHES):
        rising = False
        climb(sphere, n, there)
        gain_there = gain_at(sphere, there)
        if gain_there > gain + 4.0 * EPS * abs(gain):
            move(n, there)
            gain, rising = gain_there, True
        leap(sphere, n, stride, there, gradient, g)
        gain_there = gain_at(sphere, there)
        if gain_there > gain + 4.0 * EPS * abs(gain):
            move(n, there)
            gain, rising = gain_there, True
            stride = min(2.0 * stride, 1.0)
        else:  # it left a curved ridge: shorten the next
            stride /= 2.0
        if not rising:
            break
    return gain


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def upper_bound(sphere: Sphere, n: FloatArray) -> float:
    """An upper bound of every gain, which the best one usually attains at its own n.

    ``t sqrt(q) <= (s q + t^2/s)/2`` with ``s = t/sqrt(q(n))`` leaves a trust-region problem; its dual
    ``(m + sum a^2/(m - s L))/2`` bounds it for every ``m > s L_max``, here ``m`` at ``n``.
    """
    t, w, b, c, diagonal = sphere
    change = variance_change(sphere, n)
    root = np.sqrt(w * w + change)
    s, off = t / max(root, EPS), change / or_one(root + w)
    m = 0.0
    for i in range(n.shape[0]):
        m += n[i] * (b[i] + s * (c[i] + diagonal[i] * n[i]))
    m = max(m, s * diagonal[-1] * (1.0 + 4.0 * EPS))
    inner = m
    for i in range(n.shape[0]):
        a = b[i] + s * c[i]
        inner += a * a / (m - s * diagonal[i])
    upper: float = (s * off * off + inner) / 2.0
    return upper


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def set_start(k: int, b: FloatArray, c: FloatArray, n: FloatArray) -> None:
    """Both ways along b, c and each axis, the widest first: no climb leaves a plane of symmetry."""
    line, dim = k // 2, n.shape[0]
    for i in range(dim):
        n[i] = b[i] if line == 0 else c[i] if line == 1 else 0.0
    if line > 1:
        n[dim + 1 - line] = 1.0
    make_unit(n)
    if k % 2 == 1:
        for i in range(dim):
            n[i] = -n[i]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def best_gain(sphere: Sphere, work: FloatArray) -> float:
    """The largest gain: from the likeliest starts if `upper_bound` proves it, otherwise from all."""
    b, c, best, n, there = sphere.b, sphere.c, work[3], work[4], work[5]
    gradient, g = work[6], work[7]
    most, gain = largest_gain(sphere), -np.inf
    if not most > 0.0:
        return 0.0
    for k in range(LIKELY_STARTS):
        set_start(k, b, c, n)
        climb(sphere, n, there)
        gain_there = gain_at(sphere, there)
        if gain_there > gain:
            move(best, there)
            gain = gain_there
    gain = polish(sphere, best, there, gradient, g)
    if not upper_bound(sphere, best) <= gain + PROVED:
        for k in range(2 * (2 + b.shape[0])):
            set_start(k, b, c, n)
            for _ in range(CLIMBS // 2):
                climb(sphere, n, there)
                climb(sphere, there, n)
            gain = max(gain, polish(sphere, n, there, gradient, g))
    return min(max(gain, 0.0), most)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def joint_scores(scores: FloatArray, *arrays: Array) -> None:
    """The largest reward of every arm over z and w."""
    arms = Candidates(*arrays)
    dim = arms.beta.shape[1]
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    for k in range(scores.shape[0]):
        reward, sphere = on_sphere(arms, k, work, matrix)
        scores[k] = score_of(plugin_score(arms, k), reward, best_gain(sphere, work))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def contender_scores(scores: FloatArray, *arrays: Array) -> None:
    """As `joint_scores` if two or more arms may exceed the best `plugin_score`, otherwise plugin scores."""
    arms = Candidates(*arrays)
    dim = arms.beta.shape[1]
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    rival = -np.inf
    for k in range(scores.shape[0]):
        scores[k] = plugin_score(arms, k)
        rival = max(rival, scores[k])
    # The first contender waits for a second. With a literal, Numba would compile `on_sphere` twice.
    first, several = len(scores), False
    for k in range(scores.shape[0]):
        # the trace instead of the largest eigenvalue spares most arms their eigenvalues
        reward, _ = units_of(arms, k)
        if score_of(scores[k], reward, 1.0 + PROVED) < rival:
            continue
        reward, sphere = on_sphere(arms, k, work, matrix)
        if score_of(scores[k], reward, largest_gain(sphere)) < rival:
            continue
        if first == len(scores):
            first = k
        else:
            several = True
            scores[k] = score_of(scores[k], reward, best_gain(sphere, work))
    if several:
        reward, sphere = on_sphere(arms, first, work, matrix)
        scores[first] = score_of(plugin_score(arms, first), reward, best_gain(sphere, work))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def bound_scores(scores: FloatArray, *arrays: Array) -> None:
    """Upper bounds of `joint_scores`: the gains in mean and in width, each at its largest."""
    arms = Candidates(*arrays)
    dim = arms.beta.shape[1]
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    for k in range(scores.shape[0]):
        reward, sphere = on_sphere(arms, k, work, matrix)
        scores[k] = score_of(plugin_score(arms, k), reward, largest_gain(sphere))
