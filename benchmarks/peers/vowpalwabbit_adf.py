"""Vowpal Wabbit 9.11.9: --cb_explore_adf with --squarecb, one line per arm, the form for arms that change.

x is the shared line, an arm's line is its name, and -q crosses them.
"""

from typing import Any

import numpy as np
from vowpalwabbit import Workspace


class VowpalWabbitAdf:
    """Rewards are costs."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.vw = Workspace("--cb_explore_adf --squarecb -q xa --quiet --random_seed 1")
        self.arms, self.rng = [f"|a {arm}" for arm in range(n_arms)], np.random.default_rng(0)

    def context(self, x: Any) -> list[str]:
        shared = "shared |x " + " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(x))
        return [shared, *self.arms]

    def select(self, lines: list[str]) -> int:
        self.chances = self.vw.predict(lines)
        at = np.cumsum(self.chances).searchsorted(self.rng.random() * 0.999999)
        return min(int(at), len(self.chances) - 1)

    def update(self, lines: list[str], arm: int, reward: float) -> None:
        lines[1 + arm] = f"0:{-reward:.6g}:{self.chances[arm]:.6g} {lines[1 + arm]}"
        self.vw.learn(lines)


make = VowpalWabbitAdf
