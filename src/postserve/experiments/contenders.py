"""The policies that figures compare, each a value: name, prior, how it is drawn and how it is made."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from postserve.context_maps import RidgeMap
from postserve.policies import (
    BestPolicy,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PoLinUCB,
    RandomPolicy,
    RobustPoLinUCB,
)
from postserve.types import Decision

PAPER_RADIUS = 0.3
"""The constant radius of every policy with ridge 1, from the figure `defaults` (docs/tuning.md)."""

PRIORS: dict[str, dict[str, Any]] = {
    "ridge 1": {"ridge": 1.0, "arm_radius": PAPER_RADIUS},
    "evidence": {},  # our defaults: prior and noise are learnt from the rounds
}
SOLID, DASHED, DOTTED = "-", (0, (4, 2)), (0, (1, 1))


@dataclass(frozen=True)
class Contender:
    """A policy of a figure.

    `name` is its name in tables, by which contenders are equal, and `label` in legends that name both priors
    once. `make(env, **options)` gives a fresh policy; `maker` binds the options of the prior and those of
    `with_options`.

    >>> str(POLINUCB), str(POLINUCB.evidence), POLINUCB.evidence.label
    ('poLinUCB', 'poLinUCB, evidence', 'poLinUCB')
    """

    name: str
    make: Callable[..., Any] = field(compare=False)
    colour: str = field(default="#332288", compare=False)
    dashes: Any = field(default=SOLID, compare=False)
    prior: Literal["ridge 1", "evidence"] = field(default="ridge 1", compare=False)
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)

    def __str__(self) -> str:
        return self.name

    @property
    def evidence(self) -> "Contender":
        return replace(self, name=f"{self.name}, evidence", prior="evidence")

    def with_options(self, name: str = "", **options: Any) -> "Contender":
        """The same, perhaps under another name, with more options of its policy or map."""
        changed: Any = {"name": name, "label": name} if name else {}
        return replace(self, options={**self.options, **options}, **changed)

    def made_by(self, make: Callable[..., Any]) -> "Contender":
        """The same under its name and colour, with the defaults of a policy that is made otherwise."""
        return replace(self, make=make, prior="evidence", options={})

    @property
    def maker(self) -> Callable[[Any], Any]:
        """Makes a fresh policy for an environment."""
        return partial(self.make, **{**PRIORS[self.prior], **self.options})

    @property
    def line(self) -> dict[str, Any]:
        """How it is drawn: both priors alike, the learnt one heavier."""
        width = 1.9 if self.prior == "evidence" else 1.1
        return {"color": self.colour, "linestyle": self.dashes, "linewidth": width}

    @property
    def marker(self) -> str:
        """Of a point: crosses are ridge 1."""
        return "o" if self.prior == "evidence" else "x"


class OnFeatures:
    """LinUCB on (x, h(x)): the fair baseline, given all that the map is given.

    h(x) is known when the arm is chosen, so it can take the place of the oracle's z: a block of its own.
    """

    def __init__(self, policy: LinUCBOracle, features: Callable[[Any], Any]) -> None:
        self.policy = policy
        self.features = features

    def select(self, x: npt.ArrayLike, rng: np.random.Generator) -> Decision:
        return self.policy.select(x, rng, z=self.features(x))

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, reward: float) -> None:
        self.policy.update(x, arm, self.features(x), reward)


def map_on_h(env: Any, ridge: Any = "evidence", **options: Any) -> RidgeMap:
    """Given h, the features in which phi is linear."""
    return RidgeMap(env.dim_x, env.dim_z, features=env.features, ridge=ridge, **options)


def map_on_x(env: Any, ridge: Any = "evidence", **options: Any) -> RidgeMap:
    """Linear in x, which does not fit unless phi is."""
    return RidgeMap(env.dim_x, env.dim_z, ridge=ridge, **options)


def _random(env: Any, **_: Any) -> RandomPolicy:
    return RandomPolicy(env.n_arms)


def _linucb(env: Any, **options: Any) -> LinUCB:
    return LinUCB(env.n_arms, env.dim_x, **options)


def _on_features(env: Any, **options: Any) -> OnFeatures:
    dim_h = len(env.features(np.zeros(env.dim_x)))
    return OnFeatures(LinUCBOracle(env.n_arms, env.dim_x, dim_h, **options), env.features)


def _oracle(env: Any, **options: Any) -> LinUCBOracle:
    return LinUCBOracle(env.n_arms, env.dim_x, env.dim_z, **options)


def with_map(policy: Any, env: Any, *, make_map: Callable[..., Any] = map_on_h, **options: Any) -> Any:
    """A policy whose map has the arms' ridge; of a map without one, `make_map(env, ridge)` ignores it."""
    return policy(env.n_arms, make_map(env, options.get("ridge", "evidence")), **options)


_phi_hat, _polinucb, _robust, _best = (
    partial(with_map, policy) for policy in (LinUCBPhiHat, PoLinUCB, RobustPoLinUCB, BestPolicy)
)

# The palette of Okabe and Ito, with grey and wine; dashes distinguish what prints alike. Optimism is over the
# weights alone (plugin), but for JOINT, over phi too, the literal line 3, and POSTERIOR, over both by their
# posterior.
RANDOM = Contender("Random", _random, "#999999")
X_ONLY = Contender("LinUCB(x)", _linucb, "#E69F00")
X_AND_FEATURES = Contender("LinUCB(x, h(x))", _on_features, "#D55E00", DASHED)
MISSPECIFIED = Contender("poLinUCB, map linear in x", _polinucb, "#CC79A7", DASHED).with_options(
    make_map=map_on_x
)
BEFORE = Contender("LinUCB(phi_hat, before)", _phi_hat, "#0072B2")
AFTER = Contender("LinUCB(phi_hat, after)", _phi_hat, "#56B4E9", DASHED).with_options(prediction="after")
POLINUCB = Contender("poLinUCB", _polinucb, "#009E73")
JOINT = Contender("poLinUCB, joint", _polinucb, "#009E73", DOTTED).with_options(optimism="joint")
POSTERIOR = Contender("poLinUCB, posterior", _polinucb, "#332288", DASHED).with_options(optimism="posterior")
ROBUST = Contender("RobustPoLinUCB", _robust, "#661100", DOTTED)
BEST = Contender("BestPolicy", _best, "#332288")
ORACLE = Contender("LinUCB(x, z), oracle", _oracle, "#000000", DOTTED)

# poLinUCB with a map for each arm, or one for all of them.
MAP_PER_ARM = Contender("poLinUCB, one map per arm", _polinucb, "#009E73")
ONE_MAP = Contender("poLinUCB, one map", _polinucb, "#CC79A7", DASHED)

PAPER = (RANDOM, X_ONLY, X_AND_FEATURES, MISSPECIFIED, BEFORE, AFTER, POLINUCB, JOINT, ORACLE)
"""Ridge 1: the paper's five, both readings of LinUCB(phi_hat), the fair baseline, a map that does not fit."""
LEARNT = tuple(c.evidence for c in (X_ONLY, X_AND_FEATURES, BEFORE, AFTER, POLINUCB, ROBUST, ORACLE))
"""With our defaults, no constant being chosen for a world."""
