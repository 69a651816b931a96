"""State files: what is refused, and that none is half-written."""

import json
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest
from tests.own_map import OwnTotal
from tests.stored import arrays_in, load_old, write_arrays
from tests.untyped import untyped

import postserve
from postserve import (
    EpsilonGreedy,
    InvalidInput,
    KnownMap,
    LinUCB,
    PoLinUCB,
    RidgeMap,
    SklearnMap,
    StateMismatch,
    load,
)
from postserve.policies.arms import ArmOptions


def double(x: Any) -> Any:
    return 2.0 * x


@pytest.fixture
def path(tmp_path: Path) -> Path:
    policy = PoLinUCB(3, RidgeMap(2, 1))
    policy.update([1.0, 2.0], 1, [3.0], 4.0)
    policy.save(tmp_path / "policy.npz")
    return tmp_path / "policy.npz"


def rewrite(path: Path, **changes: Any) -> None:
    arrays = arrays_in(path)
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value
    write_arrays(path, arrays)


def header_of(path: Path) -> Any:
    return json.loads(str(arrays_in(path)["header"]))


def test_a_file_cut_short_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in [0, 1, 100, *range(200, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(StateMismatch, match="wanted"):
            postserve.load(path)


def test_a_flipped_byte_in_an_array_is_noticed(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    at = whole.find(np.float64(4.0).tobytes())  # the moment's reward, deep in an array
    assert at > 0
    whole[at] ^= 1
    path.write_bytes(bytes(whole))
    with pytest.raises(StateMismatch, match="damaged"):
        postserve.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_u": np.zeros((2, 3))}, r"row_u has shape \(2, 3\), wanted \(1, 4\)"),
        ({"tally": np.zeros((3, 5), dtype=np.float32)}, "tally has dtype float32, wanted float64"),
        ({"row_u": np.full((1, 4), np.nan)}, "row_u has values that are not finite"),
        ({"context_map.dense_gram": None}, "no array context_map.dense_gram"),
        ({"header": None}, "damaged or no state file"),
        ({"header": np.array("{}")}, "damaged or no state file"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(path: Path, changes: dict[str, Any], message: str) -> None:
    rewrite(path, **changes)
    with pytest.raises(StateMismatch, match=message):
        postserve.load(path)


@pytest.mark.parametrize("version", [0, 4, "1", None])
def test_a_state_of_another_version_is_refused(path: Path, version: Any) -> None:
    rewrite(path, header=np.array(json.dumps({**header_of(path), "version": version})))
    with pytest.raises(StateMismatch, match="version"):
        postserve.load(path)


def test_a_state_of_another_class_is_refused(path: Path) -> None:
    with pytest.raises(StateMismatch, match="holds a PoLinUCB, wanted a LinUCB"):
        postserve.load(path, kind=LinUCB)
    assert isinstance(postserve.load(path, kind=PoLinUCB), PoLinUCB)
    header = header_of(path)
    header["state"]["class"] = "Nonesuch"
    rewrite(path, header=np.array(json.dumps(header)))
    with pytest.raises(StateMismatch, match="Nonesuch"):
        postserve.load(path)


def test_settings_that_do_not_fit_are_refused(path: Path) -> None:
    header = header_of(path)
    header["state"]["settings"]["optimism"] = {"value": "hope"}
    rewrite(path, header=np.array(json.dumps(header)))
    with pytest.raises(StateMismatch, match="optimism"):
        postserve.load(path)


def test_what_is_not_a_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a state")
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("text", "array.npy"):
        with pytest.raises(StateMismatch, match="wanted"):
            postserve.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        postserve.load(tmp_path / "nowhere")


def test_objects_are_named_and_handed_back(tmp_path: Path) -> None:
    policy = EpsilonGreedy(PoLinUCB(2, RidgeMap(2, 1, features=double)))
    policy.save(tmp_path / "state")
    with pytest.raises(StateMismatch, match=r"policy\.context_map\.features"):
        postserve.load(tmp_path / "state")
    with pytest.raises(StateMismatch, match="no object"):
        postserve.load(tmp_path / "state", objects={"policy.context_map.features": double, "extra": double})
    loaded = postserve.load(tmp_path / "state", objects={"policy.context_map.features": double})
    assert loaded.policy.context_map.features is double


def halve(x: Any) -> Any:
    return x / 2.0


def test_an_object_that_answers_otherwise_is_noticed(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeRegressor

    RidgeMap(2, 1, features=double).save(tmp_path / "ridge")
    with pytest.raises(StateMismatch, match="features handed back"):
        postserve.load(tmp_path / "ridge", objects={"features": halve})
    KnownMap(2, 2, function=double).save(tmp_path / "known")
    with pytest.raises(StateMismatch, match="function handed back"):
        postserve.load(tmp_path / "known", objects={"function": halve})
    SklearnMap(2, 1, DecisionTreeRegressor(max_depth=3)).save(tmp_path / "tree")
    with pytest.raises(StateMismatch, match='"max_depth": 3'):
        postserve.load(tmp_path / "tree", objects={"regressor": DecisionTreeRegressor(max_depth=4)})


def test_a_map_of_ones_own_must_come_back_taught(tmp_path: Path) -> None:
    policy = PoLinUCB(2, OwnTotal())
    policy.update([1.0, 2.0], 0, [3.0], 4.0)
    policy.save(tmp_path / "state")
    with pytest.raises(StateMismatch, match="context_map handed back"):
        postserve.load(tmp_path / "state", objects={"context_map": OwnTotal()})
    loaded = postserve.load(tmp_path / "state", objects={"context_map": policy.context_map})
    assert loaded.context_map.predict([1.0, 2.0]).item() == 3.0


def test_a_saved_file_has_the_permissions_of_any_other(path: Path) -> None:
    (path.parent / "other").write_text("")
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode


def test_a_known_maps_function_is_handed_back(tmp_path: Path) -> None:
    PoLinUCB(2, KnownMap(2, 2, function=double)).save(tmp_path / "state")
    loaded = postserve.load(tmp_path / "state", objects={"context_map.function": double})
    assert loaded.context_map.predict([1.0, 2.0]).tolist() == [[2.0, 4.0]]


def test_an_incremental_regressor_must_come_back_fitted(tmp_path: Path) -> None:
    from sklearn.linear_model import SGDRegressor

    phi_hat = SklearnMap(2, 1, SGDRegressor())
    phi_hat.update([1.0, 2.0], 0, [3.0])
    phi_hat.save(tmp_path / "state")
    with pytest.raises(StateMismatch, match="unfitted"):
        postserve.load(tmp_path / "state", objects={"regressor": SGDRegressor()})
    loaded = postserve.load(tmp_path / "state", objects={"regressor": phi_hat.regressor})
    assert np.array_equal(loaded.predict([1.0, 2.0]), phi_hat.predict([1.0, 2.0]))
    loaded.update([1.0, 2.0], 0, [9.0])
    assert not np.array_equal(loaded.predict([1.0, 2.0]), phi_hat.predict([1.0, 2.0])), "it was shared"


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(path: Path, monkeypatch: Any) -> None:
    old = path.read_bytes()

    def full_disk(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="no space"):
        PoLinUCB(3, RidgeMap(2, 1)).save(path)
    assert path.read_bytes() == old
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_users_own_class_is_found_by_its_name(tmp_path: Path) -> None:
    class Cautious(LinUCB):
        """A policy defined elsewhere."""

    Cautious(2, 3, exploration=0.5).save(tmp_path / "state")
    loaded = postserve.load(tmp_path / "state")
    assert isinstance(loaded, Cautious)
    assert repr(loaded) == "Cautious(n_arms=2, dim_x=3, exploration=0.5)"


def test_a_users_class_cannot_stand_in_for_one_of_ours(path: Path) -> None:
    type("PoLinUCB", (PoLinUCB,), {"__module__": "elsewhere"})
    assert type(postserve.load(path)) is PoLinUCB


@pytest.mark.parametrize(
    "changes",
    [
        {"arms": np.array([0, 1, 1])},
        {"arms": np.array([-3, 0, 1])},
        {"next_arm": np.array([1])},
        {"tally": -np.ones((3, 5))},
        {"context_map.dense_gram": -np.ones((1, 3))},
        {"context_map.dense_models": np.array([1])},
        {"row_models": np.array([3])},
        {"row_models": np.array([-1])},
        {"block_ridge": np.zeros(2)},
        {"noise_variance": np.array([-1.0])},
        {"counts": np.array([-1, 0, 0])},
    ],
)
def test_numbers_that_cannot_be_are_refused(path: Path, changes: dict[str, Any]) -> None:
    rewrite(path, **changes)
    with pytest.raises(StateMismatch, match="wanted"):
        postserve.load(path)


@pytest.mark.parametrize(
    "entry", ["value", {}, {"value": 1, "object": "x"}, {"other": 1}, {"object": 3}, None]
)
def test_a_header_of_another_shape_is_refused(path: Path, entry: Any) -> None:
    header = header_of(path)
    header["state"]["settings"]["optimism"] = entry
    rewrite(path, header=np.array(json.dumps(header)))
    with pytest.raises(StateMismatch, match="wanted"):
        postserve.load(path)


def test_settings_given_as_numpy_scalars_need_no_handing_back(tmp_path: Path) -> None:
    numpys = {"ridge": np.float32(2.0), "exploration": np.int64(3), "intercept": np.bool_(True)}
    policy = LinUCB(2, 3, **untyped(numpys))
    policy.save(tmp_path / "state")
    loaded = postserve.load(tmp_path / "state")
    assert repr(loaded) == "LinUCB(n_arms=2, dim_x=3, ridge=2.0, exploration=3.0, intercept=True)"


def test_a_policy_whose_arms_went_is_loaded_as_it_was(tmp_path: Path) -> None:
    policy = LinUCB(2, 1)
    for i in range(20):
        policy.update([1.0], 0, None, 1.0 + i % 2)
    policy.add_arm()
    policy.remove_arm(0)
    policy.save(tmp_path / "state")
    loaded = postserve.load(tmp_path / "state")
    for one in (policy, loaded):
        one.update([1.0], 1, None, 0.1)
    assert np.array_equal(policy.weights, loaded.weights)
    assert np.array_equal(policy.propensities([1.0]), loaded.propensities([1.0]))


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("hybrid", [2, 2, 0, 2, 0, 2, 2, 2, 0, 2, 0, 0, 2, 0, 0, 0, 0, 0, 2, 0]),
        ("robust", [1, 2, 0, 2, 1, 0, 2, 2, 1, 2, 1, 1, 2, 1, 0, 0, 0, 0, 1, 0]),
        ("shared", [0, 0, 2, 0, 1, 2, 0, 0, 0, 1, 1, 0, 1, 2, 1, 1, 2, 2, 1, 0]),
        ("kernel", [1, 2, 0, 2, 1, 1, 2, 2, 1, 2, 1, 1, 2, 1, 0, 2, 2, 0, 1, 1]),
    ],
)
def test_states_of_version_2_go_on_as_the_code_that_saved_them_did(name: str, chosen: list[int]) -> None:
    policy, rng = load_old(f"version2_{name}"), np.random.default_rng(2)
    for x, arm in zip(np.random.default_rng(1).normal(size=(20, 2)), chosen, strict=True):
        assert policy.select(x, rng).arm == arm
        policy.update(x, arm, x[:1], float(x.sum()))


@pytest.mark.parametrize("name", ["per_arm", "untaught"])
def test_states_of_version_1_with_models_that_know_nothing_load(name: str) -> None:
    policy = load_old(f"version1_{name}")
    assert policy.propensities(np.ones(3)).sum() == pytest.approx(1.0)
    policy.update(np.ones(3), 0, np.ones(2), 1.0)


def test_what_a_hybrid_learnt_from_rows_far_apart_can_be_loaded(tmp_path: Path) -> None:
    for seed in range(10):
        rng, policy = np.random.default_rng(seed), LinUCB(1, 2, model="hybrid", ridge=1.0)
        for scale in (1.0, 1e8):
            x = rng.normal(size=2) * scale
            policy.update(x, 0, None, float(x @ [1.0, 2.0]))
        policy.save(tmp_path / "state.npz")
        assert np.array_equal(load(tmp_path / "state.npz").weights, policy.weights)


class OwnNames(LinUCB):
    """Arguments with the names of parts of a policy, and one that the base class has too."""

    def __init__(self, n_arms: int, dim_x: int, *, radius: float = 2.0, delta: float = 0.5, **options: Any):
        super().__init__(n_arms, dim_x, **options)
        self.radius, self.delta = radius, delta


ONES = np.ones(2)


class HandsOn(LinUCB):
    def __init__(self, *args: Any, extra: Any = ONES, **options: Any) -> None:
        super().__init__(*args, **options)
        self.extra = extra


class WantsMore(ArmOptions, total=False):
    least: float


class OwnOptions(LinUCB):
    def __init__(self, n_arms: int, dim_x: int, **options: Unpack[WantsMore]) -> None:
        self.least = options.pop("least", 1.0)
        super().__init__(n_arms, dim_x, **untyped(options))


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (OwnNames(2, 2, radius=3.0, delta=0.3, ridge=2.0), "radius=3.0, delta=0.3, ridge=2.0"),
        (HandsOn(2, 2, extra=[1.0, 2.0], exploration=2.0), "extra=[1.0, 2.0], exploration=2.0"),
        (OwnOptions(2, 2, least=4.0, ridge=2.0), "ridge=2.0, least=4.0"),
    ],
)
def test_a_subclass_s_arguments_are_its_own(policy: Any, shown: str, tmp_path: Path) -> None:
    policy.save(tmp_path / "state.npz")
    for one in (policy, load(tmp_path / "state.npz")):
        for part in shown.split(", "):
            assert part in repr(one)


def test_an_argument_that_is_kept_under_another_name_is_refused(tmp_path: Path) -> None:
    class Hides(LinUCB):
        def __init__(self, n_arms: int, dim_x: int, *, least: float = 1.0) -> None:
            super().__init__(n_arms, dim_x)
            self._least = least

    with pytest.raises(InvalidInput, match="Hides has no attribute least, wanted each of its constructor's"):
        Hides(2, 2).save(tmp_path / "state.npz")
    with pytest.raises(InvalidInput, match="Hides has no attribute least"):
        Hides(2, 2).merge(Hides(2, 2, least=4.0))
