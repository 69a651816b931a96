"""Where the defaults come from: settings compared in worlds that no figure is judged on."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from postserve.environments import SyntheticEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import many_arms, style
from postserve.experiments.claims import TIE, judged
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.statistics import Interval, mean_and_error, mean_interval
from postserve.experiments.study import Cell, Study
from postserve.types import Exploration, FloatArray

TITLE = "Where the defaults come from"
ABOUT = (
    "Six worlds with other phi, dimensions, scales, noises and seeds than the figures'. Settings are "
    "compared with the one in use by the geometric mean of regret over the worlds, seed by seed. Exploration "
    "is also compared over numbers of arms, dimensions and noises, in worlds without z."
)
FULL, QUICK = Size(horizon=1000, seeds=12), Size(horizon=100, seeds=2, quick=True)

FIRST_SEED = 1000
"""The figures have the seeds from 0 on."""
# Functions of x uniform on [-10, 10], of mean 0 and deviation 1; none is a figure's.
SHAPES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "absolute": lambda x: (np.abs(x) - 5.0) / np.sqrt(25.0 / 3.0),
    "cubic": lambda x: x**3 / np.sqrt(1e6 / 7.0),
    "step": np.sign,
    "saturating": lambda x: np.tanh(x / 3.0) / 0.84,
    "sawtooth": lambda x: (np.mod(x, 4.0) - 2.0) / np.sqrt(4.0 / 3.0),
}
MIDDLE = {"dim_x": 30, "dim_z": 3, "n_arms": 6}
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "absolute": ("absolute", {}),
    "cubic, weak": ("cubic", {"scale": 3.0}),
    "step, three arms": ("step", {"n_arms": 3, "dim_x": 60}),
    "saturating, wide z with loud noise": ("saturating", {"dim_z": 8, "z_noise": 3.0}),
    "sawtooth, loud rewards": ("sawtooth", {"reward_noise": 1.0}),
    "absolute, strong": ("absolute", {"scale": 30.0, "z_noise": 0.3, "reward_noise": 0.5}),
}


class Family(NamedTuple):
    """Settings that compete, and the one in use."""

    title: str
    settings: list[c.Contender]
    in_use: str


def _world(shape: str, options: Mapping[str, Any], seed: int) -> SyntheticEnvironment:
    h, dims = SHAPES[shape], {**MIDDLE, **options}
    scale, dim_x, dim_z = dims.pop("scale", 10.0), dims["dim_x"], dims["dim_z"]
    W = np.random.default_rng([seed, 1]).standard_normal((dim_x, dim_z)) / np.sqrt(dim_x)

    def phi(X: FloatArray) -> FloatArray:
        return np.asarray(scale * h(X) @ W)

    return SyntheticEnvironment(phi, features=h, seed=seed, **dims)


def families() -> list[Family]:
    """Optimism and its multipliers, the exploration of the others, the radius of each with ridge 1."""
    explorations: tuple[Exploration, ...] = ("auto", 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    scales: tuple[tuple[Exploration, float], ...]
    scales = (("auto", 0.1), ("auto", 0.3), ("auto", 1.0), (1.0, 0.1), (1.0, 0.3))
    optimism = [
        *(_optimism("plugin", e, 1.0) for e in explorations),
        *(_optimism("posterior", e, 1.0) for e in ("auto", 1.0, 2.0)),
        *(_optimism(kind, e, scale) for kind in ("bound", "joint") for e, scale in scales),
    ]
    literal = [
        c.POLINUCB.with_options(f"ridge 1, {kind}, radius_scale {scale:g}", **_options(kind, 1.0, scale))
        for kind, scale in (("plugin", 1.0), *product(("bound", "joint"), (0.1, 0.3, 1.0)))
    ]
    explorers = (c.X_ONLY, c.X_AND_FEATURES, c.BEFORE, c.AFTER, c.ROBUST, c.ORACLE)
    fixed = (c.X_ONLY, c.X_AND_FEATURES, c.BEFORE, c.AFTER, c.ORACLE, c.POLINUCB)
    return [
        Family("optimism, exploration and radius_scale of poLinUCB", optimism, "plugin, exploration auto"),
        Family("optimism of poLinUCB with ridge 1", literal, "ridge 1, plugin, radius_scale 1"),
        *(_exploration(each.evidence) for each in explorers),
        *(_radius(each) for each in fixed),
    ]


def _exploration(contender: c.Contender) -> Family:
    name, constants = f"{contender.label}, exploration ", (0.5, 1.0, 1.5, 2.0)
    settings = [contender.with_options(f"{name}{e:g}", exploration=e) for e in constants]
    automatic = contender.with_options(f"{name}auto")
    return Family(f"exploration of {contender.label}", [automatic, *settings], automatic.name)


def _radius(contender: c.Contender) -> Family:
    name = f"{contender}, radius "
    settings = [contender.with_options(f"{name}{r:g}", arm_radius=r) for r in (0.03, 0.1, 0.3, 1.0, 3.0)]
    return Family(f"constant radius of {contender} with ridge 1", settings, f"{name}{c.PAPER_RADIUS:g}")


def _optimism(kind: str, exploration: Exploration, scale: float) -> c.Contender:
    multiplier = exploration if isinstance(exploration, str) else f"{exploration:g}"
    name = f"{kind}, exploration {multiplier}" + (f", radius_scale {scale:g}" if kind != "plugin" else "")
    return c.POLINUCB.evidence.with_options(name, **_options(kind, exploration, scale))


def _options(kind: str, exploration: Exploration, scale: float) -> Any:
    make_map = partial(c.map_on_h, radius_scale=scale)
    return {"optimism": kind, "exploration": exploration, "make_map": make_map}


def cells(size: Size) -> list[Cell]:
    worlds = {name: partial(_world, shape, options) for name, (shape, options) in WORLDS.items()}
    contenders = [setting for family in families() for setting in family.settings]
    seeds = range(FIRST_SEED, FIRST_SEED + size.seeds)
    arms = many_arms.ARMS[1:2] if size.quick else many_arms.ARMS
    explorers = many_arms.settings(c.X_ONLY.evidence)
    return [
        *contest(size, worlds, contenders, seeds),
        *contest(size, many_arms.worlds(arms), explorers, seeds),
    ]


def settings(size: Size) -> dict[str, str]:
    return {
        "worlds": f"unless their names say otherwise, x uniform on [-10, 10]^{MIDDLE['dim_x']}, z in "
        f"{MIDDLE['dim_z']} dimensions, {MIDDLE['n_arms']} arms; {'; '.join(WORLDS)}",
        "ratio": "of final regrets to that of the setting in use, the geometric mean over worlds; the "
        "interval is two standard errors over seeds",
        "exploration over arms": "LinUCB where the means of the arms are N(0, 1), with one x for all rounds "
        "or x of N(0, I/dim); constants are numbers of posterior standard deviations (sd); the mean regret "
        "over seeds, as a ratio to that of auto",
        "seeds": f"from {FIRST_SEED:,} on, which no other figure has",
    }


def log_ratios(study: Study, one: str, other: str) -> FloatArray:
    """The mean over the worlds of the log ratio of final regrets, for each seed."""
    logs = [np.log(study.final(world, one) / study.final(world, other)) for world in WORLDS]
    return np.asarray(np.mean(logs, axis=0))


def ratio(study: Study, setting: c.Contender, family: Family) -> tuple[float, float, float]:
    """A setting's regret as a ratio to the one in use, with two standard errors."""
    log_ratio, error = mean_and_error(log_ratios(study, setting.name, family.in_use))
    mean = float(np.exp(log_ratio))
    return mean, mean * (1.0 - 2.0 * error), mean * (1.0 + 2.0 * error)


