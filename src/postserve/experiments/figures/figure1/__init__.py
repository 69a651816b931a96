"""Figure 1: cumulative regret in three synthetic environments."""

from typing import Any

from postserve.experiments.contenders import ORACLE
from postserve.experiments.figure import Figure
from postserve.experiments.figures.figure1.claims import claims
from postserve.experiments.figures.figure1.drawing import draw
from postserve.experiments.figures.figure1.settings import QUICK, SIZE, cells, described, horizons
from postserve.experiments.study import Study


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets at each horizon, and their ratios to the paper's oracle."""
    return [row for horizon in horizons(study.horizon) for row in study.summary(ORACLE, horizon)]


FIGURE1 = Figure(
    name="figure1",
    title="Figure 1: cumulative regret in three synthetic environments",
    about="The paper's five policies with ridge 1, LinUCB(phi_hat) in both its readings, LinUCB given the "
    "map's features too (the fair baseline of the paper's footnote) and a map that cannot express phi; "
    "beside them the same with the prior learnt from the rounds. T = 1000 is the beginning of the longer "
    "run.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
