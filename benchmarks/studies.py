"""A whole study: seeds x five policies x T rounds of the paper's world, 10 arms with 100 + 5 dimensions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.rounds import DIM_X, DIM_Z, PlainPo
from benchmarks.streams import post_stream
from benchmarks.timing import play, seconds
from postserve import SyntheticEnvironment, run_study
from postserve.experiments.contenders import AFTER, ORACLE, POLINUCB, RANDOM, X_ONLY

PAPER = (RANDOM, X_ONLY, AFTER, POLINUCB, ORACLE)


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """Seconds on one core and on all, and the ratio to as many rounds of poLinUCB in plain numpy."""
    seeds, horizon = (2, 1000) if quick else (10, 5000)
    learnt = (RANDOM, *(contender.evidence for contender in PAPER[1:]))
    kinds = {
        kind: {contender.name: contender.maker for contender in contenders}
        for kind, contenders in (("ridge 1", PAPER), ("learnt priors", learnt))
    }
    _study(kinds["ridge 1"], 2, 20, "local=1")  # compiles
    for kind, policies in kinds.items():
        plain = sum(play(PlainPo(10, DIM_X, DIM_Z), post_stream(10, DIM_X, DIM_Z), range(horizon)))
        for engine in ("local=1", "local"):
            taken = seconds(partial(_study, policies, seeds, horizon, engine))
            name = f"{seeds} seeds x 5 policies x {horizon}, {kind}, engine {engine}"
            yield name, {"seconds": taken, "ratio": taken / (plain * 5 * seeds * horizon)}


def _study(policies: dict[str, Any], seeds: int, horizon: int, engine: str) -> None:
    worlds = {"polynomial": _world}
    run_study(worlds, policies, horizon=horizon, seeds=seeds, engine=engine, progress=False)


def _world(seed: int) -> SyntheticEnvironment:
    return SyntheticEnvironment("polynomial", seed=seed)
