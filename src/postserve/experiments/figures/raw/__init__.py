"""Raw tables: the defaults on tables as they come, against the same prepared by hand."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from postserve.evaluation import replay
from postserve.evaluation.replay import Replay
from postserve.experiments import contenders as c
from postserve.experiments.figure import Row, Size
from postserve.experiments.figures import figure2
from postserve.experiments.figures.raw import worlds as w
from postserve.experiments.figures.raw.results import CHANGED, LIMIT, changed, place
from postserve.experiments.figures.raw.results import claims as claims
from postserve.experiments.figures.raw.results import draw as draw
from postserve.experiments.figures.raw.results import headline as headline
from postserve.experiments.figures.trials import worlds as logs
from postserve.experiments.statistics import mean_interval
from postserve.experiments.study import Cell, Curve, Study, cells_of, seed_list
from postserve.policies import RandomPolicy
from postserve.types import Rounds

TITLE = "Raw tables: no centring, no scaling"
ABOUT = (
    "Policies with their defaults on tables as they come, with rewards centred or shifted, and with columns "
    "in odd units, against the same tables prepared by hand: rewards centred and columns standardised in "
    "hindsight, with and without intercepts. Less is better: regret per round, and in the trial, where the "
    "truth is not known, minus the mean reward."
)
FULL, QUICK = Size(horizon=2000, seeds=20), Size(horizon=150, seeds=4, quick=True)
MEASURE = "value"
DATA = (*figure2.DATA, "jester", "actg175")

COMPARED = 10
"""Orders in which choices are compared one by one with those on the raw table."""


def cells(size: Size, data: Path | None) -> list[Cell]:
    """Both policies on every form of every table, and how many choices a form changes."""
    seeds = seed_list(size.seeds)
    found: list[Cell] = []
    for name, (make, rows) in w.worlds(size.quick, size.horizon, data).items():
        for policy, make_policy in w.POLICIES.items():
            for form in w.FORMS:
                loss = partial(loss_of, make, form, partial(make_policy, form))
                found += cells_of(place(name, policy), form.name, loss, rows, seeds)
            for form in w.DEFAULTS[1:]:
                share = partial(changed_by, make, form, make_policy)
                found += cells_of(changed(name, policy), form.name, share, rows, seeds[:COMPARED])
        random = partial(loss_of, make, w.RAW, lambda dims: RandomPolicy(dims.n_arms))
        for policy in w.POLICIES:
            found += cells_of(place(name, policy), c.RANDOM.name, random, rows, seeds)
    return found


def loss_of(
    make: Callable[[int], w.Data], form: w.Form, make_policy: Callable[[Any], Any], horizon: int, seed: int
) -> Curve:
    """The mean regret on a form of the table; where rewards were logged, minus their mean as they are."""
    rounds, found = make(seed), _played(make, form, make_policy, seed)
    if isinstance(rounds, Rounds):
        best, earned = rounds.rewards.max(axis=1).mean(), rounds.rewards[found.rows, found.arms]
    else:
        best, earned = 0.0, rounds.rewards[found.rows]
    value = best - np.average(earned, weights=found.weights)
    return Curve(np.array([horizon]), np.array([value]))


def changed_by(
    make: Callable[[int], w.Data],
    form: w.Form,
    make_policy: Callable[[w.Form, Any], Any],
    horizon: int,
    seed: int,
) -> Curve:
    """The share of rounds that are decided otherwise than on the raw table.

    In a log, the share of rows that only one of both replays counted.
    """
    arms = np.full((2, horizon), -1)
    for chosen, one in zip(arms, (w.RAW, form), strict=True):
        found = _played(make, one, partial(make_policy, one), seed)
        chosen[found.rows] = found.arms
    return Curve(np.array([horizon]), np.array([(arms[0] != arms[1]).mean()]))


def _played(
    make: Callable[[int], w.Data], form: w.Form, make_policy: Callable[[Any], Any], seed: int
) -> Replay:
    rounds = form.change(make(seed))
    return replay(make_policy(logs.dims_of(rounds)), rounds, np.random.default_rng([seed, 1]))


def summary(study: Study) -> list[Row]:
    rows = []
    for row in study.summary():
        where = row["environment"]
        _, low, high = mean_interval(study.final(where, row["policy"]))
        table, _, policy = where.partition(": ")
        kind = "minus the mean reward" if table in w.LOGGED else "regret per round"
        title = f"{table}, {CHANGED if policy.endswith(CHANGED) else kind}"
        rows.append({**row, "low": low, "high": high, "table": title, "names": "form"})
    return rows


def settings(size: Size, data: Path | None) -> dict[str, str]:
    return {
        "scikit-learn's": "digits: x the upper six rows of pixels, z the sums of the halves of the last two; "
        "wine: x the first 9 columns, z the last 4; breast cancer: x means and errors, z the worst values; "
        f"like covtype: made by make_classification, {w.FOREST_ROWS:,} rows, seven classes as frequent as "
        "there, columns with its means and deviations, four indicators of an area, z three hillshades. Arms "
        "are classes, the reward is 1 for the right one",
        w.STARS: "ratings that the model of figure 2 predicts; in each order other movies and another split",
        w.JOKES: f"ratings from -10 to 10: {logs.JOKES_X} jokes are x, {logs.JOKES_Z} z, {logs.JOKES_ARMS} "
        "arms, others in each order",
        w.CD4: "complete cases, rejection replay, one map for all treatments. Hillstrom is left out: hardly "
        "any customer buys, so that no form can be distinguished in so few rounds",
        "forms": "with the defaults: raw; rewards minus their mean; rewards + 100; every fourth column of x "
        "and z times 1000, the next by 1000, the next plus 50; all of x plus 50. By hand, in hindsight: "
        "rewards minus their mean, or columns standardised too; intercept=True, or none",
        "rounds": f"rows in a random order, none twice, at most {size.horizon:,}; {size.seeds} orders, in "
        f"{min(size.seeds, COMPARED)} of which choices are compared one by one",
        "rewards": "rounded to multiples of 1/1024, so that adding to them costs no digit",
        "intervals": "95%, paired, over orders (and draws of movies and jokes), not over other rows",
        "held": "if the interval of the excess over the better form by hand with intercepts is at most "
        f"{LIMIT:.0%} of the latter's regret, in the trial, where no regret is known, at most 0; failed if "
        "it is above that, and otherwise not decided",
        "settled late": "the excess was first held if its mean was within the limit or its interval included "
        "0, which fewer orders make easier. Later, with results known, the whole interval had to be in it",
    }
