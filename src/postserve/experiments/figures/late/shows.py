"""Shows and their listeners: a synthetic catalogue in which a recommendation's worth takes two months to see.

The generator of McDonald, Maystre, Lalmas, Russo and Ciosek, "Impatient Bandits" (KDD 2023), in their words:
each show has daily log-odds of a return, a Gaussian process with a weekly dip, and each listener leaves
after a number of days.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, expit

from postserve.types import FloatArray, IntArray

DAYS = 59
"""Of a trace: the days after the recommendation, on each of which a listener returns or not."""


class Setting(NamedTuple):
    """How many shows give the prior, how many are alive, for how many days, with how many decisions a day.

    One show enters and one leaves each day.
    """

    past: int
    alive: int
    days: int
    decisions: int

    @property
    def shows(self) -> int:
        """Of the past, and all that live: ids are in the order in which they enter."""
        return self.past + self.alive + self.days

    def alive_on(self, day: int) -> IntArray:
        """The ids of the shows that can be recommended on this day, counted from 0."""
        return np.arange(self.past + day, self.past + day + self.alive)


class Shows(NamedTuple):
    """One row per show: P(return on day t | still there), and P(still there on day t), t = 1, …, 59."""

    returns: FloatArray
    stays: FloatArray

    @property
    def daily(self) -> FloatArray:
        """The mean of each day of a trace."""
        return self.returns * self.stays

    @property
    def means(self) -> FloatArray:
        """The mean number of days on which a listener listens: the first, and those of the trace."""
        return np.asarray(1.0 + self.daily.sum(axis=1))

    def traces(self, ids: IntArray, uniforms: FloatArray) -> FloatArray:
        """The trace of each listener, (n, 59), who met the show of this id.

        A listener is 60 uniform numbers: the first decides when to leave, the others about each day.
        """
        here = uniforms[:, :1] < self.stays[ids]
        return np.asarray(here & (uniforms[:, 1:] < self.returns[ids]), dtype=np.float64)


def draw_shows(n: int, rng: np.random.Generator) -> Shows:
    """n shows.

    log-odds_t = -0.5 + 0.1 g(t) - b |sin(pi t/7)|, cov(g(s), g(t)) = 1.2 exp(-|s - t|/8), b ~ U(0.1, 1). A
    listener stays Geometric(p) - 1 days, p ~ Beta(k a, k (1 - a)), with a = logistic(0.1 N(0, 1) - 0.4) and
    k ~ U(0.7, 1.5); so P(stays t days) = B(k a, k (1 - a) + t)/B(k a, k (1 - a)).
    """
    t = np.arange(1.0, DAYS + 1)
    covariance = 1.2 * np.exp(-abs(t[:, None] - t) / 8.0)
    g = rng.standard_normal((n, DAYS)) @ np.linalg.cholesky(covariance).T
    dip = rng.uniform(0.1, 1.0, size=(n, 1)) * abs(np.sin(np.pi * t / 7.0))
    a = expit(0.1 * rng.standard_normal((n, 1)) - 0.4)
    k = rng.uniform(0.7, 1.5, size=(n, 1))
    stays = np.exp(betaln(k * a, k * (1.0 - a) + t) - betaln(k * a, k * (1.0 - a)))
    return Shows(expit(-0.5 + 0.1 * g - dip), stays)


class Catalogue(NamedTuple):
    """What all policies of a seed meet: the shows, traces of past ones, and the listeners to come.

    `past` has 50 traces per past show, (past, 50, 59); `listeners` are (days, decisions, 60) uniform numbers.
    """

    setting: Setting
    shows: Shows
    past: FloatArray
    listeners: FloatArray

    def gaps(self, day: int, ids: IntArray) -> FloatArray:
        """The best mean of the shows alive, less that of each show served."""
        means = self.shows.means
        return np.asarray(means[self.setting.alive_on(day)].max() - means[ids])


PAST_LISTENERS = 50


def draw_catalogue(setting: Setting, seed: int) -> Catalogue:
    rng = np.random.default_rng([seed, 59])
    shows = draw_shows(setting.shows, rng)
    ids = np.repeat(np.arange(setting.past), PAST_LISTENERS)
    past = shows.traces(ids, rng.random((len(ids), DAYS + 1))).reshape(setting.past, PAST_LISTENERS, DAYS)
    return Catalogue(setting, shows, past, rng.random((setting.days, setting.decisions, DAYS + 1)))
