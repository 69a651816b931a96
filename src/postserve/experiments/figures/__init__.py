"""The figures, one module each, in the order of the report."""

from importlib import import_module

from postserve.experiments.figure import Figure, figure_of

PAPER = ("figure1", "figure2", "figure3", "figure4", "observation1", "exponents", "sensitivity")
GENERALISATIONS = ("action_dependent", "linear_stochastic", "hybrid", "features", "thompson")
NAMES = (
    *PAPER,
    *GENERALISATIONS,
    "late",
    "theory",
    "separation",
    "trials",
    "late_trial",
    "choice",
    "raw",
    "defaults",
)
FIGURES: dict[str, Figure] = {name: figure_of(import_module(f"{__name__}.{name}")) for name in NAMES}
