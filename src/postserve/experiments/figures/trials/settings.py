"""What is run on the trials, how often, and what is said of it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from postserve.data import LoggedRounds
from postserve.evaluation import replay
from postserve.experiments.figure import Size
from postserve.experiments.figures.trials.foretelling import FOLDS, FORETELLINGS, foretold
from postserve.experiments.figures.trials.policies import where_z_does_not, where_z_follows_the_arm
from postserve.experiments.figures.trials.worlds import (
    CD4,
    CD4_COMPLETE,
    CUTS,
    FULL,
    JOKES_ARMS,
    JOKES_X,
    JOKES_Z,
    NO_EVENT,
    SPEND,
    complete_users,
    half_of_log,
    half_of_users,
    logs,
    sample,
)
from postserve.experiments.study import Cell, Curve, MakePolicy, cells_of, seed_list
from postserve.types import Rounds

SETS = ("actg175", "hillstrom", "jester")
SIZE = Size(horizon=16_000, seeds=32, quick=False)
"""Rows a run goes through at most: half of Hillstrom's customers take part, a sample, for time's sake."""
QUICK = Size(horizon=300, seeds=8, quick=True)
LEAST_ROWS = 100
"""Fewer rows may leave a policy without one that it would have served."""
FEW = 10_000
"""Trials with fewer rows have twice as many orders: these are cheap there, and their luck is large."""
FORETOLD = 2 * CUTS
"""How many halves R² is measured in: their order does not matter."""
REJECTION, WEIGHTED, R_SQUARED = "rejection", "weighted", "R²"


def place(trial: str, method: str) -> str:
    """The name of a trial's replay."""
    return f"{trial}: {method}"


def cells(size: Size, data: Path | None) -> list[Cell]:
    """Every policy on every trial, by both kinds of replay where arms were served at random."""
    made: list[Cell] = []
    rows = 2 * max(LEAST_ROWS, size.horizon)
    world: Callable[[int], Any]
    for trial, whole in logs(data).items():
        log = whole.take(sample(len(whole), rows))
        world, everyone = partial(half_of_log, log), where_z_follows_the_arm(log.arm_names)
        for method in (REJECTION, WEIGHTED):
            made += _cells(partial(value_of, method), place(trial, method), world, everyone, len(log), size)
        made += _foretold(trial, world, len(log), size)
    users = complete_users(data)
    users = users[sample(len(users), rows)]
    for trial, fixed in zip(FULL, (True, False), strict=True):
        world = partial(half_of_users, users, fixed)
        made += _cells(partial(value_of, REJECTION), trial, world, where_z_does_not(), len(users), size)
        made += _foretold(trial, world, len(users), size)
    return made


def _foretold(trial: str, world: Callable[[int], Any], n: int, size: Size) -> list[Cell]:
    return _cells(foretold, place(trial, R_SQUARED), world, FORETELLINGS, n, size, most=FORETOLD)


def _cells(
    measure: Callable[..., Curve],
    where: str,
    world: Callable[[int], Any],
    learners: Mapping[str, MakePolicy],
    n: int,
    size: Size,
    most: int | None = None,
) -> list[Cell]:
    seeds = seed_list(orderings(size, n))[:most]
    return [
        cell
        for learner in learners.items()
        for cell in cells_of(measure, (where, world), learner, n // 2, seeds)
    ]


def orderings(size: Size, n: int) -> int:
    """How many runs on n rows: two halves of each cut at least, or there is no interval, and all alike."""
    pairs = max(2, -(-size.seeds // 2))
    if pairs < CUTS:
        return 2 * pairs
    return 2 * CUTS * -(-pairs // CUTS) * (1 if n > FEW else 2)


def value_of(
    method: Any, make_rounds: Callable[[int], Any], make_policy: MakePolicy, horizon: int, seed: int
) -> Curve:
    """The value of one policy in one half and order.

    The mean reward is taken off and put back: arms that were never served start at 0, and where all rewards
    are far above it, the first arm served would hardly ever be left.
    """
    rounds = make_rounds(seed)
    level = float(np.nanmean(rounds.rewards))
    found = replay(make_policy(rounds), _less(rounds, level), np.random.default_rng([seed, 1]), method=method)
    return Curve(np.array([horizon]), np.array([found.value + level]))


def _less(rounds: LoggedRounds | Rounds, level: float) -> LoggedRounds | Rounds:
    rewards = rounds.rewards - level
    if isinstance(rounds, LoggedRounds):
        return rounds.changed(rewards=rewards)
    return rounds._replace(rewards=rewards, means=rewards)


def described(size: Size, data: Path | None) -> Mapping[str, str]:
    """The settings, for the report."""
    found, users = logs(data), complete_users(data)
    missing = {name: int(np.isnan(log.rewards).sum()) for name, log in found.items()}
    rows = 2 * max(LEAST_ROWS, size.horizon)
    large, small = (orderings(size, min(n, rows)) for n in (len(found[SPEND]), len(users)))
    return {
        "ACTG 175": f"{len(found[CD4]):,} patients, four treatments at random (1/4 each); x: "
        f"{found[CD4].dim_x} columns at baseline, z: CD4 and CD8 at 20 weeks; rewards: CD4 at 96 weeks, and "
        "no event by then",
        "missing rewards": f"{missing[CD4]} counts of CD4 at 96 weeks, and {missing[NO_EVENT]} patients who "
        "were lost before 96 weeks without an event. Their z still teaches phi; the others' rewards count "
        "for them by 1 over the probability that a reward came, given x, z, treatment, whether it was "
        "stopped, and for CD4 whether there was an event (logistic regression). Beside it the "
        f"{len(found[CD4_COMPLETE]):,} complete cases, as if they were all",
        "Hillstrom": f"{min(rows, len(found[SPEND])):,} of {len(found[SPEND]):,} customers, no e-mail, men's "
        f"or women's at random (1/3 each); x: {found[SPEND].dim_x} columns, z: whether they visited; "
        "rewards: spend in dollars, and whether they bought",
        "Jester": f"{len(users):,} users who rated all 100 jokes: {JOKES_X} ratings are x, {JOKES_Z} others "
        f"z, {JOKES_ARMS} more jokes the arms; every reward is known",
        "rejection": "rows whose arm the policy would have served; it learns from these alone",
        "weighted": "every row, by the policy's probability of the row's arm over the trial's; it learns "
        "from every row",
        "orderings": f"{large} on Hillstrom, {small} on the others: random halves of the rows (users), which "
        f"are cut in {min(CUTS, small // 2)} ways, each half in a random order, no row twice; all policies "
        "go through the same, and learn from half of the rows",
        "intervals": "95%, of rows and orders: what both halves of a cut differ by, less the luck of orders "
        "(experiments/halves.py); where nothing differs, one in forty is above 0 and one below",
        R_SQUARED: f"on rows held out, {FOLDS} folds of a half, over the arm's mean, a model an arm; "
        f"{min(FORETOLD, small)} halves",
        "rewards": "less their mean, which is put back: arms that were never served start at 0, and where "
        "rewards are far above it, the first arm served is hardly ever left",
        "policies": "with the learnt prior and intercepts, nothing tuned; columns standardised. Maps are "
        "linear in x, with an offset for each arm in the trials, where z follows what was served. A map of "
        "its own for each arm, linear in x, gives LinUCB(x) back, but for the prior: no follow-up can help "
        "there",
    }
