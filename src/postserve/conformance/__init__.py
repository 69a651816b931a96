"""Checks that any policy, context map or environment must pass, ours or a user's.

Each check takes a function that makes a fresh object, and raises `AssertionError` with what failed.
`check_policy(make)` runs them all; to run each as its own test:

    @pytest.mark.parametrize("check", postserve.conformance.POLICY_CHECKS)
    def test_my_policy(check):
        check(lambda: MyPolicy(n_arms=3, ...))
"""

from postserve.conformance.context_map import CONTEXT_MAP_CHECKS as CONTEXT_MAP_CHECKS
from postserve.conformance.context_map import check_context_map as check_context_map
from postserve.conformance.environment import ENVIRONMENT_CHECKS as ENVIRONMENT_CHECKS
from postserve.conformance.environment import check_environment as check_environment
from postserve.conformance.policy import POLICY_CHECKS as POLICY_CHECKS
from postserve.conformance.policy import check_policy as check_policy
