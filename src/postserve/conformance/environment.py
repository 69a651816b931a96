"""What every environment must do."""

from typing import Any

import numpy as np

from postserve.conformance.tools import Make, checks_in, require
from postserve.types import FloatArray, Rounds

N = 500


def it_has_the_verbs(make: Make) -> None:
    """`make` makes an environment, with all that the protocol names."""
    require(callable(make), f"got a {type(make).__name__}, wanted a function that makes an environment")
    env = make()
    for name in ("dim_x", "dim_z", "n_arms", "rounds", "phi", "means"):
        require(hasattr(env, name), f"the environment has no {name}")


def rounds_have_the_right_shapes(make: Make) -> None:
    """A block has n finite contexts, follow-ups, rewards and means of every arm.

    Contexts and follow-ups have one row per round, or one per arm; if only some arms can be served, the block
    has their ids.
    """
    env = make()
    rounds = env.rounds(N, np.random.default_rng(0))
    k = env.n_arms
    if rounds.arms is not None:
        shape = np.shape(rounds.arms)
        require(len(shape) == 2 and shape[0] == N, f"arms have the shape {shape}, wanted ({N}, k)")
        require(bool((np.diff(rounds.arms, axis=1) > 0).all()), "arms do not rise in each round")
        k = shape[1]
    for name, dim in (("x", env.dim_x), ("z", env.dim_z)):
        shape, one, each = getattr(rounds, name).shape, (N, dim), (N, k, dim)
        require(shape in (one, each), f"{name} has the shape {shape}, wanted {one} or {each}")
    for name in ("rewards", "means"):
        shape = getattr(rounds, name).shape
        require(shape == (N, k), f"{name} have the shape {shape}, wanted {(N, k)}")
    require(all(bool(np.isfinite(array).all()) for array in rounds[:4]), "rounds are not finite")


def rounds_come_from_the_generator(make: Make) -> None:
    """The same generator gives the same rounds, another gives others, and the truth does not change."""
    one, other = make(), make()
    first = one.rounds(N, np.random.default_rng(0))
    one.rounds(N, np.random.default_rng(1))
    again = other.rounds(N, np.random.default_rng(0))
    require(all(map(np.array_equal, first, again)), "the same seed gave other rounds")
    third = one.rounds(N, np.random.default_rng(2))
    require(not np.array_equal(first.x, third.x), "another seed gave the same contexts")


def means_are_taken_at_phi(make: Make) -> None:
    """means(x) agrees with the block, and z and the rewards scatter around phi(x) and the means."""
    env = make()
    rounds = env.rounds(N, np.random.default_rng(0))
    options = [{}] * N if rounds.arms is None else [{"arms": ids} for ids in rounds.arms]
    means = np.array([env.means(x, **each) for x, each in zip(rounds.x, options, strict=True)])
    same = means.shape == rounds.means.shape and bool(np.allclose(means, rounds.means))
    require(same, "means(x) does not agree with the block")
    for what, off in (("z", _noise_of_z(env, rounds)), ("the rewards", rounds.rewards - rounds.means)):
        error = off.std(axis=0) / np.sqrt(N)
        require(bool((abs(off.mean(axis=0)) <= 5.0 * error + 1e-9).all()), f"{what} are off their mean")


def rewards_follow_what_they_say(make: Make) -> None:
    """Rewards come from z, or from phi, as `reward_from` says."""
    env = make()
    if not hasattr(env, "reward_from"):
        return
    rounds = env.rounds(N, np.random.default_rng(0))
    off_z = _noise_of_z(env, rounds)
    left = rounds.rewards - rounds.means
    if env.reward_from == "z":
        left = left - _brought_by_z(env, rounds, off_z)
    # The correlation of each arm's reward with each entry of its z.
    off_z = off_z if off_z.ndim == 3 else off_z[:, None]
    left, off_z = ((part - part.mean(axis=0)) for part in (left[..., None], off_z))
    limit = 5.0 * left.std(axis=0) * off_z.std(axis=0) / np.sqrt(N) + 1e-9
    found = abs((left * off_z).mean(axis=0))
    require(bool((found <= limit).all()), f"the rewards do not follow {env.reward_from} as reward_from says")


def _noise_of_z(env: Any, rounds: Rounds) -> FloatArray:
    options: list[dict[str, Any]] = [{}] * len(rounds.x)
    if rounds.arms is not None and rounds.x.ndim < rounds.z.ndim:  # phi(x) has to know of which arms
        options = [{"arms": ids} for ids in rounds.arms]
    phi = np.array([env.phi(x, **each) for x, each in zip(rounds.x, options, strict=True)])
    require(phi.shape == rounds.z.shape, f"phi(x) has the shape {phi.shape[1:]}, wanted {rounds.z.shape[1:]}")
    return np.asarray(rounds.z - phi)


def _brought_by_z(env: Any, rounds: Rounds, off_z: FloatArray) -> FloatArray:
    """What the noise of z adds to each arm's reward, linear in z or in its features."""
    if hasattr(env, "z_features"):
        features = np.array([env.z_features(z) for z in rounds.z])
        off_z = features - np.array([env.expected_z_features(x) for x in rounds.x])
    if off_z.ndim == 2:
        return np.asarray(off_z @ env.beta.T)
    beta = env.beta if rounds.arms is None else env.beta[rounds.arms]
    return np.asarray((off_z * beta).sum(axis=-1))


ENVIRONMENT_CHECKS = checks_in(globals())


def check_environment(make: Make) -> None:
    """Run every check on environments made by `make`, which gives a fresh one each time.

    >>> from postserve import SyntheticEnvironment
    >>> check_environment(lambda: SyntheticEnvironment("linear", dim_x=4, dim_z=2, n_arms=3))
    """
    for check in ENVIRONMENT_CHECKS:
        check(make)
