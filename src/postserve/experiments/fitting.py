"""Learning from logs of any size, piece by piece, here or on the engines of the study runner."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from joblib import cpu_count

from postserve.data.encoder import Encoder
from postserve.data.log.decisions import ROWS, DecisionLog
from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.experiments.engines import check_engine, open_engine
from postserve.state import Persistent
from postserve.validation import integer

P = TypeVar("P", bound=Persistent)


def fit_log(
    policy: P,
    log: DecisionLog | LoggedRounds,
    *,
    engine: str = "local=1",
    parts: int | None = None,
    rows: int = ROWS,
) -> P:
    """Teach a policy every round of a log, and then learn its priors anew; returns the policy.

    A log is read in pieces of so many `rows`. A policy that is `order_free` learns equal `parts` of it side
    by side on an engine ("local", "local=N", "dask" or "ray"), one per worker by default, and adds up what
    they learnt, with the same weights as in one pass; any other one learns from the first round to the last.
    x and z are encoded by the policy's own features, if each is an `Encoder`, and else by the log's
    (`DecisionLog.encoders`). Rounds without a reward teach by their z; what a reward without z does, the
    policy says (`missing_z`).

    >>> from postserve import LinUCB, LoggedRounds
    >>> rng = np.random.default_rng(0)
    >>> x, arms = rng.normal(size=(500, 1)), rng.integers(2, size=500)
    >>> rewards = np.where(arms == 1, 2.0, -1.0) * x[:, 0]
    >>> log = LoggedRounds(x=x, z=np.empty((500, 0)), arms=arms, rewards=rewards, propensities=0.5)
    >>> fit_log(LinUCB(n_arms=2, dim_x=1, ridge=1e-6), log).weights.round(3)
    array([[-1.],
           [ 2.]])
    """
    integer("rows", rows, least=1)
    if not isinstance(log, DecisionLog | LoggedRounds):
        raise InvalidInput(f"log is a {type(log).__name__}, wanted a DecisionLog or LoggedRounds")
    if not isinstance(policy, Persistent) or not hasattr(policy, "update_batch"):
        raise InvalidInput(f"policy is {policy!r:.60}, wanted a policy that can be saved")
    learner: Any = policy
    workers = _workers(engine)
    parts = workers if parts is None else integer("parts", parts, least=1)
    if parts > 1:
        _require_sums(policy)
    source: _Source = log if isinstance(log, LoggedRounds) else _encoded(policy, log)
    if parts == 1:
        _teach(policy, source, 0, len(log), rows)
    else:
        size = math.ceil(len(log) / parts)
        ranges = [(start, min(start + size, len(log))) for start in range(0, len(log), size)]
        total = _untaught(policy)
        with open_engine(engine) as run_all:
            for learnt in run_all(partial(_part, total, source, rows), ranges):
                total.merge(learnt)
        learner.merge(total)
    learner.refit_prior()
    return policy


class _Encoded(NamedTuple):
    """A log, how its x and z are encoded, and its arms: what a worker needs."""

    log: DecisionLog
    x_encoder: Encoder
    z_encoder: Encoder
    arm_names: tuple[str, ...]

    def pieces(self, start: int, stop: int, rows: int) -> Iterator[LoggedRounds]:
        """The rounds from start to stop, so many at a time."""
        some = DecisionLog(self.log.frame.slice(start, stop - start))
        return some.rounds(self.x_encoder, self.z_encoder, arm_names=self.arm_names, rows=rows)


_Source: TypeAlias = LoggedRounds | _Encoded


def _encoded(policy: Any, log: DecisionLog) -> _Encoded:
    log.check()
    x_encoder, z_encoder = getattr(policy, "x_features", None), getattr(policy, "z_features", None)
    if not (isinstance(x_encoder, Encoder) and isinstance(z_encoder, Encoder)):
        x_own, z_own = log.encoders()
        x_encoder = x_encoder if isinstance(x_encoder, Encoder) else x_own
        z_encoder = z_encoder if isinstance(z_encoder, Encoder) else z_own.without_marks()
    return _Encoded(log, x_encoder, z_encoder, log.arm_names)


def _workers(engine: str) -> int:
    name, value = check_engine(engine)
    return int(value) if name == "local" and value else int(cpu_count())


def _require_sums(policy: Any) -> None:
    if not getattr(policy, "order_free", False):
        why = policy._why_not_merge() if hasattr(policy, "_why_not_merge") else "it cannot merge"
        raise InvalidInput(f"{type(policy).__name__} cannot learn parts side by side: {why}, or parts=1")


def _untaught(policy: Any) -> Any:
    """A policy with the same settings and arms that has learnt nothing."""
    twin = _made_anew(policy)
    if twin.arms != policy.arms:
        raise InvalidInput("the policy's arms have changed since it was made, wanted parts=1")
    return twin


def _made_anew(value: Any) -> Any:
    """An object, and all in it, as its constructor makes it."""
    if isinstance(value, Persistent):
        return type(value)(**{name: _made_anew(part) for name, part in value._settings.items()})
    return [_made_anew(part) for part in value] if isinstance(value, list | tuple) else value


def _part(policy: Any, log: _Source, rows: int, part: tuple[int, int]) -> Any:
    """What a worker does: teach a copy one part of the log."""
    twin = _untaught(policy)
    _teach(twin, log, *part, rows)
    return twin


def _teach(policy: Any, log: _Source, start: int, stop: int, rows: int) -> None:
    if isinstance(log, LoggedRounds):
        pieces: Iterator[LoggedRounds] = (
            log.take(np.arange(at, min(at + rows, stop))) for at in range(start, stop, rows)
        )
    else:
        pieces = log.pieces(start, stop, rows)
    for piece in pieces:
        _learn(policy, piece)


def _learn(policy: Any, piece: LoggedRounds) -> None:
    """Teach all rounds of a piece: whole ones at once, those that lack z or the reward one by one."""
    rewarded = ~np.isnan(piece.rewards)
    followed = ~np.isnan(piece.z).any(axis=1)
    whole, takes_z = rewarded & followed, policy.dim_z is not None
    if whole.any():
        Z = piece.z[whole] if takes_z else None
        policy.update_batch(piece.x[whole], piece.arms[whole], Z, piece.rewards[whole])
    for i in np.flatnonzero(~whole):
        x, arm = piece.x[i], int(piece.arms[i])
        if rewarded[i]:
            policy.update(x, arm, None, float(piece.rewards[i]))
        elif followed[i] and takes_z and piece.dim_z:
            policy.observe(x, arm, piece.z[i])
