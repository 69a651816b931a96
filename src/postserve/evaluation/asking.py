"""What a policy would do at the rows of a log, among the arms that could be served there."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, NoReturn

import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.policies.choosing import batch_propensities
from postserve.types import FloatArray, IntArray

SUMS_TO = 1e-6
"""How far the sum of a policy's probabilities may be from 1, and one that should be 0 from it."""


def arms_at(log: LoggedRounds, row: int) -> dict[str, Any]:
    """The eligible arms of a row, as policies take them by name; nothing where all arms are."""
    if log.eligible is None or log.eligible[row].all():
        return {}
    return {"arms": np.flatnonzero(log.eligible[row]).tolist()}


def require_takes_arms(policy: Any, verb: str, log: LoggedRounds) -> None:
    """Raise if rows of the log have eligible arms, and the policy's verb does not take any."""
    if log.eligible is None:
        return
    options = signature(getattr(policy, verb)).parameters.values()
    if not any(each.name == "arms" or each.kind is Parameter.VAR_KEYWORD for each in options):
        got = f"{verb} of {type(policy).__name__} takes no arms, and the log has rows with some eligible only"
        raise InvalidInput(f"{got}, wanted {verb}(…, arms=…)")


@contextmanager
def named(name: str) -> Iterator[None]:
    """What a policy refuses is told with its name: there may be several."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def asked(name: str, policy: Any, log: LoggedRounds, row: int) -> FloatArray:
    """The policy's probability of each arm at a row, (n_arms,); it may do with its x what it likes."""
    with named(name):
        given = policy.propensities(log.x[row].copy(), **arms_at(log, row))
    pi = floats(given)
    if pi is None or pi.shape != (log.n_arms,) or _are_wrong(pi[None], log, slice(row, row + 1))[0]:
        _refuse(name, row, given, log)
    return pi


def asked_of_all(name: str, policy: Any, log: LoggedRounds) -> FloatArray:
    """The same for every row, (n, n_arms), of a policy that does not change."""
    at_once = batch_propensities(policy)
    if at_once is None:
        return np.array([asked(name, policy, log, row) for row in range(len(log))])
    chances = np.empty((len(log), log.n_arms))
    for rows in _alike(log):
        with named(name):
            given = at_once(log.x[rows], **arms_at(log, rows[0]))
        found, wanted = floats(given), (len(rows), log.n_arms)
        if found is None or found.shape != wanted:
            got = "not numbers" if found is None else f"of shape {found.shape}"
            each = f"{wanted}: a row per x, a column per arm"
            raise InvalidInput(f"the propensities_batch of {name} are {got}, wanted {each}")
        chances[rows] = found
    for row in np.flatnonzero(_are_wrong(chances, log, slice(None)))[:1]:
        _refuse(name, row, chances[row], log)
    return chances


def _alike(log: LoggedRounds) -> Iterator[IntArray]:
    """Rows with the same eligible arms."""
    if log.eligible is None:
        return iter([np.arange(len(log))])
    _, which = np.unique(log.eligible, axis=0, return_inverse=True)
    ends = np.cumsum(np.bincount(which))
    return iter(np.split(np.argsort(which, kind="stable"), ends[:-1]))


def floats(given: Any) -> FloatArray | None:
    """What a policy returned as float64, exact fractions too; None if that is no array of real numbers."""
    try:
        found = np.asarray(given)
        return found.astype(np.float64, copy=False) if found.dtype.kind in "fiubO" else None
    except (ValueError, TypeError, OverflowError):  # rows of several lengths, or objects that are no numbers
        return None


def _are_wrong(chances: FloatArray, log: LoggedRounds, rows: slice) -> Any:
    """Which rows have no probabilities of the arms that are eligible there."""
    wrong = (chances < 0.0).any(axis=1) | ~(abs(chances.sum(axis=1) - 1.0) <= SUMS_TO)
    if log.eligible is not None:
        wrong |= ((chances > SUMS_TO) & ~log.eligible[rows]).any(axis=1)
    return wrong


def _refuse(name: str, row: int, pi: Any, log: LoggedRounds) -> NoReturn:
    got = f"the propensities of {name} at row {row} are {pi!r:.60}"
    among = arms_at(log, row)
    zeros = f", and 0 but for the eligible {among['arms']!r:.60}" if among else ""
    raise InvalidInput(f"{got}, wanted {log.n_arms} probabilities that sum to 1, one per arm{zeros}")
