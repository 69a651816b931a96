"""Estimators of a policy's value, as formulas: each returns one term per round, and their mean is the value.

The columns have one entry per round, of a policy pi and a log that served arm a at x with propensity p:

| column | |
|---|---|
| `rewards` | r |
| `ratios` | w = pi(a given x) / p |
| `direct` | q(x, pi) = sum over arms of pi(arm given x) q(x, arm), q being a model of E[r given x, arm] |
| `predicted` | q(x, a) |
| `completed` | m(x, z, a), a model of E[r given x, z, a] |
| `arrival` | e(x, z, a), a model of the probability that the reward is there, given x, z and a |

No column lets pi see z: it is asked at x alone. Models must not have learnt from the row that they are used
in; `evaluate` takes care of it.
"""

import math

import numpy as np

from postserve.types import FloatArray


def ips(rewards: FloatArray, ratios: FloatArray) -> FloatArray:
    """Inverse propensity scoring: w r. Without bias, and noisy where w is large.

    >>> ips(np.array([1.0, 3.0]), np.array([2.0, 0.0]))
    array([2., 0.])
    """
    return ratios * rewards


def snips(rewards: FloatArray, ratios: FloatArray) -> FloatArray:
    """Self-normalised: v = sum of w r / sum of w (Swaminathan and Joachims 2015).

    The terms are v + w (r - v) / mean(w), the influence function of that ratio: their mean is v, and their
    spread its error. The bias is of order 1/n; a constant added to all rewards is added to v.

    >>> snips(np.array([1.0, 3.0]), np.array([2.0, 0.0]))
    array([1., 1.])
    """
    mean = ratios.mean()
    if mean <= 0.0:
        return np.full(len(ratios), np.nan)
    value = (ratios @ rewards) / ratios.sum()
    return np.asarray(value + ratios * (rewards - value) / mean)


def rejection(rewards: FloatArray, kept: FloatArray) -> FloatArray:
    """Replay: the mean reward of the rows that were kept (1 in `kept`; the others are 0), as `snips` has it.

    >>> rejection(np.array([1.0, 3.0, 5.0]), np.array([1.0, 0.0, 1.0])).mean()
    np.float64(3.0)
    """
    return snips(rewards, kept)


def dm(direct: FloatArray) -> FloatArray:
    """The direct method: q(x, pi). As good as the model; its error is not in the spread of the terms.

    >>> dm(np.array([1.0, 2.0])).mean()
    np.float64(1.5)
    """
    return direct


def dr(rewards: FloatArray, ratios: FloatArray, direct: FloatArray, predicted: FloatArray) -> FloatArray:
    """Doubly robust: q(x, pi) + w (r - q(x, a)) (Dudík, Langford and Li 2011).

    Without bias for every q that has not learnt from the row, if the propensities are right.

    >>> dr(np.array([1.0]), np.array([2.0]), direct=np.array([0.5]), predicted=np.array([0.75]))
    array([1.])
    """
    return direct + ratios * (rewards - predicted)


def switch_dr(
    rewards: FloatArray, ratios: FloatArray, direct: FloatArray, predicted: FloatArray, threshold: float
) -> FloatArray:
    """DR without corrections by large ratios: q(x, pi) + w [w <= threshold] (r - q(x, a)).

    Wang, Agarwal and Dudík (2017). At threshold 0 it is DM, and at infinity DR; between them it trades a bias
    for less noise.

    >>> one = np.array([1.0])
    >>> [float(switch_dr(one, 3.0 * one, 0.5 * one, 0.5 * one, limit)[0]) for limit in (2.0, 3.0)]
    [0.5, 2.0]
    """
    return dr(rewards, np.where(ratios <= threshold, ratios, 0.0), direct, predicted)


def switch_threshold(
    rewards: FloatArray, ratios: FloatArray, direct: FloatArray, predicted: FloatArray
) -> float:
    """The threshold with the least bound on the squared error of `switch_dr`: variance + bias².

    Wang, Agarwal and Dudík (2017, section 4): the variance is that of the terms over n, and the bias at most
    R · E[w; w > threshold], R being the largest |r - q(x, a)| in the log. Candidates are 20 quantiles of the
    ratios, 0 and infinity.

    >>> rng = np.random.default_rng(0)
    >>> ratios, q = np.where(rng.random(1000) < 0.01, 50.0, 0.5), np.zeros(1000)
    >>> switch_threshold(0.001 * rng.normal(size=1000), ratios, q, q)
    inf
    """
    largest = np.abs(rewards - predicted).max()
    candidates = [0.0, *np.unique(np.quantile(ratios, np.linspace(0.05, 0.95, 20))), math.inf]

    def bound(threshold: float) -> float:
        terms = switch_dr(rewards, ratios, direct, predicted, threshold)
        bias = largest * ratios[ratios > threshold].sum() / len(ratios)
        return float(terms.var() / len(terms) + bias**2)

    return float(min(candidates, key=bound))


def dr_followups(
    rewards: FloatArray,
    ratios: FloatArray,
    direct: FloatArray,
    predicted: FloatArray,
    completed: FloatArray,
    arrival: FloatArray,
) -> FloatArray:
    """DR whose rewards, where they are missing (NaN), are completed from the follow-ups z.

    term = q(x, pi) + w (m(x, z, a) - q(x, a)) + w (R / e(x, z, a)) (r - m(x, z, a)), R being 1 where the
    reward is there, else 0. That is `dr` with m + (R / e) (r - m) in place of r; with all rewards there, and
    e = 1, it is `dr`.

    Let m0 and e0 be the truth, and rewards be missing at random given x, z and a. Then
    E[m + (R / e) (r - m) given x, z, a] = m + (e0 / e) (m0 - m), which is m0 if m = m0 or e = e0. In both
    cases the mean of the term given x is
    q(x, pi) + sum over arms of pi(arm given x) (E[m0 given x, arm] - q(x, arm)), that is
    sum over arms of pi(arm given x) E[r given x, arm]: the value, for every q. So it is unbiased if the
    propensities are right, and m or e is. The better z explains rewards, the less is lost by those that are
    missing.

    >>> one, half = np.array([1.0, 1.0]), np.array([0.5, 0.5])
    >>> dr_followups(np.array([1.0, np.nan]), one, half, half, completed=0.75 * one, arrival=half)
    array([1.25, 0.75])
    """
    return dr(complete(rewards, completed, arrival), ratios, direct, predicted)


def complete(rewards: FloatArray, completed: FloatArray, arrival: FloatArray) -> FloatArray:
    """m + (R / e) (r - m): a reward with the same mean given x and the arm, there in every row.

    >>> complete(np.array([1.0, np.nan]), np.array([0.5, 0.5]), np.array([1.0, 0.5]))
    array([1. , 0.5])
    """
    there = ~np.isnan(rewards)
    off = np.where(there, rewards, completed) - completed
    return completed + off / arrival
