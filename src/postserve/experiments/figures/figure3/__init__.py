"""Figure 3: how fast phi_hat converges, for a linear phi and for Hölder classes."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.figure3.settings import FROM, LATE, QUICK, SIZE, cells, classes, described
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Study

COLOURS = {"RidgeMap": "#009E73", "NeighborsMap": "#0072B2", "KernelMap": "#D55E00"}


def slope(study: Study, environment: str, map_name: str, start: int = FROM) -> Slope:
    """Exponent with which the norm of the error changes."""
    return growth(study.rounds, study.curves(environment, map_name), min(start, study.horizon // 10))


def claims(study: Study) -> list[Claim]:
    """The rates as norms; the paper prints the squared error's for Hölder classes."""
    told = []
    for name, kind in classes().items():
        for map_name in kind.maps:
            found, late = (slope(study, name, map_name, start) for start in (FROM, LATE))
            text = f"{name}, {map_name}: the error's norm falls with slope {found}, from {LATE:,} pairs on "
            text += f"{late}; held if the first interval reaches the class's rate, -{kind.rate_text}"
            if kind.rate < 0.5:
                reached = "reached here too" if found.low <= -2.0 * kind.rate else "not reached"
                text += f". Twice that, which the paper prints and is the squared error's, is {reached}"
            told.append(Claim(f"{text}.", found.low <= -kind.rate))
    return told


def summary(study: Study) -> list[dict[str, Any]]:
    """Final errors, slopes and rates; there is no regret here."""
    rates = {name: kind.rate for name, kind in classes().items()}
    return [
        {
            **row,
            **slope(study, row["environment"], row["policy"]).named(),
            "rate": -rates[row["environment"]],
        }
        for row in study.summary()
    ]


def draw(study: Study) -> Any:
    """Error against pairs on logarithmic axes, each class with its rate beside it."""
    with style.picture(1, len(study.environments), height=3.6, width=3.3) as (made, axes):
        for panel, (name, kind) in zip(axes[0], classes().items(), strict=True):
            for map_name in kind.maps:
                curves = study.curves(name, map_name)
                label = f"{map_name}: {slope(study, name, map_name)}"
                style.draw_band(panel, study.rounds, curves, COLOURS[map_name], "-", label)
            late = study.rounds[study.rounds >= min(FROM, study.horizon // 10)]
            start = float(study.curves(name, next(iter(kind.maps))).mean(axis=0)[study.rounds == late[0]][0])
            for rate, dashes, text in (
                (kind.rate, ":", kind.rate_text),
                (2 * kind.rate, "--", f"{2 * kind.rate:.2g}, as printed"),
            ):
                if text == kind.rate_text or kind.rate < 0.5:
                    panel.plot(
                        late,
                        start * (late / late[0]) ** -rate,
                        color=style.REFERENCE,
                        linestyle=dashes,
                        linewidth=1,
                        label=f"slope -{text}",
                    )
            panel.set(xscale="log", yscale="log", title=name, xlabel="pairs")
            ends = [(study.final(name, map_name).mean(), COLOURS[map_name]) for map_name in kind.maps]
            style.label_ends(panel, ends, "{:.3f}")
            panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        axes[0, 0].set_ylabel("error of phi_hat, as a norm")
        return made


FIGURE3 = Figure(
    name="figure3",
    title="Figure 3: convergence of phi_hat, linear against Hölder classes",
    about="Assumption 1 speaks of a norm, which falls like n^{-1/2} for a linear phi and like "
    "n^{-b/(2b+d)} for a Hölder class of smoothness b in d dimensions. The paper prints n^{-2b/(2b+d)}, "
    "the rate of the squared error.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
    measure="error",
)
