"""Uniform exploration around any policy, so that every arm has a known propensity."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.changes import Guarded, one_version
from postserve.errors import InvalidInput
from postserve.policies.choosing import batch, batch_propensities, draw
from postserve.policies.describing import Description
from postserve.policies.inputs import each_round, is_many
from postserve.protocols import Merges, Policy, announces
from postserve.state import Persistent, refuse_other_settings
from postserve.types import Decision, Decisions, FloatArray
from postserve.validation import generator, number


class EpsilonGreedy(Persistent):
    """With probability epsilon a random eligible arm, else the choice of `policy`; propensities are exact.

    It teaches its own copy of `policy`; all methods but those that select are that policy's.

    >>> from postserve import LinUCB
    >>> policy = EpsilonGreedy(LinUCB(n_arms=2, dim_x=1), epsilon=0.2)
    >>> policy.update([1.0], 0, None, reward=0.0)
    >>> policy.update([1.0], 1, None, reward=1.0)
    >>> policy.propensities([1.0])
    array([0.1, 0.9])
    """

    def __init__(self, policy: Policy, *, epsilon: float = 0.1) -> None:
        if not isinstance(policy, Policy) or isinstance(policy, type) or hasattr(policy, "sees_z"):
            raise InvalidInput(f"policy is a {type(policy).__name__}, wanted one that chooses from x")
        self.policy = copy.deepcopy(policy)
        if isinstance(self.policy, Guarded):
            self._guard = self.policy._guard  # its changes are the wrapped policy's
        self.dim_x, self.dim_z = self.policy.dim_x, self.policy.dim_z
        self.epsilon = number("epsilon", epsilon, least=0.0, most=1.0)

    def _parts(self) -> Iterable[Any]:
        return (self.policy,)

    @one_version
    def select(
        self, x: npt.ArrayLike, rng: np.random.Generator, arms: Sequence[int] | None = None
    ) -> Decision:
        """Choose an eligible arm for x; changes nothing but rng."""
        decision = self._draw(self.propensities(x, arms), generator(rng))
        decision.version = self.version if isinstance(self.policy, Guarded) else None
        return decision

    @one_version
    def propensities(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms` at x, zero for arms that are not eligible."""
        return self._mixed(self.policy.propensities(x, arms), arms)

    @one_version
    def propensities_batch(self, X: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """`propensities` in every round of a batch, one row per round; not for decision sets."""
        if (at_once := batch_propensities(self.policy)) is not None:
            return self._mixed(at_once(X, arms), arms)
        greedy = [self.policy.propensities(x, arms) for x in each_round(X)]
        return self._mixed(np.reshape(greedy, (len(greedy), len(self.arms))), arms)

    def _mixed(self, greedy: FloatArray, arms: Sequence[int] | None) -> FloatArray:
        """The wrapped policy's propensities with uniform exploration among the eligible arms."""
        k = greedy.shape[-1]
        everyone = self.policy.arms or range(k)  # of a decision set, its rows
        eligible = np.ones(k, bool) if arms is None else np.isin(everyone, arms)
        return np.asarray((1.0 - self.epsilon) * greedy + self.epsilon * eligible / eligible.sum())

    @one_version
    def select_batch(
        self,
        X: npt.ArrayLike,
        rng: np.random.Generator,
        arms: Sequence[int] | None = None,
        *,
        sequential: bool = False,
    ) -> Decisions:
        """Select in every round of a batch, without learning in between.

        If `sequential`, each round is chosen as if the ones before it had been announced by `expect`. The
        policy is copied for that: no other thread may learn or announce rounds meanwhile.
        """
        rng = generator(rng)
        if sequential:
            return batch(self._in_sequence(X, rng, arms))
        chances = [self.propensities(x, arms) for x in each_round(X)]
        return batch(self._draw(each, rng) for each in chances)

    def _in_sequence(
        self, X: npt.ArrayLike, rng: np.random.Generator, arms: Sequence[int] | None
    ) -> Iterator[Decision]:
        """Each choice, announced to a copy before the next one is made."""
        twin: Any = copy.deepcopy(self.policy)
        if not announces(twin):
            got = f"sequential is True and {type(twin).__name__} has no expect"
            raise InvalidInput(f"{got}, wanted a policy that counts announced rounds")
        for x in each_round(X):
            decision = self._draw(self._mixed(twin.propensities(x, arms), arms), rng)
            if is_many(x):
                ids = list(self.arms if arms is None else arms)
                x = list(each_round(x))[ids.index(decision.arm) if ids else decision.arm]
            twin.expect(x, decision.arm)
            yield decision

    def _draw(self, chances: FloatArray, rng: np.random.Generator) -> Decision:
        index, propensity = draw(chances, rng)
        return Decision(self.policy.arms[index] if self.policy.arms else index, propensity)

    def update(
        self,
        x: npt.ArrayLike,
        arm: int,
        z: npt.ArrayLike | None,
        reward: float,
        *,
        round_id: str | None = None,
    ) -> None:
        """Teach the wrapped policy."""
        if round_id is None:
            self.policy.update(x, arm, z, reward)
        else:
            self._announced.update(x, arm, z, reward, round_id=round_id)

    def observe(
        self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None, *, round_id: str | None = None
    ) -> FloatArray | None:
        """z came: the wrapped policy's map learns; returns its prediction from before."""
        if round_id is None:
            return self.policy.observe(x, arm, z)
        z_hat: FloatArray | None = self._announced.observe(x, arm, z, round_id=round_id)
        return z_hat

    def credit(
        self,
        x: npt.ArrayLike,
        arm: int,
        z: npt.ArrayLike | None,
        reward: float,
        *,
        z_hat: npt.ArrayLike | None = None,
        round_id: str | None = None,
    ) -> None:
        """The reward came: the wrapped policy's arm learns."""
        if round_id is None:
            self.policy.credit(x, arm, z, reward, z_hat=z_hat)
        else:
            self._announced.credit(x, arm, z, reward, z_hat=z_hat, round_id=round_id)

    @property
    def _announced(self) -> Any:
        """The wrapped policy, which must take announced rounds: a policy of one's own may not."""
        if not announces(self.policy):
            got = f"round_id is given and {type(self.policy).__name__} has no expect"
            raise InvalidInput(f"{got}, wanted a policy that takes announced rounds")
        return self.policy

    def merge(self, other: "EpsilonGreedy") -> None:
        """Add what another policy with the same settings has learnt."""
        refuse_other_settings(self, other)
        if not isinstance(self.policy, Merges):
            raise InvalidInput(f"{self.policy!r} cannot merge, wanted a policy that does")
        self.policy.merge(other.policy)

    @one_version
    def describe(
        self, x_names: Sequence[str] | None = None, z_names: Sequence[str] | None = None
    ) -> Description:
        """What the wrapped policy has learnt."""
        describe = getattr(self.policy, "describe", None)
        if describe is None:
            raise InvalidInput(f"{type(self.policy).__name__} has no describe, wanted a policy that does")
        learnt: Description = describe(x_names, z_names)
        return learnt._replace(policy=f"EpsilonGreedy with epsilon {self.epsilon:g}, around {learnt.policy}")

    def _repr_html_(self) -> str | None:
        return self.describe()._repr_html_() if hasattr(self.policy, "describe") else None

    @property
    def arms(self) -> tuple[int, ...]:
        """The wrapped policy's arms."""
        return self.policy.arms

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "policy":  # not yet made, as while copying
            raise AttributeError(name)
        return getattr(self.policy, name)
