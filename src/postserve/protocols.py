"""What each part must be able to do; any class that does it fits, ours or a user's."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from postserve.types import Decision, FloatArray, Rounds


@runtime_checkable
class Policy(Protocol):
    """Chooses an arm from x alone; learns from z and the reward when they come."""

    @property
    def arms(self) -> tuple[int, ...]: ...

    def select(
        self, x: npt.ArrayLike, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decision: ...

    def propensities(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray: ...

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None, reward: float) -> None: ...

    def observe(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None) -> FloatArray | None: ...

    def credit(
        self,
        x: npt.ArrayLike,
        arm: int,
        z: npt.ArrayLike | None,
        reward: float,
        *,
        z_hat: npt.ArrayLike | None = None,
    ) -> None: ...


@runtime_checkable
class ContextMap(Protocol):
    """phi_hat: x -> E[z|x], with the radius of its confidence set."""

    @property
    def dim_x(self) -> int: ...

    @property
    def dim_z(self) -> int: ...

    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray: ...

    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray: ...

    def sample(self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator) -> FloatArray: ...

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None: ...


class Environment(Protocol):
    """The truth: draws rounds, and knows every arm's mean at phi(x)."""

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds: ...

    def phi(self, x: npt.ArrayLike) -> FloatArray: ...

    def means(self, x: npt.ArrayLike) -> FloatArray: ...


# What only some maps can do. A policy asks with isinstance and says so where it needs it.


@runtime_checkable
class Forgets(Protocol):
    """Can weigh down all it has learnt so far."""

    def forget(self, keep: float) -> None: ...


@runtime_checkable
class RefitsPrior(Protocol):
    """Learns its prior from the evidence."""

    def refit_prior(self) -> None: ...


@runtime_checkable
class Merges(Protocol):
    """Is a function of sums, so that two learners add up and the order of updates is free."""

    @property
    def order_free(self) -> bool: ...

    def merge(self, other: Any) -> None: ...


@runtime_checkable
class HoldsArms(Protocol):
    """Keeps something for each arm, and can drop it."""

    def remove_arm(self, arm: int) -> None: ...
