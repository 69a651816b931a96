"""The worlds in which arms come and go: whether they share their weights, and how late the reward is."""

from functools import partial
from typing import Any, NamedTuple

from postserve.environments import RotatingEnvironment
from postserve.experiments.figure import Size
from postserve.experiments.figures.late import policies as p
from postserve.experiments.runner import simulate
from postserve.experiments.study import Cell, Curve, MakeEnvironment, MakePolicy, cells_of, recorded_rounds

OWN_WEIGHTS = 0.4
"""Length of the part of an arm's weights that is its own, where they differ; the common part has length 1."""


class Times(NamedTuple):
    """In rounds: how long arms live, when z comes, and when the reward does, with shared and own weights."""

    lifetime: int
    z_delay: int
    shared: tuple[int, ...]
    own: tuple[int, ...]

    def delays(self, reward_delay: int) -> dict[str, int]:
        """Those of `simulate`: z never comes after the reward, which is known at once with delay 0."""
        return {"z_delay": min(self.z_delay, reward_delay), "reward_delay": reward_delay}


FULL = Times(1000, 20, (0, 500, 1000, 2000), (500, 1000))
QUICK = Times(100, 2, (0, 50), (50,))


def times(size: Size) -> Times:
    return QUICK if size.quick else FULL


def shared(delay: int) -> str:
    """The name of the place in which arms share their weights."""
    return f"shared, {delay:,}"


def own(delay: int) -> str:
    return f"own, {delay:,}"


def environment(lifetime: int, own_weights: float, horizon: int, seed: int) -> RotatingEnvironment:
    return RotatingEnvironment(lifetime=lifetime, horizon=horizon, own_weights=own_weights, seed=seed)


def cells(size: Size, seeds: list[int]) -> list[Cell]:
    when = times(size)
    places = [(shared(delay), 0.0, delay) for delay in when.shared]
    places += [(own(delay), OWN_WEIGHTS, delay) for delay in when.own]
    found = []
    for place, own_weights, delay in places:
        make = partial(environment, when.lifetime, own_weights, size.horizon)
        for contender in p.CONTENDERS:
            delays = {**when.delays(delay), "announce": contender in p.ANNOUNCED}
            measure = partial(late_regret, make, contender.maker, delays)
            example = make(0)
            examples = example, contender.maker(example)
            found += cells_of(place, contender.name, measure, size.horizon, seeds, examples)
    return found


def late_regret(
    make_environment: MakeEnvironment,
    make_policy: MakePolicy,
    delays: dict[str, Any],
    horizon: int,
    seed: int,
) -> Curve:
    """The regret of one simulation with delays, at the recorded rounds."""
    environment, rounds = make_environment(seed), recorded_rounds(horizon)
    run = simulate(make_policy(environment), environment, horizon, seed, **delays)
    return Curve(rounds, run.regret[rounds - 1])
