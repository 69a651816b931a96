"""Tools of the checks: rounds to play, states to compare, and messages."""

import copy
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import cached_property
from inspect import isclass, ismodule, isroutine
from pathlib import Path
from typing import Any

import numpy as np

from postserve.errors import InvalidInput, StateMismatch
from postserve.loading import load
from postserve.protocols import z_for_oracle
from postserve.state import Arrays, Persistent, arrays_of, objects_of
from postserve.types import Decision, FloatArray, Rounds

POWERS_OF_TWO = (1024.0, 1.0 / 1024.0)
Make = Callable[[], Any]
Feedback = tuple[FloatArray, int, FloatArray, float]
N = 40
"""Rounds per check."""
CANDIDATES = 4
"""Rows of a decision set, for policies without arms."""


def require(condition: bool | np.bool_, message: str) -> None:
    """Raise AssertionError (under python -O too) unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def checks_in(module: Mapping[str, Any]) -> tuple[Callable[[Make], None], ...]:
    """The checks of a module, in order: its functions of `make` that return nothing."""
    own = (each for each in module.values() if getattr(each, "__module__", None) == module["__name__"])
    return tuple(each for each in own if each.__annotations__ == {"make": Make, "return": None})


def require_invalid(what: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """The call must raise InvalidInput, with a message."""
    try:
        call(*args, **options)
    except InvalidInput as error:
        require(bool(str(error)), f"{what}: InvalidInput came without a message")
        return
    except Exception as error:
        got = f"{type(error).__name__} ({error})"
        raise AssertionError(f"{what} raised {got}, wanted InvalidInput") from error
    raise AssertionError(f"{what} was accepted, wanted InvalidInput")


def some_rounds(n: int, dim_x: int, dim_z: int, n_arms: int, seed: int = 0) -> Rounds:
    """Rounds with a linear phi and linear rewards, and noise on both."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((dim_x, dim_z))
    theta, beta = rng.standard_normal((n_arms, dim_x)), rng.standard_normal((n_arms, dim_z))
    x = rng.standard_normal((n, dim_x))
    z = x @ W + 0.3 * rng.standard_normal((n, dim_z))
    means = x @ theta.T + x @ W @ beta.T
    rewards = x @ theta.T + z @ beta.T + 0.1 * rng.standard_normal((n, 1))
    return Rounds(x, z, rewards, means)


def rounds_for(policy: Any, n: int, seed: int = 0) -> Rounds:
    """Rounds of the policy's dimensions, any if it ignores contexts; decision sets if it has no arms."""
    dim_x = getattr(getattr(policy, "x_features", None), "n_features_in_", policy.dim_x or 3)
    dim_z = getattr(getattr(policy, "z_features", None), "n_features_in_", policy.dim_z or 2)
    if policy.arms:
        return some_rounds(n, dim_x, dim_z, len(policy.arms), seed)
    return rows_apart(some_rounds(n * CANDIDATES, dim_x, dim_z, 1, seed), n)


def rows_apart(rounds: Rounds, n: int) -> Rounds:
    """n rounds with one row per arm, each row being one of the given rounds."""
    x, z = (part.reshape(n, -1, part.shape[1]) for part in (rounds.x, rounds.z))
    rows = np.arange(len(rounds.x))
    own = rows, rows % rounds.rewards.shape[1]
    return Rounds(x, z, rounds.rewards[own].reshape(n, -1), rounds.means[own].reshape(n, -1))


def arms_of(policy: Any) -> tuple[int, ...]:
    """The policy's arms, or the rows of our decision sets."""
    return tuple(policy.arms) or tuple(range(CANDIDATES))


def feedback(policy: Any, rounds: Rounds, i: int, arm: int) -> Feedback:
    """What `update` takes if that arm is served in round i: x, the arm, z and the reward."""
    column = arms_of(policy).index(arm)
    x, z = (part[i] if part.ndim == 2 else part[i, column] for part in (rounds.x, rounds.z))
    return x, arm, z, float(rounds.rewards[i, column])


def in_turn(policy: Any, rounds: Rounds) -> list[Feedback]:
    """The feedback of rounds with the arms served in turn."""
    arms = arms_of(policy)
    return [feedback(policy, rounds, i, arms[i % len(arms)]) for i in range(len(rounds.x))]


def choose(policy: Any, x: FloatArray, z: FloatArray, rng: np.random.Generator, **options: Any) -> Decision:
    """Select, showing z to an oracle."""
    decision: Decision = policy.select(x, rng, **z_for_oracle(policy, z=z), **options)
    return decision


