"""phi_hat: x -> E[z|x], the map from what is known before serving to what comes after."""

from postserve.context_maps.kernel import KernelMap
from postserve.context_maps.known import KnownMap
from postserve.context_maps.neighbors import NeighborsMap
from postserve.context_maps.network import NetworkMap
from postserve.context_maps.per_arm import PerArmMap
from postserve.context_maps.ridge import RidgeMap
from postserve.context_maps.sklearn import SklearnMap

__all__ = ["KernelMap", "KnownMap", "NeighborsMap", "NetworkMap", "PerArmMap", "RidgeMap", "SklearnMap"]
