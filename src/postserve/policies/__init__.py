"""The algorithms, one per file, each readable beside the paper."""

from postserve.policies.best import BestPolicy as BestPolicy
from postserve.policies.describing import Description as Description
from postserve.policies.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from postserve.policies.linucb import LinUCB as LinUCB
from postserve.policies.linucb_oracle import LinUCBOracle as LinUCBOracle
from postserve.policies.linucb_phi_hat import LinUCBPhiHat as LinUCBPhiHat
from postserve.policies.polints import PoLinTS as PoLinTS
from postserve.policies.polinucb import PoLinUCB as PoLinUCB
from postserve.policies.random import RandomPolicy as RandomPolicy
from postserve.policies.robust_polinucb import RobustPoLinUCB as RobustPoLinUCB
