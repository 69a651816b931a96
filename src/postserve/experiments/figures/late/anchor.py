"""The anchor's setting: shows without a context, a day's decisions at once, traces that open day by day."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from postserve.context_maps import HybridMap, StagedMap
from postserve.experiments import contenders as c
from postserve.experiments.figures.late import filtering as f
from postserve.experiments.figures.late.shows import DAYS, Catalogue, Setting, draw_catalogue
from postserve.experiments.study import Cell, Curve, cells_of, recorded_rounds
from postserve.policies import PoLinUCB
from postserve.state import private
from postserve.types import Exploration, FloatArray

ANCHOR = "shows"
FULL, QUICK = Setting(200, 60, 340, 50), Setting(20, 6, 20, 4)
X = np.ones(1)
"""There is no context: x is a constant."""


class FollowUp(NamedTuple):
    """z: sums over days of a trace, from `first` to `last`, and the day after which each is known."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    known: tuple[int, ...]

    def of(self, traces: FloatArray) -> FloatArray:
        days = zip(self.first, self.last, strict=True)
        return np.column_stack([traces[:, first - 1 : last].sum(axis=1) for first, last in days])

    def as_known(self, z: FloatArray, day: int) -> FloatArray:
        """What is known of z on this day, NaN elsewhere."""
        return np.where(np.array(self.known) <= day, z, np.nan)


WEEK = FollowUp((1, 1), (1, 7), (7, 7))
"""The first day and the first week's sum, known after a week."""
ENDS = (1, 2, 4, 8, 16, 32, DAYS)
STAGES = FollowUp((1, *(end + 1 for end in ENDS[:-1])), ENDS, ENDS)
"""A whole trace in stages, each about as long as all before it."""


def for_week(setting: Setting, exploration: Exploration) -> PoLinUCB:
    """A policy for all shows, past ones too."""
    phi_hat = HybridMap(dim_x=1, dim_z=len(WEEK.known))
    return PoLinUCB(setting.shows, phi_hat, model="hybrid", optimism="posterior", exploration=exploration)


def for_stages(setting: Setting, exploration: Exploration) -> PoLinUCB:
    """Each stage is expected as the show and the stages before it tell; together they make the reward."""
    phi_hat = StagedMap([HybridMap(dim_x=1 + k, dim_z=1) for k in range(len(STAGES.known))])
    return PoLinUCB(setting.shows, phi_hat, model="shared", optimism="posterior", exploration=exploration)


class Ours(NamedTuple):
    """A policy of ours, what it is told and when; with `announce`, rounds count in the widths until then."""

    make: Callable[[Setting, Exploration], PoLinUCB]
    follow_up: FollowUp
    exploration: Exploration = 1.0
    announce: bool = True


class Served(NamedTuple):
    """One decision, and what will come of it."""

    arm: int
    round_id: str | None
    z: FloatArray
    reward: float


def our_regret(ours: Ours, catalogue: Catalogue, rng: np.random.Generator) -> FloatArray:
    """The mean regret of each day's decisions.

    Past shows are learnt first. A day's listeners are served one after another.
    """
    setting, follow_up = catalogue.setting, ours.follow_up
    policy: Any = private(ours.make(setting, ours.exploration))  # no other thread reads it
    traces = catalogue.past.reshape(-1, DAYS)
    ids = np.repeat(np.arange(setting.past), catalogue.past.shape[1])
    policy.update_batch(np.ones((len(ids), 1)), ids, follow_up.of(traces), traces.sum(axis=1))
    days: list[list[Served]] = []
    regret = np.empty(setting.days)
    for day in range(setting.days):
        for age in sorted({*follow_up.known, DAYS}, reverse=True):  # the oldest first, as in `simulate`
            for one in days[day - age] if day >= age else ():
                _tell(policy, follow_up, one, age)
        alive, arms, round_ids = setting.alive_on(day), [], []
        for i in range(setting.decisions):
            arms.append(policy.select(X, rng, arms=alive).arm)
            round_ids.append(f"{day}.{i}" if ours.announce else None)
            if ours.announce:
                policy.expect(X, arms[-1], round_id=round_ids[-1])
        traces = catalogue.shows.traces(np.array(arms), catalogue.listeners[day])
        feedback = follow_up.of(traces), traces.sum(axis=1).tolist()
        days.append([Served(*one) for one in zip(arms, round_ids, *feedback, strict=True)])
        regret[day] = catalogue.gaps(day, np.array(arms)).mean()
    return regret


def _tell(policy: Any, follow_up: FollowUp, one: Served, age: int) -> None:
    """What is known of a decision at this age, and was not before."""
    if age in follow_up.known:
        policy.observe(X, one.arm, follow_up.as_known(one.z, age), round_id=one.round_id)
    if age == DAYS:
        policy.credit(X, one.arm, one.z, one.reward, round_id=one.round_id)


Play = Callable[[Catalogue, np.random.Generator], FloatArray]


class Player(NamedTuple):
    """A contender of the anchor's setting: how it is drawn, and its regret on each day of a catalogue."""

    contender: c.Contender
    play: Play


def _player(name: str, play: Play, colour: str, dashes: object = c.SOLID) -> Player:
    return Player(c.Contender(name, play, colour, dashes, "evidence"), play)


def _ours(name: str, ours: Ours, colour: str, dashes: object = c.SOLID) -> Player:
    return _player(name, partial(our_regret, ours), colour, dashes)


WAITING = _player("waiting for whole traces", partial(f.sampled_regret, f.WAITING), "#999999")
DAY_TWO = _player("day two as the reward", partial(f.sampled_regret, f.DAY_TWO), "#D55E00", c.DASHED)
FILTER = _player("progressive filter", partial(f.sampled_regret, f.PROGRESSIVE), "#0072B2")
HALF = _player("progressive filter, half the spread", partial(f.sampled_regret, f.HALF_SPREAD), "#56B4E9")
ORACLE = _player("whole traces at once, oracle", partial(f.sampled_regret, f.AT_ONCE), "#000000", c.DOTTED)
UNANNOUNCED = _ours(
    "ours, a week, open rounds not counted", Ours(for_week, WEEK, announce=False), "#CC79A7", c.DASHED
)
OURS_WEEK = _ours("ours, a week", Ours(for_week, WEEK), "#F0A500", c.DASHED)
AUTO = _ours("ours, a week, auto", Ours(for_week, WEEK, "auto"), "#332288", c.DASHED)
OURS = _ours("ours, in stages", Ours(for_stages, STAGES), "#009E73")
PLAYERS = (WAITING, DAY_TWO, FILTER, HALF, ORACLE, UNANNOUNCED, OURS_WEEK, AUTO, OURS)


def cells(quick: bool, seeds: list[int]) -> list[Cell]:
    setting = QUICK if quick else FULL
    found = []
    for player in PLAYERS:
        measure = partial(mean_regret, player.play, setting)
        found += cells_of(ANCHOR, player.contender.name, measure, setting.days, seeds)
    return found


def mean_regret(play: Play, setting: Setting, horizon: int, seed: int) -> Curve:
    """Regret per decision, averaged over the days so far; the horizon is in days."""
    regret = play(draw_catalogue(setting, seed), np.random.default_rng([seed, 1]))
    days = recorded_rounds(horizon)
    return Curve(days, (np.cumsum(regret) / np.arange(1, horizon + 1))[days - 1])
