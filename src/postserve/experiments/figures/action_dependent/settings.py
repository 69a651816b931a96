"""Proposition 2: each arm with its own context, and its own phi or one that all arms share."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from postserve.context_maps import PerArmMap, RidgeMap
from postserve.environments import ActionDependentEnvironment
from postserve.environments.action_dependent import Maps
from postserve.experiments.contenders import MAP_PER_ARM, ONE_MAP, ORACLE, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakePolicy, regret_cells, seed_list
from postserve.policies import LinUCB, LinUCBOracle, PoLinUCB, RandomPolicy

SIZE = Size(horizon=3000, seeds=10, quick=False)
QUICK = Size(horizon=200, seeds=3, quick=True)
N_ARMS = (2, 4, 8, 16, 32)
QUICK_N_ARMS = (2, 4, 8)
MIDDLE = 8
"""Growth over rounds is drawn for so many arms."""
KINDS: tuple[Maps, ...] = ("separate", "shared")
MAP_RATE = 0.5
"""Of a ridge map whose features phi is linear in."""
WORLD: Any = {"dim_x": 10, "dim_z": 3, "z_noise": 5.0, "reward_noise": 0.3}
"""Follow-ups so noisy, and rewards so clear, that learning phi costs more than learning the weights."""


def place(kind: str, n_arms: int) -> str:
    """The environment's name in the table."""
    return f"{kind} phi, {n_arms} arms"


def environment(kind: Maps, n_arms: int, seed: int) -> ActionDependentEnvironment:
    """A polynomial world."""
    return ActionDependentEnvironment("polynomial", n_arms=n_arms, maps=kind, seed=seed, **WORLD)


def policies(*, all_of_them: bool) -> dict[str, MakePolicy]:
    """poLinUCB with a map for each arm and with one; where growth is drawn, what it is compared with too."""
    made: dict[str, MakePolicy] = {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        evidence(X_ONLY): lambda env: LinUCB(env.n_arms, env.dim_x),
        evidence(ONE_MAP): lambda env: PoLinUCB(env.n_arms, _on_h(env)),
        evidence(MAP_PER_ARM): lambda env: PoLinUCB(env.n_arms, PerArmMap(_on_h(env))),
        evidence(ORACLE): lambda env: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z),
    }
    if not all_of_them:
        del made[evidence(X_ONLY)], made[evidence(ORACLE)]
    return made


def _on_h(env: Any) -> RidgeMap:
    return RidgeMap(env.dim_x, env.dim_z, features=env.features)


def cells(size: Size) -> list[Cell]:
    """Both kinds of world with growing numbers of arms."""
    return [
        cell
        for kind in KINDS
        for n_arms in (QUICK_N_ARMS if size.quick else N_ARMS)
        for cell in regret_cells(
            {place(kind, n_arms): partial(environment, kind, n_arms)},
            policies(all_of_them=n_arms == MIDDLE),
            size.horizon,
            seed_list(size.seeds),
        )
    ]


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "world": "each round each arm has its own x, uniform on [-10, 10]^10; z in 3 dimensions, polynomial "
        "phi of deviation 10 with noise 5, rewards with noise 0.3; maps are given h",
        "separate phi": "phi_a(x) = 10 W_a^T h(x), W_a drawn for each arm",
        "shared phi": "one W for all arms; their weights differ all the same",
        "policies": "with the learnt prior; weights for each arm",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired; slopes from T/10 on",
    }
