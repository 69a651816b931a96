"""The figures, one module each, in the order of the report."""

from postserve.experiments.figure import Figure, figure_of
from postserve.experiments.figures import (
    action_dependent,
    defaults,
    exponents,
    features,
    figure1,
    figure2,
    figure3,
    figure4,
    hybrid,
    linear_stochastic,
    observation1,
    sensitivity,
    theory,
    thompson,
    trials,
)

PAPER = (figure1, figure2, figure3, figure4, observation1)
GENERALISATIONS = (action_dependent, linear_stochastic, hybrid, features, thompson)
MODULES = (*PAPER, exponents, sensitivity, *GENERALISATIONS, theory, trials, defaults)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in map(figure_of, MODULES)}
