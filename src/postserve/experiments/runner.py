"""One policy through one block of rounds."""

from typing import Any

import numpy as np

from postserve.types import FloatArray, Rounds


def regret(policy: Any, rounds: Rounds, rng: np.random.Generator) -> FloatArray:
    """Cumulative regret at phi(x); an oracle is shown z."""
    gaps = np.empty(len(rounds.x))
    sees_z = getattr(policy, "sees_z", False)
    for t, (x, z, rewards, means) in enumerate(zip(*rounds, strict=True)):
        arm = policy.select(x, rng, **({"z": z} if sees_z else {})).arm
        policy.update(x, arm, z, float(rewards[arm]))
        gaps[t] = means.max() - means[arm]
    return np.cumsum(gaps)
