"""What every context map must do."""

from typing import Any, NamedTuple

import numpy as np

from postserve.conformance.overriding import maps_take_overridden_steps
from postserve.conformance.tools import (
    POWERS_OF_TWO,
    Make,
    N,
    checks_in,
    close,
    learnt,
    reload,
    require,
    require_invalid,
    same,
    snapshot,
    some_rounds,
)
from postserve.protocols import CountsPending, Forgets, HasSpread, HasSpreadRoot, LearnsInStages
from postserve.state import Persistent
from postserve.types import FloatArray

ARMS = (0, 3)


def it_has_the_verbs(make: Make) -> None:
    """`make` makes a map, with all that the protocol names."""
    require(callable(make), f"got a {type(make).__name__}, wanted a function that makes a fresh map")
    phi_hat = make()
    for name in ("dim_x", "dim_z", "predict", "radius", "sample", "update"):
        require(hasattr(phi_hat, name), f"the map has no {name}")


def answers_have_the_right_shapes(make: Make) -> None:
    """predict, radius, spread and sample give one finite row per arm, before and after learning.

    Radii and spreads are at least 0; a map need not have `spread`.
    """
    for phi_hat in (make(), _taught(make())):
        x = _pairs(phi_hat)[0][0]
        rng = np.random.default_rng(0)
        for name, rows in (("predict", phi_hat.predict(x, ARMS)), ("sample", phi_hat.sample(x, ARMS, rng))):
            require(rows.shape == (len(ARMS), phi_hat.dim_z), f"{name} gave the shape {rows.shape}")
            require(bool(np.isfinite(rows).all()), f"{name} gave {rows}")
        sizes = {"radius": phi_hat.radius(x, ARMS)}
        require(sizes["radius"].shape == (len(ARMS),), f"radius gave the shape {sizes['radius'].shape}")
        if isinstance(phi_hat, HasSpread):
            sizes["spread"] = phi_hat.spread(x, ARMS)
            require(sizes["spread"].shape == rows.shape, f"spread gave the shape {sizes['spread'].shape}")
        for name, found in sizes.items():
            require(bool(np.isfinite(found).all() and (found >= 0.0).all()), f"{name} gave {found}")


def asking_changes_nothing(make: Make) -> None:
    """predict, radius and sample change nothing but rng, and answer the same again."""
    phi_hat = _taught(make())
    x = _pairs(phi_hat)[0][0]
    before = snapshot(phi_hat)
    answers = [_ask(phi_hat, x) for _ in range(2)]
    require(all(map(np.array_equal, *answers)), "the same question got another answer")
    answers[0][0][:] = np.nan
    require(bool(np.isfinite(phi_hat.predict(x, ARMS)).all()), "an answer is the map's own array")
    require(same(before, snapshot(phi_hat)), "asking changed the map")


def no_arms_get_no_answers(make: Make) -> None:
    """predict, radius, spread and sample of no arms are empty, for one x and for no rows."""
    for phi_hat in (make(), _taught(make())):
        X = _pairs(phi_hat)[0]
        for x in (X[0], X[:0]):
            rows = [phi_hat.predict(x, []), phi_hat.sample(x, [], np.random.default_rng(0))]
            if isinstance(phi_hat, HasSpread):
                rows.append(phi_hat.spread(x, []))
            for found in rows:
                require(found.shape == (0, phi_hat.dim_z), f"no arms got the shape {found.shape}")
            require(phi_hat.radius(x, []).shape == (0,), "no arms got a radius")


def rows_go_with_their_arms(make: Make) -> None:
    """One row per arm gives what each row gives alone, and equal rows what one x gives."""
    phi_hat = _taught(make())
    X = _pairs(phi_hat, seed=2)[0][: len(ARMS)]
    questions = [("predict", phi_hat.predict), ("radius", phi_hat.radius)]
    if isinstance(phi_hat, HasSpread):
        questions.append(("spread", phi_hat.spread))
    for name, ask in questions:
        alone = [ask(x, (arm,))[0] for x, arm in zip(X, ARMS, strict=True)]
        require(close(ask(X, ARMS), alone, 1e-9), f"{name} of rows is not that of each row")
        equal = ask(np.repeat(X[:1], len(ARMS), axis=0), ARMS)
        require(close(equal, ask(X[0], ARMS), 1e-12), f"{name} of equal rows is not that of one x")
        require_invalid(f"{name} of a row too few", ask, X[1:], ARMS)


