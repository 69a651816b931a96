"""What every figure has: its cells, its drawing, its numbers, and whether the paper's claims held."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from postserve.errors import InvalidInput
from postserve.experiments.contenders import Contender
from postserve.experiments.study import Cell, MakeEnvironment, Study, regret_cells, seed_list

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


class Size(NamedTuple):
    """How long, over how many seeds, and whether in the small world of `--quick`."""

    horizon: int
    seeds: int
    quick: bool = False


class Claim(NamedTuple):
    """What was claimed and what was seen, as a sentence; `held` is None where nothing was claimed."""

    text: str
    held: bool | None


Row = dict[str, Any]
"""Of summary.json."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure, as its module in `figures/` defines it; constants have these names in capitals there.

    `name` is what one types, `title` and `about` open its section of the report, and `settings` are
    its lines there. `full` and `quick` are its two sizes. `cells` are run; their `Study` gives the rows of
    summary.json, the `claims` and the picture. `measure` is what the curves are of. `headline` sums the
    result up in one sentence, and `overview` in a picture that a newcomer can read.
    A figure of real data names its sets in `data`, and its `settings` and `cells` also take the folder of
    the data; their headlines open the report.
    """

    name: str
    title: str
    about: str
    full: Size
    quick: Size
    settings: Callable[..., Mapping[str, str]]
    cells: Callable[..., list[Cell]]
    summary: Callable[[Study], list[Row]]
    claims: Callable[[Study], list[Claim]]
    draw: Callable[[Study], "Picture"]
    measure: str = "regret"
    data: tuple[str, ...] = ()
    headline: Callable[[Study], str] | None = None
    overview: Callable[[Study], "Picture"] | None = None


CONSTANTS = ("TITLE", "ABOUT", "FULL", "QUICK", "MEASURE", "DATA")
FUNCTIONS = ("settings", "cells", "summary", "claims", "draw", "headline", "overview")


def figure_of(module: ModuleType) -> Figure:
    """The figure that a module defines."""
    found = {name.lower(): vars(module)[name] for name in CONSTANTS + FUNCTIONS if name in vars(module)}
    return Figure(name=module.__name__.rpartition(".")[2], **found)


def contest(
    size: Size,
    environments: Mapping[str, MakeEnvironment],
    contenders: Sequence[Contender],
    seeds: Sequence[int] | None = None,
) -> list[Cell]:
    """The regret of every contender in every environment."""
    makers = {contender.name: contender.maker for contender in contenders}
    if len(makers) < len(contenders):
        raise InvalidInput(f"contenders are {', '.join(map(str, contenders))}, wanted different names")
    return regret_cells(environments, makers, size.horizon, seeds or seed_list(size.seeds))
