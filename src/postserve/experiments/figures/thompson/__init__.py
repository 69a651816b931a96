"""Thompson sampling: its regret, and whether its logs can be evaluated."""

from typing import Any

import numpy as np

from postserve.experiments import style
from postserve.experiments.claims import compared, ordered
from postserve.experiments.contenders import FLOORED, POLINUCB, RANDOM, THOMPSON, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.thompson.settings import (
    LOGGERS,
    QUICK,
    SIZE,
    TARGET,
    WORLD,
    cells,
    described,
    estimated,
    policies,
)
from postserve.experiments.rates import grows_within, late_slope, with_slopes
from postserve.experiments.study import Study
from postserve.types import FloatArray

PLAYED = [name for name in policies() if name != TARGET]
NO_BOUND = "the exponent of poLinUCB's bound; none is proved for PoLinTS"
SHOWN = 20
"""As many logs' intervals fit into a panel."""


def standard_errors(study: Study, logger: str) -> FloatArray:
    """Of each log's estimate, as one who has the log alone would know it.

    Terms of different rounds are uncorrelated, so the variance of their sum is about the sum of squares of
    its stretches between recorded rounds, each less its share of the whole.
    """
    curves = study.curves(WORLD, estimated(logger))
    stretches = np.diff(curves, prepend=0.0, axis=1)
    lengths = np.diff(study.rounds, prepend=0)
    off = stretches - curves[:, -1:] * lengths / study.horizon
    return np.asarray(np.sqrt((off**2).sum(axis=1)))


def evaluated(study: Study, logger: str) -> Claim:
    """Whether the log tells the target's regret without bias, and the intervals contain it."""
    truth, told = study.final(WORLD, TARGET), study.final(WORLD, estimated(logger))
    mean, error = study.difference(WORLD, estimated(logger), TARGET)
    half = 1.96 * standard_errors(study, logger)
    inside, n = int((abs(told - truth) <= half).sum()), len(truth)
    return Claim(
        f"From the log of {logger.removesuffix(', evidence')} the regret of a policy that was never served "
        f"is estimated as {told.mean():,.0f}, where it is {truth.mean():,.0f}: off by {mean:+,.0f} ± "
        f"{error:,.0f}. One log's 95% interval is ± {half.mean():,.0f} on average and contains the truth in "
        f"{inside} of {n} logs; held if the bias is within two standard errors and 85% of the intervals "
        "contain the truth.",
        abs(mean) <= 2.0 * error and inside >= 0.85 * n,
    )


def claims(study: Study) -> list[Claim]:
    """What it costs, how it grows, and what its logs are worth."""
    ours = evidence(THOMPSON)
    return [
        grows_within(study, WORLD, ours, 0.5, NO_BOUND),
        ordered(study, (ours, RANDOM), study.horizon, [WORLD]),
        *(evaluated(study, logger) for logger in LOGGERS),
        compared(study, ours, evidence(POLINUCB), study.horizon, [WORLD]),
        compared(study, evidence(FLOORED), ours, study.horizon, [WORLD]),
    ]


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets, and slopes of what was played."""
    rows = {row["policy"]: row for row in study.summary()}
    told = [rows.pop(estimated(logger)) for logger in LOGGERS]
    return [*with_slopes(study, list(rows.values())), *told]


def draw(study: Study) -> Any:
    """Regret over rounds and its growth, and each log's estimate against the truth."""
    with style.picture(1, 3, height=5.2, width=4.8) as (made, axes):
        left, middle, right = axes[0]
        learners = [policy for policy in PLAYED if policy != RANDOM]  # Random's would leave them no room
        style.draw_curves(left, study, WORLD, learners, study.horizon)
        left.set(title="regret", ylabel="cumulative regret")
        style.legend_below(left)
        slopes = {policy: late_slope(study, WORLD, policy) for policy in PLAYED}
        style.draw_growth(middle, study, WORLD, slopes, [(0.5, "slope 0.5")])
        middle.set_title("growth: slope over the last nine tenths")
        _draw_estimates(right, study)
        return made


def _draw_estimates(panel: Any, study: Study) -> None:
    truth = study.final(WORLD, TARGET)
    shown = slice(0, min(SHOWN, len(truth)))
    for logger, shift, marker in zip(LOGGERS, (-0.15, 0.15), ("o", "s"), strict=True):
        off, half = study.final(WORLD, estimated(logger)) - truth, 1.96 * standard_errors(study, logger)
        look: Any = {"fmt": marker, "markersize": 3.5, "linewidth": 1.0, "color": style.look(logger)[0]}
        label = f"from the log of {logger.removesuffix(', evidence')}"
        panel.errorbar(np.arange(shown.stop) + shift, off[shown], yerr=half[shown], label=label, **look)
    panel.axhline(0.0, color=style.REFERENCE, linewidth=1)
    panel.set_yscale("symlog", linthresh=1000.0)
    panel.set_yticks([-10_000, -1000, 0, 1000, 10_000])
    panel.set_ylim(-30_000, 60_000)
    panel.set(xlabel="seed", ylabel=f"estimate - truth ({truth.mean():,.0f} on average), symlog")
    panel.set_xticks(range(0, shown.stop, 2))
    panel.set_title(f"a policy never served, from {shown.stop} logs: 95% intervals")
    style.legend_below(panel)


THOMPSON_FIGURE = Figure(
    name="thompson",
    title="Thompson sampling, and what its logs tell",
    about="PoLinTS draws phi and the arms' weights from their posteriors, and serves what is best there. "
    "poLinUCB's choices have propensity 1, so its logs say nothing of other policies; those of PoLinTS do. "
    "On the right a fixed policy that was never served is evaluated from the logs of PoLinTS, one estimate a "
    "seed, and compared with its true regret in the same rounds. The rarer the log served what that policy "
    "would have, the wider the interval. With the default floor a log may not have served it for long, and "
    "does not know what it misses: the estimate is then too low, or, where a rare round counts a "
    "thousandfold, far too high. A larger floor costs regret and buys a better log.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
