"""What a policy is worth, from rounds that another one served."""

from postserve.evaluation.estimators import dm as dm
from postserve.evaluation.estimators import dr as dr
from postserve.evaluation.estimators import dr_followups as dr_followups
from postserve.evaluation.estimators import ips as ips
from postserve.evaluation.estimators import rejection as rejection
from postserve.evaluation.estimators import snips as snips
from postserve.evaluation.estimators import switch_dr as switch_dr
from postserve.evaluation.estimators import switch_threshold as switch_threshold
from postserve.evaluation.evaluating import compare as compare
from postserve.evaluation.evaluating import evaluate as evaluate
from postserve.evaluation.halves import halves_interval as halves_interval
from postserve.evaluation.intervals import sequence as sequence
from postserve.evaluation.missing import missing_weights as missing_weights
from postserve.evaluation.replay import Replay as Replay
from postserve.evaluation.replay import replay as replay
from postserve.evaluation.results import Comparison as Comparison
from postserve.evaluation.results import Estimate as Estimate
from postserve.evaluation.results import Evaluation as Evaluation
from postserve.evaluation.support import Support as Support