def draws_scatter_around_the_prediction(make: Make) -> None:
    """sample, of one x or of rows, has predict as its mean, and its deviation is within the radius.

    Where the map has `spread`, that is the deviation of each coordinate, and `spread_root` that of all.
    """
    phi_hat = _taught(make())
    X = _pairs(phi_hat, seed=2)[0][: len(ARMS)]
    for x in (X[0], X):
        drawn = phi_hat.sample(x, ARMS, np.random.default_rng(0), 2000)
        once = phi_hat.sample(x, ARMS, np.random.default_rng(0))
        shapes = drawn.shape, once.shape
        wanted = (2000, len(ARMS), phi_hat.dim_z), (len(ARMS), phi_hat.dim_z)
        require(shapes == wanted, f"sample gave the shapes {shapes}, wanted {wanted}")
        off = drawn - phi_hat.predict(x, ARMS)
        radius = phi_hat.radius(x, ARMS)
        limit = 5.0 * radius[:, None] / np.sqrt(len(drawn)) + 1e-9
        require(bool((abs(off.mean(axis=0)) <= limit).all()), "the mean of many draws is not the prediction")
        spread = np.sqrt((off**2).sum(axis=2).mean(axis=0))
        require(bool((spread <= 1.2 * radius + 1e-9).all()), f"draws scatter by {spread} in {radius}")
        if isinstance(phi_hat, HasSpread):
            each, told = np.sqrt((off**2).mean(axis=0)), phi_hat.spread(x, ARMS)
            require(
                bool((abs(each - told) <= 0.2 * told + 1e-9).all()), f"draws scatter by {each}, not {told}"
            )
        if isinstance(phi_hat, HasSpreadRoot):
            root, together = phi_hat.spread_root(x, ARMS), np.einsum("nai,naj->aij", off, off) / len(off)
            most = np.linalg.norm(root, axis=2)
            limit = 0.2 * most[:, :, None] * most[:, None, :] + 1e-9
            require(
                bool((abs(together - root @ root.mT) <= limit).all()),
                f"draws have the covariance {together}, spread_root says {root @ root.mT}",
            )


def inputs_are_not_kept(make: Make) -> None:
    """Arguments are neither changed nor kept."""
    one, other = make(), make()
    for x, z in zip(*_pairs(one), strict=True):
        mine, follow_up = x.copy(), z.copy()
        one.update(mine, 0, follow_up)
        require(np.array_equal(mine, x) and np.array_equal(follow_up, z), "update changed its inputs")
        mine[:] = follow_up[:] = np.nan
        other.update(x, 0, z)
    require(same(snapshot(one), snapshot(other)), "an array handed over was kept, and changed later")


def state_round_trips(make: Make) -> None:
    """A map saved and loaded goes on learning identically; saving changes nothing."""
    phi_hat = _taught(make())
    if not isinstance(phi_hat, Persistent):
        return
    before = snapshot(phi_hat)
    twin = reload(phi_hat)
    require(same(before, snapshot(phi_hat)), "saving changed the map")
    for one in (phi_hat, twin):
        _taught(one, seed=1)
    x = _pairs(phi_hat)[0][0]
    require(all(map(np.array_equal, _ask(phi_hat, x), _ask(twin, x))), "the loaded map answers differently")
    require(same(learnt(phi_hat), learnt(twin)), "the loaded map learnt differently")


def bad_input_is_refused(make: Make) -> None:
    """NaN, infinity, wrong shapes and types raise InvalidInput and change nothing."""
    phi_hat = _taught(make())
    (x, *_), (z, *_) = _pairs(phi_hat)
    before = snapshot(phi_hat)
    for bad in (np.full(len(x), np.nan), np.full(len(x), np.inf), np.append(x, 1.0), x[None], "x", None):
        require_invalid(f"predict at x = {bad}", phi_hat.predict, bad, ARMS)
        require_invalid(f"radius at x = {bad}", phi_hat.radius, bad, ARMS)
        require_invalid(f"update with x = {bad}", phi_hat.update, bad, 0, z)
    for bad in (np.full(len(z), np.nan), np.full(len(z), np.inf), np.append(z, 1.0), z[None], "z", None):
        require_invalid(f"update with z = {bad}", phi_hat.update, x, 0, bad)
    for bad in (-1, 0.5, "0", None):
        require_invalid(f"update with arm = {bad}", phi_hat.update, x, bad, z)
    require(same(before, snapshot(phi_hat)), "refused input changed the map")


def order_does_not_matter_where_promised(make: Make) -> None:
    """An order-free map learns the same in any order, and merged halves are the whole."""
    whole, shuffled, left, right = make(), make(), make(), make()
    if not getattr(whole, "order_free", False):
        return
    X, Z = _pairs(whole)
    order = np.random.default_rng(1).permutation(N)
    for one, rows in ((whole, np.arange(N)), (shuffled, order), (left, order[::2]), (right, order[1::2])):
        _teach(one, X[rows], Z[rows])
    left.merge(right)
    for one in (whole, shuffled, left):
        if hasattr(one, "refit_prior"):
            one.refit_prior()
    for what, other in (("another order", shuffled), ("merging", left)):
        alike = close(whole.predict(X[0], ARMS), other.predict(X[0], ARMS), 1e-6)
        require(alike, f"order_free is True, and {what} changed the predictions")


