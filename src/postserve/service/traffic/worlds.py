"""Worlds that traffic comes from: a made-up one with the fields of an experiment, and real trials."""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.spatial import KDTree

from postserve.data import actg175, hillstrom
from postserve.data.rounds import LoggedRounds
from postserve.environments import SyntheticEnvironment
from postserve.errors import InvalidInput
from postserve.service.experiment import Experiment, Field
from postserve.types import FloatArray
from postserve.validation import one_of

TRIALS: dict[str, Callable[[], LoggedRounds]] = {"actg175": actg175, "hillstrom": hillstrom}
"""Data whose arms were drawn at random: what another would have done can be told from people alike."""
ENVIRONMENTS = ("linear", "polynomial", "periodic")
"""The paper's synthetic ones."""
ALIKE = 10
"""So many rows are alike."""
NOISE = 0.3
"""Of rewards; z and what x is worth have deviations of about 1."""


class Feedback(NamedTuple):
    """What follows a served arm; None where nothing does."""

    z: dict[str, Any] | None
    reward: float | None


class World(Protocol):
    """Where visitors come from."""

    def visitor(self, rng: np.random.Generator) -> dict[str, Any]:
        """The x of the next one."""

    def feedback(self, x: Mapping[str, Any], arm: str, rng: np.random.Generator) -> Feedback:
        """What they do when an arm is served."""

    def best(self, x: Mapping[str, Any], arms: Sequence[str]) -> str | None:
        """The arm with the largest expected reward, if that is known."""


