"""Worlds with a known truth: phi, every arm's mean, and rounds drawn from them."""

from postserve.environments.action_dependent import ActionDependentEnvironment as ActionDependentEnvironment
from postserve.environments.catalogue import CatalogueEnvironment as CatalogueEnvironment
from postserve.environments.decision_sets import DecisionSetEnvironment as DecisionSetEnvironment
from postserve.environments.holder import HolderEnvironment as HolderEnvironment
from postserve.environments.nonlinear import NonlinearEnvironment as NonlinearEnvironment
from postserve.environments.observation1 import Observation1 as Observation1
from postserve.environments.rotating import RotatingEnvironment as RotatingEnvironment
from postserve.environments.synthetic import SyntheticEnvironment as SyntheticEnvironment
from postserve.environments.table import TableEnvironment as TableEnvironment
