"""Figure 2: cumulative regret on MovieLens."""

from typing import Any

from postserve.experiments.figure import Figure
from postserve.experiments.figures.figure2.claims import claims, headline
from postserve.experiments.figures.figure2.comparisons import interval
from postserve.experiments.figures.figure2.drawing import draw
from postserve.experiments.figures.figure2.settings import (
    DRAWS_OF,
    PAPERS,
    QUICK,
    SET,
    SIZE,
    cells,
    described,
)
from postserve.experiments.figures.figure2.worlds import CUTS
from postserve.experiments.halves import halves_mean_and_error
from postserve.experiments.statistics import mean_and_error
from postserve.experiments.study import Study

ABOUT = (
    "Users and movies as vectors whose dot product predicts ratings; five movies are the arms, the first 25 "
    "coordinates of a user are x, the last 7 are z. The paper shows one draw of movies and one split; here "
    "are many of each, run on both halves of the users, so that intervals count the users and the draws (one "
    "rating model is behind all of them: they do not count that). "
    "Axes of such vectors are an accident of the fit: turning users and movies together changes no rating, "
    "but what x says of z. So the draws are shown in the axes that came out and in the users' principal "
    "ones, in which x says nothing linear of z."
)


def summary(study: Study) -> list[dict[str, Any]]:
    """Values at the horizon with their intervals; where seeds are pairs of halves, these count both."""
    rows = []
    for row in study.summary():
        values = study.final(row["environment"], row["policy"])
        told = (row["environment"], row["policy"])  # R² of a place is named after it
        place = next((place for place in DRAWS_OF if any(name.endswith(place) for name in told)), PAPERS)
        found = interval(place, values)
        error = mean_and_error(values) if place == PAPERS else halves_mean_and_error(values, CUTS)
        rows.append({**row, "final_value_se": error[1], "low": found.low, "high": found.high})
    return rows


FIGURE2 = Figure(
    name="figure2",
    title="Figure 2: cumulative regret on MovieLens",
    about=ABOUT,
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
    measure="value",
    data=(SET,),
    headline=headline,
)
