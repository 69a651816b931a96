"""Growth of regret, over rounds or over anything else that varies, against the exponents of the bounds."""

from collections.abc import Sequence

import numpy as np

from postserve.experiments.claims import at_most
from postserve.experiments.contenders import RANDOM
from postserve.experiments.figure import Claim, Row
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Line, Study
from postserve.types import FloatArray


def late_slope(study: Study, environment: str, policy: Line) -> Slope:
    """Growth over the last nine tenths of the rounds."""
    return growth(study.rounds, study.curves(environment, policy), start=study.horizon // 10)


def slope_over(values: Sequence[float], columns: Sequence[FloatArray]) -> Slope:
    """Slope of log mean over log value; each value has a column of numbers, one per seed.

    >>> str(slope_over([1, 4], [np.array([1.0, 3.0]), np.array([2.0, 6.0])]))
    '0.50 [0.50, 0.50]'
    """
    return growth(np.asarray(values), np.stack(columns, axis=1), start=int(min(values)))


def in_random_rounds(study: Study, policy: Line, environments: Sequence[str]) -> list[FloatArray]:
    """Final regret in units of Random's mean regret per round; one array over seeds per environment.

    Worlds with more arms have larger gaps: measured in rounds of random play they can be compared.
    """
    return [
        study.final(where, policy) * study.horizon / study.final(where, RANDOM).mean()
        for where in environments
    ]


def with_slopes(study: Study, rows: Sequence[Row]) -> list[Row]:
    """The rows of a summary, each with its growth over the last nine tenths of the rounds."""
    return [{**row, **late_slope(study, row["environment"], row["policy"]).named()} for row in rows]


def with_rates(study: Study, rows: Sequence[Row], rates: dict[str, float]) -> list[Row]:
    """The same with the exponent of each policy's bound, 1 where there is none."""
    return [{**row, "rate": rates.get(row["policy"], 1.0)} for row in with_slopes(study, rows)]


def grows_within(
    study: Study, environment: str, policy: Line, rate: float, meaning: str = "the bound's exponent"
) -> Claim:
    """That the interval of the exponent is not above the rate, which means what `meaning` says.

    Not judged where regret grows with less than half of it: in such a world, whose gaps are resolved, regret
    grows like log T, and no exponent is tested.
    """
    found = late_slope(study, environment, policy)
    text = f"{environment}: {policy} grows with exponent {found}; held if the interval is not above "
    text = f"{text}{rate:g}, {meaning}"
    if found.high < rate / 2.0:
        return Claim(f"{text}. It is below half of that: this world does not test the exponent.", None)
    return at_most(text, found, rate)
