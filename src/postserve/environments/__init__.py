"""Worlds with a known truth: phi, every arm's mean, and rounds drawn from them."""

from postserve.environments.action_dependent import ActionDependentEnvironment
from postserve.environments.catalogue import CatalogueEnvironment
from postserve.environments.decision_sets import DecisionSetEnvironment
from postserve.environments.holder import HolderEnvironment
from postserve.environments.nonlinear import NonlinearEnvironment
from postserve.environments.observation1 import Observation1
from postserve.environments.synthetic import SyntheticEnvironment
from postserve.environments.table import TableEnvironment

__all__ = [
    "ActionDependentEnvironment",
    "CatalogueEnvironment",
    "DecisionSetEnvironment",
    "HolderEnvironment",
    "NonlinearEnvironment",
    "Observation1",
    "SyntheticEnvironment",
    "TableEnvironment",
]
