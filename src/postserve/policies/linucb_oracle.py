"""LinUCB on (x, z) that sees z early: what poLinUCB is measured against, not a policy to serve."""

import copy
from collections.abc import Sequence
from typing import ClassVar, Literal, Unpack

import numpy as np

from postserve.changes import one_version
from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import ArmModels, ArmOptions, check_options
from postserve.policies.choosing import batch, choose, distribution
from postserve.policies.linear import LinearPolicy
from postserve.steps import fast_path
from postserve.types import Context, Decision, Decisions, FloatArray, IntArray
from postserve.validation import generator, integer, one_of


class LinUCBOracle(LinearPolicy):
    """Arms regress on (x, z) and are scored at the realised (x, z), given at selection.

    For comparison only: to select it needs z, which is unknown before serving, so type checkers do not accept
    it as a `Policy`. `missing_z` is "raise" or "drop"; the other options are those of `PoLinUCB`.

    >>> policy = LinUCBOracle(n_arms=2, dim_x=1, dim_z=1)
    >>> for x, z in ((1.0, 2.0), (2.0, 1.0), (3.0, 5.0), (4.0, 1.0)):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [z], reward=beta * z)
    >>> policy.select([5.0], np.random.default_rng(0), z=[-3.0])
    Decision(arm=1, propensity=1.0)
    """

    _copied_by_reference = ("x_features", "z_features")
    sees_z: ClassVar[Literal[True]] = True

    def __init__(
        self,
        n_arms: int | None,
        dim_x: int,
        dim_z: int,
        *,
        missing_z: Literal["raise", "drop"] = "raise",
        x_features: Features | None = None,
        z_features: Features | None = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        dim_x, dim_z = integer("dim_x", dim_x, least=1), integer("dim_z", dim_z, least=1)
        one_of("missing_z", missing_z, ("raise", "drop"))
        super().__init__(n_arms, dim_x, dim_z, missing_z, x_features=x_features, z_features=z_features)
        check_options(self, options)
        self._arms = ArmModels(n_arms, {"x": dim_x, "z": dim_z}, **options)

    @one_version
    def select(
        self, x: Context, rng: np.random.Generator, *, z: Context, arms: Sequence[int] | None = None
    ) -> Decision:
        """Choose an arm for x and the z that will follow; changes nothing but rng."""
        u, slots = _seen(self, x, z, arms)
        decision = self._arm_set.decision(slots, *choose(self._scores(u, slots), generator(rng)))
        decision.version = self.version
        return decision

    @one_version
    def propensities(self, x: Context, *, z: Context, arms: Sequence[int] | None = None) -> FloatArray:
        """The probability of each of `self.arms` at (x, z), zero for arms that are not eligible."""
        u, slots = _seen(self, x, z, arms)
        return self._arm_set.over_all(slots, distribution(self._scores(u, slots)))

    @one_version
    def select_batch(
        self,
        X: Context,
        rng: np.random.Generator,
        *,
        Z: Context,
        arms: Sequence[int] | None = None,
        sequential: bool = False,
    ) -> Decisions:
        """Select in every round of a batch, without learning in between.

        If `sequential`, each round is chosen as if the ones before it, with their z, had been announced. The
        policy is copied for that: no other thread may learn or announce rounds meanwhile.
        """
        arm_set, rng = self._arm_set, generator(rng)
        eligible = arm_set.eligible(arms)
        wanted = arm_set.rows_wanted(eligible)
        xs, zs = list(self._x.rounds(X, wanted)), list(self._z.rounds(Z, wanted))
        if len(xs) != len(zs):
            raise InvalidInput(f"Z has {len(zs)} rows, wanted {len(xs)}")
        rounds = [_both(self, x, z, eligible) for x, z in zip(xs, zs, strict=True)]
        policy = copy.deepcopy(self) if sequential else self
        decisions = []
        for u, slots in rounds:
            index, propensity = choose(policy._scores(u, slots), rng)
            decisions.append(arm_set.decision(slots, index, propensity))
            if sequential:
                policy._arms.expect(int(slots[index]), u[index if len(u) > 1 else 0])
        return batch(decisions)

    def _scores(self, u: FloatArray, slots: IntArray) -> FloatArray:
        """(x, z)·w_hat_a + zeta ||(x, z)||_{A_a^{-1}}."""
        return self._arms.score(u, slots, self._arms.radius(slots))

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        self._work += self._arms.prepare(slot, x, z, reward=reward)

    def _rows_out(
        self, x: FloatArray, slot: int, z: FloatArray | None, z_hat: FloatArray | None
    ) -> tuple[FloatArray | None, ...]:
        """Nothing until z comes: there is no map to predict it."""
        return (None if z is None else self._arms.stack(x, z)[0],)

    @fast_path
    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        if Z is None:
            super()._update_batch(X, slots, Z, rewards)
        else:
            self._work += self._arms.prepare_batch(slots, self._arms.stack(X, Z), rewards)


def _seen(
    policy: LinUCBOracle, x: Context, z: Context, arms: Sequence[int] | None
) -> tuple[FloatArray, IntArray]:
    eligible = policy._arm_set.eligible(arms)
    rows = policy._arm_set.rows_wanted(eligible)
    return _both(policy, policy._x.one_or_rows(x, rows), policy._z.one_or_rows(z, rows), eligible)


def _both(
    policy: LinUCBOracle, x: FloatArray, z: FloatArray, eligible: IntArray
) -> tuple[FloatArray, IntArray]:
    """(x, z) in rows, and the slots; x and z are each one for all slots or have one row per slot."""
    arm_set = policy._arm_set
    x, slots = arm_set.place(x, eligible, policy._x.label)
    if arm_set.by_row and z.shape != (len(x), policy.dim_z):
        wanted = f"({len(x)}, {policy.dim_z}): one row per candidate"
        raise InvalidInput(f"z has shape {z.shape}, wanted {wanted}")
    return policy._arms.stack(x, arm_set.place(z, eligible, policy._z.label)[0]), slots
