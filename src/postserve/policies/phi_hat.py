"""How a policy queries and teaches its context map."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from postserve.changes import Effect, Guarded, beside, commit, counted, replaced_by, shallow
from postserve.context_maps.announced import has_announced
from postserve.context_maps.base import SharedMap, TaughtByArm, prepared, spread_of
from postserve.context_maps.hybrid import HybridMap
from postserve.context_maps.ridge import RidgeMap
from postserve.context_maps.staged import StagedMap
from postserve.errors import InvalidInput
from postserve.pieces import stacked
from postserve.policies.arm_set import ArmSet
from postserve.protocols import (
    ContextMap,
    CountsPending,
    HasSpreadRoot,
    HasUntaught,
    HoldsArms,
    LearnsInStages,
    ShapesBall,
)
from postserve.types import Ball, FloatArray, IntArray
from postserve.validation import matrix, number, plain_vector_check, shaped, vector

Out: TypeAlias = tuple[FloatArray, int, FloatArray | None]
"""x and the slot of a round whose z is out, and the part of it that came."""


def checked_map(context_map: ContextMap) -> ContextMap:
    """Return the map, or raise if it is none."""
    if not isinstance(context_map, ContextMap) or isinstance(context_map, type):
        raise InvalidInput(f"context_map is a {type(context_map).__name__}, wanted a context map")
    return context_map


class PhiHat:
    """A policy's own copy of a context map, queried by slots. Its answers are checked: it may be a user's.

    A map with one answer for all arms is called once per x, with arrays that were checked before.
    """

    def __init__(self, context_map: ContextMap, arm_set: ArmSet) -> None:
        self.map = copy.deepcopy(context_map)  # so that two policies can start from the same one
        self._for_all = self.map if isinstance(self.map, SharedMap) and self.map.answers_alike else None
        if arm_set.by_row and self._for_all is None and isinstance(context_map, HoldsArms):
            raise InvalidInput("context_map has one map per arm, wanted one for all: candidates have no ids")
        # Asked for both at once, which skips `predict` and `spread`: a subclass may override them.
        self._hybrid = self.map if type(self.map) is HybridMap else None
        # What the map can do, asked once: isinstance with a protocol takes longer than a prediction.
        # A subclass of ours that overrides `spread` alone is asked for that.
        own_spread = isinstance(self.map, StagedMap) and type(self.map).spread is not StagedMap.spread
        self._with_root = self.map if isinstance(self.map, HasSpreadRoot) and not own_spread else None
        self._shaped = self.map if isinstance(self.map, ShapesBall) else None
        self._learns_where = self.map if isinstance(self.map, HasUntaught) else None
        self._counts_pending = self.map if isinstance(self.map, CountsPending) else None
        self._in_stages = self.map if isinstance(self.map, LearnsInStages) else None
        # Asked and told of many rounds at once, which skips its verbs, with the bits of one by one.
        by_rows = type(self.map) in (RidgeMap, HybridMap) and getattr(self.map, "features", None) is None
        self._by_rows: Any = self.map if by_rows else None
        self._learnt_part: FloatArray | None = None  # of the z that is about to be learnt
        self._arm_set = arm_set
        self._dim_z = context_map.dim_z
        self._is_plain = plain_vector_check(self._dim_z)

    @property
    def is_one_for_all(self) -> bool:
        """Whether all arms get the same answer, so that many rounds can be predicted at once."""
        return self._for_all is not None

    def predict(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """phi_hat(x): one row per slot, or one vector for all of them."""
        for_all = self._for_all
        if for_all is not None and x.ndim == 1:
            z_hat: FloatArray = for_all._predict(x[None])[0]
            return z_hat if self._is_plain(z_hat) else vector("context_map.predict(x)", z_hat, self._dim_z)
        rows = self.map.predict(x, self._ids(slots)) if for_all is None else for_all._predict(x)
        wanted = len(slots) if for_all is None else len(x)
        return matrix("context_map.predict(x)", rows, wanted, self._dim_z)

    def predict_one(self, x: FloatArray, slot: int) -> FloatArray:
        """phi_hat(x) of one slot."""
        z_hat = self.predict(x, np.array([slot]))
        return z_hat if z_hat.ndim == 1 else z_hat[0]

    def predict_each(self, X: FloatArray, slots: Sequence[int]) -> Sequence[FloatArray | None]:
        """`predict_one` of every row; None where no z has told the map where to predict."""
        if self._by_rows is not None and self.is_taught(0):  # which is the same for all arms
            return list(self.predict(X, np.array(slots)))
        pairs = zip(X, slots, strict=True)
        return [self.predict_one(x, slot) if self.is_taught(slot) else None for x, slot in pairs]

    def is_taught(self, slot: int) -> bool:
        """Whether a z has told the map where to predict; a user's map is not asked."""
        if self._learns_where is None:
            return True
        arm = 0 if self._for_all is not None else int(self._arm_set.ids_of(np.array([slot]))[0])
        return self._learns_where.is_taught(arm)

    def radius(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """e at x, one entry per slot."""
        for_all = self._for_all
        if for_all is not None and x.ndim == 1:
            return _one_for_all(for_all._radius(x[None]), slots)
        e = self.map.radius(x, self._ids(slots)) if for_all is None else for_all._radius(x)
        e = vector("context_map.radius(x)", e, len(slots))
        number("context_map.radius(x)", float(e.min()), least=0.0)
        return e

    def learnt_radius(self, x: FloatArray, slot: int) -> float:
        """e at x of what was learnt, whatever is announced."""
        phi_hat = self.map if self._counts_pending is None else self._counts_pending.settled()
        e = vector("context_map.radius(x)", phi_hat.radius(x, self._ids(np.array([slot]))), 1)
        return number("context_map.radius(x)", float(e[0]), least=0.0)

    def ball(self, x: FloatArray, slots: IntArray) -> Ball:
        """The confidence set of phi(x): its centre phi_hat(x), as `predict` gives it, and its radius."""
        if self._for_all is None or x.ndim == 2:
            axes = self._shaped.ball_axes(self._ids(slots)) if self._shaped is not None else None
            return Ball(self.predict(x, slots), self.radius(x, slots), axes)
        rows, e = self._for_all._ball(x[None])
        z_hat: FloatArray = rows[0]
        if not self._is_plain(z_hat):
            z_hat = matrix("context_map.predict(x)", rows, 1, self._dim_z)[0]
        axes = None if self._shaped is None else self._shaped.ball_axes((0,))
        return Ball(z_hat, _one_for_all(e, slots), axes)

    def spread(self, x: FloatArray, slots: IntArray) -> tuple[FloatArray, FloatArray]:
        """phi_hat(x), as `predict` gives it, and its standard deviations: one row per slot, or one for all.

        Of a map that knows how coordinates vary together it is a root of their covariance, one matrix per
        slot. A map that knows nothing of them has its radius in all directions alike.
        """
        for_all, what = self._for_all, "context_map.spread(x)"
        if self._with_root is not None:
            root = self._with_root.spread_root(x, self._ids(slots))
            root = shaped("context_map.spread_root(x)", root, (len(slots), self._dim_z, None))
            return self.predict(x, slots), root
        if for_all is not None and x.ndim == 1:
            rows, deviations = for_all._predict_and_spread(x[None])
            z_hat = rows[0]
            if not self._is_plain(z_hat):
                z_hat = vector("context_map.predict(x)", z_hat, self._dim_z)
            if not self._is_plain(deviations[0]):
                deviations = matrix(what, deviations, 1, self._dim_z)
            return z_hat, deviations
        if self._hybrid is not None:
            rows, deviations = self._hybrid._predict_and_spread(x, self._ids(slots))
            z_hat = matrix("context_map.predict(x)", rows, len(slots), self._dim_z)
        else:
            z_hat, deviations = self.predict(x, slots), spread_of(self.map, x, self._ids(slots))
        return z_hat, matrix(what, deviations, len(slots), self._dim_z)

    def sample(self, x: FloatArray, slots: IntArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws of phi(x), (size, slots, dim_z)."""
        what = "context_map.sample(x, arms, rng, size)"
        try:
            drawn = self.map.sample(x, self._ids(slots), rng, size)
        except TypeError as error:
            raise InvalidInput(f"{what} fails ({error}), wanted a map that draws `size` times") from error
        return shaped(what, drawn, (size, len(slots), self._dim_z))

    def prepare(self, x: FloatArray, slot: int, z: FloatArray) -> list[Effect]:
        """z followed x where the arm in that slot was served: the effects of learning it."""
        if self._learnt_part is not None:
            return [partial(self.learn_part, x, slot, z, self._learnt_part)]
        if self._for_all is not None:
            return counted(self._for_all._guard, self._for_all._prepare(x, z))
        return prepared(self.map, x, int(self._arm_set.ids_of(np.array([slot]))[0]), z)

    def _with(self, phi_hat: ContextMap) -> "PhiHat":
        """The same with another map of this kind."""
        twin = shallow(self)
        vars(twin).update({name: phi_hat for name, part in vars(self).items() if part is self.map})
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> "PhiHat":
        twin = self._with(copy.deepcopy(self.map, memo))
        twin._arm_set = copy.deepcopy(self._arm_set, memo)
        return twin

    def prepare_and_learn(self, x: FloatArray, slot: int, z: FloatArray) -> tuple[list[Effect], "PhiHat"]:
        """The effects, and a copy that has learnt."""
        phi_hat = self.map
        after = self._with(beside(phi_hat) if isinstance(phi_hat, Guarded) else copy.deepcopy(phi_hat))
        commit(after.prepare(x, slot, z))
        if isinstance(phi_hat, Guarded):
            return counted(phi_hat._guard, [replaced_by(phi_hat, after.map)]), after
        return self.prepare(x, slot, z), after

    @property
    def learns_in_stages(self) -> bool:
        """Whether the map learns from a part of z."""
        return self._in_stages is not None

    def learn_part(self, x: FloatArray, slot: int, z: FloatArray, before: FloatArray | None) -> None:
        """Learn what a part of z, NaN elsewhere, tells beyond an earlier one, if the map learns in stages."""
        assert self._in_stages is not None
        self._in_stages.learn_stages(x, self._ids(np.array([slot]))[0], z, before)

    @contextmanager
    def having_learnt(self, part: FloatArray) -> Iterator[None]:
        """While a policy takes its steps with a z, `learn` teaches what this part of it has not taught."""
        self._learnt_part = part
        try:
            yield
        finally:
            self._learnt_part = None

    def complete(self, x: FloatArray, slot: int, part: FloatArray) -> FloatArray:
        """A part of z with what it tells of the rest, if the map learns in stages."""
        assert self._in_stages is not None
        whole = self._in_stages.complete(x, self._ids(np.array([slot]))[0], part)
        return vector("context_map.complete(x, arm, z)", whole, self._dim_z)

    def expect(self, x: FloatArray, slot: int, part: FloatArray | None = None) -> None:
        """The arm in that slot was served at x, and its z is out, or the rest of it; only some maps count it.

        Only a map that learns in stages is told of the part.
        """
        if self._counts_pending is not None:
            self._counts_pending.expect(*self._announced(x, slot, part))

    def withdraw(self, x: FloatArray, slot: int, part: FloatArray | None = None) -> None:
        """What `expect` announced is over."""
        if self._counts_pending is not None:
            self._counts_pending.withdraw(*self._announced(x, slot, part))

    def expect_all(self, rounds: Sequence[Out]) -> None:
        """As `expect` one by one."""
        if self._by_rows is None:
            for one in rounds:
                self.expect(*one)
        elif rounds:
            self._by_rows._expect_all(*self._columns(rounds))

    def withdraw_all(self, rounds: Sequence[Out]) -> None:
        """As `withdraw` one by one."""
        if self._by_rows is None:
            for one in rounds:
                self.withdraw(*one)
        elif rounds:
            self._by_rows._withdraw_all(*self._columns(rounds))

    def _columns(self, rounds: Sequence[Out]) -> tuple[FloatArray, list[int]]:
        """x and the arm of every round."""
        return stacked([x for x, _, _ in rounds]), self._ids(np.array([slot for _, slot, _ in rounds]))

    def has_announced(self, rounds: Sequence[Out]) -> bool:
        """Whether the map, if it counts announced rounds, counts all of these."""
        if self._counts_pending is None or not rounds:
            return True
        if self._by_rows is not None:
            return has_announced(self._by_rows, list(zip(*self._columns(rounds), strict=True)))
        return has_announced(self._counts_pending, [self._announced(*one) for one in rounds])

    def remember(self, rounds: Iterable[Out]) -> None:
        """Take over announced rounds of a state in which a map of stages did not count any."""
        if isinstance(self.map, StagedMap) and not self.map._out:
            for x, slot, part in rounds:
                self.map._remember(x, self._ids(np.array([slot]))[0], part)

    def _announced(self, x: FloatArray, slot: int, part: FloatArray | None) -> tuple[Any, ...]:
        arm = self._ids(np.array([slot]))[0]
        return (x, arm) if part is None or self._in_stages is None else (x, arm, part)

    def prepare_all(self, X: FloatArray, Z: FloatArray) -> list[Effect] | None:
        """`prepare` row by row if all arms share the map; None if they do not."""
        if self._for_all is None:
            return None
        twin = beside(self._for_all)
        twin._learn_batch(X, Z)
        return counted(self._for_all._guard, [replaced_by(self._for_all, twin)])

    def settling(self) -> list[Effect]:
        """The effects of renewing the caches that can no longer be trusted; none if all can."""
        if not isinstance(self.map, SharedMap | TaughtByArm) or not (effects := self.map._settling()):
            return []
        return counted(self.map._guard, effects)

    def try_rows(self, X: FloatArray, slots: IntArray) -> None:
        """Raise if a row cannot be learnt from: features of x may be a caller's own function."""
        if self._for_all is not None:
            self.predict(X, slots)
        else:
            for x, slot in zip(X, slots.tolist(), strict=True):
                self.predict_one(x, slot)

    def _ids(self, slots: IntArray) -> list[int]:
        ids: list[int] = self._arm_set.ids_of(slots).tolist()
        return ids


def _one_for_all(e: FloatArray, slots: IntArray) -> FloatArray:
    """The radius at one x, checked, for each of the slots."""
    if type(e) is not np.ndarray or e.shape != (1,):
        e = vector("context_map.radius(x)", e, 1)
    radii = np.empty(len(slots))
    radii.fill(number("context_map.radius(x)", float(e[0]), least=0.0))
    return radii
