"""Thompson sampling on a Gaussian belief about each show's 59 daily means: the anchor's own method.

The prior of a show's daily means, N(mu, C), and the noise covariance V of traces come from the past. A trace
of which k days are known teaches through V's leading k x k block: the precision of a show's belief is
C^{-1} + sum over its traces of V_k^{-1}, in the first k days. Its sum over the days is sampled.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from postserve.experiments.figures.late.shows import DAYS, Catalogue
from postserve.types import FloatArray

SMALLEST = 1e-6
"""Of the eigenvalues of the prior covariance: what the noise of the past leaves may be negative."""


class Belief(NamedTuple):
    """The prior of a show's daily means, and the noise of one trace, of the days that are looked at."""

    mean: FloatArray
    covariance: FloatArray
    noise: FloatArray


def belief_from(past: FloatArray) -> Belief:
    """Moments of past traces, (shows, listeners, days): between shows and within them."""
    listeners = past.shape[1]
    of_shows = past.mean(axis=1)
    within = (past - of_shows[:, None]).reshape(-1, past.shape[2])
    noise = within.T @ within / (past.shape[0] * (listeners - 1))
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(of_shows.T)) - noise / listeners)
    covariance = (vectors * np.maximum(values, SMALLEST)) @ vectors.T
    return Belief(of_shows.mean(axis=0), covariance, noise + SMALLEST * np.eye(len(noise)))


class Sampler(NamedTuple):
    """Samples a show's sum over `days` from its belief; `known(age)` days of a trace of this age are seen.

    `spread` multiplies the belief's standard deviation.
    """

    known: Callable[[int], int]
    days: slice = slice(DAYS)
    spread: float = 1.0


PROGRESSIVE = Sampler(lambda age: min(age, DAYS))
HALF_SPREAD = Sampler(PROGRESSIVE.known, spread=0.5)
WAITING = Sampler(lambda age: DAYS if age >= DAYS else 0)
DAY_TWO = Sampler(lambda age: 1 if age >= 2 else 0, days=slice(1, 2))
AT_ONCE = Sampler(lambda age: DAYS if age >= 1 else 0)


def sampled_regret(sampler: Sampler, catalogue: Catalogue, rng: np.random.Generator) -> FloatArray:
    """The mean regret of each day's decisions."""
    (_, alive, days, decisions), shows = catalogue.setting, catalogue.shows
    mean, covariance, noise = belief_from(catalogue.past[..., sampler.days])
    dim = len(mean)
    inverses = np.zeros((dim + 1, dim, dim))  # of the noise's leading blocks, by the number of days known
    for k in range(1, dim + 1):
        inverses[k, :k, :k] = np.linalg.inv(noise[:k, :k])
    prior = np.linalg.inv(covariance)
    # By the day served: how often each show was, and the sum of its traces.
    counts, sums = np.zeros((days, catalogue.setting.shows)), np.zeros((days, catalogue.setting.shows, dim))
    regret = np.empty(days)
    for day in range(days):
        ids = catalogue.setting.alive_on(day)
        served = np.arange(max(0, day - alive), day)  # no show that is alive was served before
        known = np.array([sampler.known(day - then) for then in served.tolist()], dtype=np.int64)
        precision, moment = np.tile(prior, (alive, 1, 1)), np.tile(prior @ mean, (alive, 1))
        if len(served):
            n = counts[np.ix_(served, ids)]
            precision += np.tensordot(n.T, inverses[known], 1)
            # A block's zeros leave out the days that are not known yet.
            moment += np.einsum("san,snm->am", sums[np.ix_(served, ids)], inverses[known], optimize=True)
        solved = np.linalg.solve(precision, np.stack([moment, np.ones_like(moment)], axis=2)).sum(axis=1)
        draws = rng.standard_normal((decisions, alive))
        chosen = ids[(solved[:, 0] + sampler.spread * np.sqrt(solved[:, 1]) * draws).argmax(axis=1)]
        traces = shows.traces(chosen, catalogue.listeners[day])[:, sampler.days]
        np.add.at(counts[day], chosen, 1.0)
        np.add.at(sums[day], chosen, traces)
        regret[day] = catalogue.gaps(day, chosen).mean()
    return regret
