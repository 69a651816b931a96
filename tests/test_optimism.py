"""Line 3 of Algorithm 1: each score against its equation, brute force, and its bounds."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests import reference
from tests.reference import certificate

from postserve.linalg.kernels import joint as kernels
from postserve.optimism import Candidates, bound, joint, joint_contenders, plugin
from postserve.types import FloatArray

Score = Callable[[Candidates], FloatArray]
SCORES: list[Score] = [bound, joint, joint_contenders, certificate]
KINDS = ["generic", "opposed", "low_rank", "tiny_q0", "symmetric", "isotropic"]

thorough = settings(deadline=None, derandomize=True, max_examples=80)
brief = settings(thorough, max_examples=25)
pytestmark = pytest.mark.filterwarnings("error")


def arms_of(
    gram: FloatArray,
    beta: FloatArray,
    mean: FloatArray | float = 0.0,
    arm_radius: FloatArray | float = 1.0,
    map_radius: FloatArray | float = 1.0,
) -> Candidates:
    """Arms whose [[q0, c'], [c, M]] is `gram`, of shape (K, 1 + dim_z, 1 + dim_z)."""
    each = np.ones(len(gram))
    return Candidates(
        mean=mean * each,
        width=np.sqrt(gram[:, 0, 0]),
        arm_radius=arm_radius * each,
        map_radius=map_radius * each,
        beta=beta,
        cross=gram[:, 0, 1:],
        block=gram[:, 1:, 1:],
    )


def random_arms(
    rng: np.random.Generator,
    count: int,
    dim: int,
    kind: str = "generic",
) -> Candidates:
    """Arms among which neither beta nor the doubt dominates, so that local maxima compete."""
    factor = rng.normal(size=(count, dim + 1, dim + 1)) / np.sqrt(dim)
    beta = rng.normal(size=(count, dim))
    if kind == "low_rank":
        factor[:, rng.integers(1, dim + 1) :] = 0.0
    if kind == "tiny_q0":
        factor[:, :, 0] *= 1e-6
    gram = np.swapaxes(factor, 1, 2) @ factor
    if kind == "opposed":
        beta = -gram[:, 0, 1:] + 0.05 * rng.normal(size=(count, 1)) * beta
    if kind == "symmetric":  # beta and c vanish on most axes
        on = rng.random((count, dim)) < 0.4
        eigenvalues, cross = rng.random((count, dim)), on * rng.normal(size=(count, dim))
        gram = np.zeros_like(gram)
        gram[:, 1:, 1:] = eigenvalues[:, :, None] * np.eye(dim)
        gram[:, 0, 1:] = gram[:, 1:, 0] = cross
        gram[:, 0, 0] = (cross**2 / eigenvalues).sum(axis=1) * (1 + rng.random(count))
        beta = -cross
    if kind == "isotropic":
        cross = rng.normal(size=(count, dim))
        gram[:, 1:, 1:] = np.eye(dim)
        gram[:, 0, 1:] = gram[:, 1:, 0] = cross
        gram[:, 0, 0] = (cross**2).sum(axis=1) * (1 + rng.random(count))
    beta = beta * np.exp(rng.normal(size=(count, 1)) - 0.5)
    mean, arm_radius, map_radius = rng.normal(size=count), *np.exp(rng.normal(size=(2, count)))
    return arms_of(gram, beta, mean, arm_radius, map_radius)


def scale_of(arms: Candidates) -> FloatArray:
    top = np.maximum(np.linalg.eigvalsh(arms.block)[:, -1], 0.0)
    moved = np.linalg.norm(arms.beta, axis=1) + arms.arm_radius * np.sqrt(top)
    return np.asarray(np.abs(arms.mean) + arms.arm_radius * arms.width + arms.map_radius * moved)


def score_at(arms: Candidates, n: FloatArray) -> FloatArray:
    """The bracket of the equation at d = e n, for points n of shape (K, points, dim_z)."""
    d = arms.map_radius[:, None, None] * n
    root = np.sqrt(np.maximum(variance_at(arms, d), 0.0))
    return arms.mean[:, None] + linear_at(arms, d) + arms.arm_radius[:, None] * root


def linear_at(arms: Candidates, d: FloatArray) -> FloatArray:
    return np.asarray(np.vecdot(d, arms.beta[:, None]))


def variance_at(arms: Candidates, d: FloatArray) -> FloatArray:
    """q(d) = q0 + 2 c.d + d'Md."""
    change = np.vecdot(d, 2 * arms.cross[:, None] + d @ arms.block)
    return np.asarray(arms.width[:, None] ** 2 + change)


def circle(angle: FloatArray) -> FloatArray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def best_on_circle(arms: Candidates) -> FloatArray:
    grid = np.linspace(0, 2 * np.pi, 2001)[None, :].repeat(len(arms.mean), axis=0)
    for step in 2 * np.pi / 2000 * 0.1 ** np.arange(6):
        best = np.take_along_axis(grid, score_at(arms, circle(grid)).argmax(1)[:, None], axis=1)
        grid = best + step * np.linspace(-1, 1, 41)
    return np.asarray(score_at(arms, circle(grid)).max(axis=1))


def best_of_climbs(arms: Candidates, rng: np.random.Generator, starts: int = 400) -> FloatArray:
    n = rng.normal(size=(len(arms.mean), starts, arms.beta.shape[1]))
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    e, zeta = arms.map_radius[:, None, None], arms.arm_radius[:, None, None]
    for _ in range(150):
        g = arms.cross[:, None] + e * n @ arms.block
        root = np.sqrt(np.maximum(variance_at(arms, e * n), 1e-30))[..., None]
        gradient = arms.beta[:, None] + zeta * g / root
        n = gradient / np.linalg.norm(gradient, axis=-1, keepdims=True)
    return np.asarray(score_at(arms, n).max(axis=1))


@st.composite
def any_arms(draw: st.DrawFn, exponent: int = 0) -> Candidates:
    """Small numbers, many of them zero or equal, each block in a scale of its own."""
    count, dim = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    numbers = st.integers(-3, 3).map(float) | st.floats(-3, 3).filter(lambda x: abs(x) > 1e-3)

    def array(*shape: int) -> FloatArray:
        scale = 10.0 ** draw(st.integers(-exponent, exponent))
        return scale * draw(hnp.arrays(np.float64, shape, elements=numbers))

    factor = np.concatenate([array(count, dim + 1, 1), array(count, dim + 1, dim)], axis=2)
    gram = np.swapaxes(factor, 1, 2) @ factor
    radii = np.abs(array(count)), np.abs(array(count))
    return arms_of(gram, array(count, dim), array(count), *radii)


def test_plugin_is_its_equation() -> None:
    mean, width, arm_radius = np.random.default_rng(0).normal(size=(3, 7))
    np.testing.assert_array_equal(plugin(mean, width, arm_radius), mean + arm_radius * width)


def test_bound_is_its_equation() -> None:
    arms = random_arms(np.random.default_rng(1), 50, 4)
    top = np.linalg.eigvalsh(arms.block)[:, -1]
    moved = np.linalg.norm(arms.beta, axis=1) + arms.arm_radius * np.sqrt(top)
    expected = plugin(*arms[:3]) + arms.map_radius * moved
    np.testing.assert_allclose(bound(arms), expected, rtol=1e-13)


def test_known_duality_gap() -> None:
    arm = arms_of(np.array([[[1.0, 0.5], [0.5, 0.3]]]), np.array([[-0.5]]))
    np.testing.assert_allclose(joint(arm), 0.5 + np.sqrt(0.3), rtol=1e-15)
    np.testing.assert_allclose(certificate(arm), 1.150, atol=5e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_joint_is_the_better_of_two_points_in_one_dimension(kind: str) -> None:
    arms = random_arms(np.random.default_rng(2), 500, 1, kind)
    expected = score_at(arms, np.array([[[1.0], [-1.0]]]).repeat(500, axis=0)).max(axis=1)
    assert np.all(np.abs(joint(arms) - expected) <= 1e-14 * scale_of(arms))


@pytest.mark.parametrize("kind", KINDS)
def test_joint_is_brute_force_on_the_circle(kind: str) -> None:
    arms = random_arms(np.random.default_rng(3), 150, 2, kind)
    assert np.all(np.abs(joint(arms) - best_on_circle(arms)) <= 1e-10 * scale_of(arms))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [3, 5, 8])
def test_joint_is_the_best_of_many_climbs(kind: str, dim: int) -> None:
    rng = np.random.default_rng([4, dim])
    arms = random_arms(rng, 15, dim, kind)
    assert np.all(np.abs(joint(arms) - best_of_climbs(arms, rng)) <= 1e-8 * scale_of(arms))


@thorough
@given(any_arms() | any_arms(exponent=12))
def test_joint_lies_between_plugin_and_its_upper_bounds(arms: Candidates) -> None:
    score, upper, slack = joint(arms), certificate(arms), 1e-12 * scale_of(arms)
    assert np.all(np.isfinite([score, upper]))
    assert np.all(score >= plugin(*arms[:3]))
    assert np.all(score <= bound(arms))
    assert np.all(score <= upper + slack)
    assert np.all(upper <= bound(arms) + slack)


@pytest.mark.parametrize("kind", KINDS)
def test_certificate_proves_joint_without_beta(kind: str) -> None:
    """Without beta only q is maximised: one trust-region problem, which has no duality gap."""
    for dim in (1, 2, 5):
        arms = random_arms(np.random.default_rng([5, dim]), 40, dim, kind)
        arms = arms._replace(beta=np.zeros_like(arms.beta))
        assert np.all(np.abs(certificate(arms) - joint(arms)) <= 1e-9 * scale_of(arms))


def test_certificate_is_the_least_over_s() -> None:
    arms = random_arms(np.random.default_rng(6), 60, 2, "opposed")
    d = arms.map_radius[:, None, None] * circle(np.linspace(0, 2 * np.pi, 501))
    q, linear = variance_at(arms, d), linear_at(arms, d)
    least = np.full(60, np.inf)
    for v in np.geomspace(1e-2, 1e2, 2001):  # s = zeta / v
        doubt = arms.arm_radius[:, None] * (q / v + v) / 2
        least = np.minimum(least, arms.mean + (linear + doubt).max(axis=1))
    upper, scale = certificate(arms), scale_of(arms)
    assert np.all((least - 1e-3 * scale <= upper) & (upper <= least + 1e-4 * scale))
    assert np.any(upper > joint(arms) + 5e-3 * scale)  # there are gaps


def test_no_map_radius_is_the_plugin_score_to_the_last_bit() -> None:
    arms = random_arms(np.random.default_rng(7), 40, 3)._replace(map_radius=np.zeros(40))
    for score in SCORES:
        np.testing.assert_array_equal(score(arms), plugin(*arms[:3]))


def test_no_arm_radius_is_linear() -> None:
    arms = random_arms(np.random.default_rng(8), 40, 3)._replace(arm_radius=np.zeros(40))
    expected = arms.mean + arms.map_radius * np.linalg.norm(arms.beta, axis=1)
    for score in (bound, joint, certificate):
        np.testing.assert_allclose(score(arms), expected, rtol=1e-13, atol=1e-14)


def test_aligned_arms_have_a_closed_form() -> None:
    """With beta along c and M = m I, the best d is e in that direction; any of them may be zero."""
    q0, beta, c, m = (each.ravel() for each in np.meshgrid([0, 1e-9, 4], [0, 3], [0, 1], [0, 2]))
    possible = c * c <= q0 * m
    q0, beta, c, m = (each[possible].astype(float) for each in (q0, beta, c, m))
    for dim in (1, 2, 4):
        along = np.eye(dim)[0]
        gram = m[:, None, None] * np.eye(dim + 1)
        gram[:, 0, 0], gram[:, 0, 1], gram[:, 1, 0] = q0, c, c
        arms = arms_of(gram, beta[:, None] * along, 0.5, 2.0, 1.5)
        expected = 0.5 + 1.5 * beta + 2 * np.sqrt(q0 + 3 * c + 2.25 * m)
        np.testing.assert_allclose(joint(arms), expected, rtol=1e-12)
        np.testing.assert_allclose(certificate(arms), expected, rtol=1e-6)


def test_idle_axes_reduce_to_the_best_of_them() -> None:
    """Where beta and c lie on one axis, d needs that axis and the widest of the others."""
    rng = np.random.default_rng(9)
    m, cross, excess = rng.random((200, 6)), rng.normal(size=200), rng.random(200)
    gram = np.zeros((200, 7, 7))
    gram[:, 1:, 1:] = m[:, :, None] * np.eye(6)
    gram[:, 0, 1] = gram[:, 1, 0] = cross
    gram[:, 0, 0] = cross**2 / m[:, 0] + excess
    beta = np.zeros((200, 6))
    beta[:, 0] = -cross
    whole = arms_of(gram, beta)
    gram[:, 2, 2] = m[:, 1:].max(axis=1)
    plane = arms_of(gram[:, :3, :3], beta[:, :2])
    np.testing.assert_allclose(joint(whole), joint(plane), rtol=1e-12)


def test_a_nearly_symmetric_ridge_is_followed_to_its_top() -> None:
    """Axes of equal width can be turned until but two of them carry what little beta and c do."""
    rng = np.random.default_rng(10)
    (first, other), cross = rng.random((2, 3000)), rng.normal(size=3000)
    little = rng.normal(size=(3000, 7, 2)) * 10.0 ** rng.uniform(-9, -2, size=(3000, 1, 1))

    def arms_with(beta_and_c: FloatArray) -> Candidates:
        start = np.stack([-cross, cross], axis=-1)[:, None]
        beta, c = np.moveaxis(np.concatenate([start, beta_and_c], axis=1), -1, 0)
        dim = beta.shape[1]
        width = np.where(np.arange(dim) == 0, first[:, None], other[:, None])
        gram = np.zeros((3000, dim + 1, dim + 1))
        gram[:, 1:, 1:] = width[:, :, None] * np.eye(dim)
        gram[:, 0, 1:] = gram[:, 1:, 0] = c
        gram[:, 0, 0] = (c * c / width).sum(axis=1) + 0.1
        return arms_of(gram, beta)

    whole, turned = arms_with(little), arms_with(np.linalg.qr(little).R)
    assert np.all(np.abs(joint(whole) - joint(turned)) <= 1e-9 * scale_of(whole))


def test_joint_tells_nearly_mirrored_maxima_apart() -> None:
    """Turning z about leaves nothing to choose, however slight the choice of side had been."""
    rng = np.random.default_rng(16)
    arms = random_arms(rng, 3000, 4, "symmetric")
    nudge = rng.normal(size=arms.beta.shape) * 10.0 ** rng.uniform(-8, -3, size=(3000, 1))
    arms = arms._replace(beta=arms.beta + nudge)
    mirrored = arms._replace(beta=-arms.beta, cross=-arms.cross)
    np.testing.assert_allclose(joint(mirrored), joint(arms), rtol=1e-12)


@pytest.mark.parametrize("radius", [1e-300, 1e-160, 1e-80, 1e-20])
def test_vanishing_map_radius_tends_to_the_plugin_score(radius: float) -> None:
    arms = random_arms(np.random.default_rng(18), 40, 3)._replace(map_radius=np.full(40, radius))
    for score in SCORES:
        np.testing.assert_allclose(score(arms), plugin(*arms[:3]), rtol=1e-15)


@thorough
@given(any_arms(), st.floats(1, 3), st.sampled_from(["arm_radius", "map_radius"]))
def test_joint_grows_with_either_radius(arms: Candidates, factor: float, radius: str) -> None:
    wider = arms._replace(**{radius: factor * getattr(arms, radius)})
    assert np.all(joint(wider) >= joint(arms) - 1e-9 * scale_of(wider))


@pytest.mark.parametrize("kind", KINDS)
def test_joint_does_not_depend_on_the_axes_of_z(kind: str) -> None:
    rng = np.random.default_rng(11)
    arms = random_arms(rng, 100, 4, kind)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = arms._replace(
        beta=arms.beta @ turn,
        cross=arms.cross @ turn,
        block=turn.T @ arms.block @ turn,
    )
    assert np.all(np.abs(joint(turned) - joint(arms)) <= 1e-9 * scale_of(arms))


@brief
@given(any_arms(), st.integers(-40, 40))
def test_the_unit_of_the_reward_scales_every_score(arms: Candidates, exponent: int) -> None:
    unit = 2.0**exponent
    scaled = arms._replace(
        mean=unit * arms.mean,
        arm_radius=unit * arms.arm_radius,
        beta=unit * arms.beta,
    )
    for score in SCORES:
        np.testing.assert_array_equal(score(scaled), unit * score(arms))


@brief
@given(any_arms(), st.integers(-40, 40))
def test_the_unit_of_z_changes_no_score(arms: Candidates, exponent: int) -> None:
    unit = 2.0**exponent
    scaled = arms._replace(
        map_radius=unit * arms.map_radius,
        beta=arms.beta / unit,
        cross=arms.cross / unit,
        block=arms.block / unit**2,
    )
    for score in SCORES:
        np.testing.assert_array_equal(score(scaled), score(arms))


@pytest.mark.parametrize("kind", KINDS)
def test_an_arm_is_scored_as_if_alone(kind: str) -> None:
    arms = random_arms(np.random.default_rng(12), 60, 3, kind)
    for score in (bound, joint):
        together = score(arms)
        for k in range(60):
            alone = score(Candidates(*(field[k : k + 1] for field in arms)))
            np.testing.assert_array_equal(alone, together[k : k + 1])


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_contenders_keep_the_argmax_and_its_ties(dim: int) -> None:
    rng, spared = np.random.default_rng([13, dim]), 0
    for _ in range(60):
        arms = random_arms(rng, 12, dim)._replace(mean=5 * rng.normal(size=12))
        arms = Candidates(*(np.concatenate([field, field[::2]]) for field in arms))  # ties
        exact, score, lowest = joint(arms), joint_contenders(arms), plugin(*arms[:3])
        contends = bound(arms) >= lowest.max()
        solved = contends & (np.count_nonzero(contends) > 1)  # one alone has won already
        np.testing.assert_array_equal(score, np.where(solved, exact, lowest))
        np.testing.assert_array_equal(score == score.max(), exact == exact.max())
        spared += int(np.count_nonzero(~contends))
    assert spared > 100


def test_a_thousand_arms() -> None:
    arms = random_arms(np.random.default_rng(14), 1000, 5)
    score, slack = joint(arms), 1e-12 * scale_of(arms)
    assert score.shape == (1000,)
    assert np.all((plugin(*arms[:3]) <= score) & (score <= certificate(arms) + slack))


def test_no_arms_have_no_scores() -> None:
    none = Candidates(*(field[:0] for field in random_arms(np.random.default_rng(15), 1, 3)))
    for score in SCORES:
        assert score(none).shape == (0,)


@st.composite
def degenerate_arms(draw: st.DrawFn) -> Candidates:
    """`any_arms`, parts of which vanish, and some of which come again."""
    arms = draw(any_arms() | any_arms(exponent=6))
    nothing = draw(st.sets(st.sampled_from(["map_radius", "arm_radius", "beta", "mean"])))
    arms = arms._replace(**{name: np.zeros_like(getattr(arms, name)) for name in nothing})
    some = draw(st.lists(st.integers(0, len(arms.mean) - 1), max_size=3))
    order = draw(st.permutations([*range(len(arms.mean)), *some]))
    return Candidates(*(np.ascontiguousarray(field[order]) for field in arms))


def scored_by(kernel: Callable[..., None], arms: Candidates) -> FloatArray:
    scores = np.empty(len(arms.mean))
    kernel(scores, *arms)
    return scores


@thorough
@given(degenerate_arms())
def test_compiled_scores_are_those_of_the_reference(arms: Candidates) -> None:
    slack = 1e-12 * scale_of(arms)
    for name in ("joint_scores", "bound_scores"):
        compiled, expected = (scored_by(getattr(module, name), arms) for module in (kernels, reference))
        assert np.all(np.abs(compiled - expected) <= slack)


@thorough
@given(degenerate_arms())
def test_compiled_contenders_win_and_tie_as_in_the_reference(arms: Candidates) -> None:
    compiled, expected = (scored_by(module.contender_scores, arms) for module in (kernels, reference))
    slack = 1e-12 * scale_of(arms).max()
    wins = compiled == compiled.max()
    sure = np.count_nonzero(expected >= expected.max() - slack) == 1
    alone = np.count_nonzero(bound(arms) >= plugin(*arms[:3]).max() - slack) == 1  # and left unsolved
    assert alone or abs(compiled.max() - joint(arms).max()) <= slack
    assert not sure or compiled.argmax() == expected.argmax()
    assert np.all(joint(arms)[wins] >= joint(arms).max())
    rows = np.concatenate([field.reshape(len(wins), -1) for field in arms], axis=1)
    for row in rows[wins]:
        assert np.all(wins[(rows == row).all(axis=1)])  # equal arms tie


@brief
@given(degenerate_arms(), st.integers(-40, 40), st.integers(-40, 40))
def test_units_cannot_sway_the_compiled_scores(arms: Candidates, reward: int, context: int) -> None:
    money, length = 2.0**reward, 2.0**context
    scaled = Candidates(
        mean=money * arms.mean,
        width=arms.width,
        arm_radius=money * arms.arm_radius,
        map_radius=length * arms.map_radius,
        beta=money / length * arms.beta,
        cross=arms.cross / length,
        block=arms.block / length**2,
    )
    for kernel in (kernels.joint_scores, kernels.bound_scores, kernels.contender_scores):
        np.testing.assert_array_equal(scored_by(kernel, scaled), money * scored_by(kernel, arms))


def test_many_axes_turn_as_few_do() -> None:
    arms = random_arms(np.random.default_rng(19), 6, 40)
    assert np.all(np.abs(joint(arms) - scored_by(reference.joint_scores, arms)) <= 1e-12 * scale_of(arms))
