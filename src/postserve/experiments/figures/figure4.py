"""Figure 4: figure 1 again, the reward depending on phi(x) and not on the z that was drawn."""

from functools import partial

from postserve.experiments import claims as say
from postserve.experiments import contenders as c
from postserve.experiments.figure import Claim, Size
from postserve.experiments.figures import figure1
from postserve.experiments.study import Study

TITLE = "Figure 4: the reward is noiseless in z"
ABOUT = (
    "Figure 1 again, but the reward depends on phi(x) instead of z. The observed z is then a noisy "
    "measurement of what matters (errors in variables): poLinUCB's beta is attenuated and the oracle is "
    "misled by noise; LinUCB(phi_hat) regresses on the better quantity."
)
FULL, QUICK = figure1.FULL, figure1.QUICK

cells = partial(figure1.cells, reward_from="phi")
summary, draw = figure1.summary, figure1.draw


def settings(size: Size) -> dict[str, str]:
    return {**figure1.settings(size), "reward": "x·theta + phi(x)·beta + noise: noiseless in z"}


def claims(study: Study) -> list[Claim]:
    """The paper: LinUCB(phi_hat) "still performs worse than our method"."""
    places = study.environments
    found = []
    for horizon in figure1.horizons(study.horizon):
        found += [
            say.ordered(study, (c.POLINUCB, c.BEFORE, c.X_ONLY, c.RANDOM), horizon, places),
            say.ordered(study, (c.POLINUCB, c.AFTER), horizon, places),
            figure1.readings(study, horizon),
            say.compared(study, c.AFTER.evidence, c.POLINUCB.evidence, horizon, places),
        ]
    return found
