"""What argues against an answer: logs that say something else than they seem to."""

from collections.abc import Iterator

import numpy as np

from postserve.diagnosis.findings import Objection, listed
from postserve.diagnosis.predicting import (
    FOLDS,
    Share,
    beyond_chance,
    deviations,
    difference,
    held_out,
    held_out_means,
    line,
)
from postserve.diagnosis.sample import Sample
from postserve.types import BoolArray, FloatArray, IntArray

COPY = 0.98
"""A column that alone explains so much of the reward is the reward."""
KNOWN = 0.999
"""A z of which a line in x explains so much was known before."""
BINS = 50
DRIFT = 0.01
"""The least loss of R² from learning in the past that is worth a word."""
COLLINEAR = 0.99
EARLY = 0.01
"""The least share of rounds in which something came before its decision that is worth a word."""
RARE = 0.01
"""Propensities below make a value noisy."""
COPIES = 0.01
"""The least share of rounds that are there already that is worth a word."""
TELLING = 0.9
"""A column tells rounds apart if so large a share of different rounds have a value of their own in it."""


def copies_of_reward(sample: Sample) -> BoolArray:
    """The columns of z that are the reward, or a function of it."""
    rows = sample.complete
    z, rewards = (each[rows] - each[rows][0] for each in (sample.rounds.z, sample.rounds.rewards))
    return np.array([max(_by_line(c, rewards), _by_bins(c, rewards)) >= COPY for c in z.T], dtype=bool)


def _by_line(column: FloatArray, rewards: FloatArray) -> float:
    """How much of the reward a line in this column explains: bins are too wide for long tails."""
    z, r = column - column.mean(), rewards - rewards.mean()
    whole = float((z @ z) * (r @ r))
    return float(z @ r) ** 2 / whole if whole > 0.0 else 0.0


def _by_bins(column: FloatArray, rewards: FloatArray) -> float:
    """How much of the reward a step function of this column explains."""
    ranks = np.searchsorted(np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1])), column)
    counts = np.bincount(ranks)
    means = np.bincount(ranks, rewards) / np.maximum(counts, 1)
    whole = float(np.var(rewards))
    return 1.0 - float(np.mean((rewards - means[ranks]) ** 2)) / whole if whole > 0.0 else 0.0


def known_before(sample: Sample) -> BoolArray:
    """The columns of z that were known before an arm was served: lines in x."""
    rows = sample.has_z
    x, z = sample.rounds.x[rows], sample.rounds.z[rows]
    whole, left = deviations(z) ** 2, held_out(line, x, z).mean(axis=0)
    varies = whole > 0.0  # a constant says nothing, early or late
    return np.asarray(varies & (1.0 - left / np.where(varies, whole, 1.0) >= KNOWN))


def leaks(sample: Sample, copies: BoolArray, known: BoolArray) -> Iterator[Objection]:
    """z that is the reward, or was there before."""
    names = np.array(sample.rounds.z_names, dtype=object)
    if copies.any():
        yield Objection(
            "leaked",
            True,
            f"{listed(names[copies].tolist())}: alone explains at least {COPY:.0%} of the reward, so it is "
            "the reward under another name, and left out below. If it comes earlier, use it as the reward.",
        )
    if known.any():
        yield Objection(
            "leaked",
            True,
            f"{listed(names[known].tolist())}: a line in x, so it was known before serving, and is left out "
            "below: x already says it.",
        )
    early = _share_early(sample.z_delays)
    if early > EARLY:
        yield Objection(
            "leaked", True, f"z came before the decision in {early:.0%} of rounds: what is known then is x."
        )


def times(sample: Sample) -> Iterator[Objection]:
    """Rewards that came before what they are for."""
    early = _share_early(sample.reward_delays)
    if early > EARLY:
        yield Objection(
            "times",
            True,
            f"Rewards came before the decision in {early:.0%} of rounds, as by clocks of two time zones: "
            "without right times it is not known how late feedback is, nor in which order it came.",
        )


def _share_early(delays: FloatArray) -> float:
    """In which share of the rounds whose delay is known it is negative."""
    known = delays[~np.isnan(delays)]
    return float(np.mean(known < 0.0)) if len(known) else 0.0


def repetition(sample: Sample) -> Iterator[Objection]:
    """Whether rounds are in the log more than once.

    Rounds of categories may agree by chance; those with a number that hardly two other rounds share do not.
    """
    rounds, kept = sample.rounds, sample.complete
    rows = np.column_stack([rounds.x, rounds.z, rounds.rewards, rounds.arms])[kept]
    different = np.unique(rows, axis=0)
    copies = 1.0 - len(different) / len(rows)
    telling = max(len(np.unique(column)) for column in different.T) / len(different)
    if copies >= COPIES and telling >= TELLING:
        yield Objection(
            "repeated",
            True,
            f"{copies:.0%} of complete rounds are copies of others: the same x, arm, z and reward. What was "
            "held out has been learnt from, and intervals are too narrow. Log each round once.",
        )


