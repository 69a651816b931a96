"""The verbs every policy has: checks at the public edges, and feedback in two stages.

A policy needs to hold no pending decision. The caller keeps (x, arm) and hands in z and the reward when they
come, in any order and at any time (docs/recipes.md). Rounds that the caller announces (`expect`) count in the
widths until their feedback comes (`open_rounds.py`).
"""

from collections.abc import Iterable, Sequence
from functools import partial
from operator import call
from threading import get_ident
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from postserve.changes import Work, change, learning, one_version, over, replaced_by, shallow, whole
from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies import changing, open_rounds, stored_rounds
from postserve.policies.arm_set import ArmSet
from postserve.policies.arms import ArmModels
from postserve.policies.describing import Description
from postserve.policies.inputs import Inputs
from postserve.policies.open_round import OpenRounds
from postserve.policies.phi_hat import PhiHat
from postserve.state import Arrays, Stored, to_merge
from postserve.steps import HasSteps, general_way
from postserve.types import Context, FloatArray, IntArray, MissingZ
from postserve.validation import number, one_of, reward_value, vector, whole_numbers

NO_Z = np.empty(0)
"""Stands for z where it is not used."""


class BasePolicy(HasSteps, abstract=True):
    """Arms by id, and the learning verbs; subclasses learn in steps, from checked arrays."""

    _settings_from: ClassVar[tuple[str, ...]] = ("_arm_set",)
    _sides: ClassVar = {"arms": ("n_arms",)}
    _phi_hat: PhiHat | None = None

    def __init__(
        self,
        n_arms: int | None,
        dim_x: int | None,
        dim_z: int | None,
        missing_z: MissingZ = "raise",
        *,
        x_features: Features | None = None,
        z_features: Features | None = None,
    ) -> None:
        self.dim_x, self.dim_z = dim_x, dim_z  # lengths of the features, if any; None for an ignored input
        self.x_features, self.z_features = x_features, z_features
        self._x, self._z = Inputs("x", dim_x, x_features), Inputs("z", dim_z, z_features)
        self.missing_z = one_of("missing_z", missing_z, ("raise", "impute", "drop"))
        self._arm_set = ArmSet(n_arms)
        self._work = Work()  # what the steps of a verb have prepared, and `_apply` carries out
        self._open: OpenRounds | None = None  # announced rounds, if there are any

    @property
    def scale_free(self) -> bool:
        """Whether scaling rewards, x or z by a power of two changes no choice."""
        return False

    @property
    def column_free(self) -> bool:
        """Whether scaling any single column of x or z by a power of two changes no choice."""
        return False

    @property
    def shift_free(self) -> bool:
        """Whether adding a constant to all rewards, or to all z, changes no choice."""
        return False

    @property
    def order_free(self) -> bool:
        """Whether updates may come in any order, and learners be merged, with the same result."""
        return self._why_not_merge() is None

    @one_version
    def describe(
        self, x_names: Sequence[str] | None = None, z_names: Sequence[str] | None = None
    ) -> Description:
        """What was learnt, by the names of the inputs; `print` it, or let a notebook show it.

        The names are those of x and z: without features their columns, with a transformer its inputs, with
        another callable its outputs. A transformer fitted on a DataFrame knows them.
        """
        return Description(type(self).__name__, self.n_arms)

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    @property
    def arms(self) -> tuple[int, ...]:
        """The ids of the arms in rising order, none of them ever reused; empty with decision sets."""
        return tuple(self._arm_set.ids.tolist())

    @property
    def n_arms(self) -> int:
        """How many arms there are now."""
        return len(self._arm_set.ids)

    @learning
    def add_arm(self) -> int:
        """Add an untrained arm; returns its id."""
        self._arm_set.refuse_rows()
        arms = shallow(self._arm_set)
        arm = arms.add()
        self._work.clear()
        self._add_arm()
        self._work.append(replaced_by(self._arm_set, arms))
        self._apply()
        return arm

    @whole
    def remove_arm(self, arm: int) -> None:
        """Remove an arm and what it learnt; feedback for it is refused from then on."""
        self._arm_set.refuse_rows()
        slot = self._arm_set.slot(arm)
        if self.n_arms == 1:
            raise InvalidInput(f"arm {arm} is the only arm, wanted at least one to remain")
        open_rounds.close_arm(self, slot)
        self._remove_arm(slot)
        self._arm_set.remove(slot)

    def update(
        self, x: Context, arm: int, z: Context | None, reward: float, *, round_id: str | None = None
    ) -> None:
        """z and the reward came: what `observe` and `credit` would learn."""
        guard = self._guard
        if guard.lock.locked():
            guard.refuse_second(self)
        # In one line, as `changes.as_holder` explains.
        with guard.lock: _update(self, x, arm, z, reward, round_id)  # noqa: E701 # fmt: skip

    @learning
    def observe(
        self, x: Context, arm: int, z: Context | None, *, round_id: str | None = None
    ) -> FloatArray | None:
        """z came: the map learns. Returns its earlier prediction for `credit`, None without a map.

        Of an announced round z may come in parts, with NaN for entries that are out: the map learns once all
        of it came (a `StagedMap` stage by stage), and None is returned before. Rounds with the same x and arm
        and no id need parts that include the earlier ones, by which they are told apart; a part that
        contradicts an earlier one is refused.
        """
        self._work.clear()
        if self._z.has_gaps(z):
            x, slot, _ = _checked_round(self, x, arm, None)
            return change(self, open_rounds.observe_part, x, slot, self._z.part(z), round_id)
        x, slot, z = _checked_round(self, x, arm, z)
        if self.dim_z is None:
            open_rounds.refuse_unknown(self, x, slot, round_id)
            return None
        if z is None:
            raise InvalidInput(f"z is None, wanted ({self.dim_z},)")
        if self._open is not None or round_id is not None:
            return change(self, open_rounds.observe, x, slot, z, round_id)
        z_hat = self._observe(x, slot, z)
        self._apply()
        return z_hat

    @learning
    def credit(
        self,
        x: Context,
        arm: int,
        z: Context | None,
        reward: float,
        *,
        z_hat: npt.ArrayLike | None = None,
        round_id: str | None = None,
    ) -> None:
        """The reward came: the arm learns from it and z; without z, as `missing_z` says."""
        x, slot, z = _checked_round(self, x, arm, z)
        reward = reward_value(reward)
        used = z_hat is not None and self.dim_z is not None
        predicted = vector("z_hat", z_hat, self.dim_z) if used else None
        self._work.clear()
        if self._open is None and round_id is None:
            self._fill_z_and_credit(x, slot, z, reward, predicted)
            self._apply()
        else:
            change(self, open_rounds.credit, x, slot, z, reward, predicted, round_id)

    @whole
    def expect(self, x: Context, arm: int, *, round_id: str | None = None) -> None:
        """The arm was served at x and its feedback is out: it counts in the widths as if it had come.

        `observe` and `credit`, or `update`, resolve it: rounds are matched by x and arm, the oldest first. A
        round with a `round_id` is matched by that alone: its feedback, or `withdraw`, must have the id, and
        the same x and arm. No mean changes. Rounds need not be announced.

        >>> from postserve import LinUCB
        >>> policy, rng = LinUCB(n_arms=2, dim_x=1, ridge=1.0), np.random.default_rng(0)
        >>> policy.expect([1.0], 0)
        >>> policy.select([1.0], rng)  # the other one, of which more can be learnt
        Decision(arm=1, propensity=1.0)
        >>> policy.expect([1.0], 0, round_id="visit 7")
        >>> policy.update([1.0], 0, None, reward=2.0, round_id="visit 7")
        """
        x, slot, _ = _checked_round(self, x, arm, None)
        open_rounds.expect(self, x, slot, round_id)

    @whole
    def expect_batch(self, X: Sequence[Context], arms: Sequence[int], *, round_ids: Sequence[str]) -> None:
        """`expect` row by row; all rows are checked before the first is announced.

        It takes about a third of the time for maps that can be told of many rounds at once.

        >>> from postserve import LinUCB
        >>> policy, rng = LinUCB(n_arms=2, dim_x=1, ridge=1.0), np.random.default_rng(0)
        >>> policy.expect_batch([[1.0], [2.0]], [0, 0], round_ids=["visit 7", "visit 8"])
        >>> policy.withdraw([2.0], 0, round_id="visit 8")
        """
        for name, given in (("X", X), ("arms", arms), ("round_ids", round_ids)):
            listed = given.ndim > 0 if isinstance(given, np.ndarray) else isinstance(given, Sequence)
            if not listed or isinstance(given, str):
                raise InvalidInput(f"{name} is {given!r:.60}, wanted a sequence")
            if len(given) != len(X):
                raise InvalidInput(f"{name} has {len(given)} entries, wanted {len(X)}")
        checked = [_checked_round(self, x, arm, None) for x, arm in zip(X, arms, strict=True)]
        open_rounds.expect_batch(self, [x for x, *_ in checked], [slot for _, slot, _ in checked], round_ids)

    @whole
    def withdraw(self, x: Context, arm: int, *, round_id: str | None = None) -> None:
        """Take back what `expect` announced, where nothing will ever come."""
        x, slot, _ = _checked_round(self, x, arm, None)
        open_rounds.withdraw(self, x, slot, round_id)

    @learning
    def update_batch(
        self, X: Context, arms: npt.ArrayLike, Z: Context | None, rewards: npt.ArrayLike
    ) -> None:
        """Update row by row; all rows are checked before the first is learnt."""
        rewards = vector("rewards", rewards, None)
        n = len(rewards)
        X = self._x.many(X, n)
        ids = whole_numbers("arms", arms)
        if len(ids) != n:
            raise InvalidInput(f"arms has shape ({len(ids)},), wanted ({n},)")
        slots = self._arm_set.slots(ids)
        if self.dim_z is None:
            Z = None
        elif Z is not None:
            Z = self._z.many(Z, n)
        elif n and self.missing_z == "raise":
            _refuse_missing_z(self)
        if n:
            self._try_rows(X, slots)
            self._work.clear()
            change(self, open_rounds.update_batch, X, slots, Z, rewards)

    @whole
    def forget(self, *, arms: float = 1.0, map: float = 1.0) -> None:
        """Multiply what the arms and the map have learnt by these factors, in (0, 1]."""
        self._forget(number("arms", arms, above=0.0, most=1.0), number("map", map, above=0.0, most=1.0))

    @whole
    def refit_prior(self) -> None:
        """Learn every prior from the evidence now, from a cold start; does nothing if ridges are numbers."""
        self._refit_prior()

    @whole
    def merge(self, other: Any) -> None:
        """Add what another policy with the same settings and arms has learnt from other rounds.

        With evidence the prior is learnt again. Rounds that both have learnt count twice.
        """
        if reason := self._why_not_merge():
            raise InvalidInput(f"{type(self).__name__} cannot merge: {reason}")
        other = to_merge(self, other)
        if reason := other._why_not_merge():
            raise InvalidInput(f"cannot merge the other {type(self).__name__}: {reason}")
        if other.arms != self.arms:
            theirs, mine = other._arm_set, self._arm_set
            raise InvalidInput(f"cannot merge arms {theirs} into {mine}, wanted the same arms")
        open_rounds.refuse_same_ids(self, other._open or ())
        self._merge(other)
        open_rounds.adopt(self, other._open or ())

    def _parts(self) -> Iterable[Any]:
        return () if self._phi_hat is None else (self._phi_hat.map,)

    # The steps that subclasses fill in

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        return None

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """The arm in that slot learns; z is empty where it is not used."""

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        raise InvalidInput(f"{type(self).__name__} has no map to impute z with, wanted z")

    def _before_parts(self, x: FloatArray, slot: int) -> FloatArray | None:
        """What `_observe` would return, where the map is about to learn a part of z; None to ask later."""
        return None

    def _try_rows(self, X: FloatArray, slots: IntArray) -> None:
        """Raise if a row cannot be learnt from: features of x may be a caller's own function."""

    def _regressions(self) -> list[ArmModels]:
        """The reward models, in whose widths announced rounds count."""
        return []

    def _rows_out(
        self, x: FloatArray, slot: int, z: FloatArray | None, z_hat: FloatArray | None
    ) -> tuple[FloatArray | None, ...]:
        """The row of an announced round in each of the `_regressions`, z being None until it comes.

        None where a map cannot say yet where z lies. z_hat may be given before z comes, where it is known.
        """
        return ()

    def _add_arm(self) -> None:
        """Prepare what another arm needs."""

    def _remove_arm(self, slot: int) -> None: ...

    def _forget(self, arms: float, map: float) -> None: ...

    def _refit_prior(self) -> None: ...

    def _why_not_merge(self) -> str | None:
        """Why the order of updates matters, and what is wanted instead; None if it does not."""
        return "it learns nothing, wanted a policy that does"

    def _merge(self, other: Any) -> None: ...

    # How the verbs take the steps

    def _apply(self) -> None:
        """Carry out what the steps have prepared."""
        work = self._work
        if not work:
            return
        guard = self._guard
        work.append(partial(setattr, guard, "version", guard.version + 1))
        try:
            guard.begun = guard.version + 1  # as `counted` does
            for result in list(map(call, work)):  # as `commit` does
                if type(result) is tuple and not result[1]:
                    changing.settle(self)
        except BaseException:  # an interrupt between the effects and what must follow them, or a map failed
            over(self)
            changing.settle(self)
            raise
        work.clear()

    @general_way
    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        """`_update`, row after row."""
        for i, slot in enumerate(slots.tolist()):
            self._update(X[i], slot, None if Z is None else Z[i], float(rewards[i]))
            self._apply()

    @general_way
    def _update(self, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
        z_hat = None if z is None else self._observe(x, slot, z)
        self._fill_z_and_credit(x, slot, z, reward, z_hat)

    def _fill_z_and_credit(
        self, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Refuse, impute or drop a missing z, as `missing_z` says; then credit the arm."""
        if z is None and self.dim_z is not None:
            if self.missing_z == "raise":
                _refuse_missing_z(self)
            if self.missing_z == "drop":
                return
            z = z_hat = self._impute(x, slot) if z_hat is None else z_hat
        self._credit(x, slot, NO_Z if z is None else z, reward, z_hat)

    def _arrays(self) -> Arrays:
        return {**self._arm_set.arrays(), **stored_rounds.arrays(self)}

    def _restore(self, arrays: Stored) -> None:
        self._arm_set.restore(arrays)
        stored_rounds.restore(self, arrays)


def _update(
    policy: BasePolicy, x: Context, arm: int, z: Context | None, reward: float, round_id: str | None
) -> None:
    """`BasePolicy.update` of the thread that has the lock; `learning` would do it at twice the price."""
    guard = policy._guard
    guard.holder = get_ident()
    try:
        x, slot, z = _checked_round(policy, x, arm, z)
        reward = reward_value(reward)
        policy._work.clear()  # of what an interrupted verb may have left
        if policy._open is None and round_id is None:
            policy._update(x, slot, z, reward)
            policy._apply()
        else:
            change(policy, open_rounds.update, x, slot, z, reward, round_id)
    finally:
        guard.holder = 0


def _checked_round(
    policy: BasePolicy, x: Context, arm: int, z: Context | None
) -> tuple[FloatArray, int, FloatArray | None]:
    seen = cast(FloatArray, x) if policy._x.is_ready(x) else policy._x.one(x)
    slot = policy._arm_set.slot(arm)
    if z is None or policy.dim_z is None:
        return seen, slot, None
    return seen, slot, cast(FloatArray, z) if policy._z.is_ready(z) else policy._z.one(z)


def _refuse_missing_z(policy: BasePolicy) -> None:
    wanted = f"({policy.dim_z},), or a policy with missing_z='impute' or 'drop'"
    raise InvalidInput(f"z is None, wanted {wanted}")
