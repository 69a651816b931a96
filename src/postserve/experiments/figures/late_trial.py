"""A randomised trial with late rewards: CD4 after 20 weeks and after 96, with one patient per week."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from postserve.context_maps import HybridMap
from postserve.data import LoggedRounds, actg175, actg175_course
from postserve.evaluation import missing_weights, replay
from postserve.evaluation.halves import halves_mean_and_error
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import verdict
from postserve.experiments.figure import Claim, Row, Size
from postserve.experiments.figures.late.policies import SignalAsReward
from postserve.experiments.figures.trials import orderings
from postserve.experiments.figures.trials.results import gain, interval
from postserve.experiments.figures.trials.worlds import CUTS, Dims, dims_of, half_of_log
from postserve.experiments.study import Cell, Curve, MakePolicy, Study, cells_of, seed_list
from postserve.policies import LinUCB, PoLinUCB

TITLE = "Late rewards in a randomised trial: ACTG 175"
ABOUT = (
    "Patients of a trial of treatments, replayed with delays: CD4 and CD8 counts at 20 weeks are z, CD4 at "
    "96 weeks is the reward. Arms do not come and go here: there are four of them, for a few hundred rounds. "
    "The truth is not known: results are mean rewards, not regret."
)
# There are so few patients that each half is served in twice as many orders as there are seeds.
FULL, QUICK = Size(horizon=2139, seeds=64), Size(horizon=150, seeds=4, quick=True)
MEASURE = "value"
DATA = ("actg175",)
DELAYS = {"no delay": (0, 0), "z after 20, reward after 96": (20, 96)}
"""In rounds that a policy plays: with one patient per week, these are the weeks of the trial."""
CD4 = 0
"""The entry of z that is the proxy: the same count, 76 weeks earlier."""


def _linucb(dims: Dims) -> LinUCB:
    return LinUCB(dims.n_arms, dims.dim_x, model="hybrid", exploration=1.0)


def _proxy(dims: Dims) -> "Proxy":
    return Proxy(_linucb(dims), CD4, 1.0)


def _ours(dims: Dims, exploration: Any = 1.0) -> PoLinUCB:
    phi_hat = HybridMap(dims.dim_x, dims.dim_z)
    return PoLinUCB(dims.n_arms, phi_hat, model="hybrid", optimism="posterior", exploration=exploration)


class Proxy(SignalAsReward):
    """The proxy with the arms' ids, by which a replay checks that they are the log's."""

    @property
    def arms(self) -> tuple[int, ...]:
        return self.policy.arms


X_ONLY = c.Contender("LinUCB(x), hybrid weights", _linucb, "#E69F00", prior="evidence")
PROXY = c.Contender("CD4 at 20 weeks as the reward", _proxy, "#D55E00", c.DASHED, "evidence")
OURS = c.Contender("hybrid map, posterior", _ours, "#009E73", prior="evidence")
AUTO = OURS.with_options("hybrid map, posterior, auto", exploration="auto")
CONTENDERS = (c.RANDOM, X_ONLY, PROXY, OURS, AUTO)


def trial(size: Size, data: Path | None) -> LoggedRounds:
    """All patients, or some; weights account for counts that were never taken."""
    log = actg175(data, reward="cd4").standardised()
    off_treatment, event, _ = actg175_course(data).T
    log = log.changed(weights=missing_weights(log, also=np.column_stack([off_treatment, event])))
    rows = np.random.default_rng(len(log)).permutation(len(log))[: max(size.horizon, 200)]
    return log.take(np.sort(rows))


def cells(size: Size, data: Path | None) -> list[Cell]:
    log = trial(size, data)
    seeds = seed_list(orderings(size, len(log)))
    found = []
    for place, delays in DELAYS.items():
        for contender in CONTENDERS:
            measure = partial(value_of, partial(half_of_log, log), contender.maker, delays)
            found += cells_of(place, contender.name, measure, len(log) // 2, seeds)
    return found


def value_of(
    make_rounds: Callable[[int], LoggedRounds],
    make_policy: MakePolicy,
    delays: tuple[int, int],
    horizon: int,
    seed: int,
) -> Curve:
    """The value of one policy in one half of the patients, in one order."""
    rounds = make_rounds(seed)
    policy, rng = make_policy(dims_of(rounds)), np.random.default_rng([seed, 1])
    found = replay(policy, rounds, rng, z_delay=delays[0], reward_delay=delays[1])
    return Curve(np.array([horizon]), np.array([found.value]))


def settings(size: Size, data: Path | None) -> dict[str, str]:
    log = trial(size, data)
    return {
        "ACTG 175": f"{len(log):,} patients, four treatments at random; x: {log.dim_x} columns at baseline, "
        "z: CD4 and CD8 at 20 weeks, reward: CD4 at 96 weeks; missing rewards are weighted as in `trials`",
        "delays": "in rounds that the policy plays: z after 20, the reward after 96, as if one patient came "
        "per week. A reward that never came never comes",
        "policies": "exploration 1, or automatic; nothing tuned here",
        "intervals": "95%, over patients and orders, from halves of the patients, as in `trials`",
    }


def summary(study: Study) -> list[Row]:
    rows = []
    for row in study.summary():
        values = study.final(row["environment"], row["policy"])
        (_, low, high), (mean, error) = interval(values), halves_mean_and_error(values, CUTS)
        rows.append({**row, "final_value_mean": mean, "final_value_se": error, "low": low, "high": high})
    return rows


def claims(study: Study) -> list[Claim]:
    """Nothing is claimed of a difference: a prototype could not find one."""
    pairs = ((OURS, X_ONLY), (OURS, PROXY), (AUTO, OURS), (PROXY, X_ONLY))
    return [Claim(f"{one} against {other}. {_words(study, one, other)}.", None) for one, other in pairs]


def _words(study: Study, one: c.Contender, other: c.Contender) -> str:
    gains = {place: gain(study, place, one, other) for place in study.environments}
    return "; ".join(
        f"{place}: {verdict(found, 'worse', 'better')} ({found})" for place, found in gains.items()
    )


def headline(study: Study) -> str:
    """Whether follow-ups paid with late rewards."""
    place = list(DELAYS)[-1]
    words = [f"{gain(study, place, OURS, other)} against {other}" for other in (X_ONLY, PROXY)]
    return f"On ACTG 175 with {place}, the value of poLinUCB with a hybrid map is {' and '.join(words)}."


def draw(study: Study) -> Any:
    """Values, and values minus ours, without delay and with it."""
    with style.picture(len(DELAYS), 2, height=2.6, width=6.2) as (made, axes):
        for (left, right), place in zip(axes, DELAYS, strict=True):
            _draw(left, [(each, study.final(place, each)) for each in CONTENDERS])
            left.set(title=place, xlabel="value: mean CD4 at 96 weeks, 95% intervals")
            others = [each for each in CONTENDERS if each != OURS]
            _draw(right, [(each, study.differences(place, each, OURS)) for each in others])
            right.axvline(0.0, color=style.REFERENCE, linewidth=1)
            right.set(xlabel=f"value minus that of {OURS}, paired, 95% intervals")
        return made


def _draw(panel: Any, rows: list[tuple[c.Contender, Any]]) -> None:
    for at, (each, values) in enumerate(reversed(rows)):
        style.draw_interval(panel, at, interval(values), fmt="o", color=each.colour)
    style.name_rows(panel, [each for each, _ in rows])
