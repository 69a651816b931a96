"""Vowpal Wabbit 9.11.9: --cb_explore with --squarecb. It learns by gradient steps and keeps no covariance.

A context is the text of x. Features have names: with numbers for names the weights of neighbouring actions
collide, and it hardly learns.
"""

from typing import Any

import numpy as np
from vowpalwabbit import Workspace


class VowpalWabbit:
    """Arms are counted from 1, and rewards are costs."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.vw = Workspace(f"--cb_explore {n_arms} --squarecb --quiet --random_seed 1")
        self.rng = np.random.default_rng(0)

    def context(self, x: Any) -> str:
        return "| " + " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(x))

    def select(self, text: str) -> int:
        self.chances = self.vw.predict(text)
        at = np.cumsum(self.chances).searchsorted(self.rng.random() * 0.999999)
        return min(int(at), len(self.chances) - 1)

    def update(self, text: str, arm: int, reward: float) -> None:
        self.vw.learn(f"{arm + 1}:{-reward:.6g}:{self.chances[arm]:.6g} {text}")


make = VowpalWabbit
