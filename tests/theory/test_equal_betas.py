"""Algorithm 2 has Algorithm 1's exponent of T, but not its constants: it pays for the noise of z."""

import math

import pytest
from benchmarks.equal_betas import DIM_X, DIM_Z, regrets


@pytest.mark.parametrize("n_arms", [4, 16])
def test_regressing_on_predictions_costs_more_than_a_factor_of_the_sizes(n_arms: int) -> None:
    """The page had the factor sqrt(K dim_u) at most; it grows as rewards become clearer."""
    theirs, ours = (regrets(policy, n_arms, 0.01, seeds=4) for policy in ("LinUCB(phi_hat)", "poLinUCB"))
    assert theirs.mean() > 2.0 * math.sqrt(n_arms * (DIM_X + DIM_Z)) * ours.mean()


def test_clear_rewards_help_only_who_sees_z() -> None:
    of = {
        policy: [regrets(policy, 4, noise, seeds=4).mean() for noise in (0.01, 1.0)]
        for policy in ("LinUCB(phi_hat)", "poLinUCB")
    }
    assert of["poLinUCB"][0] < 0.05 * of["poLinUCB"][1]
    assert of["LinUCB(phi_hat)"][0] > 0.5 * of["LinUCB(phi_hat)"][1]
