"""Figure 1: regret over rounds, and paired differences at the end."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.contenders import ORACLE, POLINUCB, evidence_policies, paper_policies
from postserve.experiments.figures.figure1.settings import horizons
from postserve.experiments.study import Study


def draw(study: Study) -> Any:
    """A column an environment; rows: the paper's policies at each horizon, ours, the differences."""
    rows = [
        (f"ridge 1, T = {horizon:,}", list(paper_policies()), horizon) for horizon in horizons(study.horizon)
    ]
    rows.append((f"learnt prior, T = {study.horizon:,}", list(evidence_policies()), study.horizon))
    others = [name for name in study.policies if name != POLINUCB]
    with style.picture(len(rows) + 1, len(study.environments)) as (made, axes):
        for column, environment in enumerate(study.environments):
            for row, (title, policies, horizon) in enumerate(rows):
                panel = axes[row, column]
                style.draw_curves(panel, study, environment, policies, horizon)
                panel.set_title(f"{environment} phi: {title}")
            mean = study.curves(environment, ORACLE).mean(axis=0)
            axes[len(rows) - 1, column].plot(
                study.rounds, mean, color="#000000", linewidth=0.8, label="the paper's oracle, ridge 1"
            )
            style.draw_differences(axes[-1, column], study, environment, POLINUCB, others, study.horizon)
            if column:
                axes[-1, column].set_yticklabels([])
        for row in axes[:-1]:
            row[0].set_ylabel("cumulative regret")
        style.legend(made, [axes[0, 0], axes[len(rows) - 1, 0]], 5, short=True)
        return made
