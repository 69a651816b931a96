"""The trials: what each policy is worth, and by how much poLinUCB differs, with intervals."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.contenders import POLINUCB, RANDOM
from postserve.experiments.figures.trials.claims import gain, interval
from postserve.experiments.figures.trials.settings import REJECTION, WEIGHTED, place
from postserve.experiments.figures.trials.worlds import FULL, LOGGED
from postserve.experiments.study import Study

MARKERS = {REJECTION: "o", WEIGHTED: "s"}


def draw(study: Study) -> Any:
    """A row a trial: values on the left, poLinUCB's less the others' on the right."""
    trials = [{method: place(trial, method) for method in MARKERS} for trial in LOGGED]
    trials += [{REJECTION: trial} for trial in FULL]
    with style.picture(len(trials), 2, height=3.0, width=6.2) as (made, axes):
        for (left, right), trial, places in zip(axes, (*LOGGED, *FULL), trials, strict=True):
            first = next(iter(places.values()))
            policies = [name for name in study.policies if study.has(first, name)]
            _draw(left, study, places, policies, None)
            left.set_title(trial if trial in LOGGED else f"{trial}: every reward is known")
            left.set_xlabel("value: mean reward, 95% intervals")
            _draw(right, study, places, [name for name in policies if name != POLINUCB], POLINUCB)
            right.axvline(0.0, color=style.REFERENCE, linewidth=1)
            right.set_xlabel(f"value less that of {POLINUCB}, paired, 95% intervals")
        handles = [
            axes[0, 0].plot([], [], marker, color=style.look(RANDOM)[0], label=method)[0]
            for method, marker in MARKERS.items()
        ]
        made.legend(handles=handles, loc="outside upper center", ncols=2)
        return made


def _draw(
    panel: Any, study: Study, places: dict[str, str], policies: list[str], reference: str | None
) -> None:
    for row, policy in enumerate(reversed(policies)):
        for shift, (method, where) in zip((0.15, -0.15), places.items(), strict=False):
            if reference is None:
                mean, low, high = interval(study.final(where, policy))
            else:
                mean, low, high = gain(study, where, policy, reference)
            look: Any = {"fmt": MARKERS[method], "markersize": 4, "color": style.look(policy)[0]}
            at = row + (shift if len(places) > 1 else 0.0)
            panel.errorbar(mean, at, xerr=[[mean - low], [high - mean]], capsize=2, **look)
    panel.set_yticks(range(len(policies)), list(reversed(policies)), fontsize=7.5)
    panel.grid(axis="y", visible=False)
