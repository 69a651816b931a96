"""The exponents of the bounds, without constants."""

from typing import Literal, NamedTuple, TypeAlias, get_args

from postserve.validation import integer, number, one_of

Kind: TypeAlias = Literal["polinucb", "linucb_phi_hat", "action_dependent", "linear_stochastic"]
"""The theorem (Algorithm 1) and the propositions on Algorithm 2, action-dependent contexts, decision sets."""
KINDS: tuple[Kind, ...] = get_args(Kind)


class Exponents(NamedTuple):
    """Powers of the horizon, of dim_u and of n_arms in one term of a bound."""

    horizon: float
    dim_u: float
    n_arms: float


class Rate(NamedTuple):
    """The terms for learning phi and for learning the arms."""

    map_term: Exponents
    arm_term: Exponents

    @property
    def horizon(self) -> float:
        """The larger power of the horizon: the slope of the bound on logarithmic axes."""
        return max(self.map_term.horizon, self.arm_term.horizon)


def rate(kind: Kind, *, map_rate: float) -> Rate:
    """The stated rates, up to logarithms; alpha is map_rate.

    polinucb           T^{1-alpha} dim_u^alpha          + T^{1/2} dim_u K^{1/2}
    linucb_phi_hat     T^{1-alpha} dim_u^alpha          + T^{1-alpha/2} dim_u^{(1+alpha)/2} K^{1/2}
    action_dependent   T^{1-alpha} dim_u^alpha K^alpha  + T^{1/2} dim_u K^{1/2}
    linear_stochastic  T^{1-alpha} dim_u^alpha          + T^{1/2} dim_u

    As in the theorem and the propositions, except that separate maps cost K^alpha (Hölder over the arms),
    where the paper prints K^{1/2}. `regret_bound` has these exponents with a ridge of the order of dim_u log
    T, or `optimal_ridge` for Algorithm 2; with a constant ridge the map's term has another factor
    dim_u^{1/2}, since the optimistic beta may be as long as zeta/sqrt(ridge).

    >>> rate("polinucb", map_rate=0.5).horizon, rate("linucb_phi_hat", map_rate=0.5).horizon
    (0.5, 0.75)
    """
    alpha = number("map_rate", map_rate, above=0.0, most=0.5)
    one_of("kind", kind, KINDS)
    per_map = alpha if kind == "action_dependent" else 0.0
    per_arm = 0.0 if kind == "linear_stochastic" else 0.5
    if kind == "linucb_phi_hat":
        arms = Exponents(1.0 - alpha / 2.0, (1.0 + alpha) / 2.0, per_arm)
    else:
        arms = Exponents(0.5, 1.0, per_arm)
    return Rate(Exponents(1.0 - alpha, alpha, per_map), arms)


def holder_rate(smoothness: float, dim: int) -> float:
    """map_rate of a Hölder class (appendix D.2): b/(2b + d), b being the smoothness, as a norm.

    The paper prints 2b/(2b + d), the rate of the squared error; Assumption 1 speaks of a norm.

    >>> holder_rate(1.0, 2), holder_rate(0.5, 1)
    (0.25, 0.25)
    """
    b = number("smoothness", smoothness, above=0.0)
    return b / (2.0 * b + integer("dim", dim, least=1))
