"""The network map: its compiled steps against plain numpy, its draws, and its state."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference

from postserve import NetworkMap, load
from postserve.context_maps.network import _zeros
from postserve.linalg.kernels import network as kernels
from postserve.linalg.kernels.network import Layers
from postserve.types import FloatArray


def layers(rng: np.random.Generator, dim_x: int, units: int, dim_z: int) -> Layers:
    shapes = (dim_x, units), (units,), (units, dim_z), (dim_z,)
    first, second, third, fourth = (rng.normal(size=shape) for shape in shapes)
    return first, second, third, fourth


def copied(arrays: Layers) -> Layers:
    first, second, third, fourth = (array.copy() for array in arrays)
    return first, second, third, fourth


def moments(rng: np.random.Generator, dim: int) -> FloatArray:
    some = np.stack([np.full(dim, 9.0), rng.normal(size=dim), 9.0 * rng.random(dim)])
    some[2, : dim // 3] = 0.0  # constant coordinates
    return some


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.integers(1, 20),
    st.integers(1, 9),
    st.integers(1, 11),
    st.integers(0, 1000),
)
def test_kernels_agree_with_the_reference(
    seed: int, dim_x: int, units: int, dim_z: int, batch: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    X, Z = 3.0 * rng.normal(size=(3, batch, dim_x)), rng.normal(size=(3, batch, dim_z))
    x_scale, z_scale = moments(rng, dim_x), moments(rng, dim_z)
    state = [layers(rng, dim_x, units, dim_z) for _ in range(3)]
    first, second, third, fourth = (np.abs(square) for square in state[2])
    state[2] = first, second, third, fourth
    results = []
    for module in (kernels, reference):
        parameters, means, squares = (copied(arrays) for arrays in state)
        scale, predicted = x_scale.copy(), np.empty((batch, dim_z))
        module.learn_scale(scale, X[0, 0])
        module.network_train(X, Z, scale, z_scale, parameters, means, squares, 1e-2, count)
        module.network_predict(X[1], scale, z_scale, parameters, predicted)
        results.append([scale, predicted, *parameters, *means, *squares])
    for compiled, plain in zip(*results, strict=True):
        assert np.allclose(compiled, plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("replay", [7, 1000])
def test_every_step_draws_its_batch_as_if_alone(replay: int) -> None:
    dim_x, dim_z, batch, steps = 3, 2, 5, 3
    phi_hat = NetworkMap(dim_x, dim_z, hidden=8, batch_size=batch, steps=steps, replay=replay, seed=4)
    twin = NetworkMap(dim_x, dim_z, hidden=8, batch_size=batch, steps=steps, replay=replay, seed=4)
    parameters, draws = copied(layers_of(twin)), twin._rng
    means, squares = (_zeros(parameters) for _ in range(2))
    x_scale, z_scale = np.zeros((3, dim_x)), np.zeros((3, dim_z))
    world = np.random.default_rng(5)
    pairs: list[tuple[FloatArray, FloatArray]] = []
    for t in range(20):
        x, z = world.normal(size=dim_x), world.normal(size=dim_z)
        phi_hat.update(x, 0, z)
        pairs.append((x, z))
        reference.learn_scale(x_scale, x)
        reference.learn_scale(z_scale, z)
        for step in range(steps):
            back = draws.integers(min(len(pairs), replay), size=batch)
            X, Z = (np.array([pairs[-1 - b][side] for b in back])[None] for side in (0, 1))
            rates = twin.learning_rate, steps * t + step
            reference.network_train(X, Z, x_scale, z_scale, parameters, means, squares, *rates)
    expected = np.empty((1, dim_z))
    reference.network_predict(x[None], x_scale, z_scale, parameters, expected)
    assert np.allclose(phi_hat.predict(x), expected, rtol=1e-9, atol=1e-12)


def layers_of(phi_hat: NetworkMap) -> Layers:
    arrays = phi_hat._arrays()
    return (
        arrays["hidden_weights"],
        arrays["hidden_bias"],
        arrays["output_weights"],
        arrays["output_bias"],
    )


def test_a_saved_network_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    phi_hat = NetworkMap(2, 3, replay=20)
    for _ in range(30):
        phi_hat.update(rng.normal(size=2), 0, rng.normal(size=3))
    phi_hat.save(tmp_path / "map.npz")
    again = load(tmp_path / "map.npz")
    for _ in range(10):
        x, z = rng.normal(size=2), rng.normal(size=3)
        phi_hat.update(x, 0, z)
        again.update(x, 0, z)
        assert np.array_equal(phi_hat.predict(x), again.predict(x))


def test_contexts_of_any_layout_are_predicted_alike() -> None:
    rng = np.random.default_rng(7)
    phi_hat = NetworkMap(4, 2)
    rows = rng.normal(size=(6, 8))
    for row in rows:
        phi_hat.update(row[::2], 0, row[:2])
    strided = rows[:, ::2]
    assert np.array_equal(phi_hat.predict(strided, range(6)), phi_hat.predict(strided.copy(), range(6)))
