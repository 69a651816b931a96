"""What `diagnose` says of the real data sets: `python -m benchmarks.diagnosis_on_data OUT`.

The two trials are logs. MovieLens and Jester have every arm's reward, as `figure2` and `trials` use them: a
log is made by serving an arm at random to each user.
"""

import sys
from pathlib import Path

import numpy as np

from postserve import LoggedRounds, Rounds, diagnose
from postserve.data import actg175, hillstrom
from postserve.experiments.figures.figure2 import rating_model
from postserve.experiments.figures.figure2.worlds import catalogue, papers, papers_world
from postserve.experiments.figures.trials.worlds import complete_users, half_of_users


def served_at_random(rounds: Rounds) -> LoggedRounds:
    """A log in which one arm was served to each user."""
    n, k = rounds.rewards.shape
    arms = np.random.default_rng(0).integers(k, size=n)
    rewards = rounds.rewards[np.arange(n), arms]
    return LoggedRounds(x=rounds.x, z=rounds.z, arms=arms, rewards=rewards, propensities=1 / k)


def movielens_log() -> LoggedRounds:
    """943 users and the five movies of figure 2."""
    model = rating_model(None)
    world = papers_world(papers(catalogue(model, model.level)), 0)
    return served_at_random(Rounds(world.x, world.z, world.rewards, world.rewards))


def jester_log() -> LoggedRounds:
    """The users of one half who rated every joke, as in the figure `trials`."""
    return served_at_random(half_of_users(complete_users(None), True, 0))


LOGS = {
    "ACTG 175, CD4": lambda: actg175(reward="cd4"),
    "Hillstrom, conversion": lambda: hillstrom(reward="conversion"),
    "MovieLens": movielens_log,
    "Jester": jester_log,
}


def main() -> None:
    """Print what is said of each, and write their pages."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/diagnosis")
    for name, make in LOGS.items():
        found = diagnose(make(), rows=20_000)
        page = found.write(out / name.split(",")[0].lower().replace(" ", ""))
        print(
            f"## {name}: {found.helps}{'' if found.trusted else ', not to be trusted'} ({page})\n\n{found}\n",
            flush=True,
        )


if __name__ == "__main__":
    main()
