"""Checks that any policy, context map or environment must pass, ours or a user's.

Each check takes a function that makes a fresh object, and raises `AssertionError` with what failed.
`check_policy(make)` runs them all; to see each one as a test of its own:

    @pytest.mark.parametrize("check", postserve.conformance.POLICY_CHECKS)
    def test_my_policy(check):
        check(lambda: MyPolicy(n_arms=3, ...))
"""

from postserve.conformance.context_map import CONTEXT_MAP_CHECKS, check_context_map
from postserve.conformance.environment import ENVIRONMENT_CHECKS, check_environment
from postserve.conformance.policy import POLICY_CHECKS, check_policy

__all__ = [
    "CONTEXT_MAP_CHECKS",
    "ENVIRONMENT_CHECKS",
    "POLICY_CHECKS",
    "check_context_map",
    "check_environment",
    "check_policy",
]
