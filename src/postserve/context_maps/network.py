"""The paper's two-layer network, trained as the pairs come."""

import json

import numpy as np

from postserve.context_maps.base import SharedMap
from postserve.context_maps.learnability import Learnability
from postserve.context_maps.pairs import Pairs
from postserve.errors import StateMismatch
from postserve.state import Arrays, Stored
from postserve.types import FloatArray
from postserve.validation import integer, number

FAR = 10.0
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
        self._x_scale = _RunningScale(dim_x)
        self._z_scale = _RunningScale(dim_z)
        self._parameters: dict[str, FloatArray] = {
            "hidden_weights": self._rng.standard_normal((dim_x, hidden)) * np.sqrt(2.0 / dim_x),
            "hidden_bias": np.zeros(hidden),
            "output_weights": self._rng.standard_normal((hidden, dim_z)) * (0.1 / np.sqrt(hidden)),
            "output_bias": np.zeros(dim_z),
        }
        self._adam = _Adam(self._parameters, self.learning_rate)
        self._settings = {
            "dim_x": self.dim_x,
            "dim_z": self.dim_z,
            "hidden": self.hidden,
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "steps": self.steps,
            "replay": self.replay,
            "seed": self.seed,
            **self._learnability.settings,
        }

    def forget(self, keep: float) -> None:
        """Draw from only the newest share `keep`, in (0, 1], of the pairs that counted so far."""
        self._pairs.forget(keep)
        self._learnability.forget(keep)

    def _predict(self, X: FloatArray) -> FloatArray:
        if self._pairs.seen < 2:  # x has no scale yet
            output = np.zeros((len(X), self.dim_z))
        else:
            output = self._forward(self._x_scale.standardise(X))[1]
        return self._z_scale.restore_units(output)

    def _radius(self, X: FloatArray) -> FloatArray:
        return self._learnability.radius(X)

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        self._learnability.learn(x, z - self._predict(x[None])[0])
        self._pairs.append(x, z)
        self._x_scale.learn(x)
        self._z_scale.learn(z)
        for _ in range(self.steps):
            back = self._rng.integers(self._pairs.counting(), size=self.batch_size)
            X, Z = self._pairs.newest(back)
            self._step(self._x_scale.standardise(X), self._z_scale.standardise(Z))

    def _forward(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = self._parameters
        hidden = np.maximum(X @ p["hidden_weights"] + p["hidden_bias"], 0.0)
        return hidden, hidden @ p["output_weights"] + p["output_bias"]

    def _step(self, X: FloatArray, Z: FloatArray) -> None:
        """One step of Adam on the mean squared error, by back-propagation."""
        hidden, output = self._forward(X)
        by_output = 2.0 * (output - Z) / len(X)
        by_hidden = (by_output @ self._parameters["output_weights"].T) * (hidden > 0.0)
        self._adam.step(
            {
                "hidden_weights": X.T @ by_hidden,
                "hidden_bias": by_hidden.sum(axis=0),
                "output_weights": hidden.T @ by_output,
                "output_bias": by_output.sum(axis=0),
            }
        )

    def _arrays(self) -> Arrays:
        return {
            **{name: self._parameters[name] for name in PARAMETERS},
            **self._adam.arrays(),
            **self._x_scale.arrays("x_scale"),
            **self._z_scale.arrays("z_scale"),
            **self._pairs.arrays(),
            **self._learnability.arrays(),
            "rng": np.array(json.dumps(self._rng.bit_generator.state)),
        }

    def _restore(self, arrays: Stored) -> None:
        for name in PARAMETERS:
            self._parameters[name][:] = arrays.take(name, self._parameters[name].shape)
        self._adam.restore(arrays)
        self._x_scale.restore(arrays, "x_scale")
        self._z_scale.restore(arrays, "z_scale")
        self._pairs.restore(arrays)
        self._learnability.restore(arrays)
        try:
            self._rng.bit_generator.state = json.loads(arrays.text("rng"))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise StateMismatch(f"rng does not restore ({error}), wanted a PCG64 state") from error


class _RunningScale:
    """Running mean and standard deviation of each coordinate (Welford's recursion)."""

    def __init__(self, dim: int) -> None:
        self.moments = np.zeros((3, dim))  # count, mean, sum of squared deviations

    def learn(self, value: FloatArray) -> None:
        count, mean, squares = self.moments
        count += 1.0
        off = value - mean
        mean += off / count
        squares += off * (value - mean)

    def standardise(self, rows: FloatArray) -> FloatArray:
        """In deviations from the mean; further out than FAR the scale itself is in doubt."""
        return np.asarray(np.clip((rows - self.moments[1]) / self._deviation(), -FAR, FAR))

    def restore_units(self, rows: FloatArray) -> FloatArray:
        return np.asarray(rows * self._deviation() + self.moments[1])

    def _deviation(self) -> FloatArray:
        count, _, squares = self.moments
        deviation = np.sqrt(squares / np.maximum(count, 1.0))
        return np.where(deviation > 0.0, deviation, 1.0)  # a constant coordinate says nothing

    def arrays(self, name: str) -> Arrays:
        return {name: self.moments}

    def restore(self, stored: Stored, name: str) -> None:
        self.moments = stored.take(name, self.moments.shape)


class _Adam:
    """Kingma and Ba's optimiser with its usual constants."""

    DECAY_MEAN, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8

    def __init__(self, parameters: dict[str, FloatArray], learning_rate: float) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.count = 0
        self.mean = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.square = {name: np.zeros_like(value) for name, value in parameters.items()}

    def step(self, gradient: dict[str, FloatArray]) -> None:
        self.count += 1
        rate = self.learning_rate / (1.0 - self.DECAY_MEAN**self.count)
        correction = 1.0 - self.DECAY_SQUARE**self.count
        for name, g in gradient.items():
            mean, square = self.mean[name], self.square[name]
            mean += (1.0 - self.DECAY_MEAN) * (g - mean)
            square += (1.0 - self.DECAY_SQUARE) * (g * g - square)
            self.parameters[name] -= rate * mean / (np.sqrt(square / correction) + self.EPSILON)

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
