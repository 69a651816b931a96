"""Contextual bandits with post-serving contexts: poLinUCB, its baselines and its context maps.

Names are imported when they are first asked for, so that `import postserve` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postserve import confidence, conformance, data, evaluation, theory
    from postserve.context_maps import (
        KernelMap,
        KnownMap,
        NeighborsMap,
        NetworkMap,
        PerArmMap,
        RidgeMap,
        SklearnMap,
    )
    from postserve.data import LoggedRounds, from_frame
    from postserve.environments import (
        ActionDependentEnvironment,
        CatalogueEnvironment,
        DecisionSetEnvironment,
        HolderEnvironment,
        NonlinearEnvironment,
        Observation1,
        SyntheticEnvironment,
        TableEnvironment,
    )
    from postserve.errors import InvalidInput, PostserveError, StateMismatch
    from postserve.evaluation import Replay, replay
    from postserve.experiments.runner import Run, simulate
    from postserve.experiments.study import Study, run_study
    from postserve.loading import load
    from postserve.policies import (
        EpsilonGreedy,
        LinUCB,
        LinUCBOracle,
        LinUCBPhiHat,
        PoLinTS,
        PoLinUCB,
        RandomPolicy,
        RobustPoLinUCB,
    )
    from postserve.protocols import ContextMap, Environment, Policy
    from postserve.types import Decision, Decisions, Prior, Rounds

__version__ = "0.1.0"

__all__ = [
    "ActionDependentEnvironment",
    "CatalogueEnvironment",
    "ContextMap",
    "Decision",
    "DecisionSetEnvironment",
    "Decisions",
    "Environment",
    "EpsilonGreedy",
    "HolderEnvironment",
    "InvalidInput",
    "KernelMap",
    "KnownMap",
    "LinUCB",
    "LinUCBOracle",
    "LinUCBPhiHat",
    "LoggedRounds",
    "NeighborsMap",
    "NetworkMap",
    "NonlinearEnvironment",
    "Observation1",
    "PerArmMap",
    "PoLinTS",
    "PoLinUCB",
    "Policy",
    "PostserveError",
    "Prior",
    "RandomPolicy",
    "Replay",
    "RidgeMap",
    "RobustPoLinUCB",
    "Rounds",
    "Run",
    "SklearnMap",
    "StateMismatch",
    "Study",
    "SyntheticEnvironment",
    "TableEnvironment",
    "confidence",
    "conformance",
    "data",
    "evaluation",
    "from_frame",
    "load",
    "replay",
    "run_study",
    "simulate",
    "theory",
]

_ROOMS = {
    "context_maps": (
        "KernelMap",
        "KnownMap",
        "NeighborsMap",
        "NetworkMap",
        "PerArmMap",
        "RidgeMap",
        "SklearnMap",
    ),
    "data": ("LoggedRounds", "from_frame"),
    "environments": (
        "ActionDependentEnvironment",
        "CatalogueEnvironment",
        "DecisionSetEnvironment",
        "HolderEnvironment",
        "NonlinearEnvironment",
        "Observation1",
        "SyntheticEnvironment",
        "TableEnvironment",
    ),
    "evaluation": ("Replay", "replay"),
    "experiments.runner": ("Run", "simulate"),
    "experiments.study": ("Study", "run_study"),
    "errors": ("InvalidInput", "PostserveError", "StateMismatch"),
    "policies": (
        "EpsilonGreedy",
        "LinUCB",
        "LinUCBOracle",
        "LinUCBPhiHat",
        "PoLinTS",
        "PoLinUCB",
        "RandomPolicy",
        "RobustPoLinUCB",
    ),
    "protocols": ("ContextMap", "Environment", "Policy"),
    "loading": ("load",),
    "types": ("Decision", "Decisions", "Prior", "Rounds"),
}
_MODULES = ("confidence", "conformance", "data", "evaluation", "theory")
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"postserve.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'postserve' has no attribute {name!r}")
    value = getattr(import_module(f"postserve.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
