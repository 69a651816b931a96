"""The algorithms, one a file, each readable beside the paper."""

from postserve.policies.epsilon_greedy import EpsilonGreedy
from postserve.policies.linucb import LinUCB
from postserve.policies.linucb_oracle import LinUCBOracle
from postserve.policies.linucb_phi_hat import LinUCBPhiHat
from postserve.policies.polints import PoLinTS
from postserve.policies.polinucb import PoLinUCB
from postserve.policies.random import RandomPolicy
from postserve.policies.robust_polinucb import RobustPoLinUCB

__all__ = [
    "EpsilonGreedy",
    "LinUCB",
    "LinUCBOracle",
    "LinUCBPhiHat",
    "PoLinTS",
    "PoLinUCB",
    "RandomPolicy",
    "RobustPoLinUCB",
]
