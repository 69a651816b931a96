"""Automatic exploration against the best constant, chosen in hindsight for each world.

`python -m benchmarks.exploration` prints a table for one fixed context (2 to 200 arms, T = 3,000) and for
the worlds of figure 1 with 10 and 50 arms (T = 1,000), with reward noises of 0.1, 0.3 and 1. With one
context, regret in the second half should be below a tenth of that in the first half.
"""

import argparse
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from postserve import SyntheticEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import many_arms
from postserve.experiments.study import Study, recorded_rounds, run_study

MOST, MOST_ON_AVERAGE = 1.6, 1.15
KINDS = ("polynomial", "periodic", "linear")


def figure1(kind: Any, n_arms: int, noise: float, seed: int) -> SyntheticEnvironment:
    return SyntheticEnvironment(kind, n_arms=n_arms, reward_noise=noise, seed=seed)


def one_context(**options: Any) -> Study:
    return _study(many_arms.worlds(contexts=["one x"]), c.X_ONLY.evidence, 3000, **options)


def figure1_worlds(**options: Any) -> Study:
    worlds = {
        f"{kind}, {n} arms, noise {noise:g}": partial(figure1, kind, n, noise)
        for kind, n, noise in product(KINDS, (10, 50), many_arms.NOISES)
    }
    return _study(worlds, c.POLINUCB.evidence, 1000, **options)


def _study(worlds: Any, contender: c.Contender, horizon: int, **options: Any) -> Study:
    policies = {setting.name: setting.maker for setting in many_arms.settings(contender)}
    return run_study(worlds, policies, horizon=horizon, progress=False, **options)


def second_half(study: Study, place: str) -> float:
    """Regret of the second half over that of the first, with automatic exploration."""
    curve = study.curves(place, many_arms.AUTO).mean(axis=0)
    first = np.interp(study.horizon / 2, recorded_rounds(study.horizon), curve)
    return float((curve[-1] - first) / first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--engine", default="local", help="as of `postserve reproduce`")
    options = vars(parser.parse_args())
    print("| world | auto | best constant | its regret | ratio | second half / first |")
    print("|---|---:|---:|---:|---:|---:|")
    ratios: list[float] = []
    for study in (one_context(**options), figure1_worlds(**options)):
        found = many_arms.over_best_constant(study, study.environments)
        ratios += found.values()
        for place, ratio in found.items():
            means = {name: study.final(place, name).mean() for name in many_arms.CONSTANT_NAMES}
            best = min(means, key=lambda name: means[name])
            numbers = f"{means[best] * ratio:,.1f} | {best} | {means[best]:,.1f} | {ratio:.2f}"
            print(f"| {place} | {numbers} | {second_half(study, place):.3f} |")
    mean = float(np.exp(np.log(ratios).mean()))
    print(f"\nLargest ratio {max(ratios):.2f}, wanted at most {MOST}.")
    print(f"Geometric mean {mean:.3f}, wanted at most {MOST_ON_AVERAGE}.")


if __name__ == "__main__":
    main()
