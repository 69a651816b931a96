"""What a policy is worth, from rounds that another one served."""

from postserve.evaluation.halves import halves_interval as halves_interval
from postserve.evaluation.missing import missing_weights as missing_weights
from postserve.evaluation.replay import Replay as Replay
from postserve.evaluation.replay import replay as replay
