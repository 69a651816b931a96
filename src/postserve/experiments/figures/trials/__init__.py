"""Randomised trials with a real follow-up, and jokes of which every rating is known."""

from typing import Any

from postserve.experiments.figure import Figure
from postserve.experiments.figures.trials.claims import claims, headline, interval
from postserve.experiments.figures.trials.drawing import draw
from postserve.experiments.figures.trials.settings import (
    QUICK,
    R_SQUARED,
    SETS,
    SIZE,
    cells,
    described,
    place,
)
from postserve.experiments.figures.trials.worlds import CUTS, FULL, LOGGED
from postserve.experiments.halves import halves_mean_and_error
from postserve.experiments.study import Study


def summary(study: Study) -> list[dict[str, Any]]:
    """Values with their intervals, a table a trial."""
    rows = []
    for row in study.summary():
        where = str(row["environment"])
        values = study.final(where, row["policy"])
        (_, low, high), (mean, error) = interval(values), halves_mean_and_error(values, CUTS)
        trial = next(name for name in (*LOGGED, *FULL) if where.startswith(name))
        table = f"{trial}: what can be foretold, R²" if where == place(trial, R_SQUARED) else trial
        told = {"final_value_mean": mean, "final_value_se": error, "low": low, "high": high}
        names = "policy" if table == trial else "quantity"
        rows.append({**row, **told, "table": table, "names": names})
    return rows


TRIALS = Figure(
    name="trials",
    title="Real follow-ups: two randomised trials, and jokes",
    about="Each policy is replayed on rounds that were served at random, in which a follow-up was measured "
    "before the reward: CD4 and CD8 counts at 20 weeks in a trial of treatments, the visit in one of "
    "e-mails. In Jester, x and z are ratings of some jokes, and every arm's reward is known. No truth is "
    "known here: what is told is the mean reward, not regret.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
    measure="value",
    data=SETS,
    headline=headline,
)
