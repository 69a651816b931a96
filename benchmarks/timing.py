"""Two players in turn, in one process: blocks of rounds, selects and updates timed separately, medians.

A player has `select(context)` and `update(context, arm, reward)`. If it also has `context(x)`, that converts
x, an array, for its library: this is part of a select, unless the player is `ready`.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

Times = list[tuple[float, float]]
"""Mean seconds of a select and of an update, one pair per block."""


def play(player: Any, stream: Any, rounds: range) -> tuple[float, float]:
    """Mean seconds of a select and of an update."""
    native, ready = getattr(player, "context", None), getattr(player, "ready", False)
    clock, select, update = time.perf_counter, player.select, player.update
    selecting = updating = 0.0
    for t in rounds:
        x = stream.x(t)
        context = native(x) if native and ready else x
        start = clock()
        if native and not ready:
            context = native(x)
        arm = select(context)
        selecting += clock() - start
        reward = stream.reward(t, arm)
        start = clock()
        update(context, arm, reward)
        updating += clock() - start
    return selecting / len(rounds), updating / len(rounds)


def in_turn(
    one: Any,
    other: Any,
    stream: Any,
    *,
    warm: int = 3000,
    block: int = 50,
    blocks: int = 30,
    budget: float = 4.0,
) -> dict[str, Any]:
    """Both play `warm` rounds, or as many as a third of the budget allows; then blocks in turn.

    A budget is seconds for the first of the two; its blocks become shorter to keep to it.
    """
    costs, warmed = [], {}
    for player in (one, other):
        start = time.perf_counter()
        play(player, stream, range(1))
        begun, t = time.perf_counter(), 1
        while t < warm and (t == 1 or time.perf_counter() - start < budget / 3.0):
            step = min(10, t, warm - t)
            play(player, stream, range(t, t + step))
            t += step
        warmed[id(player)] = t
        costs.append((time.perf_counter() - begun) / (t - 1))
    cost = costs[0]
    blocks = max(3, min(blocks, int(budget / cost)))
    lengths = max(1, min(block, int(budget / (blocks * cost)))), block
    times: tuple[Times, Times] = ([], [])
    for i in range(blocks):
        for player, found, length in zip((one, other), times, lengths, strict=True):
            first = warmed[id(player)] + i * length
            found.append(play(player, stream, range(first, first + length)))
    return {**compared(*times), "rounds": blocks * lengths[0], "after": warmed[id(one)]}


def from_cold(
    make_one: Callable[[], Any],
    make_other: Callable[[], Any],
    stream: Any,
    *,
    rounds: int = 300,
    block: int = 20,
    repeats: int = 5,
    budget: float = 4.0,
) -> dict[str, Any]:
    """The first `rounds` rounds of fresh players; medians over repeats.

    A budget is seconds for the first of the two: the rounds end when it is spent.
    """
    times: tuple[Times, Times] = ([], [])
    begun, played = time.perf_counter(), rounds
    while len(times[0]) < repeats and (not times[0] or time.perf_counter() - begun < budget):
        players = make_one(), make_other()
        spent = [[0.0, 0.0], [0.0, 0.0]]
        done = 0
        while done < played:
            step = min(block, max(done, 1), played - done)  # short at first, for slow players
            for player, sums in zip(players, spent, strict=True):
                means = play(player, stream, range(done, done + step))
                sums[:] = (total + mean * step for total, mean in zip(sums, means, strict=True))
            done += step
            if not times[0] and sum(spent[0]) > budget:
                played = done
        for found, sums in zip(times, spent, strict=True):
            found.append((sums[0] / played, sums[1] / played))
    return {**compared(*times), "rounds": played, "after": 0}


def compared(one: Times, other: Times) -> dict[str, Any]:
    """Microseconds of both, and the ratio of the first to the second."""
    mine, theirs = _medians(one), _medians(other)
    return {
        "us": {what: 1e6 * value for what, value in mine.items()},
        "reference_us": {what: 1e6 * value for what, value in theirs.items()},
        "ratio": {what: value / theirs[what] for what, value in mine.items()},
    }


def seconds(run: Callable[[], Any], repeats: int = 1) -> float:
    """Of one call, the median over repeats."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def _medians(times: Times) -> dict[str, float]:
    select, update = (statistics.median(pair[which] for pair in times) for which in (0, 1))
    return {"select": select, "update": update, "round": select + update}