def claims(study: Study) -> list[Claim]:
    """None of the other settings is better; fewer seeds leave more of it open, and make it no easier."""
    return [*map(partial(claim_on, study), families()), claim_on_arms(study)]


def claim_on(study: Study, family: Family) -> Claim:
    better, open_ones = [], []
    for setting in family.settings:
        if setting.name != family.in_use:
            found = mean_interval(log_ratios(study, setting.name, family.in_use))
            ratios = Interval(*(float(np.exp(log_ratio)) for log_ratio in found))
            if ratios.high < 1.0 - TIE:
                better.append(f"{setting} has {ratios.rounded()} of it")
            elif ratios.low < 1.0 - TIE:
                open_ones.append(f"{setting} ({ratios.rounded()})")
    text = (
        f"{family.title[0].upper()}{family.title[1:]}: no setting has less than {1.0 - TIE:.2f} of the "
        f"regret of {family.in_use}, which is in use, by 95% intervals over seeds."
    )
    return judged(text, better, open_ones)


def claim_on_arms(study: Study) -> Claim:
    """Automatic exploration against the best constant of each world."""
    ratios = many_arms.over_best_constant(study, _places(study))
    worst = max(ratios, key=lambda place: ratios[place])
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    return Claim(
        f"Over {len(ratios)} worlds with few and many arms, automatic exploration has at most 1.6 times the "
        "regret of the constant that is best in each, and 1.15 times on average; it has "
        f"{ratios[worst]:.2f} ({worst}) and {mean:.2f}.",
        ratios[worst] <= 1.6 and mean <= 1.15,
    )


