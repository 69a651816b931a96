"""Worlds with a known truth: phi, every arm's mean, and rounds drawn from them."""

from postserve.environments.synthetic import SyntheticEnvironment

__all__ = ["SyntheticEnvironment"]
