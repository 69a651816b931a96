"""Where the defaults come from: a study in worlds that no figure is judged on.

Six worlds with other phi, dimensions, scales and noises than the figures', other seeds too. A setting
is compared with the one in use by the geometric mean of its regret over the worlds, seed by seed; the
one in use stays unless another has less regret by more than two standard errors.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.experiments.cells import kept_cells, parquet
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    ORACLE,
    PAPER_RADIUS,
    POLINUCB,
    ROBUST,
    X_AND_FEATURES,
    X_ONLY,
    OnFeatures,
)
from postserve.experiments.engines import check_engine, open_engine
from postserve.experiments.progress import progress_bar
from postserve.experiments.reproduce import check_folder
from postserve.experiments.statistics import mean_and_error
from postserve.experiments.study import MakeEnvironment, MakePolicy, Study, regret_cells, run_cells
from postserve.files import write_together
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RobustPoLinUCB
from postserve.types import FloatArray
from postserve.validation import integer

HORIZON = 1000
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
    settings: Mapping[str, MakePolicy]
    in_use: str


def worlds() -> dict[str, MakeEnvironment]:
    """The six."""
    return {name: partial(_world, shape, options) for name, (shape, options) in WORLDS.items()}


def _world(shape: str, options: Mapping[str, Any], seed: int) -> SyntheticEnvironment:
    h, dims = SHAPES[shape], {**MIDDLE, **options}
    scale, dim_x, dim_z = dims.pop("scale", 10.0), dims["dim_x"], dims["dim_z"]
    W = np.random.default_rng([seed, 1]).standard_normal((dim_x, dim_z)) / np.sqrt(dim_x)

    def phi(X: FloatArray) -> FloatArray:
        return np.asarray(scale * h(X) @ W)

    return SyntheticEnvironment(phi, features=h, seed=seed, **dims)


def families() -> list[Family]:
    """Optimism and its multipliers, the exploration of the others, the radius of each with ridge 1."""
    optimism = {
        _optimism("plugin", e, 1.0): partial(_polinucb, "plugin", e, 1.0)
        for e in (0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    }
    for kind in ("bound", "joint"):
        for e, scale in ((1.0, 0.1), (1.0, 0.3), (1.0, 1.0), (0.5, 0.1), (0.5, 0.3)):
            optimism[_optimism(kind, e, scale)] = partial(_polinucb, kind, e, scale)
    found = [
        Family("optimism, exploration and radius_scale of poLinUCB", optimism, _optimism("plugin", 1.0, 1.0))
    ]
    literal = {
        f"ridge 1, {kind}, radius_scale {scale:g}": partial(_polinucb, kind, 1.0, scale, ridge=1.0)
        for kind, scale in (("plugin", 1.0), *product(("bound", "joint"), (0.1, 0.3, 1.0)))
    }
    found.append(Family("optimism of poLinUCB with ridge 1", literal, "ridge 1, plugin, radius_scale 1"))
    for name, make in _explorers().items():
        grid = (0.3, 0.5, 1.0, 1.5, 2.0)
        explored = {f"{name}, exploration {e:g}": partial(make, exploration=e) for e in grid}
        found.append(Family(f"exploration of {name}", explored, f"{name}, exploration 1"))
    plain: dict[str, Callable[..., Any]] = {**_explorers(1.0), POLINUCB: partial(_with_map, PoLinUCB, 1.0)}
    for name, make in plain.items():
        if name != ROBUST:
            radii = (0.03, 0.1, 0.3, 1.0, 3.0)
            tried = {f"{name}, radius {r:g}": partial(make, ridge=1.0, arm_radius=r) for r in radii}
            title = f"constant radius of {name} with ridge 1"
            found.append(Family(title, tried, f"{name}, radius {PAPER_RADIUS:g}"))
    return found


def _optimism(kind: str, exploration: float, radius_scale: float) -> str:
    scale = "" if kind == "plugin" else f", radius_scale {radius_scale:g}"
    return f"{kind}, exploration {exploration:g}{scale}"


def _polinucb(
    kind: Any, exploration: float, radius_scale: float, env: Any, ridge: Any = "evidence"
) -> PoLinUCB:
    phi_hat = RidgeMap(env.dim_x, env.dim_z, features=env.features, ridge=ridge, radius_scale=radius_scale)
    radius: Any = "posterior" if ridge == "evidence" else PAPER_RADIUS
    return PoLinUCB(
        env.n_arms, phi_hat, optimism=kind, exploration=exploration, ridge=ridge, arm_radius=radius
    )


def _explorers(map_ridge: Any = "evidence") -> dict[str, Callable[..., Any]]:
    return {
        X_ONLY: lambda env, **options: LinUCB(env.n_arms, env.dim_x, **options),
        X_AND_FEATURES: lambda env, **options: OnFeatures(
            LinUCBOracle(env.n_arms, env.dim_x, env.dim_x, **options), env.features
        ),
        BEFORE: partial(_with_map, LinUCBPhiHat, map_ridge),
        AFTER: partial(_with_map, partial(LinUCBPhiHat, prediction="after"), map_ridge),
        ROBUST: partial(_with_map, RobustPoLinUCB, map_ridge),
        ORACLE: lambda env, **options: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z, **options),
    }


def _with_map(policy: Any, map_ridge: Any, env: Any, **options: Any) -> Any:
    phi_hat = RidgeMap(env.dim_x, env.dim_z, features=env.features, ridge=map_ridge)
    return policy(env.n_arms, phi_hat, **options)


def tune(out: Path, *, seeds: int, engine: str, console: Console) -> str:
    """Run the study, write out/tuning/{tuning.md, runs.parquet}, and give the page's text."""
    check_engine(engine)
    check_folder(out)
    policies = {name: make for family in families() for name, make in family.settings.items()}
    listed = range(FIRST_SEED, FIRST_SEED + integer("seeds", seeds, least=2))
    folder = out / "tuning"
    with (
        open_engine(engine) as run_all,
        kept_cells(folder / "cells") as kept,
        progress_bar(console=console) as progress,
    ):
        study = run_cells(
            regret_cells(worlds(), policies, HORIZON, list(listed)), run_all, kept, progress, title="tuning"
        )
        text = "\n\n".join(_table(study, family) for family in families()) + "\n"
        write_together(folder, {"tuning.md": text.encode(), "runs.parquet": parquet(study.runs)})
    return text


def _table(study: Study, family: Family) -> str:
    lines = [
        f"### {family.title}",
        "",
        f"| setting | regret, as a ratio to {family.in_use} | less or more by two standard errors |",
        "|---|---:|---|",
    ]
    for setting in family.settings:
        ratio, error = compare(study, setting, family.in_use)
        verdict = "in use" if setting == family.in_use else _verdict(ratio, error)
        lines.append(f"| {setting} | {np.exp(ratio):.3f} ± {np.exp(ratio) * error:.3f} | {verdict} |")
    return "\n".join(lines)


def compare(study: Study, one: str, other: str) -> tuple[float, float]:
    """Mean log ratio of final regrets over the worlds, and its standard error over seeds."""
    logs = [np.log(study.final(world, one) / study.final(world, other)) for world in study.environments]
    return mean_and_error(np.mean(logs, axis=0))


def _verdict(ratio: float, error: float) -> str:
    if abs(ratio) <= 2.0 * error:
        return "no"
    return "less" if ratio < 0.0 else "more"
