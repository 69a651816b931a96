"""What every environment must do."""

from collections.abc import Callable
from typing import Any

import numpy as np

from postserve.conformance.tools import require

Make = Callable[[], Any]
N = 500


def it_has_the_verbs(make: Make) -> None:
    """`make` makes an environment, with all that the protocol names."""
    require(callable(make), f"got a {type(make).__name__}, wanted a function that makes an environment")
    env = make()
    for name in ("dim_x", "dim_z", "n_arms", "rounds", "phi", "means"):
        require(hasattr(env, name), f"the environment has no {name}")


def rounds_have_the_right_shapes(make: Make) -> None:
    """A block is n contexts, follow-ups, rewards and means of every arm, all finite."""
    env = make()
    rounds = env.rounds(N, np.random.default_rng(0))
    shapes = [array.shape for array in rounds]
    wanted = [(N, env.dim_x), (N, env.dim_z), (N, env.n_arms), (N, env.n_arms)]
    require(shapes == wanted, f"rounds have the shapes {shapes}, wanted {wanted}")
    require(all(bool(np.isfinite(array).all()) for array in rounds), "rounds are not finite")


def rounds_come_from_the_generator(make: Make) -> None:
    """The same generator gives the same rounds, another one others, and the truth does not change."""
    one, other = make(), make()
    first = one.rounds(N, np.random.default_rng(0))
    one.rounds(N, np.random.default_rng(1))
    again = other.rounds(N, np.random.default_rng(0))
    require(all(map(np.array_equal, first, again)), "the same seed gave other rounds")
    third = one.rounds(N, np.random.default_rng(2))
    require(not np.array_equal(first.x, third.x), "another seed gave the same contexts")


def means_are_taken_at_phi(make: Make) -> None:
    """means(x) is what the block says, and z and the rewards scatter around phi(x) and it."""
    env = make()
    rounds = env.rounds(N, np.random.default_rng(0))
    means = np.array([env.means(x) for x in rounds.x])
    require(bool(np.allclose(means, rounds.means)), "means(x) is not what the block says")
    for what, off in (
        ("z", rounds.z - np.array([env.phi(x) for x in rounds.x])),
        ("the rewards", rounds.rewards - rounds.means),
    ):
        error = off.std(axis=0) / np.sqrt(N)
        require(bool((abs(off.mean(axis=0)) <= 5.0 * error + 1e-9).all()), f"{what} are off their mean")


def rewards_follow_what_they_say(make: Make) -> None:
    """Where the environment says that rewards come from z, or from phi, the noise of z says no more."""
    env = make()
    if not hasattr(env, "reward_from"):
        return
    rounds = env.rounds(N, np.random.default_rng(0))
    off_z = rounds.z - np.array([env.phi(x) for x in rounds.x])
    left = rounds.rewards - rounds.means
    if env.reward_from == "z":
        left = left - off_z @ env.beta.T
    limit = 5.0 * np.outer(left.std(axis=0), off_z.std(axis=0)) / np.sqrt(N) + 1e-9
    found = abs((left - left.mean(axis=0)).T @ (off_z - off_z.mean(axis=0))) / N
    require(bool((found <= limit).all()), f"the rewards do not follow {env.reward_from} as reward_from says")


ENVIRONMENT_CHECKS: tuple[Callable[[Make], None], ...] = (
    it_has_the_verbs,
    rounds_have_the_right_shapes,
    rounds_come_from_the_generator,
    means_are_taken_at_phi,
    rewards_follow_what_they_say,
)


def check_environment(make: Make) -> None:
    """Run every check on environments made by `make`, which gives a fresh one each time.

    >>> from postserve import SyntheticEnvironment
    >>> check_environment(lambda: SyntheticEnvironment("linear", dim_x=4, dim_z=2, n_arms=3))
    """
    for check in ENVIRONMENT_CHECKS:
        check(make)
