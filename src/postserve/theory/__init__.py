"""The paper's lemmas and bounds as functions, with the constants that hold; docs/theory/ has the proofs."""

from postserve.theory.bias import PredictionBias, prediction_bias
from postserve.theory.bounds import (
    RegretBound,
    Shares,
    assumption_constant,
    optimal_ridge,
    regret_bound,
    ridge_map_constant,
    shares,
)
from postserve.theory.concentration import (
    NoisyMatrix,
    matrix_bernstein_tail,
    noisy_matrix_exponent,
    noisy_matrix_lemma,
)
from postserve.theory.coverage import Coverage, Covered, confidence_coverage
from postserve.theory.noisy_gram import (
    NoisyGram,
    cross_bound,
    noise_floor,
    noisy_gram_bound,
    noisy_gram_factor,
)
from postserve.theory.potential import (
    Potential,
    bounded_noise_factor,
    elliptical_potential,
    generalized_elliptical_potential,
    mean_context_bound,
    mean_context_potential,
)
from postserve.theory.rates import Exponents, Kind, Rate, holder_rate, rate

__all__ = [
    "Coverage",
    "Covered",
    "Exponents",
    "Kind",
    "NoisyGram",
    "NoisyMatrix",
    "Potential",
    "PredictionBias",
    "Rate",
    "RegretBound",
    "Shares",
    "assumption_constant",
    "bounded_noise_factor",
    "confidence_coverage",
    "cross_bound",
    "elliptical_potential",
    "generalized_elliptical_potential",
    "holder_rate",
    "matrix_bernstein_tail",
    "mean_context_bound",
    "mean_context_potential",
    "noise_floor",
    "noisy_gram_bound",
    "noisy_gram_factor",
    "noisy_matrix_exponent",
    "noisy_matrix_lemma",
    "optimal_ridge",
    "prediction_bias",
    "rate",
    "regret_bound",
    "ridge_map_constant",
    "shares",
]
