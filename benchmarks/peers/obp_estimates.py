"""obp's own estimates, by an interpreter that has obp: `python -P FILE ARRAYS.npz` prints them as JSON."""

import importlib.util
import json
import sys
import types
from typing import Any

import numpy as np


class _StandIn(types.ModuleType):
    """An empty module: every name in it is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stand_in_for_torch() -> None:
    """Let obp be imported without torch, which its learners need and its estimators on arrays do not."""
    for name in ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data"):
        sys.modules[name] = _StandIn(name)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])


def estimates(path: str) -> dict[str, float]:
    from obp.ope import estimators as theirs

    with np.load(path) as arrays:
        given: dict[str, Any] = {
            "reward": arrays["rewards"],
            "action": arrays["arms"],
            "pscore": arrays["propensities"],
            "action_dist": arrays["chances"][:, :, None],
            "estimated_rewards_by_reg_model": arrays["q"][:, :, None],
            "position": np.zeros(len(arrays["arms"]), dtype=int),
        }
    players = {
        "ips": theirs.InverseProbabilityWeighting(),
        "snips": theirs.SelfNormalizedInverseProbabilityWeighting(),
        "dm": theirs.DirectMethod(),
        "dr": theirs.DoublyRobust(),
    }
    return {name: float(each.estimate_policy_value(**given)) for name, each in players.items()}


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        stand_in_for_torch()
    print(json.dumps(estimates(sys.argv[1])))
