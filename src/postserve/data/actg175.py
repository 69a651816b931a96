"""ACTG 175: a trial of four treatments of HIV, with CD4 and CD8 counts at 20 weeks."""

from typing import Any, Literal

import numpy as np

from postserve.data.columns import checked_table
from postserve.data.finding import PathLike
from postserve.data.follows import without_warning
from postserve.data.frame import from_frame
from postserve.data.rounds import LoggedRounds
from postserve.types import BoolArray, FloatArray
from postserve.validation import one_of

ROWS = 2139
BASELINE = (
    *("age", "wtkg", "hemo", "homo", "drugs", "karnof", "oprior", "z30", "preanti", "race", "gender"),
    *("str2", "strat", "symptom", "cd40", "cd80"),
)
"""Known when the treatment was drawn; `zprior` is always 1, and `offtrt` comes later."""
FOLLOW_UPS = ("cd420", "cd820")
LATER = ("pidnum", "zprior", "treat", "offtrt", "cd496", "r", "cens", "days", "arms")
TYPES = {**dict.fromkeys((*BASELINE, *FOLLOW_UPS, *LATER), "Int64"), "wtkg": "Float64"}
TREATMENTS = ("ZDV", "ZDV+ddI", "ZDV+zal", "ddI")
"""Zidovudine, with didanosine, with zalcitabine, and didanosine alone: arms 0 to 3."""
WEEKS_96 = 96 * 7


def actg175(path: PathLike | None = None, *, reward: Literal["cd4", "no_event"] = "cd4") -> LoggedRounds:
    """2,139 patients, one of four treatments at random, 1/4 each; z are CD4 and CD8 counts at 20 weeks.

    x: 16 columns known at baseline, CD4 and CD8 counts among them. The reward "cd4" is the CD4 count at 96
    weeks (cells per mm³; 797 are missing). "no_event" is 1 without an event by then (CD4 halved, AIDS or
    death), 0 with one, and missing for the 183 who were lost before without one. Missing is NaN.

    >>> actg175("nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: actg175 is not at nowhere, wanted a folder with actg175/ACTG175.txt; ...
    """
    one_of("reward", reward, ("cd4", "no_event"))
    table = _table(path)
    columns = {name: table[name].to_numpy() for name in (*BASELINE, *FOLLOW_UPS, "cd496")}
    columns["no_event"] = np.where(_lost(table), np.nan, (table["days"] >= WEEKS_96).to_numpy())
    columns["arms"] = np.array(TREATMENTS, dtype=object)[table["arms"].to_numpy()]
    with without_warning():
        return from_frame(
            columns,
            x=BASELINE,
            z=FOLLOW_UPS,
            arm="arms",
            reward={"cd4": "cd496", "no_event": "no_event"}[reward],
            propensity=1 / 4,
            arms=TREATMENTS,
            missing_reward="keep",
        )


def actg175_course(path: PathLike | None = None) -> FloatArray:
    """Per patient: off treatment before 96 weeks, an event by then, lost before without one.

    None of it is known when a treatment is chosen, so no policy may see it. It helps to predict which CD4
    counts at 96 weeks are missing: `missing_weights(actg175(), also=actg175_course()[:, :2])`.

    >>> actg175_course("nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: actg175 is not at nowhere, wanted a folder with actg175/ACTG175.txt; ...
    """
    table = _table(path)
    event = (table["cens"] == 1).to_numpy() & (table["days"] < WEEKS_96).to_numpy()
    return np.column_stack([table["offtrt"].to_numpy(), event, _lost(table)]).astype(np.float64)


def _table(path: PathLike | None) -> Any:
    return checked_table("actg175", path, ROWS, TYPES, separator=" ")


def _lost(table: Any) -> BoolArray:
    """Patients who were lost before 96 weeks, without an event."""
    return np.asarray((table["cens"] == 0).to_numpy() & (table["days"] < WEEKS_96).to_numpy())
