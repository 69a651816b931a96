"""What the paper claims of its synthetic environments, and what was seen."""

from collections.abc import Sequence

from postserve.experiments.claims import compared, ordered, within
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    MISSPECIFIED,
    ORACLE,
    POLINUCB,
    RANDOM,
    X_AND_FEATURES,
    X_ONLY,
    evidence,
)
from postserve.experiments.figure import Claim
from postserve.experiments.figures.figure1.settings import horizons
from postserve.experiments.study import Study


def claims(study: Study) -> list[Claim]:
    """The paper's order with ridge 1, the distance to the oracle, the readings, and the learnt prior."""
    return [claim for horizon in horizons(study.horizon) for claim in _claims(study, horizon)]


def _claims(study: Study, horizon: int) -> Sequence[Claim]:
    places = study.environments
    return [
        ordered(study, (POLINUCB, BEFORE, X_ONLY, RANDOM), horizon, places),
        within(study, POLINUCB, ORACLE, 1.10, horizon, places),
        compared(study, AFTER, POLINUCB, horizon, places),
        compared(study, evidence(AFTER), evidence(POLINUCB), horizon, places),
        compared(study, evidence(BEFORE), evidence(POLINUCB), horizon, places),
        ordered(study, (evidence(POLINUCB), ORACLE), horizon, places),
        ordered(study, (evidence(POLINUCB), evidence(X_AND_FEATURES)), horizon, places),
        ordered(study, (POLINUCB, MISSPECIFIED), horizon, [place for place in places if place != "linear"]),
    ]
