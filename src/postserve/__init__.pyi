"""The public names, listed once: type checkers read them here, and `__init__.py` does to import them."""

from postserve import confidence as confidence
from postserve import conformance as conformance
from postserve import data as data
from postserve import evaluation as evaluation
from postserve import theory as theory
from postserve.context_maps import BestMap as BestMap
from postserve.context_maps import HybridMap as HybridMap
from postserve.context_maps import KernelMap as KernelMap
from postserve.context_maps import KnownMap as KnownMap
from postserve.context_maps import NeighborsMap as NeighborsMap
from postserve.context_maps import NetworkMap as NetworkMap
from postserve.context_maps import PerArmMap as PerArmMap
from postserve.context_maps import RidgeMap as RidgeMap
from postserve.context_maps import SklearnMap as SklearnMap
from postserve.data import LoggedRounds as LoggedRounds
from postserve.data import from_frame as from_frame
from postserve.environments import ActionDependentEnvironment as ActionDependentEnvironment
from postserve.environments import CatalogueEnvironment as CatalogueEnvironment
from postserve.environments import DecisionSetEnvironment as DecisionSetEnvironment
from postserve.environments import HolderEnvironment as HolderEnvironment
from postserve.environments import NonlinearEnvironment as NonlinearEnvironment
from postserve.environments import Observation1 as Observation1
from postserve.environments import RotatingEnvironment as RotatingEnvironment
from postserve.environments import SyntheticEnvironment as SyntheticEnvironment
from postserve.environments import TableEnvironment as TableEnvironment
from postserve.errors import InvalidInput as InvalidInput
from postserve.errors import PostserveError as PostserveError
from postserve.errors import StateMismatch as StateMismatch
from postserve.evaluation import Replay as Replay
from postserve.evaluation import replay as replay
from postserve.experiments.runner import Run as Run
from postserve.experiments.runner import simulate as simulate
from postserve.experiments.study import Study as Study
from postserve.experiments.study import run_study as run_study
from postserve.loading import load as load
from postserve.policies import BestPolicy as BestPolicy
from postserve.policies import Description as Description
from postserve.policies import EpsilonGreedy as EpsilonGreedy
from postserve.policies import LinUCB as LinUCB
from postserve.policies import LinUCBOracle as LinUCBOracle
from postserve.policies import LinUCBPhiHat as LinUCBPhiHat
from postserve.policies import PoLinTS as PoLinTS
from postserve.policies import PoLinUCB as PoLinUCB
from postserve.policies import RandomPolicy as RandomPolicy
from postserve.policies import RobustPoLinUCB as RobustPoLinUCB
from postserve.protocols import ContextMap as ContextMap
from postserve.protocols import Environment as Environment
from postserve.protocols import Policy as Policy
from postserve.types import Decision as Decision
from postserve.types import Decisions as Decisions
from postserve.types import Prior as Prior
from postserve.types import Rounds as Rounds
from postserve.warming import warm_up as warm_up

__all__: list[str]
__version__: str
