"""Environments x policies x seeds: run side by side, kept as they finish, resumed where they stopped."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from rich.progress import Progress

from postserve.errors import InvalidInput
from postserve.experiments.cells import KeptCells, kept_cells
from postserve.experiments.contenders import Contender
from postserve.experiments.engines import RunAll, check_engine, open_engine
from postserve.experiments.fingerprint import fingerprint
from postserve.experiments.progress import progress_bar
from postserve.experiments.runner import simulate
from postserve.experiments.statistics import mean_and_error
from postserve.protocols import Environment
from postserve.types import FloatArray, IntArray
from postserve.validation import integer

MakeEnvironment = Callable[[int], Environment]
"""Makes the environment of a seed."""
MakePolicy = Callable[[Any], Any]
"""Makes a fresh policy for an environment."""
Line = Contender | str
"""A curve of a study: its name, or the contender of that name."""
SCHEMA = {"environment": pl.String, "policy": pl.String, "seed": pl.Int64, "round": pl.Int64}
"""Of the table of all runs, without its last column: what was measured."""


class Curve(NamedTuple):
    """A quantity at some rounds of a run, counted from 1."""

    rounds: IntArray
    values: FloatArray


class Curves(NamedTuple):
    """The curves of one line: one row of values per seed, one column per round."""

    seeds: list[int]
    rounds: IntArray
    values: FloatArray


class Cell(NamedTuple):
    """One run of a study: where it is in the table, what it depends on, and how to run it, anywhere.

    `place` and `line` name its curve: an environment and a policy, or a panel and a quantity.
    """

    place: str
    line: str
    seed: int
    horizon: int
    key: str
    run: Callable[[], Curve]


class Study:
    """The curves of a study; `runs` is the table (environment, policy, seed, round, regret).

    `environments`, `policies` and `seeds` list what was run, `rounds` the recorded rounds. Each pair of an
    environment and a policy may have its own seeds (`seeds_of`) and rounds. In studies of other quantities
    than regret, the two columns name a panel and a line in it.

    >>> table = {"environment": ["e"] * 4, "policy": ["p"] * 4, "seed": [0, 0, 1, 1], "round": [1, 2] * 2}
    >>> study = Study(pl.DataFrame({**table, "regret": [1.0, 2.0, 1.0, 4.0]}))
    >>> study.final("e", "p").tolist(), study.summary()[0]["final_regret_mean"]
    ([2.0, 4.0], 3.0)
    """

    def __init__(self, runs: pl.DataFrame) -> None:
        self.runs = runs
        self.measure = runs.columns[-1]
        self.environments: list[str] = runs["environment"].unique(maintain_order=True).to_list()
        self.policies: list[str] = runs["policy"].unique(maintain_order=True).to_list()
        self.seeds: list[int] = runs["seed"].unique(maintain_order=True).to_list()
        self.rounds: IntArray = runs["round"].unique().sort().to_numpy()
        self._curves: dict[tuple[str, str], Curves] = {}
        for names, part in runs.group_by("environment", "policy", maintain_order=True):
            seeds = part["seed"].unique(maintain_order=True).to_list()
            values = part[self.measure].to_numpy().reshape(len(seeds), -1)
            rounds = part["round"].unique().sort().to_numpy()
            self._curves[str(names[0]), str(names[1])] = Curves(seeds, rounds, values)

    @property
    def horizon(self) -> int:
        """The last round."""
        return int(self.rounds[-1])

    def has(self, environment: str, policy: Line) -> bool:
        """Whether that policy ran in that environment."""
        return (environment, str(policy)) in self._curves

    def curves(self, environment: str, policy: Line) -> FloatArray:
        """One row per seed, one column per recorded round."""
        return self._of(environment, policy).values

    def seeds_of(self, environment: str, policy: Line) -> list[int]:
        """The seeds of that policy in that environment, in the order of its curves."""
        return self._of(environment, policy).seeds

    def _of(self, environment: str, policy: Line) -> Curves:
        if not self.has(environment, policy):
            raise InvalidInput(
                f"the study has no {str(policy)!r} in {environment!r}, wanted one of its pairs"
            )
        return self._curves[environment, str(policy)]

    def final(self, environment: str, policy: Line, horizon: int | None = None) -> FloatArray:
        """The value at the horizon (by default the last round there), one per seed."""
        _, rounds, values = self._of(environment, policy)
        at = rounds == (rounds[-1] if horizon is None else horizon)
        if not at.any():
            raise InvalidInput(f"the study has no round {horizon}, wanted one of its recorded rounds")
        return np.asarray(values[:, at][:, 0])

    def difference(
        self, environment: str, one: Line, other: Line, horizon: int | None = None
    ) -> tuple[float, float]:
        """Mean and standard error of one's final value minus the other's, seed by seed."""
        return mean_and_error(self.differences(environment, one, other, horizon))

    def differences(self, environment: str, one: Line, other: Line, horizon: int | None = None) -> FloatArray:
        """One's final value minus the other's, for each seed; both must have the same seeds."""
        ours, theirs = self.seeds_of(environment, one), self.seeds_of(environment, other)
        if ours != theirs:
            raise InvalidInput(
                f"{str(one)!r} has the seeds {ours!r:.60} and {str(other)!r} {theirs!r:.60}, wanted the "
                "same: differences are paired"
            )
        return self.final(environment, one, horizon) - self.final(environment, other, horizon)

    def summary(self, oracle: Line | None = None, horizon: int | None = None) -> list[dict[str, Any]]:
        """Mean final regret with its standard error, and its ratio to the oracle's, seed by seed.

        A ratio is None where there is no oracle with these seeds, or where the oracle had no regret.
        """
        if oracle is not None and str(oracle) not in self.policies:
            raise InvalidInput(
                f"the study has no policy {str(oracle)!r}, wanted one of {', '.join(self.policies)}"
            )
        rows = []
        for (environment, policy), (seeds, rounds, _) in self._curves.items():
            final = self.final(environment, policy, horizon)
            ratio: tuple[float | None, float | None] = (None, None)
            if (
                oracle is not None
                and self.has(environment, oracle)
                and self.seeds_of(environment, oracle) == seeds
            ):
                best = self.final(environment, oracle, horizon)
                ratio = mean_and_error(final / best) if (best > 0.0).all() else ratio
            mean, error = mean_and_error(final)
            rows.append(
                {
                    "environment": environment,
                    "policy": policy,
                    "horizon": int(rounds[-1]) if horizon is None else horizon,
                    "seeds": len(seeds),
                    f"final_{self.measure}_mean": mean,
                    f"final_{self.measure}_se": error,
                    "ratio_to_oracle": ratio[0],
                    "ratio_to_oracle_se": ratio[1],
                }
            )
        return rows


def run_study(
    environments: Mapping[str, MakeEnvironment],
    policies: Mapping[str, MakePolicy],
    *,
    horizon: int,
    seeds: int | Sequence[int] = 10,
    engine: str = "local",
    out: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Study:
    """Simulate every policy in every environment for every seed.

    `environments` maps a name to a function of the seed, `policies` one to a function of the environment
    that gives a fresh policy. Each cell is `simulate(policy, environment, horizon, seed)`, whatever the
    engine: "local", "local=N", "dask", "dask=HOST:PORT", "ray" or "ray=HOST:PORT" (a script that uses
    Dask needs `if __name__ == "__main__":` around it). With `out`, finished cells are kept in that
    folder: a study that was interrupted goes on from there, and one with more seeds or policies runs
    only those. A cell is run again if its environment, its policy or this library changed.

    >>> from postserve import LinUCB, PoLinUCB, RidgeMap, SyntheticEnvironment
    >>> study = run_study(
    ...     {"linear": lambda seed: SyntheticEnvironment("linear", dim_x=5, dim_z=2, n_arms=3, seed=seed)},
    ...     {
    ...         "LinUCB": lambda env: LinUCB(env.n_arms, env.dim_x),
    ...         "PoLinUCB": lambda env: PoLinUCB(env.n_arms, RidgeMap(env.dim_x, env.dim_z)),
    ...     },
    ...     horizon=300, seeds=2, engine="local=1", progress=False,
    ... )
    >>> study.curves("linear", "PoLinUCB").shape == (2, len(study.rounds))
    True
    >>> [row["policy"] for row in study.summary()]
    ['LinUCB', 'PoLinUCB']
    """
    check_engine(engine)
    cells = regret_cells(environments, policies, horizon, seed_list(seeds))
    with (
        open_engine(engine) as run_all,
        kept_cells(Path(out)) if out is not None else nullcontext() as kept,
        progress_bar(quiet=not progress) as shown,
    ):
        return run_cells(cells, run_all, kept, shown)


def regret_cells(
    environments: Mapping[str, MakeEnvironment],
    policies: Mapping[str, MakePolicy],
    horizon: int,
    seeds: Sequence[int],
) -> list[Cell]:
    """The cells of a study of regret."""
    for kind, makers in (("environments", environments), ("policies", policies)):
        if not isinstance(makers, Mapping) or not makers or not all(isinstance(name, str) for name in makers):
            raise InvalidInput(f"{kind} is {makers!r:.80}, wanted at least one, by name")
        for name, make in makers.items():
            if not callable(make):
                raise InvalidInput(f"{name!r} is {make!r}, wanted a function that makes a fresh one")
    cells = []
    for (place, make_environment), (name, make_policy) in product(environments.items(), policies.items()):
        measure = partial(regret_of, make_environment, make_policy)
        examples = _examples(make_environment, name, make_policy)
        cells += cells_of(place, name, measure, horizon, seeds, examples)
    return cells


def _examples(make_environment: MakeEnvironment, name: str, make_policy: MakePolicy) -> tuple[Any, Any]:
    """What is made for seed 0: a result depends on these as well as on the code of their makers."""
    environment = make_environment(0)
    first, second = make_policy(environment), make_policy(environment)
    if first is second:
        raise InvalidInput(f"{name!r} gives the same object each time, wanted a fresh one")
    return environment, first


def cells_of(
    place: str,
    line: str,
    measure: Callable[[int, int], Curve],
    horizon: int,
    seeds: Sequence[int],
    depends_on: Any = None,
) -> list[Cell]:
    """One cell per seed of the curve `measure(horizon, seed)`.

    Kept results are found by a fingerprint of the measure and of what else it is said to depend on.
    """
    horizon = integer("horizon", horizon, least=1)
    made = fingerprint(measure, depends_on)
    return [
        Cell(place, line, seed, horizon, key, partial(measure, horizon, seed))
        for seed, key in ((seed, fingerprint(made, place, line, horizon, seed)) for seed in seeds)
    ]


def regret_of(make_environment: MakeEnvironment, make_policy: MakePolicy, horizon: int, seed: int) -> Curve:
    """The regret of one simulation, at the recorded rounds."""
    environment = make_environment(seed)
    rounds = recorded_rounds(horizon)
    return Curve(rounds, simulate(make_policy(environment), environment, horizon, seed).regret[rounds - 1])


def recorded_rounds(horizon: int) -> IntArray:
    """The rounds at which curves are kept: evenly for drawing, by powers for growth, and round numbers."""
    decades = 10 ** np.arange(len(str(horizon)))
    kept = [
        np.linspace(1, horizon, min(horizon, 200)),
        np.geomspace(1, horizon, 50),
        np.outer(decades, (1, 2, 5)).ravel(),
    ]
    rounds = np.unique(np.rint(np.concatenate(kept)).astype(np.int64))
    return rounds[rounds <= horizon]


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    """0, 1, … for a number; two at least, since one has no standard error."""
    if not isinstance(seeds, Sequence | np.ndarray):
        seeds = range(integer("seeds", seeds, least=2))
    listed = [integer("seed", seed, least=0) for seed in seeds]
    if len(listed) < 2 or len(set(listed)) < len(listed):
        raise InvalidInput(f"seeds is {seeds!r}, wanted at least 2 different ones: errors need two")
    return listed


def run_cells(
    cells: Sequence[Cell],
    run_all: RunAll,
    kept: KeptCells | None,
    progress: Progress,
    *,
    title: str = "study",
    measure: str = "regret",
) -> Study:
    """Run what is not kept yet, keep each cell as it finishes, and put them together in the cells' order."""
    found = {cell.key: kept.find(cell.key) for cell in cells} if kept else {}
    frames = {
        cell.key: frame
        for cell in cells
        if (frame := found.get(cell.key)) is not None and _is_of(cell, frame, measure)
    }
    missing = {cell.key: cell for cell in cells if cell.key not in frames}
    total = sum(cell.horizon for cell in cells)
    task = progress.add_task(
        title, total=total, completed=total - sum(cell.horizon for cell in missing.values())
    )
    for key, curve in run_all(_run, list(missing.values())) if missing else ():
        frames[key] = _frame(missing[key], curve, measure)
        if kept:
            kept.keep(key, frames[key])
        progress.advance(task, missing[key].horizon)
    return Study(pl.concat([frames[cell.key] for cell in cells]))


def _run(cell: Cell) -> tuple[str, Curve]:
    try:
        return cell.key, cell.run()
    except Exception as error:
        error.add_note(f"in the cell of {cell.line!r} in {cell.place!r}, seed {cell.seed}")
        raise


def _is_of(cell: Cell, frame: pl.DataFrame, measure: str) -> bool:
    """Whether a kept frame looks like what this cell would have written."""
    if frame.schema != {**SCHEMA, measure: pl.Float64} or not len(frame):
        return False
    ends = frame.row(0)[:3], frame.row(-1)[:4]
    place = cell.place, cell.line, cell.seed
    return ends == (place, (*place, cell.horizon)) and bool(frame[measure].is_finite().all())


def _frame(cell: Cell, curve: Curve, measure: str) -> pl.DataFrame:
    return pl.DataFrame({"round": curve.rounds, measure: curve.values}).select(
        pl.lit(cell.place).alias("environment"),
        pl.lit(cell.line).alias("policy"),
        pl.lit(cell.seed, dtype=pl.Int64).alias("seed"),
        "round",
        measure,
    )