def _places(study: Study) -> list[str]:
    """The worlds in which exploration is compared over arms."""
    return [place for place in study.environments if place not in WORLDS]


def summary(study: Study) -> list[Row]:
    shared = {"environment": "all worlds", "horizon": study.horizon, "seeds": len(study.seeds)}
    rows = []
    for family in families():
        about = {"table": family.title, "names": "setting", "in_use": family.in_use}
        for setting in family.settings:
            mean, low, high = ratio(study, setting, family)
            numbers = {"final_ratio_mean": mean, "low": low, "high": high}
            rows.append({"policy": setting.name, **shared, **numbers, **about})
    about = {"table": "exploration over arms", "names": "setting", "in_use": many_arms.AUTO}
    for part, places in many_arms.slices(_places(study)).items():
        for name in (*many_arms.CONSTANT_NAMES, many_arms.AUTO):
            mean, low, high = many_arms.ratio(study, places, name)
            numbers = {"final_ratio_mean": mean, "low": low, "high": high}
            rows.append({"policy": name, **shared, "environment": part, **numbers, **about})
    return rows


def draw(study: Study) -> Any:
    found = families()
    with style.picture(len(found) // 3 + 1, 3, height=3.0, width=5.4) as (made, axes):
        for panel, family in zip(axes.flat, found, strict=False):
            for row, setting in enumerate(reversed(family.settings)):
                interval = ratio(study, setting, family)
                style.draw_interval(panel, row, interval, color=setting.colour, marker=setting.marker)
            panel.axvline(1.0, color=style.REFERENCE, linewidth=1)
            panel.set_xlabel("regret, as a ratio to the setting in use")
            panel.set_title(family.title, fontsize=8.5)
            style.name_rows(panel, family.settings)
        _draw_arms(study, axes.flat[len(found)])
        for panel in list(axes.flat)[len(found) + 1 :]:
            panel.set_axis_off()
        return made


def _draw_arms(study: Study, panel: Any) -> None:
    """Each constant's regret over automatic exploration's, by the number of arms."""
    parts = {name: places for name, places in many_arms.slices(_places(study)).items() if "arms" in name}
    arms = [int(name.split()[0]) for name in parts]
    for name in many_arms.CONSTANT_NAMES:
        ratios = [many_arms.ratio(study, places, name).value for places in parts.values()]
        panel.plot(arms, ratios, marker="o", markersize=3, label=name)
    panel.axhline(1.0, color=style.REFERENCE, linewidth=1)
    panel.set(xscale="log", yscale="log", ylabel="regret, as a ratio to auto")
    style.name_values(panel, arms, "arms")
    panel.set_title("exploration of LinUCB(x) over arms", fontsize=8.5)
    panel.legend(fontsize=6.5)
