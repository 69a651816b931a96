"""What policies, maps and environments must be able to do, ours or a user's."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from postserve.types import Decision, FloatArray, Rounds


@runtime_checkable
class Policy(Protocol):
    """Chooses an arm from x alone; learns from z and the reward when they come.

    x is one context for all arms, (dim_x,), or has one row per arm, (k, dim_x); `update` takes the row of
    the arm that was served. A policy without arms takes decision sets: the rows are the arms, and an arm is
    the number of a row. Input that cannot be used raises `InvalidInput` and changes nothing.
    """

    @property
    def arms(self) -> tuple[int, ...]:
        """The ids of the arms, in rising order; empty with decision sets."""

    @property
    def dim_x(self) -> int | None:
        """Length of x; None if it is ignored."""

    @property
    def dim_z(self) -> int | None:
        """Length of z; None if it is ignored."""

    def select(
        self, x: npt.ArrayLike, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decision:
        """Choose an eligible arm (by default any), rows of x being in their order; changes only rng."""

    def propensities(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms`, zero for arms that are not eligible."""

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None, reward: float) -> None:
        """z and the reward came: `observe`, then `credit` with what it returned."""

    def observe(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None) -> FloatArray | None:
        """z came; returns the prediction of z for `credit`, if there is one."""

    def credit(
        self,
        x: npt.ArrayLike,
        arm: int,
        z: npt.ArrayLike | None,
        reward: float,
        *,
        z_hat: npt.ArrayLike | None = None,
    ) -> None:
        """The reward came; without z it is refused, unless the policy has an option for it."""


@runtime_checkable
class ContextMap(Protocol):
    """phi_hat: x -> E[z|x], with the radius of its confidence set.

    `arms` are ids, and x is one context for all of them, (dim_x,), or has one row per arm: a map shared by
    all arms gives equal rows for one x. Input that cannot be used raises `InvalidInput` and changes nothing.
    """

    @property
    def dim_x(self) -> int:
        """Length of x."""

    @property
    def dim_z(self) -> int:
        """Length of z."""

    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat(x) of shape (len(arms), dim_z)."""

    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """e at x of shape (len(arms),), at least 0: how far phi(x) may be from phi_hat(x)."""

    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """A draw of phi(x) of shape (len(arms), dim_z), for Thompson sampling; with size, (size, …)."""

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Learn that z followed x when this arm was served."""


class Environment(Protocol):
    """The truth: draws rounds, and knows every arm's mean at phi(x).

    With one context per arm, `phi` and `means` take a round's (k, dim_x) rows; if only some arms can be
    served, `means` also takes their ids, `arms`, and so does `phi` if x is one for all arms and z is not. An
    environment may have `rounds_at_once`, how many to draw in one block, and if it ends, `horizon`.
    """

    @property
    def dim_x(self) -> int:
        """Length of x."""

    @property
    def dim_z(self) -> int:
        """Length of z."""

    @property
    def n_arms(self) -> int:
        """The number of arms, or of candidates per round."""

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds as potential outcomes."""

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x] of one x or of each row of a round."""

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """Every arm's mean reward at phi(x)."""


def z_for_oracle(policy: Any, **z: Any) -> dict[str, Any]:
    """z, as `select` takes it by keyword, where the policy is an oracle; nothing for all others."""
    return z if getattr(policy, "sees_z", False) else {}


# What only some maps can do. Policies check for it with isinstance.


@runtime_checkable
class Forgets(Protocol):
    """Can multiply what it has learnt by a factor."""

    def forget(self, keep: float) -> None: ...


@runtime_checkable
class RefitsPrior(Protocol):
    """Learns its prior from the evidence."""

    def refit_prior(self) -> None: ...


@runtime_checkable
class Merges(Protocol):
    """Is a function of sums: learners can be added, and the order of updates does not matter."""

    @property
    def order_free(self) -> bool: ...

    def merge(self, other: Any) -> None: ...


@runtime_checkable
class MeasuresErrors(Protocol):
    """Knows how far its predictions were from z."""

    def squared_errors(self) -> tuple[FloatArray, float]:
        """The sum of the squared errors of each output, and the number of pairs that it is over."""


@runtime_checkable
class ShapesBall(Protocol):
    """Knows that the coordinates of z differ in units: its confidence set is an ellipsoid."""

    def ball_axes(self, arms: Sequence[int]) -> FloatArray | None:
        """The half-axes relative to the radius, one row per arm or one for all; None for a ball."""


@runtime_checkable
class HasSpread(Protocol):
    """Knows the posterior of phi(x), coordinate by coordinate."""

    def spread(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The standard deviation of each coordinate of phi(x), of shape (len(arms), dim_z)."""


@runtime_checkable
class HasSpreadRoot(Protocol):
    """Knows how the coordinates of phi(x) vary together."""

    def spread_root(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """R of the covariance R R^T of phi(x), of shape (len(arms), dim_z, any number of columns)."""


@runtime_checkable
class HasUntaught(Protocol):
    """Cannot say where z lies before the first one came."""

    def is_taught(self, arm: int) -> bool:
        """Whether it has learnt a z, where it keeps something for each arm of this one."""


@runtime_checkable
class LearnsInStages(Protocol):
    """Learns from the beginning of a z before its end has come, and predicts the end from it.

    If it counts announced rounds too, `expect` and `withdraw` take what is known of z as a last argument.
    """

    def learn_stages(
        self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, before: npt.ArrayLike | None = None
    ) -> None:
        """Learn from z as far as it is known, NaN elsewhere, except what was learnt from `before`."""

    def complete(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> FloatArray:
        """z with its missing entries, which are NaN, predicted from x and what is known."""


@runtime_checkable
class HoldsArms(Protocol):
    """Keeps something for each arm, and can drop it."""

    def remove_arm(self, arm: int) -> None: ...


@runtime_checkable
class Announces(Protocol):
    """Takes announced rounds, which count in its widths until they are over (policies, and some maps)."""

    def expect(self, x: npt.ArrayLike, arm: int) -> None:
        """The arm was served at x, and its feedback is out."""

    def withdraw(self, x: npt.ArrayLike, arm: int) -> None:
        """What `expect` announced is over."""


def announces(policy: Any) -> bool:
    """Whether it has the verbs, its own or those of a policy that it wraps."""
    # From Python 3.12 on, isinstance does not find what __getattr__ hands on.
    return hasattr(policy, "expect") and hasattr(policy, "withdraw")


@runtime_checkable
class CountsPending(Announces, Protocol):
    """A map that counts rounds whose z is out in its radius and draws, as if z had come at its mean."""

    def settled(self) -> ContextMap:
        """The map as if nothing were announced, to read from."""
