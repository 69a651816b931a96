"""Figure 4: figure 1 again, the reward depending on phi(x) and not on the z that was drawn."""

from collections.abc import Mapping
from functools import partial

from postserve.experiments.claims import compared, ordered
from postserve.experiments.contenders import AFTER, BEFORE, POLINUCB, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure, Size
from postserve.experiments.figures.figure1 import summary
from postserve.experiments.figures.figure1.claims import reading
from postserve.experiments.figures.figure1.drawing import draw
from postserve.experiments.figures.figure1.settings import QUICK, SIZE, cells, described, horizons
from postserve.experiments.study import Study


def claims(study: Study) -> list[Claim]:
    """The paper: LinUCB(phi_hat) "still performs worse than our method"."""
    places = study.environments
    told = []
    for horizon in horizons(study.horizon):
        told += [
            ordered(study, (POLINUCB, BEFORE, X_ONLY, RANDOM), horizon, places),
            ordered(study, (POLINUCB, AFTER), horizon, places),
            reading(study, horizon),
            compared(study, evidence(AFTER), evidence(POLINUCB), horizon, places),
        ]
    return told


def settings(size: Size) -> Mapping[str, str]:
    """Figure 1's, but for the reward."""
    return {**described(size), "reward": "x·theta + phi(x)·beta + noise: noiseless in z"}


FIGURE4 = Figure(
    name="figure4",
    title="Figure 4: the reward is noiseless in z",
    about="Figure 1 again, the reward depending on phi(x) instead of the z that follows. The observed z is "
    "then a noisy measurement of what the reward depends on (errors in variables): poLinUCB's beta is "
    "attenuated, and the oracle is misled by the noise of the z it sees; LinUCB(phi_hat) regresses on the "
    "better quantity.",
    settings=settings,
    size=SIZE,
    quick=QUICK,
    cells=partial(cells, reward_from="phi"),
    summary=summary,
    claims=claims,
    draw=draw,
)
