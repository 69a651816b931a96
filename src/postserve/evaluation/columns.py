"""From policies and a log to the columns that estimators take."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.evaluation.asking import asked_of_all, named, require_takes_arms
from postserve.evaluation.delays import Feedback, require
from postserve.evaluation.intervals import Range
from postserve.evaluation.learning import Learners
from postserve.evaluation.models import Predictions, blocks, folds, predictions
from postserve.evaluation.replay import by_rejection, require_arms
from postserve.evaluation.settings import Settings
from postserve.evaluation.support import Lacking
from postserve.types import FloatArray


class Columns(NamedTuple):
    """One entry per counted round of a part; `ratios` and `direct` are by the policies' names.

    `left_out` has the ratios of rounds that do not count, as their reward is missing, and `left_weights`
    their weights; `chances` are the least and the largest probability with which an arm could be served.
    """

    rewards: FloatArray
    propensities: FloatArray
    weights: FloatArray
    predicted: FloatArray
    completed: FloatArray
    arrival: FloatArray
    ratios: dict[str, FloatArray]
    direct: dict[str, FloatArray]
    left_out: dict[str, FloatArray]
    left_weights: FloatArray
    chances: Range
    missing: int


def columns(
    policies: Mapping[str, Any], log: Iterable[LoggedRounds], settings: Settings
) -> Iterator[Columns]:
    """The columns of each part of a log, which is read once, in order; policies that learn are changed.

    Models are fitted in each part for itself. What lacks support is known, and refused, after the last part.
    """
    rng = np.random.default_rng(settings.seed)
    replays = {name: np.random.default_rng(settings.seed) for name in policies}
    lacking: dict[str, Lacking] = {}
    learners = Learners(policies, settings) if settings.learns and settings.estimator != "replay" else None
    names: tuple[str, ...] = ()
    for part in log:
        if not isinstance(part, LoggedRounds):
            raise InvalidInput(f"log has a {type(part).__name__}, wanted LoggedRounds, or several of them")
        if names and part.arm_names != names:
            raise InvalidInput(
                f"log has parts with arms {names!r:.60} and {part.arm_names!r:.60}, wanted the same"
            )
        if not names:
            names = part.arm_names
            by_ratios = settings.estimator in ("ips", "snips")  # and by no model of the arms' rewards
            lacking = {name: Lacking(part.n_arms, by_ratios=by_ratios) for name in policies}
        for name, policy in policies.items():
            _require_policy(name, policy, part, settings)
        if learners is not None:
            learners.meet(part)
        yield _of_part(policies, part, lacking, learners, replays, settings, rng)
    if not names:
        raise InvalidInput("log has no rounds, wanted at least one")
    if learners is not None:
        learners.refuse_more()
    for name in policies:
        lacking[name].refuse(name, names, certain=settings.estimator != "dm")


def _of_part(
    policies: Mapping[str, Any],
    log: LoggedRounds,
    lacking: Mapping[str, Lacking],
    learners: Learners | None,
    replays: Mapping[str, np.random.Generator],
    settings: Settings,
    rng: np.random.Generator,
) -> Columns:
    came = ~np.isnan(log.rewards)
    missing = int(len(log) - came.sum())
    chances: dict[str, FloatArray] = {}
    ratios: dict[str, FloatArray] = {}
    for name, policy in policies.items():
        if settings.learns and learners is None:
            at_once = np.zeros(len(log))
            kept, choices = by_rejection(policy, log, replays[name], Feedback(policy, at_once, at_once))
            lacking[name].add(log, np.eye(log.n_arms)[choices])
            ratios[name] = np.zeros(len(log))
            ratios[name][kept.rows] = 1.0 / log.propensities.min()  # whose mean is 1, too
            continue
        pi = learners.chances(name, policy, log) if learners else asked_of_all(name, policy, log)
        lacking[name].add(log, pi)
        chances[name], ratios[name] = pi, pi[np.arange(len(log)), log.arms] / log.propensities
    # Where no reward came, there is none to learn from how others would be completed.
    among, counts = _chances(log), came | (settings.counts_missing and came.any())
    left_out, left_weights = {name: column[~counts] for name, column in ratios.items()}, log.weights[~counts]
    if not counts.any():
        none = np.zeros(0)
        ratios, direct = (dict.fromkeys(found, none) for found in (ratios, chances))
        return Columns(
            none, none, none, none, none, none, ratios, direct, left_out, left_weights, among, missing
        )
    if not counts.all():
        rows = np.flatnonzero(counts)
        log = log.take(rows)
        chances, ratios = (
            {name: column[rows] for name, column in found.items()} for found in (chances, ratios)
        )
    n = len(log)
    if settings.needs_models:
        by_models = predictions(
            log,
            list(chances.values()),
            blocks(n) if settings.interval == "sequence" else folds(n, settings.folds, rng),
            reward_model=settings.reward_model,
            arrival_model=settings.arrival_model,
            reward_range=settings.reward_range,
        )
    else:
        none = np.zeros(n)
        by_models = Predictions(np.zeros((len(chances), n)), none, none, np.ones(n))
    return Columns(
        rewards=log.rewards,
        propensities=log.propensities,
        weights=log.weights,
        predicted=by_models.predicted,
        completed=by_models.completed,
        arrival=by_models.arrival,
        ratios=ratios,
        direct=dict(zip(chances, by_models.direct, strict=True)),
        left_out=left_out,
        left_weights=left_weights,
        chances=among,
        missing=missing,
    )


def _chances(log: LoggedRounds) -> Range:
    """Between which probabilities the log served arms, as far as it says."""
    known = log.propensities
    if log.all_propensities is not None:
        known = np.concatenate([known, log.all_propensities[log.all_propensities > 0.0]])
    return Range(float(known.min()), float(known.max()))


def _require_policy(name: str, policy: Any, log: LoggedRounds, settings: Settings) -> None:
    if isinstance(policy, type):
        raise InvalidInput(f"{name} is the class {policy.__name__}, wanted an object of it")
    if getattr(policy, "sees_z", False):
        raise InvalidInput(f"{name} sees z before it chooses, wanted a policy that chooses from x")
    verbs = ("select",) if settings.estimator == "replay" and settings.learns else ("propensities",)
    require(policy, *verbs, *(("update", "observe") if settings.learns else ()))
    with named(name):
        require_arms(policy, log.n_arms)
    require_takes_arms(policy, verbs[0], log)
