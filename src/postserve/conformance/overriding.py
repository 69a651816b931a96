"""Every method takes the steps that a subclass overrides: no fast path skips them.

Each step of a class is overridden in turn, with an effect on its result or its arguments. Single calls,
batches and rows must then still agree with each other.
"""

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import numpy as np

from postserve.conformance.tools import (
    Make,
    chances,
    choose_all,
    close,
    in_turn,
    require,
    require_batch_propensities,
    rounds_for,
    some_rounds,
)
from postserve.policies import PoLinUCB
from postserve.protocols import z_for_oracle
from postserve.steps import HasSteps, steps_of
from postserve.types import FloatArray

ROUNDS = 12
DRAWS = 1000
"""Their deviation is accurate to 5 · 100/sqrt(2 · 1000) = 11%, except for one case in a million."""


def policies_take_overridden_steps(make: Make) -> None:
    """With any step overridden, update, its two stages and batches teach the same, and choose the same."""
    for step, remake in _overridden(make):
        single, staged, at_once = remake(), remake(), remake()
        rounds = rounds_for(single, ROUNDS)
        came = in_turn(single, rounds)
        for x, arm, z, reward in came:
            single.update(x, arm, z, reward)
            staged.credit(x, arm, z, reward, z_hat=staged.observe(x, arm, z))
        at_once.update_batch(*map(np.array, zip(*came, strict=True)))
        for what, other in (("observe and credit", staged), ("update_batch", at_once)):
            pairs = [(chances(policy, rounds.x[0], rounds.z[0]) for policy in (single, other))]
            pairs += [(policy.weights for policy in (single, other))] if hasattr(single, "weights") else []
            alike = all(close(mine, theirs, 1e-6) for mine, theirs in pairs)
            require(alike, f"with {step} overridden, {what} taught differently than update")
        batch = single.select_batch(rounds.x, np.random.default_rng(1), **z_for_oracle(single, Z=rounds.z))
        one_by_one = choose_all(single, rounds)
        alike = batch.arms.tolist() == [decision.arm for decision in one_by_one]
        require(alike, f"with {step} overridden, select_batch chose differently than select")
        require_batch_propensities(single, rounds)
        if single.arms:
            rows = rounds._replace(x=np.repeat(rounds.x[:, None], len(single.arms), axis=1))
            alike = choose_all(single, rows) == one_by_one
            require(alike, f"with {step} overridden, equal rows are chosen from differently than one x")


def maps_take_overridden_steps(make: Make) -> None:
    """With any step overridden, rows are answered as each x, in draws too, and policies see the same map."""
    if not getattr(make(), "answers_alike", True):
        return  # arms may differ: policies take its public methods, and no steps
    for step, remake in _overridden(make):
        single, at_once = remake(), remake()
        x, z, rewards, _, _ = some_rounds(ROUNDS, single.dim_x, single.dim_z, 2)
        for each, follow_up in zip(x, z, strict=True):
            single.update(each, 0, follow_up)
        at_once._learn_batch(x, z)
        arms = range(ROUNDS)
        for name in ("predict", "radius"):
            rows = getattr(single, name)(x, arms)
            alone = [getattr(single, name)(each, (0,))[0] for each in x]
            require(close(rows, alone, 1e-9), f"with {step} overridden, {name} of rows is not that of each")
            taught = getattr(at_once, name)(x, arms)
            require(close(rows, taught, 1e-6), f"with {step} overridden, pairs at once taught differently")
        spread = _spread(single, x[:3])
        by_itself = np.concatenate([_spread(single, each[None]) for each in x[:3]])
        require(close(spread, by_itself, 0.25), f"with {step} overridden, draws at rows scatter differently")
        policies = PoLinUCB(2, remake(), optimism="joint"), PoLinUCB(2, _Verbs(remake()), optimism="joint")
        for i in range(ROUNDS):
            first, other = (policy.select(x[i], np.random.default_rng(i)) for policy in policies)
            require(first == other, f"with {step} overridden, a policy does not use the public methods")
            for policy in policies:
                policy.update(x[i], first.arm, z[i], float(rewards[i, first.arm]))


def _overridden(make: Make) -> Iterator[tuple[str, Make]]:
    """Each step, and a function that makes objects with this step overridden."""
    cls: Any = type(make())
    if issubclass(cls, HasSteps):
        for step in steps_of(cls):
            methods = {step: _with_effect(cls, step)}
            yield step, partial(_made, make, type(cls)(cls.__name__, (cls,), methods, abstract=True))


def _made(make: Make, cls: type) -> Any:
    item = make()
    item.__class__ = cls
    return item


def _with_effect(cls: type, name: str) -> Callable[..., Any]:
    """The step with an effect on its result or, if it returns nothing, on its arguments."""
    step, returns_nothing = getattr(cls, name), _returns_nothing(cls, name)

    @wraps(step)
    def overriding(self: Any, *args: Any, **options: Any) -> Any:
        if name == "_pick":
            return step(self, args[0][::-1].copy(), *args[1:], **options)
        if name in ("_scores", "_chances"):  # other numbers alone would not change a choice
            return step(self, *args, **options)[::-1].copy()
        result = step(self, *(_tripled(args) if returns_nothing else args), **options)
        return 3.0 * result if _is_float(result) else result

    return overriding


def _returns_nothing(cls: type, name: str) -> bool:
    """Whether the first class that annotates the step's result says that there is none."""
    annotations = [getattr(vars(base).get(name), "__annotations__", {}) for base in cls.__mro__]
    stated = [each["return"] for each in annotations if "return" in each]
    return bool(stated) and stated[0] in (None, "None")


def _tripled(args: tuple[Any, ...]) -> list[Any]:
    """The arguments with the reward, or otherwise the last array, times 3."""
    changed = list(args)
    floats = [i for i, value in enumerate(args) if isinstance(value, float)]
    arrays = [i for i, value in enumerate(args) if _is_float(value)]
    for i in (floats or arrays)[-1:]:
        changed[i] = 3.0 * args[i]
    return changed


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == np.float64)


def _spread(phi_hat: Any, X: FloatArray) -> FloatArray:
    """The root mean square of draws around the prediction, one per row."""
    arms = range(len(X))
    off = phi_hat.sample(X, arms, np.random.default_rng(0), DRAWS) - phi_hat.predict(X, arms)
    return np.asarray(np.sqrt((off**2).sum(axis=2).mean(axis=0)))


class _Verbs:
    """A map with its public methods only."""

    def __init__(self, phi_hat: Any) -> None:
        self.dim_x, self.dim_z = phi_hat.dim_x, phi_hat.dim_z
        self.predict, self.radius = phi_hat.predict, phi_hat.radius
        self.sample, self.update = phi_hat.sample, phi_hat.update
        for name in ("is_taught", "ball_axes"):
            if hasattr(phi_hat, name):
                setattr(self, name, getattr(phi_hat, name))
