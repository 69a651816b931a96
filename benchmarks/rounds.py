"""One round, select and update, as a ratio to plain numpy in the same process (medians of blocks in turn)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.ours import Ours
from benchmarks.reference import NumpyLinUCB, NumpyPoLinUCB
from benchmarks.streams import SCENARIOS, post_stream, rewards, stream
from benchmarks.timing import from_cold, in_turn, play
from postserve import LinUCB, PoLinUCB, RidgeMap

DIM_X, DIM_Z = 100, 5
WARM = 64
"""Pulls of every arm of c before its rounds are measured."""


class Defaults(Ours):
    """LinUCB that learns its prior."""

    def __init__(self, n_arms: int, dim: int) -> None:
        super().__init__(n_arms, dim)
        self.policy = LinUCB(n_arms, dim)


class OursPo:
    """PoLinUCB; a context is the pair (x, z), and select sees only x."""

    ready = True

    def __init__(self, policy: PoLinUCB) -> None:
        self.policy, self.rng = policy, np.random.default_rng(0)

    def context(self, u: Any) -> Any:
        return u[:DIM_X], u[DIM_X:]

    def select(self, context: Any) -> int:
        return self.policy.select(context[0], self.rng).arm

    def update(self, context: Any, arm: int, reward: float) -> None:
        self.policy.update(context[0], arm, context[1], reward)


class PlainPo(NumpyPoLinUCB):
    """The reference on the same pairs."""

    ready = True

    def context(self, u: Any) -> Any:
        return u[:DIM_X], u[DIM_X:]


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """LinUCB on the scenarios, PoLinUCB on 10 arms with 100 + 5, each against its own reference."""
    length: dict[str, Any] = {"blocks": 20 if quick else 60, "budget": 60.0}
    for kind in (Ours, Defaults):
        play(kind(3, 4), stream(3, 4, 20), range(20))  # compiles
    for weights in ("apart", "equal"):
        for name in ("a", "b", "d"):
            n_arms, dim = SCENARIOS[name]
            rounds = stream(n_arms, dim, weights=weights)
            found = in_turn(Ours(n_arms, dim), NumpyLinUCB(n_arms, dim), rounds, **length)
            yield f"LinUCB {name} {n_arms, dim}, weights {weights}", found
    n_arms, dim = SCENARIOS["c"]
    cold = from_cold(
        lambda: Ours(n_arms, dim),
        lambda: NumpyLinUCB(n_arms, dim),
        stream(n_arms, dim),
        repeats=2 if quick else 5,
    )
    yield f"LinUCB c {n_arms, dim}, 300 rounds from cold", cold
    for weights in ("apart", "unit", "equal"):
        yield f"LinUCB c, every arm pulled {WARM} times, weights {weights}", _warm_c(weights, quick)
    for name in ("a", "d"):
        n_arms, dim = SCENARIOS[name]
        whole = from_cold(
            partial(Defaults, n_arms, dim),
            partial(NumpyLinUCB, n_arms, dim),
            stream(n_arms, dim),
            rounds=1000 if quick else 5000,
            repeats=1 if quick else 3,
            budget=60.0,
        )
        yield f"LinUCB {name}, learning its prior: whole runs of {whole['rounds']} rounds", whole
    rounds = post_stream(10, DIM_X, DIM_Z)
    plugin = OursPo(PoLinUCB(10, RidgeMap(DIM_X, DIM_Z, ridge=1.0), ridge=1.0, arm_radius=1.0))
    yield "PoLinUCB (10, 100 + 5), plugin", in_turn(plugin, PlainPo(10, DIM_X, DIM_Z), rounds, **length)
    yield (
        "PoLinUCB joint over plugin, defaults",
        _joint_over_plugin(_default, rounds, length),
    )
    yield (
        "PoLinUCB joint over plugin, the theory's radii",
        _joint_over_plugin(_theory, rounds, length),
    )


def _warm_c(weights: str, quick: bool) -> dict[str, Any]:
    """The reference starts cold: its cost does not depend on what it has learnt."""
    n_arms, dim = SCENARIOS["c"]
    ours, rounds, rng = Ours(n_arms, dim), stream(n_arms, dim, weights=weights), np.random.default_rng(1)
    for _ in range(WARM):
        X, arms = rng.standard_normal((n_arms, dim)), rng.permutation(n_arms)
        ours.policy.update_batch(X, arms, None, rewards(rounds, X, arms, rng))
    return in_turn(ours, NumpyLinUCB(n_arms, dim), rounds, warm=20, block=20, blocks=7 if quick else 25)


def _joint_over_plugin(make: Any, rounds: Any, length: dict[str, Any]) -> dict[str, Any]:
    return in_turn(OursPo(make("joint")), OursPo(make("plugin")), rounds, warm=1000, **length)


def _default(optimism: Any) -> PoLinUCB:
    return PoLinUCB(10, RidgeMap(DIM_X, DIM_Z), optimism=optimism)


def _theory(optimism: Any) -> PoLinUCB:
    phi_hat = RidgeMap(DIM_X, DIM_Z, ridge=1.0, map_radius="determinant")
    return PoLinUCB(10, phi_hat, ridge=1.0, arm_radius="determinant", optimism=optimism)
