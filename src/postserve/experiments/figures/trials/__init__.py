"""Randomised trials with a real follow-up, and jokes of which every rating is known."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from postserve.evaluation import replay
from postserve.evaluation.halves import halves_mean_and_error
from postserve.experiments.contenders import Contender
from postserve.experiments.figure import Row, Size
from postserve.experiments.figures.trials import worlds as w
from postserve.experiments.figures.trials.r_squared import FOLDS, PREDICTIONS, r_squared
from postserve.experiments.figures.trials.results import REJECTION, WEIGHTED, interval, place
from postserve.experiments.figures.trials.results import claims as claims
from postserve.experiments.figures.trials.results import draw as draw
from postserve.experiments.figures.trials.results import headline as headline
from postserve.experiments.study import Cell, Curve, MakePolicy, Study, cells_of, seed_list

TITLE = "Real follow-ups: two randomised trials, and jokes"
ABOUT = (
    "Each policy is replayed on rounds that were served at random, with a follow-up that was measured before "
    "the reward: CD4 and CD8 counts at 20 weeks in a trial of treatments, the visit in one of e-mails. In "
    "Jester, x and z are ratings of some jokes, and every arm's reward is known. The truth is not known "
    "here: results are mean rewards, not regret."
)
FULL = Size(horizon=16_000, seeds=32)
"""Rows of a run at most: half of Hillstrom's customers take part, a sample, to save time."""
QUICK = Size(horizon=150, seeds=4, quick=True)
MEASURE = "value"
DATA = ("actg175", "hillstrom", "jester")

LEAST_ROWS = 100
"""Fewer rows may leave a policy without one that it would have served."""
FEW = 10_000
"""Trials with fewer rows have twice as many orders: these are cheap there, and vary much."""
HALVES = 2 * w.CUTS
"""How many halves R² is measured in: their order does not matter."""
R_SQUARED = "R²"


def most_rows(size: Size) -> int:
    return 2 * max(LEAST_ROWS, size.horizon)


def cells(size: Size, data: Path | None) -> list[Cell]:
    """Every policy on every trial, by both kinds of replay where arms were served at random."""
    found: list[Cell] = []
    for trial, whole in w.logs(data).items():
        log = whole.take(w.sample(len(whole), most_rows(size)))
        contenders = w.where_z_follows_the_arm(log.arm_names)
        methods = {place(trial, method): method for method in (REJECTION, WEIGHTED)}
        found += _cells(trial, methods, partial(w.half_of_log, log), contenders, len(log), size)
    users = w.complete_users(data)
    users = users[w.sample(len(users), most_rows(size))]
    for trial, fixed in zip(w.FULLY_KNOWN, (True, False), strict=True):
        world = partial(w.half_of_users, users, fixed)
        found += _cells(trial, {trial: REJECTION}, world, w.where_z_does_not(), len(users), size)
    return found


def _cells(
    trial: str, methods: dict[str, str], world: Any, contenders: list[Contender], n: int, size: Size
) -> list[Cell]:
    """Replays of all contenders, and what can be predicted."""
    seeds = seed_list(orderings(size, n))
    found = []
    for where, method in methods.items():
        for contender in contenders:
            measure = partial(value_of, method, world, contender.maker)
            found += cells_of(where, contender.name, measure, n // 2, seeds)
    for prediction in PREDICTIONS:
        measure = partial(r_squared, world, prediction)
        found += cells_of(place(trial, R_SQUARED), prediction.name, measure, n // 2, seeds[:HALVES])
    return found


def orderings(size: Size, n: int) -> int:
    """How many runs on n rows: at least two halves of each of two cuts, or there is no interval."""
    pairs = max(2, -(-size.seeds // 2))
    if pairs < w.CUTS:
        return 2 * pairs
    return 2 * w.CUTS * -(-pairs // w.CUTS) * (1 if n > FEW else 2)


def value_of(
    method: Any, make_rounds: Callable[[int], Any], make_policy: MakePolicy, horizon: int, seed: int
) -> Curve:
    """The value of one policy in one half and order."""
    rounds = make_rounds(seed)
    policy, rng = make_policy(w.dims_of(rounds)), np.random.default_rng([seed, 1])
    return Curve(np.array([horizon]), np.array([replay(policy, rounds, rng, method=method).value]))


def summary(study: Study) -> list[Row]:
    """Values with their intervals, one table per trial for these and one for R²."""
    rows = []
    for row in study.summary():
        where, values = row["environment"], study.final(row["environment"], row["policy"])
        (_, low, high), (mean, error) = interval(values), halves_mean_and_error(values, w.CUTS)
        numbers = {"final_value_mean": mean, "final_value_se": error, "low": low, "high": high}
        trial, _, what = where.partition(": ")
        if what == R_SQUARED:
            table = {"table": f"{trial}: what can be foretold, R²", "names": "quantity"}
        else:
            table = {"table": trial, "names": "policy"}
        rows.append({**row, **numbers, **table})
    return rows


def settings(size: Size, data: Path | None) -> dict[str, str]:
    logs, users = w.logs(data), w.complete_users(data)
    cd4, no_event, spend = (logs[name] for name in (w.CD4, w.NO_EVENT, w.SPEND))
    missing_cd4, lost = (int(np.isnan(log.rewards).sum()) for log in (cd4, no_event))
    rows = most_rows(size)
    large, small = (orderings(size, min(n, rows)) for n in (len(spend), len(users)))
    return {
        "ACTG 175": f"{len(cd4):,} patients, four treatments at random (1/4 each); x: {cd4.dim_x} columns at "
        "baseline, z: CD4 and CD8 at 20 weeks; rewards: CD4 at 96 weeks, and no event by then",
        "missing rewards": f"{missing_cd4} counts of CD4 at 96 weeks, and {lost} patients who were lost "
        "before then without an event. Their z still teaches phi; other rewards are weighted by 1 over the "
        "probability that a reward came, given x, z, treatment, whether it was stopped, and for CD4 whether "
        f"there was an event (logistic regression). The {len(logs[w.CD4_COMPLETE]):,} complete cases are "
        "also run alone, unweighted",
        "Hillstrom": f"{min(rows, len(spend)):,} of {len(spend):,} customers, no e-mail, men's or women's at "
        f"random (1/3 each); x: {spend.dim_x} columns, z: whether they visited; rewards: spend in dollars, "
        "and whether they bought",
        "Jester": f"{len(users):,} users who rated all 100 jokes: {w.JOKES_X} ratings are x, {w.JOKES_Z} "
        f"others z, {w.JOKES_ARMS} more jokes the arms",
        REJECTION: "only rows whose arm the policy would have served count, and it learns from these alone",
        WEIGHTED: "every row counts, by the policy's probability of its arm over the trial's, and teaches",
        "rounds, seeds": f"{large} runs on Hillstrom, {small} on the others: random halves of the rows, "
        f"cut in {min(w.CUTS, small // 2)} ways, each half in a random order, no row twice; the same for all "
        "policies, which learn from half of the rows",
        "intervals": "95%, over rows and orders: from the difference between both halves of a cut, corrected "
        "for the variance of the orders (postserve.evaluation.halves_interval); where nothing differs, one "
        "in forty lies above 0 and one in forty below",
        R_SQUARED: f"on rows held out, {FOLDS} folds of a half, over the arm's mean, one model per arm; "
        f"{min(HALVES, small)} halves",
        "policies": "with their defaults, nothing tuned; columns standardised. Maps are linear in x, with an "
        "offset for each arm in the trials, where z follows the arm. With one linear map per arm no "
        "follow-up can help: that is LinUCB(x), but for the prior",
    }