def choose_all(policy: Any, rounds: Rounds) -> list[Decision]:
    """Select in every round, learning nothing."""
    rng = np.random.default_rng(1)
    return [choose(policy, x, z, rng) for x, z in zip(rounds.x, rounds.z, strict=True)]


def require_batch_as_single(policy: Any, rounds: Rounds) -> None:
    """select_batch must decide as select does in every round."""
    batch = policy.select_batch(rounds.x, np.random.default_rng(1), **z_for_oracle(policy, Z=rounds.z))
    arms, propensities = map(list, zip(*choose_all(policy, rounds), strict=True))
    require(batch.arms.tolist() == arms, "select_batch chose differently than select")
    require(batch.propensities.tolist() == propensities, "select_batch gave other propensities than select")
    require_batch_propensities(policy, rounds)


def require_batch_propensities(policy: Any, rounds: Rounds, **options: Any) -> None:
    """propensities_batch, where a policy has it, must say what propensities does in every round."""
    if hasattr(policy, "propensities_batch") and policy.arms:
        at_once = policy.propensities_batch(rounds.x, **options)
        in_turn = [policy.propensities(x, **options) for x in rounds.x]
        require(close(at_once, in_turn, 1e-12), "propensities_batch differs from propensities")


def chances(policy: Any, x: FloatArray, z: FloatArray, **options: Any) -> FloatArray:
    """Propensities, showing z to an oracle."""
    result: FloatArray = policy.propensities(x, **z_for_oracle(policy, z=z), **options)
    return result


def play(policy: Any, rounds: Rounds, seed: int = 1) -> list[int]:
    """Select and update in every round; returns the chosen arms."""
    chosen, rng = [], np.random.default_rng(seed)
    for i in range(len(rounds.x)):
        chosen.append(choose(policy, rounds.x[i], rounds.z[i], rng).arm)
        policy.update(*feedback(policy, rounds, i, chosen[-1]))
    return chosen


def trained_policy(make: Make) -> tuple[Any, Rounds]:
    """A policy that has played some rounds, and the rounds."""
    policy = make()
    rounds = rounds_for(policy, N)
    play(policy, rounds, seed=0)
    return policy, rounds


def learnt(item: Any) -> Arrays:
    """Copies of all learnt arrays of a Persistent object; nothing for others."""
    if not isinstance(item, Persistent):
        return {}
    return {name: array.copy() for name, array in arrays_of(item).items()}


def snapshot(item: Any) -> dict[str, Any]:
    """Copies of all values in an object, by path through dicts, sequences and attributes."""
    found: dict[str, Any] = {}
    _walk("", item, found, set())
    return found


def _walk(path: str, value: Any, found: dict[str, Any], seen: set[int]) -> None:
    if isinstance(value, np.ndarray):
        found[path] = value.copy()
    elif isinstance(value, np.random.Generator):
        found[path] = repr(value.bit_generator.state)
    elif isinstance(value, bool | int | float | complex | str | bytes | np.generic | None):
        found[path] = value
    elif id(value) not in seen and not any(is_code(value) for is_code in (isroutine, isclass, ismodule)):
        seen.add(id(value))
        parts = [item for item in getattr(value, "__dict__", {}).items() if not _is_cache(value, item[0])]
        if isinstance(value, Mapping):
            parts += [(repr(key), part) for key, part in value.items()]
        elif isinstance(value, Iterable) and isinstance(value, Sized):
            parts += [(str(i), part) for i, part in enumerate(value)]
        for name, part in parts:
            _walk(f"{path}.{name}", part, found, seen)


def _is_cache(item: Any, name: str) -> bool:
    """Whether it follows from the other attributes."""
    return isinstance(getattr(type(item), name, None), cached_property)


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two snapshots are equal bit by bit."""
    return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        nan = one.dtype.kind == "f"
        return isinstance(other, np.ndarray) and np.array_equal(one, other, equal_nan=nan)
    return type(one) is type(other) and bool(one == other or one != one)


def reload(item: Persistent) -> Any:
    """Save to a file and load from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        item.save(path)
        try:
            return load(path, objects=copy.deepcopy(objects_of(item)))
        except StateMismatch as error:
            raise AssertionError(f"what was saved cannot be loaded: {error}") from error


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two arrays agree, relative to the largest entry."""
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and bool(
        np.abs(one - other).max(initial=0.0) <= tolerance * max(np.abs(one).max(initial=0.0), 1e-300)
    )
