"""phi_hat: x -> E[z|x], the map from what is known before serving to what comes after."""

from postserve.context_maps.best import BestMap as BestMap
from postserve.context_maps.hybrid import HybridMap as HybridMap
from postserve.context_maps.kernel import KernelMap as KernelMap
from postserve.context_maps.known import KnownMap as KnownMap
from postserve.context_maps.neighbors import NeighborsMap as NeighborsMap
from postserve.context_maps.network import NetworkMap as NetworkMap
from postserve.context_maps.per_arm import PerArmMap as PerArmMap
from postserve.context_maps.ridge import RidgeMap as RidgeMap
from postserve.context_maps.sklearn import SklearnMap as SklearnMap
from postserve.context_maps.staged import StagedMap as StagedMap