class MadeUpWorld:
    r"""A world with the fields and arms of an experiment.

    Numbers are about 50, categories are drawn evenly. z is linear in x, with a level that depends on the arm
    (of categories, the log-odds are), and the reward is linear in x and z, with weights of each arm. An arm's
    weights follow from its name, so that arms may be added at any time.

    >>> from postserve.service.experiment import parse_experiment
    >>> text = 'name = "n"\narms = ["a", "b"]\nx = {age = "number"}\nz = {done = ["no", "yes"]}\n'
    >>> world, rng = MadeUpWorld(parse_experiment(text)), np.random.default_rng(0)
    >>> x = world.visitor(rng)
    >>> sorted(x), world.feedback(x, "a", rng).z["done"] in ("no", "yes"), world.best(x, ["a", "b"])
    (['age'], True, 'b')
    """

    def __init__(self, experiment: Experiment, seed: int = 0) -> None:
        self._x, self._z, self._seed = experiment.x, experiment.z, seed
        self._n = sum(_width(field) for field in self._x.values())
        self._weights: dict[str, tuple[FloatArray, FloatArray, FloatArray]] = {}
        shape = self._n, sum(_width(field) for field in self._z.values())
        self._phi = np.random.default_rng(seed).normal(size=shape) / np.sqrt(self._n)

    def visitor(self, rng: np.random.Generator) -> dict[str, Any]:
        """As `World.visitor`."""
        return {
            name: round(50.0 + 15.0 * rng.normal(), 1) if field == "number" else str(rng.choice(field))
            for name, field in self._x.items()
        }

    def feedback(self, x: Mapping[str, Any], arm: str, rng: np.random.Generator) -> Feedback:
        """As `World.feedback`."""
        numbers = _numbers(self._x, x)
        of_x, of_z, level = self._of(arm)
        z: dict[str, Any] = {}
        follow = numbers @ self._phi + level
        for name, field, at in _places(self._z):
            if field == "number":
                follow[at] += rng.normal()
                z[name] = round(50.0 + 15.0 * float(follow[at][0]), 1)
            else:
                z[name] = str(rng.choice(field, p=_chances(follow[at])))
        sent = numbers @ of_x + _numbers(self._z, z) @ of_z + NOISE * rng.normal()
        return Feedback(z, round(float(sent), 3))

    def best(self, x: Mapping[str, Any], arms: Sequence[str]) -> str:
        """As `World.best`."""
        return max(arms, key=lambda arm: self._mean(_numbers(self._x, x), arm))

    def _mean(self, numbers: FloatArray, arm: str) -> float:
        of_x, of_z, level = self._of(arm)
        follow = numbers @ self._phi + level
        for _, field, at in _places(self._z):
            if field != "number":
                follow[at] = _chances(follow[at])
        return float(numbers @ of_x + follow @ of_z)

    def _of(self, arm: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What x and z are worth under an arm, and what it adds to z."""
        if arm not in self._weights:
            rng, dim_z = np.random.default_rng([self._seed, zlib.crc32(arm.encode())]), self._phi.shape[1]
            drawn = rng.normal(size=self._n), rng.normal(size=dim_z), 0.5 * rng.normal(size=dim_z)
            self._weights[arm] = drawn
        return self._weights[arm]


class TrialWorld:
    """A randomised trial: who is served an arm does what somebody alike did who had it.

    That is one of the ten whose x is nearest, drawn at random. What is missing there does not come.
    """

    def __init__(self, rounds: LoggedRounds) -> None:
        self._rounds, scaled = rounds, rounds.standardised().x
        self.arms, self.x_names, self.z_names = rounds.arm_names, rounds.x_names, rounds.z_names
        self._places = {tuple(row): i for i, row in enumerate(rounds.x)}
        self._scaled = scaled
        self._rows = {arm: np.flatnonzero(rounds.arms == i) for i, arm in enumerate(rounds.arm_names)}
        self._near = {arm: KDTree(scaled[rows]) for arm, rows in self._rows.items()}

    def visitor(self, rng: np.random.Generator) -> dict[str, Any]:
        """As `World.visitor`."""
        row = self._rounds.x[rng.integers(len(self._rounds))]
        return dict(zip(self.x_names, row.tolist(), strict=True))

    def feedback(self, x: Mapping[str, Any], arm: str, rng: np.random.Generator) -> Feedback:
        """As `World.feedback`."""
        at = self._places[tuple(x.values())]
        _, near = self._near[arm].query(self._scaled[at], min(ALIKE, len(self._rows[arm])))
        row = self._rows[arm][rng.choice(np.atleast_1d(near))]
        z, reward = self._rounds.z[row], self._rounds.rewards[row]
        named = dict(zip(self.z_names, z.tolist(), strict=True))
        return Feedback(None if np.isnan(z).any() else named, None if np.isnan(reward) else float(reward))

    def best(self, x: Mapping[str, Any], arms: Sequence[str]) -> None:
        """Nobody knows."""


class SyntheticWorld:
    """One of the paper's environments."""

    def __init__(self, name: str, seed: int) -> None:
        phi: Any = name
        self._env = SyntheticEnvironment(phi, dim_x=5, dim_z=3, n_arms=4, seed=seed)
        self.arms = [f"arm {i}" for i in range(self._env.n_arms)]
        self.x_names = [f"x{i}" for i in range(self._env.dim_x)]
        self.z_names = [f"z{i}" for i in range(self._env.dim_z)]
        self._drawn: dict[tuple[float, ...], Any] = {}

    def visitor(self, rng: np.random.Generator) -> dict[str, Any]:
        """As `World.visitor`."""
        drawn = self._env.rounds(1, rng)
        x = drawn.x[0].tolist()
        self._drawn[tuple(x)] = drawn
        return dict(zip(self.x_names, x, strict=True))

    def feedback(self, x: Mapping[str, Any], arm: str, rng: np.random.Generator) -> Feedback:
        """As `World.feedback`, once for each visitor."""
        drawn = self._drawn.pop(tuple(x.values()))
        z = dict(zip(self.z_names, drawn.z[0].tolist(), strict=True))
        return Feedback(z, float(drawn.rewards[0, self.arms.index(arm)]))

    def best(self, x: Mapping[str, Any], arms: Sequence[str]) -> str:
        """As `World.best`."""
        means = self._env.means(list(x.values()))
        return max(arms, key=lambda arm: float(means[self.arms.index(arm)]))


def world_of(experiment: Experiment, source: str | None, seed: int) -> World:
    """The world that an experiment is played in; raises if that has other fields."""
    if source is None:
        return MadeUpWorld(experiment, seed)
    world = _named(source, seed)
    wanted = f"the file that `postserve simulate-traffic FILE --data {source} --init` writes"
    for side, names in (("x", world.x_names), ("z", world.z_names)):
        if dict.fromkeys(names, "number") != (there := getattr(experiment, side)):
            raise InvalidInput(f"{side} has {', '.join(there):.60}, wanted {', '.join(names):.60}: {wanted}")
    if stray := {*experiment.arms} - {*world.arms}:
        raise InvalidInput(f"arms has {min(stray)!r:.60}, wanted {', '.join(world.arms):.200}: {wanted}")
    return world


def _named(source: str, seed: int) -> TrialWorld | SyntheticWorld:
    one_of("data", source, (*TRIALS, *ENVIRONMENTS))
    return TrialWorld(TRIALS[source]()) if source in TRIALS else SyntheticWorld(source, seed)


def file_for(source: str) -> str:
    """An experiment's file with the arms and fields of a data set or an environment."""
    world = _named(source, 0)
    x, z = (
        "".join(f'{json.dumps(name)} = "number"\n' for name in names)
        for names in (world.x_names, world.z_names)
    )
    return (
        f'# To be played by: postserve simulate-traffic FILE --data {source}\nname = "{source}"\n'
        f"arms = {json.dumps(list(world.arms))}\nexplore = 0.05\n\n[x]\n{x}\n[z]\n{z}\n"
        f'[feedback]\nwait_for_z = "7d"\nwait_for_reward = "30d"\n\n[store]\npath = "{source}.sqlite"\n'
    )


def _width(field: Field) -> int:
    return 1 if field == "number" else len(field)


def _places(fields: Mapping[str, Field]) -> list[tuple[str, Field, slice]]:
    """Where the numbers of each field are."""
    found, start = [], 0
    for name, field in fields.items():
        found.append((name, field, slice(start, start + _width(field))))
        start += _width(field)
    return found


def _numbers(fields: Mapping[str, Field], values: Mapping[str, Any]) -> FloatArray:
    """Values as numbers: about standard normal, or one indicator per category."""
    found: list[float] = []
    for name, field in fields.items():
        if field == "number":
            found.append((values[name] - 50.0) / 15.0)
        else:
            found += [float(level == values[name]) for level in field]
    return np.array(found)


def _chances(odds: FloatArray) -> FloatArray:
    weights = np.exp(2.0 * odds)
    return np.asarray(weights / weights.sum())
