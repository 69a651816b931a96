"""The automatic choice against its members, in the worlds and on the data of other figures."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from postserve.environments import Observation1
from postserve.evaluation.halves import halves_interval
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import at_most, listed, summed_up
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.figures import figure1, figure2, trials
from postserve.experiments.figures.figure2 import worlds as movies
from postserve.experiments.figures.trials import worlds as logs
from postserve.experiments.statistics import Interval, mean_interval
from postserve.experiments.study import Cell, Curve, MakeEnvironment, MakePolicy, Study, cells_of, seed_list
from postserve.types import FloatArray, Rounds

TITLE = "Which policy, without knowing: the automatic choice against its members"
ABOUT = (
    "BestPolicy learns as LinUCB(x), LinUCB(phi_hat), poLinUCB and RobustPoLinUCB do, and decides as the one "
    "that has predicted rewards best so far. In each world it is compared with the member that turned out "
    "best there, which nobody knows before. Less is better: regret, and in the trials, where the truth is "
    "not known, minus the mean reward."
)
FULL, QUICK = Size(horizon=1000, seeds=20), Size(horizon=100, seeds=2, quick=True)
MEASURE = "value"
DATA = (*figure2.DATA, *trials.DATA)

LIMIT = 0.03
"""How far above the best member's regret the automatic choice may be, as a share of it."""
MOVIE_ROUNDS = figure2.FULL.horizon
MOVIELENS, SIMULATED = "MovieLens", "Simulated worlds"
MEMBERS = tuple(replace(each, prior="evidence") for each in (c.X_ONLY, c.BEFORE, c.POLINUCB, c.ROBUST))
OURS = replace(c.BEST, prior="evidence")


class NonlinearReward:
    """A reward that is linear in x and in max(z, 0), z skewed around phi(x) = 2|x|W.

    x is N(0, I_10), 5 arms, W of 10 x 3 is N(0, 1/9), z = phi + Exp(1) - 1, reward =
    0.2 theta·x + beta·max(z, 0) + N(0, 0.1²) with theta and beta standard normal.
    """

    dim_x, dim_z, n_arms = 10, 3, 5

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.W = rng.standard_normal((10, 3)) / 3.0
        self.theta, self.beta = rng.standard_normal((5, 10)), rng.standard_normal((5, 3))

    @staticmethod
    def features(x: Any) -> Any:
        return np.concatenate([[1.0], x, np.abs(x)])

    def phi(self, x: Any) -> FloatArray:
        return np.asarray(2.0 * np.abs(x) @ self.W)

    def means(self, x: Any) -> FloatArray:
        phi = self.phi(x)
        positive = np.where(phi >= 1.0, phi, np.exp(np.minimum(phi, 1.0) - 1.0))  # E max(phi + Exp - 1, 0)
        return np.asarray(0.2 * x @ self.theta.T + positive @ self.beta.T)

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        x = rng.standard_normal((n, 10))
        z = self.phi(x) + rng.exponential(size=(n, 3)) - 1.0
        noise = 0.1 * rng.standard_normal((n, 1))
        rewards = 0.2 * x @ self.theta.T + np.maximum(z, 0.0) @ self.beta.T + noise
        return Rounds(x, z, rewards, self.means(x))


