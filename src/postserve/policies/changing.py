"""What follows a change of a policy, beside what `changes.py` has for all objects."""

from typing import Any

from postserve.changes import commit, counted


def settle(policy: Any) -> None:
    """Renew the caches that can no longer be trusted: a version of its own."""
    effects = [effect for arms in policy._regressions() for effect in arms.models.settling()]
    if policy._phi_hat is not None:
        effects += policy._phi_hat.settling()
    if effects:
        commit(counted(policy._guard, effects))
