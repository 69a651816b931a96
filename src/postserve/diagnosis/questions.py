"""The questions of docs/follow-ups.md, answered by regressions on held-out rows of a log."""

from typing import Any

import numpy as np

from postserve.diagnosis.features import BENT, rows_of
from postserve.diagnosis.findings import Finding, counted, unit_of
from postserve.diagnosis.predicting import (
    MOST_COLUMNS,
    MOST_FOREST_ROWS,
    PERHAPS,
    WIDTH,
    Share,
    beyond_chance,
    deviations,
    difference,
    forest,
    held_out,
    held_out_means,
    line,
    more,
    products,
    share,
)
from postserve.diagnosis.sample import Sample
from postserve.types import FloatArray, IntArray

MATERIAL = 0.02
"""Smaller shares of a variance make no difference to a policy, however certain they are."""
LARGE = 0.5
"""A difference between arms of so many deviations of z may not be left open."""
FEW = 30
"""Of an arm with fewer rounds nothing is said."""


def is_material(found: Share) -> bool:
    """Whether a share is certain and large enough to matter."""
    return found.low > 0.0 and found.value >= MATERIAL


def _in_words(found: Share, material: str, other: str) -> str:
    """What a share says: the one or the other, or neither if its interval leaves both."""
    if is_material(found):
        return material
    return other if found.high < MATERIAL else "which of both cannot be told"


def _spread(values: FloatArray) -> FloatArray:
    """With mean 0 and deviation 1; what never varies is 0."""
    scale = deviations(values)
    return np.where(scale > 0.0, (values - values.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0), 0.0)


def _around_arms(values: FloatArray, arms: IntArray) -> FloatArray:
    """What is left of rows after the mean of their arm."""
    counts = np.maximum(np.bincount(arms), 1)[:, None]
    means = np.stack([np.bincount(arms, column) for column in values.T], axis=1) / counts
    return np.asarray(values - means[arms])


