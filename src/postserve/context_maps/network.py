"""The paper's two-layer network, trained as the pairs come."""

import json

import numpy as np

from postserve.context_maps.base import SharedMap
from postserve.context_maps.learnability import Learnability
from postserve.context_maps.pairs import Pairs
from postserve.errors import StateMismatch
from postserve.linalg.kernels import network as kernels
from postserve.state import Arrays, Stored
from postserve.types import FloatArray
from postserve.validation import integer, number

PARAMETERS = ("hidden_weights", "hidden_bias", "output_weights", "output_bias")


class NetworkMap(SharedMap):
    """phi_hat(x) = V^T relu(W^T x + c) + d: 64 hidden units, Adam at 1e-3 (section "Experiments").

    Each pair is followed by `steps` steps of Adam, each on `batch_size` pairs drawn from the last
    `replay` ones. Inputs and outputs are standardised by their running mean and deviation. The
    radius is Assumption 1's with `map_rate`, `delta` and `ridge`, times `radius_scale`.

    >>> rng = np.random.default_rng(0)
    >>> phi_hat = NetworkMap(dim_x=1, dim_z=1)
    >>> for x in rng.uniform(-2, 2, size=600):
    ...     phi_hat.update([x], 0, [abs(x)])
    >>> float(abs(phi_hat.predict([1.0]) - 1.0).item()) < 0.2
    True
    """

    _settings_from = ("_learnability",)

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
        super().__init__(dim_x, dim_z)
        self.hidden = integer("hidden", hidden, least=1)
        self.learning_rate = number("learning_rate", learning_rate, above=0.0)
        self.batch_size = integer("batch_size", batch_size, least=1)
        self.steps = integer("steps", steps, least=1)
        self.replay = integer("replay", replay, least=1)
        self.seed = integer("seed", seed, least=0)
        self._learnability = Learnability(
            dim_x, dim_z, ridge=ridge, map_rate=map_rate, delta=delta, radius_scale=radius_scale
        )
        self._pairs = Pairs(dim_x, dim_z, self.replay)
        self._rng = np.random.default_rng(self.seed)
        self._x_scale = np.zeros((3, dim_x))  # count, mean and sum of squared deviations of each coordinate
        self._z_scale = np.zeros((3, dim_z))
        self._parameters: dict[str, FloatArray] = {
            "hidden_weights": self._rng.standard_normal((dim_x, hidden)) * np.sqrt(2.0 / dim_x),
            "hidden_bias": np.zeros(hidden),
            "output_weights": self._rng.standard_normal((hidden, dim_z)) * (0.1 / np.sqrt(hidden)),
            "output_bias": np.zeros(dim_z),
        }
        self._adam = _Adam(self._parameters, self.learning_rate)

    def forget(self, keep: float) -> None:
        """Draw from only the newest share `keep`, in (0, 1], of the pairs that counted so far."""
        self._pairs.forget(keep)
        self._learnability.forget(keep)

    def _predict(self, X: FloatArray) -> FloatArray:
        rows = np.empty((len(X), self.dim_z))
        if self._pairs.seen < 2:  # x has no scale yet
            rows[:] = self._z_scale[1]
        else:
            contexts = np.ascontiguousarray(X)
            kernels.network_predict(contexts, self._x_scale, self._z_scale, _layers(self._parameters), rows)
        return rows

    def _radius(self, X: FloatArray) -> FloatArray:
        return self._learnability.radius(X)

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        self._learnability.learn(x, z - self._predict(x[None])[0])
        self._pairs.append(x, z)
        kernels.learn_scale(self._x_scale, np.ascontiguousarray(x))
        kernels.learn_scale(self._z_scale, np.ascontiguousarray(z))
        back = self._rng.integers(self._pairs.counting(), size=(self.steps, self.batch_size))
        self._adam.descend(*self._pairs.newest(back), self._x_scale, self._z_scale)

    def _arrays(self) -> Arrays:
        return {
            **{name: self._parameters[name] for name in PARAMETERS},
            **self._adam.arrays(),
            "x_scale": self._x_scale,
            "z_scale": self._z_scale,
            **self._pairs.arrays(),
            **self._learnability.arrays(),
            "rng": np.array(json.dumps(self._rng.bit_generator.state)),
        }

    def _restore(self, arrays: Stored) -> None:
        for name in PARAMETERS:
            self._parameters[name][:] = arrays.take(name, self._parameters[name].shape)
        self._adam.restore(arrays)
        self._x_scale = arrays.take("x_scale", self._x_scale.shape)
        self._z_scale = arrays.take("z_scale", self._z_scale.shape)
        self._pairs.restore(arrays)
        self._learnability.restore(arrays)
        try:
            self._rng.bit_generator.state = json.loads(arrays.text("rng"))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise StateMismatch(f"rng does not restore ({error}), wanted a PCG64 state") from error


class _Adam:
    """Kingma and Ba's optimiser; its constants and its steps are in the kernel."""

    def __init__(self, parameters: dict[str, FloatArray], learning_rate: float) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.count = 0
        self.mean = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.square = {name: np.zeros_like(value) for name, value in parameters.items()}

    def descend(self, X: FloatArray, Z: FloatArray, x_scale: FloatArray, z_scale: FloatArray) -> None:
        """A step for each batch X[s], Z[s]."""
        state = _layers(self.parameters), _layers(self.mean), _layers(self.square)
        kernels.network_train(X, Z, x_scale, z_scale, *state, self.learning_rate, self.count)
        self.count += len(X)

    def arrays(self) -> Arrays:
        return {
            "adam_count": np.array([self.count]),
            **{f"adam_mean_{name}": value for name, value in self.mean.items()},
            **{f"adam_square_{name}": value for name, value in self.square.items()},
        }

    def restore(self, stored: Stored) -> None:
        self.count = int(stored.take("adam_count", (1,), np.int64)[0])
        stored.require(self.count >= 0, "adam_count", "a count")
        for name, value in self.parameters.items():
            self.mean[name] = stored.take(f"adam_mean_{name}", value.shape)
            self.square[name] = stored.take(f"adam_square_{name}", value.shape)


def _layers(named: dict[str, FloatArray]) -> kernels.Layers:
    hidden_weights, hidden_bias, output_weights, output_bias = (named[name] for name in PARAMETERS)
    return hidden_weights, hidden_bias, output_weights, output_bias