def drift(sample: Sample) -> Iterator[Objection]:
    """Whether what the first half of the log teaches still holds in the second."""
    rounds = sample.rounds
    inputs = np.hstack([rounds.x, sample.columns])
    z_scale = deviations(rounds.z[sample.has_z])
    targets = {
        "z": (inputs, rounds.z / np.where(z_scale > 0.0, z_scale, 1.0), sample.has_z),
        "the reward": (_own_lines(sample), rounds.rewards[:, None], sample.has_reward),
    }
    for name, (columns, values, there) in targets.items():
        lost = _loss_of_past(columns[there], values[there], rounds.arms[there])
        if lost is not None and lost.low > 0.0 and lost.value >= DRIFT:
            yield Objection(
                "drift",
                True,
                f"In the second half of the log, lines from the first half explain {lost} less of {name} "
                "than lines from the second. Let the policy forget (policy.forget), and trust recent rounds.",
            )


def _own_lines(sample: Sample) -> FloatArray:
    x = sample.rounds.x - sample.rounds.x.mean(axis=0)
    own = (sample.columns[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return (
        np.hstack([x, sample.columns, own]) if own.shape[1] <= len(x) / 10 else np.hstack([x, sample.columns])
    )


def _loss_of_past(inputs: FloatArray, targets: FloatArray, arms: IntArray) -> Share | None:
    half = len(inputs) // 2
    if half < 100:
        return None
    late, arms = targets[half:], arms[half:]
    past = line().fit(inputs[:half], np.squeeze(targets[:half]))
    by_past = (late - past.predict(inputs[half:]).reshape(late.shape)) ** 2
    by_present = held_out(line, inputs[half:], late)
    whole = held_out_means(late, arms)
    found = difference(by_past.sum(axis=1), by_present.sum(axis=1), whole.sum(axis=1))
    return Share(
        found.value, found.error * 1.5
    )  # two targets are looked at, and a false alarm costs an answer


def selection(sample: Sample) -> Iterator[Objection]:
    """Whether arms were served as often as their propensities say, and to the same x.

    1{arm = a}/p has mean 1 given any x for which the arm could be served, if propensities are right and no
    row was left out because of what followed. Rows that were kept by their outcome have too many of the arms
    that make such outcomes.
    """
    rounds, could_serve = sample.rounds, sample.could_serve
    scale = deviations(rounds.x)
    varying = (rounds.x - rounds.x.mean(axis=0))[:, scale > 0.0] / scale[scale > 0.0]
    x = np.hstack([np.ones((len(varying), 1)), varying])
    largest, where = 0.0, ""
    tests = 0
    for arm, name in enumerate(rounds.arm_names):
        own = rounds.arms == arm
        if np.count_nonzero(own) < 30:
            continue
        terms = (own / rounds.propensities - could_serve[:, arm])[:, None] * x
        squares = terms**2  # around the mean that there is if all is well, which is 0
        if rounds.all_propensities is not None:  # their expectation: rare draws may not have happened
            p = rounds.all_propensities[:, arm]
            variances = np.where(p > 0.0, 1.0 - p, 0.0) / np.where(p > 0.0, p, 1.0)
            squares = np.where(np.isnan(p)[:, None], squares, variances[:, None] * x**2)
        error = np.sqrt(squares.mean(axis=0) / len(x))
        scores = np.abs(terms.mean(axis=0)) / np.where(error > 0.0, error, np.inf)
        tests += len(scores)
        if scores.max() > largest:
            largest = float(scores.max())
            rounds_or_x = "often" if scores.argmax() == 0 else "often for some x"
            where = f"arm {name!r} was not served as {rounds_or_x} as its propensities say"
    if tests and largest > beyond_chance(tests):
        yield Objection(
            "selected",
            True,
            f"{where} ({largest:.0f} standard errors): either propensities are wrong, or rows were left out "
            "because of what followed, such as rounds without a sale. Then every number here is wrong: log "
            "every round.",
        )


def missing(sample: Sample) -> Iterator[Objection]:
    """Whether the rounds without z or reward are like the others."""
    rounds, old = sample.rounds, _old_enough(sample)
    z_and_arms = np.hstack([np.nan_to_num(rounds.z, nan=0.0), sample.columns])
    lost = "have neither z nor a reward", np.hstack([rounds.x, sample.columns]), "x and the arm"
    unpaid = "with z have no reward", np.hstack([rounds.x, z_and_arms]), "x, z and the arm"
    came = sample.has_z | sample.has_reward
    for (what, inputs, names), among, there in (
        (lost, old, came),
        (unpaid, old & sample.has_z, sample.has_reward),
    ):
        told = _told(among, there, inputs)
        if told is not None and told.low > 0.0 and told.value > DRIFT / 2:
            yield Objection(
                "missing",
                False,
                f"{1 - there[among].mean():.0%} of rounds {what}, and not at random: {names} explain {told} "
                "of the variance of that. Evaluate with dr_followups, which takes care of what they tell.",
            )
    before = _own_lines(sample)
    both = np.hstack([before, rounds.rewards[:, None]])
    told = _told(sample.has_reward, sample.has_z, both, before)
    if told is not None and told.low > 0.0 and told.value > DRIFT:
        lacking = 1.0 - sample.has_z[sample.has_reward].mean()
        yield Objection(
            "selected",
            True,
            f"{lacking:.0%} of rounds with a reward have no z, and the reward explains {told} of the "
            "variance of that beyond x and the arm: z is there because of what followed it. Rounds with z "
            "are not like rounds without.",
        )


def _told(
    among: BoolArray, there: BoolArray, inputs: FloatArray, beyond: FloatArray | None = None
) -> Share | None:
    """How much of the variance of being there inputs explain, beyond others; None if hardly any are not."""
    values = there[among].astype(float)[:, None]
    if not (len(values) >= FOLDS and 0.01 < values.mean() < 0.99):
        return None
    whole = held_out_means(values)[:, 0]
    without = whole if beyond is None else held_out(line, beyond[among], values)[:, 0]
    return difference(without, held_out(line, inputs[among], values)[:, 0], whole)


def _old_enough(sample: Sample) -> BoolArray:
    """Rounds whose reward should have come by now: those that are out do not count as missing."""
    known = sample.reward_delays[~np.isnan(sample.reward_delays)]
    if not len(known) or np.isnan(sample.times).any():
        return np.ones(len(sample.rounds), dtype=bool)
    seen_until = np.nanmax(sample.times + np.nan_to_num(sample.reward_delays))
    return np.asarray(sample.times <= seen_until - np.quantile(known, 0.99))


def support(sample: Sample) -> Iterator[Objection]:
    """Arms of which the log says too little."""
    rounds = sample.rounds
    needed = max(30, 2 * (rounds.dim_x + rounds.dim_z))
    served = np.bincount(rounds.arms[sample.complete], minlength=rounds.n_arms)
    scarce = [name for name, n in zip(rounds.arm_names, served, strict=True) if n < needed]
    if scarce:
        have, them = ("has", "it") if len(scarce) == 1 else ("have", "them")
        yield Objection(
            "support",
            len(scarce) > rounds.n_arms / 2,
            f"{len(scarce)} of {rounds.n_arms} arms {have} fewer than {needed} complete rounds in the sample "
            f"({listed(scarce)}): the log says little of {them}.",
        )
    others = 1 if rounds.eligible is None else rounds.eligible.sum(axis=1) - 1
    certain = float(np.mean((rounds.propensities >= 1.0) & (others > 0)))
    if certain > 0.001:
        yield Objection(
            "support",
            certain > 0.5,
            f"{certain:.0%} of rounds were served with propensity 1, though other arms were eligible: what "
            "these would have brought is not in the log. If arms were drawn, log their probabilities.",
        )
    rare = float(np.mean(rounds.propensities < RARE))
    if rare > 0.001:
        yield Objection(
            "support",
            False,
            f"{rare:.1%} of rounds were served with a propensity below {RARE}: they weigh a lot.",
        )


def collinearity(sample: Sample) -> Iterator[Objection]:
    """Columns of z that others repeat."""
    rows = sample.has_z
    u = np.hstack([sample.rounds.x, sample.rounds.z])[rows]
    scale = deviations(u)
    u = np.where(scale > 0.0, (u - u.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0), 0.0)
    repeated = []
    for j, name in enumerate(sample.rounds.z_names):
        column, others = u[:, sample.rounds.dim_x + j], np.delete(u, sample.rounds.dim_x + j, axis=1)
        fitted = others @ np.linalg.lstsq(others, column, rcond=None)[0]
        if column.any() and 1.0 - float(np.mean((column - fitted) ** 2)) > COLLINEAR:
            repeated.append(name)
    if repeated:
        yield Objection(
            "collinear",
            False,
            f"{listed(repeated)}: other columns explain more than {COLLINEAR:.0%} of it, so it adds little.",
        )