def units_do_not_matter_where_promised(make: Make) -> None:
    """A scale-free map scales its predictions and radii exactly with z, and ignores the scale of x."""
    if not getattr(make(), "scale_free", False):
        return
    X, Z = _pairs(make())
    expected = _scaled_answers(make(), X, Z)
    for factor in POWERS_OF_TWO:
        for by_x, by_z in ((factor, 1.0), (1.0, factor)):
            alike = np.array_equal(_scaled_answers(make(), X * by_x, Z * by_z), expected * by_z)
            require(alike, f"scale_free is True, and {by_x} x, {by_z} z changed a bit")


def units_of_columns_do_not_matter_where_promised(make: Make) -> None:
    """A column-free map ignores the unit of each column of x; predictions have the units of z's columns."""
    if not getattr(make(), "column_free", False):
        return
    X, Z = _pairs(make())
    expected = _answers_after_each(make(), X, Z)
    for factor in POWERS_OF_TWO:
        for column in range(X.shape[1]):
            got = _answers_after_each(make(), X * _only(column, factor, X), Z)
            alike = all(map(np.array_equal, got, expected))
            require(alike, f"column_free is True, and {factor} times column {column} of x changed a bit")
        for column in range(Z.shape[1]):
            by = _only(column, factor, Z)
            got = _answers_after_each(make(), X, Z * by)
            alike = np.array_equal(got.predicted, expected.predicted * by)
            require(alike, f"column_free is True, and {factor} times column {column} of z changed a bit")


def the_level_does_not_matter_where_promised(make: Make) -> None:
    """From the first pair on, a shift-free map predicts z + c in place of z, with the same radii."""
    if not getattr(make(), "shift_free", False):
        return
    X, Z = _pairs(make())
    Z = np.round(1024.0 * Z) / 1024.0  # so that sums with c are exact
    expected = _answers_after_each(make(), X, Z)
    for c in (100.0, -(2.0**20)):
        got = _answers_after_each(make(), X, Z + c)
        alike = close(got.predicted, expected.predicted + c, 1e-9)
        require(alike, f"shift_free is True, and predictions of z + {c:g} are not those of z, plus {c:g}")
        alike = close(got.radii, expected.radii, 1e-9)
        require(alike, f"shift_free is True, and z + {c:g} has other radii than z")


def forgetting_keeps_it_working(make: Make) -> None:
    """Forgetting leaves a map that answers and learns; factors outside (0, 1] are refused."""
    phi_hat = _taught(make())
    if not isinstance(phi_hat, Forgets) or getattr(phi_hat, "incremental", False):
        return
    before = snapshot(phi_hat)
    phi_hat.forget(1.0)
    for bad in (0.0, -1.0, 1.5, np.nan):
        require_invalid(f"forget({bad})", phi_hat.forget, bad)
    require(same(before, snapshot(phi_hat)), "forgetting nothing changed the map")
    phi_hat.forget(0.5)
    answers_have_the_right_shapes(lambda: phi_hat)


def stages_are_learnt_once(make: Make) -> None:
    """A map that learns in stages learns from the parts of each z, in any order, what all of it teaches."""
    if not isinstance(make(), LearnsInStages):
        return
    whole = _taught(make())
    for backwards in (False, True):
        in_parts = make()
        for x, z in zip(*_pairs(whole), strict=True):
            known: FloatArray | None = None
            for n in range(1, len(z) + 1):
                has = np.arange(len(z)) >= len(z) - n if backwards else np.arange(len(z)) < n
                part = np.where(has, z, np.nan)
                in_parts.learn_stages(x, 0, part, known)
                in_parts.learn_stages(x, 0, part, part)
                known = part
        require(same(snapshot(whole), snapshot(in_parts)), "z in parts taught differently")
    x, z = (each[0] for each in _pairs(whole, seed=1))
    before, nothing = snapshot(whole), np.full(len(z), np.nan)
    whole.learn_stages(x, 0, nothing)
    require(close(whole.complete(x, 0, nothing), whole.predict(x)[0], 1e-12), "no part is not predicted as x")
    require(np.array_equal(whole.complete(x, 0, z), z), "all of z is completed to something else")
    for bad in (np.full(len(z), np.inf), np.append(z, np.nan), z[None], "z", None):
        require_invalid(f"learn_stages with z = {bad}", whole.learn_stages, x, 0, bad)
        require_invalid(f"complete with z = {bad}", whole.complete, x, 0, bad)
    for bad in (-1, 0.5, None):
        require_invalid(f"learn_stages with arm = {bad}", whole.learn_stages, x, bad, z)
    require(same(before, snapshot(whole)), "refused input, or no part, changed the map")


