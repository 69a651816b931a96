"""What was seen on raw tables: claims, the headline and the picture."""

from collections.abc import Sequence
from typing import Any

from postserve.experiments import style
from postserve.experiments.claims import all_of, at_most, summed_up, with_failures
from postserve.experiments.figure import Claim
from postserve.experiments.figures.raw import worlds as w
from postserve.experiments.statistics import Interval, mean_interval
from postserve.experiments.study import Study

LIMIT = 0.05
"""How far above the best form by hand the regret of a raw one may be, as a share of it."""
CHANGED = "share of rounds decided otherwise than raw"
SAME = (w.CENTRED, w.PLUS_100)
"""Forms that must change no choice."""
JUDGED = (w.RAW, w.ODD)
COLOURS = {
    w.RAW.name: "#009E73",
    w.ODD.name: "#E69F00",
    w.X_PLUS_50.name: "#CC79A7",
    w.WITH[0].name: "#56B4E9",
    w.WITH[1].name: "#0072B2",
    w.WITHOUT[0].name: "#BBBBBB",
    w.WITHOUT[1].name: "#777777",
}


def place(table: str, policy: str) -> str:
    return f"{table}: {policy}"


def changed(table: str, policy: str) -> str:
    return f"{place(table, policy)}, {CHANGED}"


def places(study: Study) -> list[str]:
    """Tables and policies, without the comparisons of choices."""
    return [where for where in study.environments if not where.endswith(CHANGED)]


def best_of(study: Study, where: str, forms: Sequence[w.Form]) -> w.Form:
    """In hindsight."""
    return min(forms, key=lambda form: float(study.final(where, form.name).mean()))


def excess(study: Study, where: str, form: w.Form, over: w.Form) -> Interval:
    """One form's loss minus another's, order by order."""
    return mean_interval(study.differences(where, form.name, over.name))


def share(study: Study, where: str, form: w.Form, over: w.Form) -> float:
    """The excess as a share of the other's loss; 0 if there is none to take a share of."""
    mean = abs(float(study.final(where, over.name).mean()))
    return excess(study, where, form, over).value / mean if mean else 0.0


def judge(study: Study, where: str, form: w.Form) -> Claim:
    """That a form exceeds the best by hand with intercepts by at most the limit; in the trial, not at all.

    The whole interval must be within that: fewer orders can leave it open, and make it no easier.
    """
    best, limit, allowed = best_of(study, where, w.WITH), 0.0, "0"
    if not _logged(where):
        limit = LIMIT * float(study.final(where, best.name).mean())
        allowed = f"{LIMIT:.0%} of the latter's regret"
    text = f"{where}: {_text(study, where, form, best)}; held if the whole 95% interval is at most {allowed}"
    return at_most(text, excess(study, where, form, best), limit)


def _logged(where: str) -> bool:
    return where.partition(": ")[0] in w.LOGGED


def _text(study: Study, where: str, form: w.Form, over: w.Form) -> str:
    found = f"{form} minus {over}: {excess(study, where, form, over)}"
    return found if _logged(where) else f"{found}, {share(study, where, form, over):+.1%}"


def claims(study: Study) -> list[Claim]:
    found = []
    for where in places(study):
        found += [judge(study, where, form) for form in JUDGED]
        none = best_of(study, where, w.WITHOUT)
        found.append(Claim(f"{where}: {_text(study, where, w.RAW, none)}.", None))
    compared = [where for where in study.environments if where.endswith(CHANGED)]
    failures = [
        f"{where.removesuffix(f', {CHANGED}')}, {form}: {study.final(where, form.name).mean():.2%}"
        for where in compared
        for form in SAME
        if study.final(where, form.name).any()
    ]
    found.append(with_failures(f"{SAME[0]} and {SAME[1]} change no choice in any order.", failures))
    for form in (w.ODD, w.X_PLUS_50):
        shares = {where: float(study.final(where, form.name).mean()) for where in compared}
        most = max(compared, key=lambda where: shares[where])
        mean, at = sum(shares.values()) / len(shares), most.removesuffix(f", {CHANGED}")
        text = f"{form}: {mean:.1%} of choices change, at most {shares[most]:.1%} ({at})."
        found.append(Claim(text, None))
    known = [where for where in places(study) if not _logged(where)]
    effects = [share(study, where, w.X_PLUS_50, w.RAW) for where in known]
    text = f"Regret with {w.X_PLUS_50} over raw, minus 1: from {min(effects):+.1%} to {max(effects):+.1%}."
    found.append(Claim(text, None))
    return found


def headline(study: Study) -> str:
    """Where raw tables cost something, and where that is not decided."""
    by_table: dict[str, list[bool | None]] = {}
    for where in places(study):
        verdicts = by_table.setdefault(where.partition(": ")[0], [])
        verdicts += [judge(study, where, form).held for form in JUDGED]
    text = (
        f"With their defaults, LinUCB(x) and poLinUCB have at most {LIMIT:.0%} more regret on raw tables, as "
        "they are and in odd units, than on tables centred and standardised by hand in hindsight, and in "
        "the trial no smaller mean reward, by 95% intervals"
    )
    return summed_up(text, {table: all_of(found) for table, found in by_table.items()}, "tables")


def draw(study: Study) -> Any:
    """One panel per policy, one row per table: each form's loss over that of the best by hand."""
    with style.picture(1, len(w.POLICIES), height=6.0, width=6.2) as (made, axes):
        for panel, policy in zip(axes[0], w.POLICIES, strict=True):
            shown = [where for where in places(study) if where.endswith(f": {policy}")]
            for row, where in enumerate(reversed(shown)):
                best = study.final(where, best_of(study, where, w.WITH).name)
                scale = abs(float(best.mean())) or 1.0  # all may be 0 in a small run
                for i, (form, colour) in enumerate(COLOURS.items()):
                    found = mean_interval((study.final(where, form) - best) / scale)
                    line: Any = {"fmt": "D" if form == w.RAW.name else "o", "color": colour}
                    label = None if row else form
                    style.draw_interval(panel, row + 0.3 - 0.1 * i, found, label=label, **line)
            style.name_rows(panel, [where.partition(": ")[0] for where in shown])
            panel.axvline(0.0, color=style.REFERENCE, linewidth=1)
            panel.axvline(LIMIT, color=style.REFERENCE, linewidth=1, linestyle=":")
            panel.set_xscale("symlog", linthresh=0.1)
            panel.set_title(policy)
            panel.set_xlabel("over the best by hand with intercepts, minus 1 (symlog), 95% intervals")
        style.legend(made, [axes[0][0]], 4)
        return made
