"""Which policy, without knowing: four readings of the follow-ups learn, and the best so far decides."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, Unpack

import numpy as np

from postserve.changes import counted, one_version, replaced
from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import DEFAULTS, ArmModels, ArmOptions, check_options
from postserve.policies.base import BasePolicy
from postserve.policies.choosing import ChoosesFromX
from postserve.policies.describing import Description
from postserve.policies.linucb import LinUCB
from postserve.policies.linucb_phi_hat import LinUCBPhiHat
from postserve.policies.phi_hat import PhiHat, checked_map
from postserve.policies.polinucb import PoLinUCB
from postserve.policies.robust_polinucb import RobustPoLinUCB
from postserve.protocols import ContextMap, HoldsArms
from postserve.state import Arrays, Stored
from postserve.steps import fast_path
from postserve.types import FloatArray, IntArray, MissingZ, Optimism

Member: TypeAlias = PoLinUCB | LinUCB
OBSERVED, PREDICTED, BOTH, X_ALONE = "observed z", "predicted z", "both", "x alone"
EARLY = 50
"""Rewards before the least error decides. After n of them another one decides only if "observed z" has more
than EARLY/n times its error: few rewards say little about the members, and the first rounds cost most."""


class BestPolicy(ChoosesFromX, BasePolicy):
    """The best of four policies: all learn every round, and the one that has predicted rewards best decides.

    "observed z" is `PoLinUCB`, "predicted z" `LinUCBPhiHat`, "both" `RobustPoLinUCB` and "x alone" `LinUCB`.
    Best is the least sum of squared errors of the reward of the arm that was served: u·w_hat at (x,
    phi_hat(x)), both from before the round was learnt. All are compared on the same rounds, and what was
    expected outside of the range of rewards so far counts as its nearest end. Until 50 rewards have come,
    "observed z" decides unless another one is clearly better. Members share one copy of `context_map`: a
    round costs what their arms cost together, and one map. Options are those of `PoLinUCB` and go to all
    four; of a pair for `ridge`, x alone takes the first number. As in `RobustPoLinUCB`, `credit` needs the
    prediction that `observe` returned.

    >>> import numpy as np
    >>> from postserve import RidgeMap
    >>> policy = BestPolicy(n_arms=2, context_map=RidgeMap(dim_x=1, dim_z=1, features=lambda x: x**2))
    >>> for x in (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [2 * x**2], reward=beta * 2 * x**2)
    >>> policy.select([5.0], np.random.default_rng(0))
    Decision(arm=0, propensity=1.0)
    >>> max(policy.errors, key=policy.errors.get)
    'x alone'
    """

    _copied_by_reference = ("x_features", "z_features")
    _settings_from = ("_arm_set", "_arms")
    _option_defaults = DEFAULTS
    _phi_hat: PhiHat

    def __init__(
        self,
        n_arms: int | None,
        context_map: ContextMap,
        *,
        optimism: Optimism = "plugin",
        missing_z: MissingZ = "raise",
        x_features: Features | None = None,
        z_features: Features | None = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        check_options(self, options)
        dim_x, dim_z = checked_map(context_map).dim_x, context_map.dim_z
        super().__init__(n_arms, dim_x, dim_z, missing_z, x_features=x_features, z_features=z_features)
        with_map: Any = {"optimism": optimism, "x_features": x_features, "z_features": z_features, **options}
        without: Any = {"x_features": x_features, **options, **_options_of_x(options)}
        self._teacher = LinUCBPhiHat(n_arms, context_map, **with_map)
        self._members: dict[str, Member] = {
            OBSERVED: PoLinUCB(n_arms, context_map, **with_map),
            PREDICTED: self._teacher,
            BOTH: RobustPoLinUCB(n_arms, context_map, **with_map),
            X_ALONE: LinUCB(n_arms, dim_x, **without),
        }
        self.optimism = self._teacher.optimism
        self._phi_hat = self._teacher._phi_hat
        self._arm_set = self._teacher._arm_set
        for member in self._members.values():  # one map and one set of arms for all
            member._arm_set, member._work = self._arm_set, self._work
            if isinstance(member, PoLinUCB):
                member._phi_hat = self._phi_hat
        self._errors = dict.fromkeys(self._members, 0.0)
        self._judged = 0.0  # rewards that the errors are of; forgetting makes it a fraction
        self._learnt = 0  # rewards in all
        self._range = (0.0, 0.0)  # of rewards so far

    @property
    def context_map(self) -> ContextMap:
        """phi_hat: the policy's own copy, which it teaches once for all members."""
        return self._phi_hat.map

    @property
    @one_version
    def decides(self) -> str:
        """The name of the member that decides now."""
        return _decides(self)

    @property
    @one_version
    def best(self) -> Member:
        """The member that decides now. Read its weights and prior; only this policy teaches it."""
        return _best(self)

    @property
    @one_version
    def errors(self) -> dict[str, float]:
        """The mean squared error of each member, over rewards that it had not learnt."""
        return {name: error / (self._judged or 1.0) for name, error in self._errors.items()}

    @property
    def scale_free(self) -> bool:
        """As the members are: squared errors have the same units in all of them."""
        return all(member.scale_free for member in self._members.values())

    @property
    def column_free(self) -> bool:
        """As the members are."""
        return all(member.column_free for member in self._members.values())

    @property
    def shift_free(self) -> bool:
        """As the members are."""
        return all(member.shift_free for member in self._members.values())

    @property
    def _arms(self) -> ArmModels:
        """Where the options are kept as they were given."""
        return self._members[OBSERVED]._arms

    @one_version
    def describe(
        self, x_names: Sequence[str] | None = None, z_names: Sequence[str] | None = None
    ) -> Description:
        """What the member that decides has learnt, and the errors of all: `BasePolicy.describe`."""
        name = _decides(self)
        learnt = self._members[name].describe(x_names, z_names)
        errors = {each: error**0.5 for each, error in self.errors.items()}
        title = f"BestPolicy, {name} decides: {learnt.policy}"
        return learnt._replace(policy=title, reward_errors=errors if self._judged else {})

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return _best(self)._scores(x, slots)

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        return self._teacher._observe(x, slot, z)

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Every member is judged by what it expected of this arm, and then learns the reward."""
        if z_hat is None:
            raise InvalidInput("z_hat is None, wanted the prediction that observe() returned")
        low, high = self._range if self._learnt else (reward, reward)
        low, high = min(low, reward), max(high, reward)
        # Few rounds let a member expect what rewards never are, and one such error would outweigh all others.
        least, most = reward - high, reward - low
        errors = {}
        for name, member in self._members.items():
            surprise = _surprise(member, x, slot, z_hat, reward)
            errors[name] = self._errors[name] + min(max(surprise, least), most) ** 2
        for member in self._members.values():
            with self._counted(member):
                member._credit(x, slot, z, reward, z_hat)
        judged = {}
        if self._learnt:  # before the first reward no member knows the level of rewards
            judged = {"_errors": errors, "_judged": self._judged + 1.0}
        self._work.append(replaced(self, _range=(low, high), _learnt=self._learnt + 1, **judged))

    def _regressions(self) -> list[ArmModels]:
        return [member._arms for member in self._members.values()]

    def _rows_out(
        self, x: FloatArray, slot: int, z: FloatArray | None, z_hat: FloatArray | None
    ) -> tuple[FloatArray | None, ...]:
        members = self._members.values()
        return tuple(row for member in members for row in member._rows_out(x, slot, z, z_hat))

    def _before_parts(self, x: FloatArray, slot: int) -> FloatArray | None:
        return self._teacher._before_parts(x, slot)

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        return self._teacher._impute(x, slot)

    def _try_rows(self, X: FloatArray, slots: IntArray) -> None:
        self._teacher._try_rows(X, slots)

    def _add_arm(self) -> None:
        for member in self._members.values():
            with self._counted(member):
                member._add_arm()

    @contextmanager
    def _counted(self, member: Member) -> Iterator[None]:
        """What is prepared in the block is a change of a member."""
        before = len(self._work)
        yield
        self._work[before:] = counted(member._guard, self._work[before:])

    def _remove_arm(self, slot: int) -> None:
        for member in self._members.values():
            member._arms.remove(slot)
        if isinstance(self.context_map, HoldsArms):
            self.context_map.remove_arm(int(self._arm_set.ids[slot]))

    def _forget(self, arms: float, map: float) -> None:
        self._teacher._forget(1.0, map)  # first, as only the map may refuse
        for member in self._members.values():
            member._forget(arms, 1.0)
        self._errors = {name: arms * error for name, error in self._errors.items()}
        self._judged *= arms

    def _refit_prior(self) -> None:
        for member in self._members.values():
            member._refit_prior()

    def _why_not_merge(self) -> str | None:
        reason = "which member decides, and what some have learnt, depends on the order of the rounds"
        return f"{reason}, wanted an order_free policy"

    def _arrays(self) -> Arrays:
        counts = {
            "judged": np.array([self._judged]),
            "learnt": np.array([self._learnt]),
            "range": np.array(self._range),
        }
        found = {**super()._arrays(), **counts}
        for name, member in self._members.items():
            prefix = _prefix(name)
            found[f"{prefix}error"] = np.array([self._errors[name]])
            found.update({f"{prefix}{array}": values for array, values in member._arrays().items()})
        return found

    def _restore(self, arrays: Stored) -> None:
        super()._restore(arrays)
        least, most = arrays.take("range", (2,)).tolist()
        self._range = least, most
        arrays.require(least <= most, "range", "least and most")
        self._judged = float(arrays.take("judged", (1,))[0])
        self._learnt = int(arrays.take("learnt", (1,), np.int64)[0])
        for name, member in self._members.items():
            theirs = arrays.below(_prefix(name))
            self._errors[name] = float(theirs.take("error", (1,))[0])
            member._restore(theirs)

    @fast_path
    def _argmax_scores(self, X: FloatArray, slots: IntArray) -> IntArray:
        indices: IntArray = _best(self)._argmax_scores(X, slots)
        return indices


def _decides(policy: BestPolicy) -> str:
    errors, learnt = policy._errors, policy._learnt
    best = min(errors, key=errors.__getitem__)
    clearly_better = errors[OBSERVED] * learnt > EARLY * errors[best]
    return best if clearly_better or learnt >= EARLY else OBSERVED


def _best(policy: BestPolicy) -> Member:
    return policy._members[_decides(policy)]


def _surprise(member: Member, x: FloatArray, slot: int, z_hat: FloatArray, reward: float) -> float:
    """The reward less what this member expected of that slot at (x, phi_hat(x))."""
    blocks = len(member._z_blocks) if isinstance(member, PoLinUCB) else 0
    return member._arms.surprise(slot, x, *[z_hat] * blocks, reward=reward)


def _prefix(name: str) -> str:
    return f"{name.replace(' ', '_')}."


def _options_of_x(options: Mapping[str, Any]) -> dict[str, Any]:
    """No prior weights of z, and of a pair of ridges for x and z the first."""
    ridge = options.get("ridge")
    if isinstance(ridge, list | tuple | np.ndarray) and len(ridge) == 2:
        return {"prior_weights": None, "ridge": ridge[0]}
    return {"prior_weights": None}
