"""The anchor's setting: shows without a context, a day's decisions at once, traces that open day by day."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from postserve.context_maps import HybridMap
from postserve.experiments import contenders as c
from postserve.experiments.figures.late import filtering as f
from postserve.experiments.figures.late.shows import DAYS, Catalogue, Setting, draw_catalogue
from postserve.experiments.study import Cell, Curve, cells_of, recorded_rounds
from postserve.policies import PoLinUCB
from postserve.state import private
from postserve.types import Exploration, FloatArray

ANCHOR = "shows"
FULL, QUICK = Setting(200, 60, 340, 50), Setting(20, 6, 20, 4)
WEEK = 7
X = np.ones(1)
"""There is no context: x is a constant."""


def follow_up(traces: FloatArray) -> FloatArray:
    """z: the first day, and the first week's sum; it is known after a week."""
    return np.column_stack([traces[:, 0], traces[:, :WEEK].sum(axis=1)])


def ours(setting: Setting, exploration: Exploration) -> PoLinUCB:
    """A policy for all shows, past ones too: the only place that makes it."""
    phi_hat = HybridMap(dim_x=1, dim_z=2)
    return PoLinUCB(setting.shows, phi_hat, model="hybrid", optimism="posterior", exploration=exploration)


def our_regret(
    exploration: Exploration, announce: bool, catalogue: Catalogue, rng: np.random.Generator
) -> FloatArray:
    """The mean regret of each day's decisions.

    Past shows are learnt first. A day's listeners are served one after another; with `announce` those whose
    feedback is out count in the widths.
    """
    setting, shows = catalogue.setting, catalogue.shows
    policy: Any = private(ours(setting, exploration))  # no other thread reads it
    traces = catalogue.past.reshape(-1, DAYS)
    ids = np.repeat(np.arange(setting.past), catalogue.past.shape[1])
    policy.update_batch(np.ones((len(ids), 1)), ids, follow_up(traces), traces.sum(axis=1))
    # By day: who was served, and what came of it.
    served: list[list[int]] = []
    z: list[FloatArray] = []
    rewards: list[list[float]] = []
    z_hats: list[list[Any]] = []
    regret = np.empty(setting.days)
    for day in range(setting.days):
        if day >= DAYS:  # first what was served earlier, as in `simulate`
            then = day - DAYS
            for arm, *feedback, z_hat in zip(served[then], z[then], rewards[then], z_hats[then], strict=True):
                policy.credit(X, arm, *feedback, z_hat=z_hat)
        if day >= WEEK:
            then = day - WEEK
            z_hats.append(
                [policy.observe(X, arm, each) for arm, each in zip(served[then], z[then], strict=True)]
            )
        alive, chosen = setting.alive_on(day), []
        for _ in range(setting.decisions):
            chosen.append(policy.select(X, rng, arms=alive).arm)
            if announce:
                policy.expect(X, chosen[-1])
        traces = shows.traces(np.array(chosen), catalogue.listeners[day])
        served.append(chosen)
        z.append(follow_up(traces))
        rewards.append(traces.sum(axis=1).tolist())
        regret[day] = catalogue.gaps(day, np.array(chosen)).mean()
    return regret


Play = Callable[[Catalogue, np.random.Generator], FloatArray]


class Player(NamedTuple):
    """A contender of the anchor's setting: how it is drawn, and its regret on each day of a catalogue."""

    contender: c.Contender
    play: Play


def _player(name: str, play: Play, colour: str, dashes: object = c.SOLID) -> Player:
    return Player(c.Contender(name, play, colour, dashes, "evidence"), play)


WAITING = _player("waiting for whole traces", partial(f.sampled_regret, f.WAITING), "#999999")
DAY_TWO = _player("day two as the reward", partial(f.sampled_regret, f.DAY_TWO), "#D55E00", c.DASHED)
FILTER = _player("progressive filter", partial(f.sampled_regret, f.PROGRESSIVE), "#0072B2")
HALF = _player("progressive filter, half the spread", partial(f.sampled_regret, f.HALF_SPREAD), "#56B4E9")
ORACLE = _player("whole traces at once, oracle", partial(f.sampled_regret, f.AT_ONCE), "#000000", c.DOTTED)
UNANNOUNCED = _player("ours, open rounds not counted", partial(our_regret, 1.0, False), "#CC79A7", c.DASHED)
OURS = _player("ours", partial(our_regret, 1.0, True), "#009E73")
AUTO = _player("ours, auto", partial(our_regret, "auto", True), "#332288", c.DASHED)
PLAYERS = (WAITING, DAY_TWO, FILTER, HALF, ORACLE, UNANNOUNCED, OURS, AUTO)


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
