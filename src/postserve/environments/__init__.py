"""Worlds with a known truth: phi, every arm's mean, and rounds drawn from them."""

from postserve.environments.holder import HolderEnvironment
from postserve.environments.observation1 import Observation1
from postserve.environments.synthetic import SyntheticEnvironment

__all__ = ["HolderEnvironment", "Observation1", "SyntheticEnvironment"]
