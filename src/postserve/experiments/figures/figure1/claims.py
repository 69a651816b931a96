"""What the paper claims of its synthetic environments, and what was seen."""

from postserve.experiments.claims import compared, ordered, unbeaten, within
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    JOINT,
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

PAPERS = (RANDOM, X_ONLY, BEFORE, AFTER, POLINUCB)


def claims(study: Study) -> list[Claim]:
    """The paper's order with ridge 1, the distance to the oracle, the readings, and the learnt prior."""
    return [claim for horizon in horizons(study.horizon) for claim in _claims(study, horizon)]


def _claims(study: Study, horizon: int) -> list[Claim]:
    places = study.environments
    curved = [place for place in places if place != "linear"]
    ours, fair = evidence(POLINUCB), evidence(X_AND_FEATURES)
    return [
        _said("The paper's order", ordered(study, (POLINUCB, BEFORE, X_ONLY, RANDOM), horizon, places)),
        _said(
            "The paper: the oracle is best (but it scores at the z that is drawn, where regret is at phi(x))",
            unbeaten(study, ORACLE, PAPERS, horizon, places),
        ),
        within(study, POLINUCB, ORACLE, 1.10, horizon, places),
        _said("Optimism over phi too, the literal line 3", compared(study, JOINT, POLINUCB, horizon, places)),
        reading(study, horizon),
        compared(study, AFTER, POLINUCB, horizon, places),
        compared(study, evidence(AFTER), ours, horizon, places),
        _said("The learnt prior, below the paper's oracle", ordered(study, (ours, ORACLE), horizon, places)),
        _said("The fair baseline", ordered(study, (ours, fair), horizon, places)),
        _said("A map that cannot fit", ordered(study, (POLINUCB, MISSPECIFIED), horizon, curved)),
    ]


def reading(study: Study, horizon: int) -> Claim:
    """How much of poLinUCB's lead over LinUCB(phi_hat) is one of how Algorithm 2 is read."""

    def behind(other: str, ours: str) -> str:
        leads = [
            study.final(place, other, horizon).mean() / study.final(place, ours, horizon).mean() - 1.0
            for place in study.environments
        ]
        return f"{min(leads):+.0%} to {max(leads):+.0%}"

    ours = evidence(POLINUCB)
    return Claim(
        f"T = {horizon:,}: the lead over LinUCB(phi_hat) depends on how Algorithm 2 is read. Where arms "
        "learn from the prediction made before z was learnt, LinUCB(phi_hat)'s regret exceeds poLinUCB's by "
        f"{behind(BEFORE, POLINUCB)} (ridge 1) and {behind(evidence(BEFORE), ours)} (learnt prior); made "
        f"after, the literal reading, by {behind(AFTER, POLINUCB)} and {behind(evidence(AFTER), ours)}.",
        None,
    )


def _said(words: str, claim: Claim) -> Claim:
    return claim._replace(text=f"{words}. {claim.text}")