def predictability(sample: Sample) -> Finding:
    """How well x tells each z: by a line, by a forest, and by features that a map may have."""
    there = sample.has_z
    x, arms = sample.rounds.x[there], sample.rounds.arms[there]
    z = _spread(_around_arms(sample.rounds.z[there], arms))
    of_means = held_out_means(z)
    errors = {
        name: held_out(line, rows, z)
        for name, rows in ((name, rows_of(name, x)) for name in ("line", *BENT))
        if rows.shape[1] <= MOST_COLUMNS or name == "line"
    }
    few = slice(None, None, max(1, -(-len(x) // MOST_FOREST_ROWS)))
    by_forest, of_forest = held_out(forest, x[few], z[few]), held_out_means(z[few])
    whole = of_means.sum(axis=1)
    bends = {
        name: difference(errors["line"].sum(axis=1), errors[name].sum(axis=1), whole)
        for name in errors
        if name != "line"
    }
    chosen = max(
        (name for name in bends if is_material(bends[name])), key=lambda n: bends[n].value, default="line"
    )
    columns = {
        name: {
            "line": share(errors["line"][:, j], of_means[:, j]).numbers(),
            "flexible": max(
                (share(errors[kind][:, j], of_means[:, j]) for kind in bends),
                default=share(by_forest[:, j], of_forest[:, j]),
            ).numbers(),
            "forest": share(by_forest[:, j], of_forest[:, j]).numbers(),
        }
        for j, name in enumerate(sample.rounds.z_names)
    }
    total = share(errors["line"].sum(axis=1), whole)
    best = share(errors[chosen].sum(axis=1), whole)
    rough = difference(errors[chosen][few].sum(axis=1), by_forest.sum(axis=1), of_forest.sum(axis=1))
    words = f"A line in x explains {total} of z beyond the arms' means"
    if chosen == "line" and any(each.high >= MATERIAL for each in bends.values()):
        words += ", and whether curves explain more cannot be told."
    elif chosen == "line":
        words += ", and curves explain no more: phi is a line, so expect a gain in variance only."
    else:
        words += f", and {BENT[chosen]} {best}: phi is curved, and a map needs such features."
    if is_material(rough):
        words += f" A forest explains {rough} more yet: phi has steps or products that these features lack."
    if best.high < MATERIAL:
        words = f"No: x explains {best} of z beyond the arms' means, so phi is all but a constant."
    elif not is_material(best):
        words = f"It cannot be told: x explains {best} of z beyond the arms' means."
    return Finding(
        "predictability",
        "Does x predict z, and is phi curved?",
        words,
        {
            "columns": columns,
            "features": chosen,
            "line": total.numbers(),
            "best": best.numbers(),
            "curved": {name: each.numbers() for name, each in bends.items()},
        },
    )


def worth(sample: Sample) -> Finding:
    """How much of each arm's reward z explains beyond x."""
    there, rounds = sample.complete, sample.rounds
    x, z, arms, rewards = rounds.x[there], rounds.z[there], rounds.arms[there], rounds.rewards[there, None]
    per_arm, kept = {}, []
    for arm, name in enumerate(rounds.arm_names):
        own = arms == arm
        if np.count_nonzero(own) < max(FEW, 2 * (rounds.dim_x + rounds.dim_z)):
            continue
        of_mean = held_out_means(rewards[own])[:, 0]
        by_x = held_out(line, x[own], rewards[own])[:, 0]
        by_both = held_out(line, np.hstack([x[own], z[own]]), rewards[own])[:, 0]
        kept.append((by_x, by_both, of_mean))
        per_arm[name] = {
            "rounds": int(own.sum()),
            "x": share(by_x, of_mean).numbers(),
            "x and z": share(by_both, of_mean).numbers(),
            "beyond": difference(by_x, by_both, of_mean).numbers(),
        }
    if not kept:
        return Finding(
            "worth",
            "Does z say something about the reward that x does not?",
            "No arm has enough rounds to tell.",
            {"arms": {}, "beyond": Share(0.0, np.inf).numbers()},
        )
    by_x, by_both, of_mean = (np.concatenate(each) for each in zip(*kept, strict=True))
    beyond, alone = difference(by_x, by_both, of_mean), share(by_x, of_mean)
    words = f"x explains {alone} of the reward beyond the arms' means, and z {beyond} more."
    if beyond.high < MATERIAL:
        words = f"No: beyond x, z explains {beyond} of the reward. There is nothing to gain from it."
    elif not is_material(beyond):
        words = f"It cannot be told: beyond x, z explains {beyond} of the reward."
    return Finding(
        "worth",
        "Does z say something about the reward that x does not?",
        words,
        {"arms": per_arm, "x": alone.numbers(), "beyond": beyond.numbers()},
    )


def follows(sample: Sample) -> Finding:
    """Whether z differs between arms that were served at random.

    An arm is compared with the others in rounds in which both could be served: elsewhere x may be another.
    """
    there, rounds = sample.has_z, sample.rounds
    z, arms, weights = _spread(rounds.z[there]), rounds.arms[there], 1.0 / rounds.propensities[there]
    could_serve = sample.could_serve[there]
    others = could_serve.sum(axis=1) - 1
    differs: dict[str, dict[str, float]] = {name: {} for name in rounds.z_names}
    errors: dict[str, dict[str, float]] = {name: {} for name in rounds.z_names}
    worst, which, tests = 0.0, ("", ""), 0
    for arm, name in enumerate(rounds.arm_names):
        either = could_serve[:, arm] & (others > 0)
        own, not_own = either & (arms == arm), either & (arms != arm)
        if min(np.count_nonzero(own), np.count_nonzero(not_own)) < FEW:
            continue
        mean, error = _means_and_errors(z[own], weights[own])
        rest, error_of_rest = _means_and_errors(z[not_own], weights[not_own] / others[not_own])
        off, errors_of_arm = mean - rest, np.hypot(error, error_of_rest)
        scores = np.abs(off) / errors_of_arm
        tests += len(scores)
        for j, column in enumerate(rounds.z_names):
            differs[column][name], errors[column][name] = float(off[j]), float(errors_of_arm[j])
        if scores.max() > worst:
            worst, which = float(scores.max()), (rounds.z_names[int(scores.argmax())], name)
    widest = [
        abs(off) + WIDTH * errors[column][name]
        for column, each in differs.items()
        for name, off in each.items()
    ]
    largest, moved = max(widest, default=0.0), tests > 0 and worst > beyond_chance(tests)
    perhaps = not moved and (not tests or worst > beyond_chance(tests, PERHAPS) or largest > LARGE)
    far = (
        f"the largest of {counted(tests, 'difference')} between an arm and the others is {worst:.1f} "
        f"standard errors, and none is beyond {largest:.2f} standard deviations of z, by 95% intervals."
    )
    if not tests:
        words = f"It cannot be told: no arm has {FEW} rounds in which others could be served too."
    elif moved:
        words = (
            f"Yes: {which[0]} after arm {which[1]!r} differs from {which[0]} after other arms; {far} Each "
            "arm needs a level of its own, at least (HybridMap)."
        )
    elif perhaps:
        words = f"It cannot be told: {far} A HybridMap is the safe choice."
    else:
        words = f"No: {far} One phi will do."
    return Finding(
        "follows",
        "Does z follow the arm?",
        words,
        {
            "differences": differs,
            "errors": errors,
            "largest_score": worst,
            "follows": moved,
            "may_follow": perhaps,
        },
    )


def _means_and_errors(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The means of columns whose deviation in all rows is 1.

    Where rows with large weights lie far from the mean, errors say so. They are at least those of rows with
    deviation 1: smaller ones may be chance, as rows may be few.
    """
    squares = (weights / weights.sum()) ** 2
    means = weights @ values / weights.sum()
    return means, np.sqrt(np.maximum(squares @ (values - means) ** 2, squares.sum()))


def sharing(sample: Sample, features: str) -> Finding:
    """What the arms share: the slopes of phi, and what z is worth."""
    rounds = sample.rounds
    there = sample.has_z
    rows, indicators = _spread(rows_of(features, rounds.x[there])), sample.columns[there]
    numbers = {}
    if rows.shape[1] * rounds.n_arms <= 10 * MOST_COLUMNS:
        z = _spread(rounds.z[there])
        whole = held_out_means(z, rounds.arms[there]).sum(axis=1)
        one = held_out(line, np.hstack([rows, indicators]), z).sum(axis=1)
        own = held_out(line, products(indicators, rows), z).sum(axis=1)
        numbers["slopes"] = difference(one, own, whole)
    there = sample.complete
    u, indicators = _spread(np.hstack([rounds.x, rounds.z])[there]), sample.columns[there]
    if u.shape[1] * rounds.n_arms <= 10 * MOST_COLUMNS:
        rewards = rounds.rewards[there, None]
        whole = held_out_means(rewards, rounds.arms[there])[:, 0]
        x_own = products(indicators, u[:, : rounds.dim_x])
        z_part = u[:, rounds.dim_x :]
        one = held_out(line, np.hstack([x_own, z_part]), rewards)[:, 0]
        own = held_out(line, np.hstack([x_own, products(indicators, z_part)]), rewards)[:, 0]
        numbers["worth"] = difference(one, own, whole)
    parts = []
    if "slopes" in numbers:
        found = numbers["slopes"]
        end = _in_words(found, "x moves z differently after each arm", "x moves z alike after all arms")
        parts.append(f"Own slopes of each arm explain {more(found)} of z than common ones: {end}.")
    if "worth" in numbers:
        found = numbers["worth"]
        end = _in_words(
            found, "z is worth more to some arms than to others", "z is worth the same to all arms"
        )
        parts.append(f"Own weights of z explain {more(found)} of the reward: {end}.")
    return Finding(
        "sharing",
        "What do the arms share?",
        " ".join(parts) or "There are too many arms and columns to tell on this many rounds.",
        {
            **{name: found.numbers() for name, found in numbers.items()},
            "own_slopes": "slopes" in numbers and is_material(numbers["slopes"]),
            "own_worth": "worth" in numbers and is_material(numbers["worth"]),
        },
    )


def lateness(sample: Sample) -> Finding:
    """How late z and rewards come, and how many have not."""
    missing_z, missing = (1.0 - float(came.mean()) for came in (sample.has_z, sample.has_reward))
    span = sample.span()
    numbers: dict[str, Any] = {"missing_z": missing_z, "missing_rewards": missing, "days": span}
    parts = []
    for name, title, delays in (("z", "z", sample.z_delays), ("reward", "rewards", sample.reward_delays)):
        known = delays[~np.isnan(delays)]
        if len(known):
            middle, late = float(np.median(known)), float(np.quantile(known, 0.9))
            numbers |= {f"{name}_delay": middle, f"{name}_delay_90": late}
            numbers[f"{name}_quantiles"] = np.quantile(known, np.linspace(0, 1, 101)).tolist()
            parts.append(f"half of {title} came {_within(middle)}, 90% {_within(late)}")
    words = (
        f"{'; '.join(parts)}. The log spans {_duration(span)}."
        if parts
        else "The log does not say when they came."
    )
    words += f" {missing_z:.0%} of rounds have no z, {missing:.0%} no reward."
    numbers["late"] = numbers.get("reward_delay", 0.0) > span / 20.0
    if numbers["late"]:
        words += " Rewards are late: the answer rests on what is gained with such delays."
    return Finding("lateness", "How late are z and rewards?", words[0].upper() + words[1:], numbers)


def _within(days: float) -> str:
    if days < 0.0:
        return f"at least {_duration(-days)} before the decision"
    return f"within {_duration(days)}"


def _duration(days: float) -> str:
    """In words, in the unit that fits."""
    unit, size = unit_of(days)
    return f"{days / size:,.3g} {unit}"
