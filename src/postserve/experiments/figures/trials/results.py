"""Which policy is better on the trials, with intervals over rows and orderings: sentences and pictures."""

from collections.abc import Sequence
from typing import Any

from postserve.evaluation.halves import halves_interval
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import listed
from postserve.experiments.figure import Claim
from postserve.experiments.figures.trials.policies import always, where_z_does_not, where_z_follows_the_arm
from postserve.experiments.figures.trials.worlds import CUTS, FULLY_KNOWN, LOGGED
from postserve.experiments.study import Line, Study
from postserve.experiments.tables import interval_text
from postserve.types import FloatArray

REJECTION, WEIGHTED = "rejection", "weighted"
MARKERS = {REJECTION: "o", WEIGHTED: "s"}
RIVALS = (c.X_ONLY, c.BEFORE, c.AFTER)


def place(trial: str, method: str) -> str:
    """The name of a trial's replay."""
    return f"{trial}: {method}"


REPLAYED = tuple(place(trial, method) for trial in LOGGED for method in MARKERS)
PLACES = (*REPLAYED, *FULLY_KNOWN)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean over seeds, and its 95% interval."""
    return halves_interval(values, CUTS)


def gain(study: Study, where: str, one: Line, other: Line) -> tuple[float, float, float]:
    """One's value minus the other's, in the same halves and orders: the mean and its 95% interval."""
    return interval(study.differences(where, one, other))


def headline(study: Study) -> str:
    """The first sentence of the report: where follow-ups did not help, as far as intervals show."""
    words = []
    for rival in RIVALS:
        gains = {where: gain(study, where, c.POLINUCB, rival) for where in PLACES}
        more = [where for where, (_, low, _) in gains.items() if low > 0.0]
        less = [where for where, (_, _, high) in gains.items() if high < 0.0]
        if len(more) < len(PLACES):
            seen = (("greater", more), ("smaller", less))
            found = [f"{word} in {listed(names)}" for word, names in seen if names]
            but = f" ({'; '.join(found)})" if found else ""
            words.append(f"{rival} in {len(PLACES) - len(more)}{but}")
    opening = f"On the trials and Jester, three data sets in {len(PLACES)} replays, poLinUCB's value is"
    if not words:
        rivals = listed([rival.name for rival in RIVALS])
        return f"{opening} greater than that of {rivals} in all, by 95% intervals that exclude 0."
    return f"{opening} not greater, by a 95% interval that excludes 0, than that of {listed(words)} of them."


def claims(study: Study) -> list[Claim]:
    """The paper's order, that anything is learnt at all, and what else was seen."""
    return [
        *(_beats(study, c.POLINUCB, rival) for rival in RIVALS),
        _beats(study, c.X_ONLY, c.RANDOM),
        _beats(study, c.POLINUCB, c.RANDOM),
        _compared(
            study, "A map that ignores the arm, though z depends on it", c.ONE_MAP, c.POLINUCB, REPLAYED
        ),
        _compared(
            study,
            "A map of its own for each arm, LinUCB(x) but for the prior",
            c.MAP_PER_ARM,
            c.X_ONLY,
            REPLAYED,
        ),
        _compared(study, "Both z and its prediction", c.ROBUST, c.POLINUCB, PLACES),
        _compared(study, "Shown z before it serves", c.ORACLE, c.POLINUCB, PLACES),
        *(_best_arm(study, trial) for trial in LOGGED),
    ]


def _beats(study: Study, one: c.Contender, other: c.Contender) -> Claim:
    """That one has the greater value everywhere, each interval excluding 0."""
    seen = {where: gain(study, where, one, other) for where in PLACES}
    failures = [where for where, (_, low, _) in seen.items() if not low > 0.0]
    gains = "; ".join(f"{where}: {interval_text(*found)}" for where, found in seen.items())
    return Claim(
        f"{one} has a greater value than {other}, the paired difference's 95% interval excluding 0. {gains}."
        + (f" Not so on {len(failures)} of {len(PLACES)}." if failures else ""),
        not failures,
    )


def _compared(study: Study, what: str, one: c.Contender, other: c.Contender, places: Sequence[str]) -> Claim:
    words = []
    for where in places:
        mean, low, high = gain(study, where, one, other)
        verdict = "better" if low > 0.0 else "worse" if high < 0.0 else "cannot be distinguished"
        words.append(f"{where}: {verdict} ({interval_text(mean, low, high)})")
    return Claim(f"{what}: {one} against {other}. {'; '.join(words)}.", None)


def _best_arm(study: Study, trial: str) -> Claim:
    """The best single arm, chosen in hindsight, against the policies that choose by x."""
    where = place(trial, WEIGHTED)
    arms = [name for name in study.policies if name.startswith(always("", 0).name) and study.has(where, name)]
    best = max(arms, key=lambda name: float(study.final(where, name).mean()))
    gains = (f"{one}: {interval_text(*gain(study, where, one, best))}" for one in (c.X_ONLY, c.POLINUCB))
    return Claim(
        f"{where}: the best single arm in hindsight is {best}. Minus its value, {'; '.join(gains)}.", None
    )


def draw(study: Study) -> Any:
    """One row per trial: values on the left, minus poLinUCB's on the right."""
    trials = {trial: {method: place(trial, method) for method in MARKERS} for trial in LOGGED}
    trials |= {trial: {REJECTION: trial} for trial in FULLY_KNOWN}
    arms = [name.removeprefix(always("", 0).name) for name in study.policies]
    everyone = [*where_z_follows_the_arm(tuple(arms)), *where_z_does_not()]
    with style.picture(len(trials), 2, height=3.0, width=6.2) as (made, axes):
        for (left, right), (trial, places) in zip(axes, trials.items(), strict=True):
            first = next(iter(places.values()))
            ran = [each for each in dict.fromkeys(everyone) if study.has(first, each)]
            _draw(left, study, places, ran, None)
            left.set_title(trial if trial in LOGGED else f"{trial}: every reward is known")
            left.set_xlabel("value: mean reward, 95% intervals")
            _draw(right, study, places, [each for each in ran if each != c.POLINUCB], c.POLINUCB)
            right.axvline(0.0, color=style.REFERENCE, linewidth=1)
            right.set_xlabel(f"value minus that of {c.POLINUCB}, paired, 95% intervals")
        handles = [
            axes[0, 0].plot([], [], marker, color=c.RANDOM.colour, label=method)[0]
            for method, marker in MARKERS.items()
        ]
        made.legend(handles=handles, loc="outside upper center", ncols=2)
        return made


def _draw(
    panel: Any,
    study: Study,
    places: dict[str, str],
    contenders: list[c.Contender],
    reference: c.Contender | None,
) -> None:
    for row, contender in enumerate(reversed(contenders)):
        for shift, (method, where) in zip((0.15, -0.15), places.items(), strict=False):
            values = study.final(where, contender)
            if reference is not None:
                values = study.differences(where, contender, reference)
            at = row + (shift if len(places) > 1 else 0.0)
            style.draw_interval(panel, at, interval(values), fmt=MARKERS[method], color=contender.colour)
    style.name_rows(panel, contenders)
