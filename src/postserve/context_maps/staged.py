"""z that comes in stages: one map per stage, which is told x and stages before it."""

import copy
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from postserve.changes import Effect, learning, one_version, whole
from postserve.context_maps import rounds_out
from postserve.context_maps.announced import Announced, has_announced
from postserve.context_maps.base import TaughtByArm, commit_in, context_rows, spread_of
from postserve.context_maps.best import probes_of
from postserve.context_maps.features import check_probe
from postserve.context_maps.members import MadeOfMaps
from postserve.context_maps.rounds_out import RoundOut, RoundsOut
from postserve.errors import InvalidInput
from postserve.protocols import ContextMap, CountsPending, HasUntaught, Merges
from postserve.state import Arrays, Stored, to_merge
from postserve.types import BoolArray, FloatArray
from postserve.validation import errors_as_invalid_input, generator, integer, matrix, shaped, vector
from postserve.validation import whole_numbers as ids_of

ROWS_AT_ONCE = 96
"""Rows of several draws go to a stage's map in one call: fewer calls, and more numbers than are used."""


class StagedMap(MadeOfMaps, TaughtByArm):
    """phi_hat where z comes in stages, z = (z_1, …, z_K): map k predicts z_k from (x, z_1, …, z_{k-1}).

    So map k has dim_x + dim z_1 + … + dim z_{k-1} inputs; with fewer it is told fewer of the first stages,
    and with dim_x inputs x alone. It learns from the rounds in which its stage and those it is told are known
    (`learn_stages`), and the beginning of a z tells what to expect of its end (`complete`). From x
    alone each stage is predicted at the predicted stages before it. That is the posterior mean, and `spread`
    the posterior standard deviation, if members are linear in their inputs and know their posterior, as
    `RidgeMap` and `HybridMap` do with their defaults and without features; for other members both are
    approximations. The confidence set is a ball: with "joint" or "bound" optimism z should be in like units.

    >>> from postserve import RidgeMap
    >>> phi_hat = StagedMap([RidgeMap(dim_x=1, dim_z=1, ridge=1.0), RidgeMap(dim_x=2, dim_z=1, ridge=1.0)])
    >>> phi_hat.update([1.0], 0, [2.0, 6.0])
    >>> phi_hat.learn_stages([1.0], 0, [4.0, np.nan])  # the first map learns
    >>> phi_hat.predict([1.0])
    array([[2., 5.]])
    >>> phi_hat.complete([1.0], 0, [5.0, np.nan])
    array([ 5., 11.])
    """

    def __init__(self, maps: Sequence[ContextMap]) -> None:
        self.maps = [copy.deepcopy(each) for each in _checked(maps)]
        self.dim_x = self.maps[0].dim_x
        ends = np.cumsum([each.dim_z for each in self.maps]).tolist()
        self.dim_z: int = ends[-1]
        self._stages = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        self._out = RoundsOut()

    @property
    def order_free(self) -> bool:
        """Whether all maps are."""
        return all(isinstance(each, Merges) and each.order_free for each in self.maps)

    @property
    def scale_free(self) -> bool:
        """Whether the first map is; the others, whose inputs have different units, must be column-free."""
        free = (bool(getattr(each, "scale_free", False)) for each in self.maps)
        return all(free) and all(bool(getattr(each, "column_free", False)) for each in self.maps[1:])

    @one_version
    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat_a(x), one row per arm: each stage at the predicted stages before it."""
        rows, ids = self._asked(x, arms)
        for k in range(len(self.maps)):
            rows = np.concatenate([rows, self._predict(k, rows, ids)], axis=1)
        return rows[:, self.dim_x :]

    @one_version
    def complete(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> FloatArray:
        """z with its missing entries, which are NaN, predicted from x and the stages before theirs.

        What is known of later stages does not count.
        """
        row, z = vector("x", x, self.dim_x)[None], _part(z, self.dim_z)
        arm = integer("arm", arm, least=0)
        for k, stage in enumerate(self._stages):
            known = z[None, stage]
            if np.isnan(known).any():
                known = np.where(np.isnan(known), self._predict(k, row, [arm]), known)
            row = np.concatenate([row, known], axis=1)
        return row[0, self.dim_x :]

    @one_version
    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The standard deviation of phi_a(x), over all coordinates of z."""
        return np.asarray(np.linalg.norm(self.spread(x, arms), axis=1))

    @one_version
    def spread(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """The standard deviation of each coordinate of phi_a(x), one row per arm."""
        return np.asarray(np.linalg.norm(self.spread_root(x, arms), axis=2))

    @one_version
    def spread_root(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """R of the covariance R R^T of phi_a(x), (len(arms), dim_z, dim_z): stages vary together.

        By the law of total variance: the variance of a stage's own map, on average over what the stages
        before it may be, and that of its prediction as they vary.
        """
        rows, ids = self._asked(x, arms)
        root = self._spread(0, rows, ids)[:, :, None] * np.eye(self.maps[0].dim_z)
        for k in range(1, len(self.maps)):
            rows = np.concatenate([rows, self._predict(k - 1, rows, ids)], axis=1)
            root = self._longer_root(k, rows, ids, root)
        return root

    @one_version
    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """A draw of phi_a(x), or `size` of them: each stage is drawn at the draws of the stages before it."""
        rng, n = generator(rng), 1 if size is None else integer("size", size, least=0)
        rows, ids = self._asked(x, arms)
        most = max(1, ROWS_AT_ONCE // max(1, len(ids)))
        portions = [min(most, n - start) for start in range(0, n, most)]
        drawn = [np.empty((0, len(ids), self.dim_z)), *(self._draws(rows, ids, rng, m) for m in portions)]
        return drawn[-1][0] if size is None else np.concatenate(drawn)

    def _draws(self, rows: FloatArray, ids: list[int], rng: np.random.Generator, n: int) -> FloatArray:
        """n draws, in one call per stage: of each of its n draws at the inputs of all, that at its own."""
        own, inputs = np.arange(n), np.tile(rows, (n, 1))
        for k, each in enumerate(self.maps):
            found = each.sample(inputs[:, : each.dim_x], ids * n, rng, n)
            found = shaped(f"maps[{k}].sample(x, arms, rng, {n})", found, (n, n * len(ids), each.dim_z))
            at_own = found.reshape(n, n, len(ids), each.dim_z)[own, own]
            inputs = np.concatenate([inputs, at_own.reshape(-1, each.dim_z)], axis=1)
        return inputs[:, self.dim_x :].reshape(n, len(ids), self.dim_z)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Learn that z, all of it, followed x when this arm was served."""
        self.learn_stages(x, arm, vector("z", z, self.dim_z))

    def _prepare_for(self, x: FloatArray, arm: int, z: FloatArray) -> list[Effect]:
        return self._prepare_stages(x, arm, z, None)

    @learning
    def learn_stages(
        self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, before: npt.ArrayLike | None = None
    ) -> None:
        """Learn from z as far as it is known, NaN elsewhere, except what was learnt from `before`.

        `before` is what was known of this z when it was learnt from last. A stage is learnt when it and the
        stages that its map is told are known.
        """
        x, arm, z = vector("x", x, self.dim_x), integer("arm", arm, least=0), _part(z, self.dim_z)
        known = None if before is None else _part(before, self.dim_z)
        commit_in(self, self._prepare_stages(x, arm, z, known))

    def _prepare_stages(
        self, x: FloatArray, arm: int, z: FloatArray, before: FloatArray | None
    ) -> list[Effect]:
        learnt = () if before is None else self._known(before)
        new = [k for k in self._known(z) if k not in learnt]
        row = np.concatenate([x, z])
        inputs = {k: row[: self.maps[k].dim_x] for k in new}
        for k in new:
            self._predict(k, inputs[k][None], [arm])  # features of x may be a caller's own, and fail
        return self._effects({k: (inputs[k], arm, z[self._stages[k]]) for k in new})

    @whole
    def expect(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None = None) -> None:
        """A z at x is out: until it is withdrawn, it counts in the widths of the maps that count such rounds.

        z is what is known of it, NaN elsewhere. A stage that was not learnt from it counts as if it had come
        at its mean, where its map is told what `complete` gives now; it does not count while a map that must
        predict a stage before it has learnt none.
        """
        one = self._round_out(x, arm, z)
        for each in self._counting(one):
            each.expect(one.inputs(each.dim_x), one.arm)
        self._out.add(one)

    @whole
    def withdraw(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None = None) -> None:
        """Take back what `expect` announced with this z: more of it came, or never will."""
        asked = vector("x", x, self.dim_x), integer("arm", arm, least=0), self._known_part(z)
        if (one := self._out.take(*asked)) is None:
            got = f"x is {x!r} with arm {arm} and z {z!r}"
            raise InvalidInput(f"{got}, wanted one that was announced by expect()")
        self._take_back(one)

    def _has_announced(self, rounds: Sequence[Announced]) -> bool:
        """Whether all of these could be taken back."""
        left, found = copy.deepcopy(self._out), []
        for x, arm, *part in rounds:
            one = left.take(x, arm, self._known_part(part[0] if part else None))
            if one is None:
                return False
            found.append(one)
        return all(
            has_announced(each, [(one.inputs(each.dim_x), one.arm) for one in found if one.counted[k]])
            for k, each in enumerate(self.maps)
            if isinstance(each, CountsPending)
        )

    def settled(self) -> "StagedMap":
        """The map as if nothing were announced, to read from."""
        settled = copy.copy(self)
        settled.maps = [each.settled() if isinstance(each, CountsPending) else each for each in self.maps]
        settled._out = RoundsOut()
        return settled

    @whole
    def remove_arm(self, arm: int) -> None:
        """Drop what maps that hold something for this arm hold, and what is announced of it."""
        for one in self._out:
            if one.arm == arm:
                self.withdraw(one.x, one.arm, one.z)
        super().remove_arm(arm)

    def _round_out(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike | None) -> RoundOut:
        x, arm, z = vector("x", x, self.dim_x), integer("arm", arm, least=0), self._known_part(z)
        counts = [isinstance(each, CountsPending) for each in self.maps]
        counted = np.array(counts) & self._inputs_can_be_told(arm, z)
        counted[self._known(z)] = False
        return RoundOut(x.copy(), arm, z, self.complete(x, arm, z), counted)

    def _inputs_can_be_told(self, arm: int, z: FloatArray) -> BoolArray:
        """Of each stage, whether what its map is told is known, or a map can say where it lies."""
        told = ~np.isnan(z)
        for stage, each in zip(self._stages, self.maps, strict=True):
            told[stage] |= _is_taught(each, arm)
        return np.array([bool(told[: each.dim_x - self.dim_x].all()) for each in self.maps])

    def _remember(self, x: FloatArray, arm: int, z: FloatArray | None) -> None:
        """An announced round of an older state, which counts nowhere until more of its z comes."""
        z = self._known_part(z)
        self._out.add(RoundOut(x, arm, z, np.nan_to_num(z), np.zeros(len(self.maps), dtype=np.bool_)))

    def _counting(self, one: RoundOut) -> list[Any]:
        """The maps in whose widths a round counts."""
        return [each for each, counts in zip(self.maps, one.counted, strict=True) if counts]

    def _take_back(self, one: RoundOut) -> None:
        for each in self._counting(one):
            each.withdraw(one.inputs(each.dim_x), one.arm)

    def _known_part(self, z: npt.ArrayLike | None) -> FloatArray:
        return np.full(self.dim_z, np.nan) if z is None else _part(z, self.dim_z)

    def is_taught(self, arm: int) -> bool:
        """Whether all maps can say where their stage lies."""
        return all(_is_taught(each, arm) for each in self.maps)

    @whole
    def merge(self, other: "StagedMap") -> None:
        """Add what another such map has learnt, stage by stage."""
        other = to_merge(self, other)
        if not (self.order_free and other.order_free):
            raise InvalidInput(f"cannot merge stages of {self.maps!r}, wanted maps made of sums")
        for mine, theirs in zip(self.maps, other.maps, strict=True):
            cast(Merges, mine).merge(theirs)
        for one in other._out:
            self._out.add(one)

    def _asked(self, x: npt.ArrayLike, arms: Sequence[int]) -> tuple[FloatArray, list[int]]:
        """One row of x per arm, and the arms."""
        ids = ids_of("arms", arms).tolist()
        rows = context_rows(x, self.dim_x, ids)
        return (rows if len(rows) == len(ids) else np.repeat(rows, len(ids), axis=0)), ids

    def _known(self, z: FloatArray) -> list[int]:
        """The stages that are known, with those that their maps are told."""
        gaps = np.isnan(z)
        told = [each.dim_x - self.dim_x for each in self.maps]
        return [k for k, at in enumerate(self._stages) if not (gaps[at].any() or gaps[: told[k]].any())]

    def _predict(self, k: int, rows: FloatArray, ids: list[int]) -> FloatArray:
        """Stage k, checked: the map may be a user's own."""
        what, each = f"maps[{k}].predict(x)", self.maps[k]
        with errors_as_invalid_input(f"{what} fails", "a map that predicts its stage from every x"):
            found = each.predict(rows[:, : each.dim_x], ids)
        return matrix(what, found, len(ids), each.dim_z)

    def _spread(self, k: int, rows: FloatArray, ids: list[int]) -> FloatArray:
        each = self.maps[k]
        found = spread_of(each, rows[:, : each.dim_x], ids)
        return matrix(f"maps[{k}].spread(x)", found, len(ids), each.dim_z)

    def _longer_root(self, k: int, rows: FloatArray, ids: list[int], root: FloatArray) -> FloatArray:
        """R of the covariance R R^T of the stages up to k, from that of the stages before it, for each arm.

        Over 2n points with the mean and covariance of the inputs, averages of all that is linear or quadratic
        are exact; so are a linear map's predictions and variances.
        """
        _, d, n = root.shape
        dim, far = self.maps[k].dim_z, math.sqrt(n)
        steps = np.zeros((len(ids), n, rows.shape[1]))
        steps[:, :, self.dim_x :] = far * root.transpose(0, 2, 1)
        points = (rows[:, None] + np.concatenate([steps, -steps], axis=1)).reshape(-1, rows.shape[1])
        of = np.repeat(ids, 2 * n).tolist()
        predicted = self._predict(k, points, of).reshape(len(ids), 2, n, dim)
        variances = np.square(self._spread(k, points, of)).reshape(len(ids), 2 * n, dim).mean(axis=1)
        longer = np.zeros((len(ids), d + dim, n + dim))
        longer[:, :d, :n] = root
        longer[:, d:, :n] = ((predicted[:, 0] - predicted[:, 1]) / (2.0 * far)).transpose(0, 2, 1)
        longer[:, d:, n:] = np.sqrt(variances)[:, :, None] * np.eye(dim)
        return longer

    def _arrays(self) -> Arrays:
        return {**{name: answer for name, _, answer in probes_of(self.maps)}, **rounds_out.arrays(self._out)}

    def _restore(self, arrays: Stored) -> None:
        for name, what, answer in probes_of(self.maps):
            check_probe(what, answer, arrays.take(name, (None,)))
        self._out = rounds_out.restored(arrays, self.dim_x, self.dim_z, len(self.maps))
        arrays.require(self._maps_have_all(), "out_completed", "rounds that the maps count")

    def _maps_have_all(self) -> bool:
        """Whether every announced round can be taken back from the maps in which it counts."""
        if not self._out:
            return True
        twin = copy.deepcopy(self)
        try:
            for one in self._out:
                twin._take_back(one)
        except InvalidInput:
            return False
        return True


def _checked(maps: Sequence[ContextMap]) -> Sequence[ContextMap]:
    if isinstance(maps, str) or not isinstance(maps, Sequence) or not maps:
        raise InvalidInput(f"maps is {maps!r:.60}, wanted a list of context maps, one per stage of z")
    for k, each in enumerate(maps):
        if not isinstance(each, ContextMap) or isinstance(each, type):
            raise InvalidInput(f"maps[{k}] is a {type(each).__name__}, wanted a context map")
        if isinstance(each, StagedMap):
            raise InvalidInput(f"maps[{k}] is a StagedMap, wanted the maps of its stages in its place")
    told = np.cumsum([maps[0].dim_x, *(each.dim_z for each in maps)]).tolist()  # x, x and the first stage, …
    for k, each in enumerate(maps):
        *fewer, most = told[: k + 1]
        if each.dim_x not in (most, *fewer):
            wanted = f"{most}: x and the stages before it, or {' or '.join(map(str, fewer))} for fewer stages"
            raise InvalidInput(f"maps[{k}] has dim_x {each.dim_x}, wanted {wanted}")
    return maps


def _is_taught(phi_hat: ContextMap, arm: int) -> bool:
    return not isinstance(phi_hat, HasUntaught) or phi_hat.is_taught(arm)


def _part(z: npt.ArrayLike, dim_z: int) -> FloatArray:
    """z, checked where it is not NaN."""
    with errors_as_invalid_input("z cannot be read", f"({dim_z},), with NaN for what is missing"):
        missing = np.isnan(np.asarray(z, dtype=np.float64))
    return np.where(missing, np.nan, vector("z", np.where(missing, 0.0, z), dim_z))
