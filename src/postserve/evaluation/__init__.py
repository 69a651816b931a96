"""What a policy is worth, told from rounds that were served by someone else."""

from postserve.evaluation.missing import missing_weights
from postserve.evaluation.replay import Replay, replay

__all__ = ["Replay", "missing_weights", "replay"]
