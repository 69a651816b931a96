"""What policies would have earned on a log, with intervals, and their paired differences."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.evaluation import estimators
from postserve.evaluation.columns import columns
from postserve.evaluation.gathering import AS_SERVED, Gathered
from postserve.evaluation.intervals import NEED_RANGE
from postserve.evaluation.results import Comparison, Evaluation, estimate, term_range
from postserve.evaluation.settings import Options, Settings, checked
from postserve.evaluation.support import mean_ratio, support_of
from postserve.types import FloatArray


def evaluate(
    policy: Any, log: LoggedRounds | Iterable[LoggedRounds], **options: Unpack[Options]
) -> Evaluation:
    """What a policy would have earned per round, from rounds that another one served.

    The policy is asked for its `propensities` at each x, never shown z, and not changed. It is fixed, unless
    `learns`: then a copy of it goes through the log in order, and learns from each row after it was asked
    about it. The value is then the mean over these stages of learning. `log` is one `LoggedRounds`, or
    several that are its parts, in order.

    - `estimator`: "dr_followups" (the default), which completes missing rewards from z and is "dr" where none
      is missing; "ips", "snips", "dm", "dr", "switch_dr" or "replay". All but the first and "dm" leave out
      rounds without a reward, which is right if nothing tells which these are, or with `log.weights`.
    - `interval`: "normal", "bootstrap", "bernstein" or "sequence", at this `level`. The last two need what is
      known beforehand: a `reward_range`, (least, largest), and `max_ratio`, 1 over the least probability with
      which any arm could be served, unless that was the same in all rounds. "sequence" may be looked at
      again whenever the log has grown.
    - `threshold`: of "switch_dr"; chosen by its bound if it is not given.
    - `reward_model`, `arrival_model`: scikit-learn's, instead of ridge regressions (one per arm) and a
      logistic regression. They predict for each of `folds` random folds after learning from the others.
    - `seed`: of folds, of delays, of draws of "bootstrap" and of "replay".
    - `z_delay`, `reward_delay`: of a policy that learns, after how many rounds it is told; as `replay` has
      them, the same for all policies. `DecisionLog.delays` are the log's own.

    Raises `NoSupport` if the policy plays what the log could not serve.

    >>> from postserve import LinUCB, LoggedRounds
    >>> rng = np.random.default_rng(0)
    >>> arms, x = rng.integers(2, size=2000), rng.normal(size=(2000, 1))
    >>> rewards = np.where(arms == (x[:, 0] > 0), 1.0, 0.0)  # arm 1 is right where x > 0
    >>> log = LoggedRounds(x=x, z=np.empty((2000, 0)), arms=arms, rewards=rewards, propensities=0.5)
    >>> found = evaluate(LinUCB(2, 1), log, learns=True)
    >>> found.low < 0.99 < found.high
    True
    """
    settings = checked(options)
    played = copy.deepcopy(policy) if settings.learns else policy
    name = "the policy" if isinstance(policy, type) else type(policy).__name__
    return _evaluations([name], {name: played}, log, settings)[name]


def compare(
    policies: Mapping[str, Any] | Sequence[Any],
    log: LoggedRounds | Iterable[LoggedRounds],
    *,
    to: str = AS_SERVED,
    **options: Unpack[Options],
) -> Comparison:
    """Evaluate policies on the same rounds, with paired differences to one of them (or to the log itself).

    `policies` are by name, or a list, whose names are those of their classes. The options are those of
    `evaluate`. Printed, the result is a table; `forest()` draws it.

    >>> from postserve import LoggedRounds, RandomPolicy
    >>> rng = np.random.default_rng(0)
    >>> arms, x = rng.integers(2, size=1000), rng.normal(size=(1000, 1))
    >>> log = LoggedRounds(x=x, z=np.empty((1000, 0)), arms=arms, rewards=1.0 * arms, propensities=0.5)
    >>> found = compare({"coin": RandomPolicy(2)}, log, estimator="snips")
    >>> found.differences["coin"].value
    0.0
    """
    settings = checked(options)
    named = _named(policies)
    if to not in (AS_SERVED, *named):
        raise InvalidInput(f"to is {to!r}, wanted one of {', '.join([AS_SERVED, *named])}")
    played = {name: copy.deepcopy(policy) if settings.learns else policy for name, policy in named.items()}
    evaluations = _evaluations([AS_SERVED, *named], played, log, settings)
    comparison = Comparison(evaluations, {}, to)
    for name in evaluations:
        if name != to:
            comparison.differences[name] = comparison.difference(name, to)
    return comparison


def _evaluations(
    names: Sequence[str], policies: Mapping[str, Any], log: Any, settings: Settings
) -> dict[str, Evaluation]:
    found = Gathered(names, settings)
    for part in columns(policies, _parts(log), settings):
        found.add(part)
    if not found.rounds:
        raise InvalidInput("no reward of the log ever came, wanted at least one")
    return {name: _evaluation(name, found, settings) for name in names}


def _evaluation(name: str, found: Gathered, settings: Settings) -> Evaluation:
    ratios, weights = found.of("ratios", name), found.of("weights")
    if name == AS_SERVED:
        settings = settings._replace(threshold=np.inf)
    counts = _kept(name, found, ratios, settings) if settings.estimator == "replay" else ratios
    mean_weight = weights.mean()
    if mean_weight <= 0.0:
        raise InvalidInput("the log's weights are 0 in all rounds that count, wanted at least one above 0")
    if settings.estimator == "dr_followups" and found.missing:
        arrived = found.of("arrived")
        _refuse_to_make_up_twice(weights[arrived == 0.0])
        counts = ratios * arrived
    uneven = bool((weights != mean_weight).any())
    if uneven:
        counts = counts * (weights / mean_weight)
    terms = _terms(name, found, ratios, counts, settings)
    if not np.isfinite(terms).all():
        raise InvalidInput(f"{name} plays no row of the log that counts, wanted at least one")
    if uneven and not settings.normalises:  # the influence function of the weighted mean
        mean = weights @ terms / weights.sum()
        terms = mean + weights * (terms - mean) / mean_weight
    settings = _with_max_ratio(name, found, ratios, settings)
    value, error, low, high = estimate(terms, settings, term_range(settings, found.missing))
    support = support_of(ratios, counts, found.missing, _mean_ratio(name, found, ratios, settings))
    return Evaluation(value, error, low, high, support, terms, name, settings)


def _refuse_to_make_up_twice(weights: FloatArray) -> None:
    """Raise if rounds whose reward is missing have no weight, so that the others stand for them already."""
    if len(weights) and not weights.any():
        got = "the log's weights are 0 wherever a reward is missing, which 'dr_followups' makes up for again"
        raise InvalidInput(f"{got}, wanted weights of 1, or an estimator that leaves such rounds out")


def _mean_ratio(name: str, found: Gathered, ratios: FloatArray, settings: Settings) -> tuple[float, float]:
    """Over all rounds: whether a reward is there may depend on the arm, and that is no doubt about ratios."""
    weights, left_out = found.of("weights"), found.of("left out", name)
    replays = settings.learns and settings.estimator == "replay"  # which keeps rows with a reward only
    if len(left_out) and not replays:
        ratios = np.concatenate([ratios, left_out])
        weights = np.concatenate([weights, found.of("left weights")])
    return mean_ratio(ratios, weights if (weights != weights[0]).any() else None)


def _kept(name: str, found: Gathered, ratios: FloatArray, settings: Settings) -> FloatArray:
    """1 in the rows that a replay keeps, and 0 elsewhere.

    A policy that learns keeps more rows of a part of the log whose least propensity is larger: less than 1.
    """
    if name == AS_SERVED:
        return ratios
    if settings.learns:
        return ratios / ratios.max() if ratios.any() else ratios
    draws = np.random.default_rng(settings.seed).random(len(ratios))
    return (draws < ratios * found.least_propensity).astype(np.float64)


def _terms(
    name: str, found: Gathered, ratios: FloatArray, counts: FloatArray, settings: Settings
) -> FloatArray:
    if settings.estimator == "snips":
        return estimators.snips(found.of("rewards"), counts)
    if settings.estimator == "replay":
        return estimators.rejection(found.of("rewards"), counts)
    if settings.estimator == "switch_dr" and settings.threshold is None:
        residuals = (
            found.of("residuals"),
            ratios,
            found.of("direct", name),
            np.zeros(1),
        )  # r - q in place of r
        return estimators.switch_dr(*residuals, estimators.switch_threshold(*residuals))
    return found.of("terms", name)


def _with_max_ratio(name: str, found: Gathered, ratios: FloatArray, settings: Settings) -> Settings:
    """The settings with the largest ratio that there can be, for intervals that need the terms' range."""
    if settings.interval not in NEED_RANGE:
        return settings
    if (found.of("weights") != 1.0).any():
        raise InvalidInput(f"the log has weights, and interval is {settings.interval!r}, wanted weights of 1")
    if found.missing and settings.interval == "sequence":
        got = f"{found.missing:,} rewards are missing, and interval is 'sequence'"
        raise InvalidInput(f"{got}, wanted rounds that are appended when their rewards have come")
    least, most = found.chances
    if settings.max_ratio is None and least < most * (1.0 - 1e-9):
        got = f"max_ratio is None, and the log's propensities are {least:g} to {most:g}"
        wanted = "1 over the least probability with which any arm could be served, in rounds to come, too"
        raise InvalidInput(f"{got}, {settings.interval!r} wanted {wanted}")
    limit = settings.max_ratio or 1.0 / least
    if ratios.max() > limit * (1.0 + 1e-9):
        raise InvalidInput(f"{name} has a ratio of {ratios.max():g}, wanted at most max_ratio, {limit:g}")
    return settings._replace(max_ratio=limit)


def _parts(log: Any) -> Iterator[LoggedRounds]:
    if isinstance(log, LoggedRounds):
        return iter([log])
    if isinstance(log, Iterable) and not isinstance(log, str | Mapping):
        return iter(log)
    raise InvalidInput(f"log is a {type(log).__name__}, wanted LoggedRounds, or several of them")


def _named(policies: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(policies, Mapping):
        named = dict(policies)
    elif isinstance(policies, Sequence):
        named = {type(policy).__name__: policy for policy in policies}
        if len(named) < len(policies):
            raise InvalidInput("two policies are of one class, wanted a mapping from names to policies")
    else:
        raise InvalidInput(
            f"policies is a {type(policies).__name__}, wanted a mapping from names to policies"
        )
    if not named or AS_SERVED in named or not all(isinstance(name, str) for name in named):
        raise InvalidInput(f"policies are named {list(named)!r:.60}, wanted names other than {AS_SERVED!r}")
    return named
