"""The paper's two-layer network, trained online."""

import json
from typing import ClassVar

import numpy as np

from postserve.context_maps.pairs import Pairs, PairsMap
from postserve.errors import StateMismatch
from postserve.linalg.kernels import network as kernels
from postserve.state import Arrays, Stored
from postserve.types import FloatArray
from postserve.validation import integer, number

LAYERS = ("hidden_weights", "hidden_bias", "output_weights", "output_bias")


class NetworkMap(PairsMap):
    """phi_hat(x) = V^T relu(W^T x + c) + d: 64 hidden units, Adam at 1e-3 (section "Experiments").

    Each pair is followed by `steps` steps of Adam, each on `batch_size` pairs drawn from the last
    `replay` ones. Inputs and outputs are standardised by their running mean and deviation. The
    radius is Assumption 1's with `map_rate`, `delta` and `ridge`, and grows with the distance from the newest
    1,000 pairs; it is multiplied by `radius_scale`.

    >>> rng = np.random.default_rng(0)
    >>> phi_hat = NetworkMap(dim_x=1, dim_z=1)
    >>> for x in rng.uniform(-2, 2, size=600):
    ...     phi_hat.update([x], 0, [abs(x)])
    >>> float(abs(phi_hat.predict([1.0]) - 1.0).item()) < 0.2
    True
    """

    _sides: ClassVar = {"hidden_weights": ("dim_x", "hidden"), "output_weights": ("hidden", "dim_z")}

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        *,
        hidden: int = 64,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        steps: int = 4,
        replay: int = 10_000,
        seed: int = 0,
        ridge: float = 1.0,
        map_rate: float = 0.5,
        delta: float = 0.05,
        radius_scale: float = 1.0,
    ) -> None:
        super().__init__(dim_x, dim_z, ridge=ridge, map_rate=map_rate, delta=delta, radius_scale=radius_scale)
        self.hidden = integer("hidden", hidden, least=1)
        self.learning_rate = number("learning_rate", learning_rate, above=0.0)
        self.batch_size = integer("batch_size", batch_size, least=1)
        self.steps = integer("steps", steps, least=1)
        self.replay = integer("replay", replay, least=1)
        self.seed = integer("seed", seed, least=0)
        self._pairs = Pairs(dim_x, dim_z, self.replay)
        self._rng = np.random.default_rng(self.seed)
        self._x_scale = np.zeros((3, dim_x))  # count, mean and sum of squared deviations of each coordinate
        self._z_scale = np.zeros((3, dim_z))
        layers = (
            self._rng.standard_normal((self.dim_x, self.hidden)) * np.sqrt(2.0 / self.dim_x),
            np.zeros(self.hidden),
            self._rng.standard_normal((self.hidden, self.dim_z)) * (0.1 / np.sqrt(self.hidden)),
            np.zeros(self.dim_z),
        )
        self._layers = {"": layers, "adam_mean_": _zeros(layers), "adam_square_": _zeros(layers)}
        self._adam_steps = 0

    def _predict_relative(self, X: FloatArray) -> FloatArray:
        rows = np.empty((len(X), self.dim_z))
        if self._pairs.seen < 2:  # x has no scale yet
            rows[:] = self._z_scale[1]
        else:
            contexts = np.ascontiguousarray(X)
            kernels.network_predict(contexts, self._x_scale, self._z_scale, self._layers[""], rows)
        return rows

    def _learn_relative(self, x: FloatArray, z: FloatArray) -> None:
        self._keep(x, z, self._errors_at(x[None], z)[0])
        kernels.learn_scale(self._x_scale, np.ascontiguousarray(x))
        kernels.learn_scale(self._z_scale, np.ascontiguousarray(z))
        back = self._rng.integers(self._pairs.counting(), size=(self.steps, self.batch_size))
        X, Z = self._pairs.at(self._pairs.seen - 1 - back)
        layers, means, squares = self._layers.values()
        scales, rate = (self._x_scale, self._z_scale), self.learning_rate
        kernels.network_train(X, Z, *scales, layers, means, squares, rate, self._adam_steps)
        self._adam_steps += self.steps

    def _copy_to_change(self) -> "NetworkMap":
        twin = super()._copy_to_change()
        twin._layers = {name: _copies(layers) for name, layers in self._layers.items()}
        twin._x_scale, twin._z_scale = self._x_scale.copy(), self._z_scale.copy()
        twin._rng = _copied(self._rng)
        return twin

    def _named_layers(self) -> Arrays:
        """The layers, and Adam's means of their gradients and squared gradients, by name."""
        groups = self._layers.items()
        return {prefix + name: layer for prefix, of in groups for name, layer in zip(LAYERS, of, strict=True)}

    def _arrays(self) -> Arrays:
        return {
            **self._named_layers(),
            "adam_count": np.array([self._adam_steps]),
            "x_scale": self._x_scale,
            "z_scale": self._z_scale,
            **super()._arrays(),
            "rng": np.array(json.dumps(self._rng.bit_generator.state)),
        }

    def _restore(self, arrays: Stored) -> None:
        for name, layer in self._named_layers().items():
            layer[:] = arrays.take(name, layer.shape)
        self._adam_steps = int(arrays.take("adam_count", (1,), np.int64)[0])
        arrays.require(self._adam_steps >= 0, "adam_count", "a count")
        self._x_scale = arrays.take("x_scale", self._x_scale.shape)
        self._z_scale = arrays.take("z_scale", self._z_scale.shape)
        super()._restore(arrays)
        try:
            self._rng.bit_generator.state = json.loads(arrays.text("rng"))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise StateMismatch(f"rng does not restore ({error}), wanted a PCG64 state") from error


def _copied(rng: np.random.Generator) -> np.random.Generator:
    """A generator in the same state; `copy.deepcopy` takes three times as long."""
    twin = np.random.default_rng(0)
    twin.bit_generator.state = rng.bit_generator.state
    return twin


def _copies(layers: kernels.Layers) -> kernels.Layers:
    hidden_weights, hidden_bias, output_weights, output_bias = (layer.copy() for layer in layers)
    return hidden_weights, hidden_bias, output_weights, output_bias


def _zeros(layers: kernels.Layers) -> kernels.Layers:
    hidden_weights, hidden_bias, output_weights, output_bias = map(np.zeros_like, layers)
    return hidden_weights, hidden_bias, output_weights, output_bias
