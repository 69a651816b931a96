"""The rows that a diagnosis looks at: a sample of the log in the order of time, encoded."""

from typing import Any, NamedTuple

import numpy as np

from postserve.data.encoder import Encoder
from postserve.data.finding import extra
from postserve.data.log import DecisionLog
from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.types import BoolArray, FloatArray

FEWEST = 100
"""With fewer complete rounds than that there is nothing to say."""
MOST_NUMBERS = 300
"""With more columns the games would take hours, and a sample says little of each."""
LEAST_SPREAD = 1e-100
"""Squares of smaller differences are lost."""


class Sample(NamedTuple):
    """Rounds in the order of time; in days, when each was decided, and how much later z and the reward came.

    `offered` is the number of rounds of the whole log. Times are NaN where they are not known.
    """

    rounds: LoggedRounds
    offered: int
    times: FloatArray
    z_delays: FloatArray
    reward_delays: FloatArray

    @property
    def has_z(self) -> BoolArray:
        """The rounds whose z has come."""
        return np.asarray(~np.isnan(self.rounds.z).any(axis=1))

    @property
    def has_reward(self) -> BoolArray:
        """The rounds whose reward has come."""
        return np.asarray(~np.isnan(self.rounds.rewards))

    @property
    def complete(self) -> BoolArray:
        """The rounds with z and a reward."""
        return self.has_z & self.has_reward

    @property
    def columns(self) -> FloatArray:
        """One indicator per arm."""
        return np.asarray(np.eye(self.rounds.n_arms)[self.rounds.arms])

    @property
    def could_serve(self) -> BoolArray:
        """Which arms could be served in each round, (n, n_arms), as far as the log tells.

        Those that were not eligible could not, nor those whose propensity is 0: others than an arm that was
        served with propensity 1.
        """
        rounds, served = self.rounds, self.columns > 0.0
        could = np.ones(served.shape, dtype=bool) if rounds.eligible is None else rounds.eligible
        if rounds.all_propensities is not None:
            could = could & ~(rounds.all_propensities <= 0.0)  # NaN: not known
        return np.asarray(served | (could & (rounds.propensities < 1.0)[:, None]))

    def with_z(self, kept: BoolArray) -> "Sample":
        """The same with some columns of z only."""
        names = [name for name, keep in zip(self.rounds.z_names, kept, strict=True) if keep]
        return self._replace(
            rounds=self.rounds.changed(z=self.rounds.z[:, kept], z_names=names, z_encoder=None)
        )

    def span(self) -> float:
        """From the first decision to the last, in days; NaN if no times are known."""
        known = self.times[~np.isnan(self.times)]
        return float(np.ptp(known)) if len(known) else float("nan")


def take_sample(log: DecisionLog | LoggedRounds, rows: int, rng: np.random.Generator) -> Sample:
    """At most so many rows of a log, at random."""
    if isinstance(log, LoggedRounds):
        _refuse_many(log.dim_x, log.dim_z, "")
        unknown = np.full(min(rows, len(log)), np.nan)
        kept = np.sort(rng.choice(len(log), size=len(unknown), replace=False))
        return _checked(Sample(log.take(kept), len(log), unknown, unknown, unknown))
    if not isinstance(log, DecisionLog):
        raise InvalidInput(f"log is a {type(log).__name__}, wanted a DecisionLog, or LoggedRounds")
    if not log.z_names:
        raise InvalidInput("the log has no column of z, wanted some named z.NAME: they are what is diagnosed")
    pl = extra("polars")
    x_encoder, z_encoder = log.encoders()
    z_encoder = z_encoder.without_marks()
    _refuse_many(len(x_encoder.names), len(z_encoder.names), _widest(x_encoder, z_encoder))
    n = len(log)
    if not n:
        raise InvalidInput(f"the log has no rounds, wanted at least {FEWEST}")
    kept = np.sort(rng.choice(n, size=min(rows, n), replace=False))
    parts, start = [], 0
    for piece in log.pieces():
        inside = kept[(kept >= start) & (kept < start + len(piece))] - start
        parts.append(piece[inside.tolist()])
        start += len(piece)
    frame = pl.concat(parts)
    if not frame["time"].has_nulls():
        frame = frame.sort("time", maintain_order=True)
    part = DecisionLog(frame.lazy()).rounds(
        x_encoder, z_encoder, arm_names=log.arm_names, rows=max(len(frame), 1)
    )
    first = frame["time"].drop_nulls().sort().head(1)
    times = _days(frame["time"] - first) if len(first) else np.full(len(frame), np.nan)
    delays = (_days(frame[name] - frame["time"]) for name in ("z_time", "reward_time"))
    return _checked(Sample(next(part), n, times, *delays))


def _days(durations: Any) -> FloatArray:
    return np.asarray(durations.dt.total_microseconds().cast(float).to_numpy()) / 86_400e6


def _widest(*encoders: Encoder) -> str:
    """The column that becomes most numbers, in words."""
    places = {name: each.place(name) for each in encoders for name in each.inputs}
    name, place = max(places.items(), key=lambda item: item[1].stop - item[1].start)
    return f" ({place.stop - place.start:,} of them from column {name!r})"


def _refuse_many(dim_x: int, dim_z: int, widest: str) -> None:
    if dim_x + dim_z > MOST_NUMBERS:
        raise InvalidInput(
            f"x has {dim_x:,} numbers per round and z {dim_z:,}{widest}, wanted at most {MOST_NUMBERS} in "
            "all: leave columns out, or put rare categories together"
        )


def _checked(sample: Sample) -> Sample:
    complete = int(sample.complete.sum())
    if not sample.rounds.dim_z:
        raise InvalidInput("the log has no column of z, wanted at least one: they are what is diagnosed")
    if complete < FEWEST:
        raise InvalidInput(
            f"{complete} of {len(sample.rounds)} rounds have z and a reward, wanted at least {FEWEST}"
        )
    rounds = sample.rounds
    columns = np.column_stack([rounds.x, rounds.z, rounds.rewards])
    spreads = np.nanmax(columns, axis=0) - np.nanmin(columns, axis=0)
    for name, spread in zip((*rounds.x_names, *rounds.z_names, "reward"), spreads, strict=True):
        if 0.0 < spread < LEAST_SPREAD:
            raise InvalidInput(
                f"column {name!r} varies by {spread:.3g}, wanted a constant, or at least {LEAST_SPREAD:g}: "
                "use another unit"
            )
    return sample
