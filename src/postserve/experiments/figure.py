"""What every figure has: its cells, its drawing, its numbers, and whether the paper's claims held."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from postserve.experiments.study import Cell, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


class Size(NamedTuple):
    """How long, over how many seeds, and whether in the small world of `--quick`."""

    horizon: int
    seeds: int
    quick: bool


class Claim(NamedTuple):
    """A sentence on what was claimed and what was seen; `held` is None where nothing was claimed."""

    text: str
    held: bool | None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure, as its folder defines it.

    `name` is what one types, `title` and `about` open its section of the report, and `settings` are
    its lines there. `size` and `quick` are its full and its small form; `cells` are run, and of their
    `Study` come the rows of summary.json, the `claims` and the picture. `measure` is what curves hold.
    A figure of real data names its sets in `data`; its `settings` and `cells` are given the folder to look
    for them in, too, and its `headline` is the sentence that opens the report.
    """

    name: str
    title: str
    about: str
    settings: Callable[..., Mapping[str, str]]
    size: Size
    quick: Size
    cells: Callable[..., list[Cell]]
    summary: Callable[[Study], list[dict[str, Any]]]
    claims: Callable[[Study], list[Claim]]
    draw: Callable[[Study], "Picture"]
    measure: str = "regret"
    data: tuple[str, ...] = ()
    headline: Callable[[Study], str] | None = None
