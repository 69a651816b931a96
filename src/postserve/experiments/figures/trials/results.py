"""Which policy is better on the trials, with intervals over rows and orders: sentences and pictures."""

from typing import Any

from postserve.evaluation.halves import halves_interval
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import listed, verdict
from postserve.experiments.figure import Claim
from postserve.experiments.figures.trials import worlds as w
from postserve.experiments.figures.trials.worlds import CUTS, FULLY_KNOWN, LOGGED
from postserve.experiments.statistics import Interval
from postserve.experiments.study import Line, Study
from postserve.types import FloatArray

REJECTION, WEIGHTED = "rejection", "weighted"
MARKERS = {REJECTION: "o", WEIGHTED: "s"}
RIVALS = (c.X_ONLY, c.BEFORE, c.AFTER)


def place(trial: str, method: str) -> str:
    """The name of a trial's replay."""
    return f"{trial}: {method}"


REPLAYED = tuple(place(trial, method) for trial in LOGGED for method in MARKERS)
PLACES = (*REPLAYED, *FULLY_KNOWN)


def interval(values: FloatArray) -> Interval:
    return Interval(*halves_interval(values, CUTS))


def gain(study: Study, where: str, one: Line, other: Line) -> Interval:
    """One's value minus the other's, in the same halves and orders."""
    return interval(study.differences(where, one, other))


def headline(study: Study) -> str:
    """Where follow-ups did not help, as far as intervals show."""
    words = []
    for rival in RIVALS:
        gains = {where: gain(study, where, c.POLINUCB, rival) for where in PLACES}
        greater = [where for where, found in gains.items() if found.above]
        smaller = [where for where, found in gains.items() if found.below]
        if len(greater) < len(PLACES):
            seen = {"greater": greater, "smaller": smaller}
            found = "; ".join(f"{word} in {listed(places)}" for word, places in seen.items() if places)
            words.append(f"{rival} in {len(PLACES) - len(greater)}" + (f" ({found})" if found else ""))
    opening = f"On the trials and Jester, three data sets in {len(PLACES)} replays, poLinUCB's value is"
    if not words:
        rivals = listed([rival.name for rival in RIVALS])
        return f"{opening} greater than that of {rivals} in all, by 95% intervals that exclude 0."
    return f"{opening} not greater, by a 95% interval that excludes 0, than that of {listed(words)} of them."


def claims(study: Study) -> list[Claim]:
    return [
        *(_beats(study, c.POLINUCB, rival) for rival in RIVALS),
        _beats(study, c.X_ONLY, c.RANDOM),
        _beats(study, c.POLINUCB, c.RANDOM),
        _compared(study, "A map that ignores the arm, though z depends on it", c.ONE_MAP, c.POLINUCB),
        _compared(study, "One map per arm, LinUCB(x) but for the prior", c.MAP_PER_ARM, c.X_ONLY),
        _compared(study, "Both z and its prediction", c.ROBUST, c.POLINUCB),
        _compared(study, "Shown z before it serves", c.ORACLE, c.POLINUCB),
        *(_best_arm(study, trial) for trial in LOGGED),
    ]


def _beats(study: Study, one: c.Contender, other: c.Contender) -> Claim:
    """That one has the greater value everywhere, each interval excluding 0."""
    gains = {where: gain(study, where, one, other) for where in PLACES}
    seen = "; ".join(f"{where}: {found}" for where, found in gains.items())
    text = f"{one} has a greater value than {other}, each paired 95% interval excluding 0. {seen}."
    failures = sum(not found.above for found in gains.values())
    return Claim(text + (f" Not so on {failures} of {len(PLACES)}." if failures else ""), not failures)


def _compared(study: Study, what: str, one: c.Contender, other: c.Contender) -> Claim:
    gains = {where: gain(study, where, one, other) for where in PLACES if study.has(where, one)}
    words = (f"{where}: {verdict(found, 'worse', 'better')} ({found})" for where, found in gains.items())
    return Claim(f"{what}: {one} against {other}. {'; '.join(words)}.", None)


def _best_arm(study: Study, trial: str) -> Claim:
    """The best single arm, chosen in hindsight, against the policies that choose by x."""
    where = place(trial, WEIGHTED)
    arms = [
        name for name in study.policies if name.startswith(w.always("", 0).name) and study.has(where, name)
    ]
    best = max(arms, key=lambda name: float(study.final(where, name).mean()))
    gains = "; ".join(f"{one}: {gain(study, where, one, best)}" for one in (c.X_ONLY, c.POLINUCB))
    return Claim(f"{where}: the best single arm in hindsight is {best}. Minus its value, {gains}.", None)


def draw(study: Study) -> Any:
    """One row per trial: values on the left, minus poLinUCB's on the right."""
    trials = {trial: {method: place(trial, method) for method in MARKERS} for trial in LOGGED}
    trials |= {trial: {REJECTION: trial} for trial in FULLY_KNOWN}
    arms = [name.removeprefix(w.always("", 0).name) for name in study.policies]
    everyone = dict.fromkeys([*w.where_z_follows_the_arm(tuple(arms)), *w.where_z_does_not()])
    with style.picture(len(trials), 2, height=3.0, width=6.2) as (made, axes):
        for (left, right), (trial, places) in zip(axes, trials.items(), strict=True):
            first = next(iter(places.values()))
            ran = [each for each in everyone if study.has(first, each)]
            _draw(left, study, places, ran, None)
            left.set_title(trial if trial in LOGGED else f"{trial}: every reward is known")
            left.set_xlabel("value: mean reward, 95% intervals")
            _draw(right, study, places, [each for each in ran if each != c.POLINUCB], c.POLINUCB)
            right.axvline(0.0, color=style.REFERENCE, linewidth=1)
            right.set_xlabel(f"value minus that of {c.POLINUCB}, paired, 95% intervals")
        for method, marker in MARKERS.items():
            axes[0, 0].plot([], [], marker, color=c.RANDOM.colour, label=method)
        style.legend(made, [axes[0, 0]], 2)
        return made


def _draw(
    panel: Any, study: Study, places: dict[str, str], ran: list[c.Contender], reference: c.Contender | None
) -> None:
    shifts = (0.15, -0.15) if len(places) > 1 else (0.0,)
    for row, each in enumerate(reversed(ran)):
        for shift, (method, where) in zip(shifts, places.items(), strict=True):
            values = study.differences(where, each, reference) if reference else study.final(where, each)
            style.draw_interval(panel, row + shift, interval(values), fmt=MARKERS[method], color=each.colour)
    style.name_rows(panel, ran)
