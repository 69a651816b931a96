"""The figures, one folder each: settings, drawing, claims."""

from postserve.experiments.figure import Figure
from postserve.experiments.figures.action_dependent import ACTION_DEPENDENT
from postserve.experiments.figures.exponents import EXPONENTS
from postserve.experiments.figures.features import FEATURES_FIGURE
from postserve.experiments.figures.figure1 import FIGURE1
from postserve.experiments.figures.figure2 import FIGURE2
from postserve.experiments.figures.figure3 import FIGURE3
from postserve.experiments.figures.figure4 import FIGURE4
from postserve.experiments.figures.hybrid import HYBRID_FIGURE
from postserve.experiments.figures.linear_stochastic import LINEAR_STOCHASTIC
from postserve.experiments.figures.observation1 import OBSERVATION1
from postserve.experiments.figures.sensitivity import SENSITIVITY
from postserve.experiments.figures.theory import THEORY
from postserve.experiments.figures.thompson import THOMPSON_FIGURE
from postserve.experiments.figures.trials import TRIALS

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        FIGURE1,
        FIGURE2,
        FIGURE3,
        FIGURE4,
        OBSERVATION1,
        EXPONENTS,
        SENSITIVITY,
        ACTION_DEPENDENT,
        LINEAR_STOCHASTIC,
        HYBRID_FIGURE,
        FEATURES_FIGURE,
        THOMPSON_FIGURE,
        THEORY,
        TRIALS,
    )
}