def announced_rounds_can_be_taken_back(make: Make) -> None:
    """Announced rounds change no prediction and widen no radius, reload, and leave the map as it was."""
    if not isinstance(make(), CountsPending):
        return
    phi_hat = _taught(make())
    X, Z = _pairs(phi_hat, seed=1)
    before, expected, radii = snapshot(phi_hat), phi_hat.predict(X[0], ARMS), phi_hat.radius(X[0], ARMS)
    announced: list[tuple[Any, ...]] = [(x, 0) for x in X]
    if isinstance(phi_hat, LearnsInStages):
        known = np.arange(Z.shape[1]) < Z.shape[1] - 1
        announced += [(x, 0, np.where(known, z, np.nan)) for x, z in zip(X, Z, strict=True)]
    for x, *rest in announced:
        mine = x.copy()
        phi_hat.expect(mine, *rest)
        mine[:] = np.nan
    require(np.array_equal(expected, phi_hat.predict(X[0], ARMS)), "announced rounds changed a prediction")
    narrower = phi_hat.radius(X[0], ARMS) <= radii * (1.0 + 1e-9)
    require(bool(narrower.all()), "announced rounds widened a radius")
    alike = close(phi_hat.settled().radius(X[0], ARMS), radii, 1e-9)
    require(alike, "settled() has other radii than before rounds were announced")
    counting = snapshot(phi_hat)
    for verb in (phi_hat.expect, phi_hat.withdraw):
        for bad in (np.full(len(X[0]), np.nan), np.append(X[0], 1.0), X[:1], "x", None):
            require_invalid(f"{verb.__name__} with x = {bad}", verb, bad, 0)
        for arm in (-1, 0.5, None):
            require_invalid(f"{verb.__name__} with arm = {arm}", verb, X[0], arm)
    require_invalid("withdrawing another x", phi_hat.withdraw, X[0] + 1.0, 0)
    require(same(counting, snapshot(phi_hat)), "refused input changed the map")
    twin = reload(phi_hat) if isinstance(phi_hat, Persistent) else phi_hat
    alike = close(twin.radius(X[0], ARMS), phi_hat.radius(X[0], ARMS), 1e-9)
    require(alike, "the loaded map counts announced rounds differently")
    for one in (phi_hat,) if twin is phi_hat else (phi_hat, twin):
        for args in reversed(announced):
            one.withdraw(*args)
        require_invalid("withdrawing twice", one.withdraw, *announced[0])
    require(same(before, snapshot(phi_hat)), "announced and withdrawn rounds changed the map")


CONTEXT_MAP_CHECKS = (*checks_in(globals()), maps_take_overridden_steps)


def check_context_map(make: Make) -> None:
    """Run every check on maps made by `make`, which gives a fresh one each time.

    >>> from postserve import RidgeMap
    >>> check_context_map(lambda: RidgeMap(dim_x=3, dim_z=2))
    """
    for check in CONTEXT_MAP_CHECKS:
        check(make)


def _pairs(phi_hat: Any, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rounds = some_rounds(N, phi_hat.dim_x, phi_hat.dim_z, 1, seed)
    return rounds.x, rounds.z


def _taught(phi_hat: Any, seed: int = 0) -> Any:
    _teach(phi_hat, *_pairs(phi_hat, seed))
    return phi_hat


def _teach(phi_hat: Any, X: FloatArray, Z: FloatArray) -> None:
    for x, z in zip(X, Z, strict=True):
        phi_hat.update(x, 0, z)


def _ask(phi_hat: Any, x: FloatArray) -> list[FloatArray]:
    rng = np.random.default_rng(0)
    return [phi_hat.predict(x, ARMS), phi_hat.radius(x, ARMS), phi_hat.sample(x, ARMS, rng)]


def _only(column: int, factor: float, values: FloatArray) -> FloatArray:
    """Ones, and the factor for one column."""
    return np.where(np.arange(values.shape[1]) == column, factor, 1.0)


class _Answers(NamedTuple):
    predicted: FloatArray
    radii: FloatArray


def _answers_after_each(phi_hat: Any, X: FloatArray, Z: FloatArray) -> _Answers:
    """What the map says of the next x, after each pair."""
    predicted, radii = [], []
    for i in range(len(X) - 1):
        phi_hat.update(X[i], 0, Z[i])
        predicted.append(phi_hat.predict(X[i + 1], ARMS))
        radii.append(phi_hat.radius(X[i + 1], ARMS))
    return _Answers(np.array(predicted), np.array(radii))


def _scaled_answers(phi_hat: Any, X: FloatArray, Z: FloatArray) -> FloatArray:
    answers = []
    for x, z in zip(X, Z, strict=True):
        answers.append(np.concatenate([phi_hat.predict(x, ARMS).ravel(), phi_hat.radius(x, ARMS)]))
        phi_hat.update(x, 0, z)
    return np.array(answers)