def cells(size: Size, data: Path | None) -> list[Cell]:
    """All members and the automatic choice everywhere, with the maps of the figures."""
    everyone = (*MEMBERS, OURS)
    found = contest(size, _simulated(size.quick), everyone)
    found += contest(
        size._replace(horizon=min(size.horizon, MOVIE_ROUNDS)),
        _movielens(data),
        [each.with_options(**_map(each, movies.network)) for each in everyone],
        seed_list(movie_seeds(size)),
    )
    for place, world, contenders, rows in _replayed(size, data):
        for each in contenders:
            measure = partial(loss_of, world, each.maker)
            found += cells_of(place, each.name, measure, rows // 2, seed_list(trials.orderings(size, rows)))
    return found


def movie_seeds(size: Size) -> int:
    """Both halves of at least two draws, as many draws for each cut of the users."""
    draws = max(2, size.seeds // 2)
    return 2 * (draws if draws < movies.CUTS else draws - draws % movies.CUTS)


def _map(contender: c.Contender, make_map: Any) -> dict[str, Any]:
    return {} if contender == c.X_ONLY else {"make_map": make_map}


def _simulated(quick: bool) -> dict[str, MakeEnvironment]:
    noiseless = figure1.environments(quick, reward_from="phi")
    return {
        **figure1.environments(quick),
        **{f"{kind}, noiseless in z": make for kind, make in noiseless.items()},
        "observation 1": lambda seed: Observation1(),
        "not linear in z": NonlinearReward,
    }


def _movielens(data: Path | None) -> dict[str, MakeEnvironment]:
    model = figure2.rating_model(data)
    own, turned = (movies.catalogue(model, model.level, principal=turned) for turned in (False, True))
    return {
        movies.FIVE: partial(movies.papers_world, movies.papers(own)),
        movies.DRAWN: partial(movies.half_world, own),
        movies.AXES: partial(movies.half_world, turned),
    }


def _replayed(
    size: Size, data: Path | None
) -> Iterator[tuple[str, Callable[[int], Any], list[c.Contender], int]]:
    """The trials and Jester: name, halves of rows by seed, policies, rows."""
    known = [each.with_options(**_map(each, c.map_on_x)) for each in (*MEMBERS, OURS)]
    rows = trials.most_rows(size)
    for trial, whole in logs.logs(data).items():
        log = whole.take(logs.sample(len(whole), rows))
        contenders = [known[0], *(logs.naming_the_arm(each) for each in known[1:])]
        yield trial, partial(logs.half_of_log, log), contenders, len(log)
    users = logs.complete_users(data)
    users = users[logs.sample(len(users), rows)]
    for trial, fixed in zip(logs.FULLY_KNOWN, (True, False), strict=True):
        yield trial, partial(logs.half_of_users, users, fixed), known, len(users)


def loss_of(make_rounds: Callable[[int], Any], make_policy: MakePolicy, horizon: int, seed: int) -> Curve:
    """Minus the mean reward of a weighted replay; where every arm's reward is known, the mean regret."""
    at, values = trials.value_of("weighted", make_rounds, make_policy, horizon, seed)
    rounds = make_rounds(seed)
    best = float(rounds.rewards.max(axis=1).mean()) if isinstance(rounds, Rounds) else 0.0
    return Curve(at, best - values)


def interval(place: str, values: FloatArray) -> Interval:
    """Over seeds, which are pairs of halves of users, patients or customers in real data."""
    if place in (*logs.LOGGED, *logs.FULLY_KNOWN):
        return Interval(*halves_interval(values, logs.CUTS))
    if place in movies.DRAWS_OF:
        return Interval(*halves_interval(values, movies.CUTS))
    return mean_interval(values)


def best_member(study: Study, place: str) -> c.Contender:
    """In hindsight."""
    return min(MEMBERS, key=lambda member: float(study.final(place, member).mean()))


def excess(study: Study, place: str) -> Interval:
    """Ours minus the best member's, paired."""
    return interval(place, study.differences(place, OURS, best_member(study, place)))


def claims(study: Study) -> list[Claim]:
    return [judge(study, place) for place in study.environments]


def judge(study: Study, place: str) -> Claim:
    """That ours exceeds the best member by at most the limit; in the trials, without a regret, not at all.

    The whole interval must be within that: fewer seeds can leave it open, and make it no easier.
    """
    best, found = best_member(study, place), excess(study, place)
    text, limit = f"{place}: {OURS} minus the best of its members, {best}: {found}", 0.0
    allowed = "0"
    if place not in logs.LOGGED:
        mean = float(study.final(place, best).mean())
        text += f", {found.value / mean:+.1%}" if mean else ""
        allowed, limit = f"{LIMIT:.0%} of the latter's regret", LIMIT * mean
    return at_most(f"{text}; held if the whole 95% interval is at most {allowed}", found, limit)


def headline(study: Study) -> str:
    """Where the automatic choice was worse than knowing, and where that is not decided."""
    members = listed([member.name for member in MEMBERS])
    text = (
        f"{OURS}, which chooses between {members} by their errors, has at most {LIMIT:.0%} more regret than "
        "the one that turned out best, and in trials no smaller mean reward, by 95% intervals"
    )
    return summed_up(text, {place: judge(study, place).held for place in study.environments}, "worlds")


def summary(study: Study) -> list[Row]:
    rows = []
    for row in study.summary():
        _, low, high = interval(row["environment"], study.final(row["environment"], row["policy"]))
        rows.append({**row, "low": low, "high": high, "table": _group(row["environment"]), "names": "policy"})
    return rows


def _group(place: str) -> str:
    """The title of the table that a world is in."""
    if place in logs.LOGGED:
        return f"{place}, minus the mean reward"
    if place in logs.FULLY_KNOWN:
        return "Jester, regret per round"
    return f"{MOVIELENS if place in (movies.FIVE, *movies.DRAWS_OF) else SIMULATED}, regret"


def settings(size: Size, data: Path | None) -> dict[str, str]:
    return {
        SIMULATED: "those of figures 1 and 4, observation 1, and rewards linear in max(z, 0); the "
        "map is given the features in which phi is linear",
        MOVIELENS: "five movies and draws of movies as in figure 2, with the paper's network, "
        f"T = {min(size.horizon, MOVIE_ROUNDS)}",
        "trials, Jester": "halves of rows as in the figure `trials`, weighted replay, maps linear in x; "
        f"at most {trials.most_rows(size):,} rows",
        "policies": "with their defaults; members run as policies of their own",
        "first rounds": "until 50 rewards have come, poLinUCB decides; that number comes from other worlds",
        "held": f"if the paired 95% interval of the excess over the best member is at most {LIMIT:.0%} of "
        "that one's regret, in the trials, where no regret is known, at most 0; failed if it is above that, "
        "and otherwise not decided",
        "settled late": "the excess was first held if its mean was within the limit or its interval included "
        "0, which fewer seeds make easier. Later, with results known, the whole interval had to be within it",
    }


def draw(study: Study) -> Any:
    """One row per world: how far everyone is above the best member."""
    known = [place for place in study.environments if place not in logs.LOGGED]
    with style.picture(1, 2, height=5.0, width=6.2) as (made, axes):
        left, right = axes[0]
        for panel, shown in ((left, known), (right, logs.LOGGED)):
            for row, place in enumerate(reversed(shown)):
                best = study.final(place, best_member(study, place))
                scale = abs(float(best.mean())) or 1.0  # all may be 0 in a small run
                for each in (*MEMBERS, OURS):
                    found = interval(place, (study.final(place, each) - best) / scale)
                    ours = each == OURS
                    line: Any = {"fmt": "D" if ours else "o", "color": each.colour}
                    at = row - 0.25 if ours else row
                    style.draw_interval(panel, at, found, label=None if row else each.name, **line)
            style.name_rows(panel, shown)
            panel.axvline(0.0, color=style.REFERENCE, linewidth=1)
        left.axvline(LIMIT, color=style.REFERENCE, linewidth=1, linestyle=":")
        left.set_xscale("symlog", linthresh=0.1)
        left.set_xlabel("regret over the best member's, minus 1 (symlog), 95% intervals")
        right.set_xlabel("mean reward below the best member's, as a share, 95% intervals")
        style.legend(made, [left], 5)
        return made
