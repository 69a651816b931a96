"""One player against the numpy reference, in this interpreter: one line of JSON per scenario.

`python -m benchmarks.peers.runner PEER [--budget SECONDS] [--scenarios a b c d] [--ready]`, run by the
interpreter of the peer's own environment: it needs numpy and the peer, and `ours` needs postserve.
The caller sets the variables of `running.ONE_THREAD`, which numpy reads when it is imported.
"""

import argparse
import contextlib
import importlib
import json
import sys
import warnings
from typing import Any

from benchmarks.reference import NumpyLinUCB
from benchmarks.streams import SCENARIOS, stream
from benchmarks.timing import from_cold, in_turn, play


def measure(make: Any, scenario: str, budget: float) -> dict[str, Any]:
    """c from cold, its first 300 rounds; the others once arms have been pulled."""
    n_arms, dim = SCENARIOS[scenario]
    rounds = stream(n_arms, dim)
    play(make(3, 4), stream(3, 4, 20), range(20))  # what is compiled or loaded late is not counted
    if scenario == "c":
        return from_cold(lambda: make(n_arms, dim), lambda: NumpyLinUCB(n_arms, dim), rounds, budget=budget)
    return in_turn(make(n_arms, dim), NumpyLinUCB(n_arms, dim), rounds, budget=budget)


def agreement(make: Any, rounds: int = 300) -> float:
    """The share of 100 contexts on which it chooses as the reference does, after the same rounds (d)."""
    n_arms, dim = SCENARIOS["d"]
    player, reference, world = make(n_arms, dim), NumpyLinUCB(n_arms, dim), stream(n_arms, dim)
    native = getattr(player, "context", lambda x: x)
    for t in range(rounds):
        x, arm = world.x(t), t % n_arms
        player.select(native(x))  # some learn only about contexts that they have seen before
        player.update(native(x), arm, world.reward(t, arm))
        reference.update(x, arm, world.reward(t, arm))
    asked = [world.x(t) for t in range(rounds, rounds + 100)]
    return sum(bool(player.select(native(x)) == reference.select(x)) for x in asked) / len(asked)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("--budget", type=float, default=4.0)
    parser.add_argument("--ready", action="store_true", help="x is made what the library wants beforehand")
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    make = importlib.import_module(f"benchmarks.peers.{asked.peer}").make
    make.ready = asked.ready
    for scenario in asked.scenarios:
        with contextlib.redirect_stdout(sys.stderr):
            try:
                found = measure(make, scenario, asked.budget)
                if scenario == "d":
                    found["agrees"] = agreement(make)
            except MemoryError as reason:
                found = {"failed": str(reason)}
        print(json.dumps({"scenario": scenario, **found}), flush=True)


if __name__ == "__main__":
    main()
