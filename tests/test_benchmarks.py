import numpy as np
import pytest
from benchmarks.check import exceeding
from benchmarks.peers.ours import Ours
from benchmarks.reference import NumpyLinUCB
from benchmarks.streams import stream
from benchmarks.timing import from_cold, in_turn


@pytest.mark.parametrize("large", [False, True])
def test_the_reference_chooses_as_linucb_does(large: bool) -> None:
    ours, reference, world = Ours(4, 6), NumpyLinUCB(4, 6), stream(4, 6)
    reference.large = large
    for t in range(300):
        x, arm = world.x(t), t % 4
        for player in (ours, reference):
            player.update(x, arm, world.reward(t, arm))
    asked = [world.x(t) for t in range(300, 400)]
    assert [ours.select(x) for x in asked] == [reference.select(x) for x in asked]


@pytest.mark.parametrize(
    ("weights", "least", "most"), [("apart", 5.0, 12.0), ("unit", 0.6, 1.5), ("equal", 0.0, 1e-12)]
)
def test_how_far_the_arms_of_a_stream_are_apart(weights: str, least: float, most: float) -> None:
    world = stream(50, 64, weights=weights)
    paid = [world.reward(0, arm) for arm in range(50)]
    assert least <= np.std(paid) <= most
    assert world.reward(0, 3) == stream(50, 64, weights=weights).reward(len(world.X), 3)


def test_players_in_turn_are_clocked_apart() -> None:
    world = stream(5, 8)
    for found in (
        in_turn(NumpyLinUCB(5, 8), NumpyLinUCB(5, 8), world, warm=50, block=10, blocks=5),
        from_cold(lambda: NumpyLinUCB(5, 8), lambda: NumpyLinUCB(5, 8), world, rounds=50, repeats=3),
    ):
        assert found["rounds"] == 50
        assert set(found["ratio"]) == {"select", "update", "round"}
        assert found["ratio"]["round"] > 0.0


def test_a_spent_budget_ends_the_rounds() -> None:
    world = stream(5, 8)
    found = from_cold(lambda: NumpyLinUCB(5, 8), lambda: NumpyLinUCB(5, 8), world, budget=0.0)
    assert found["rounds"] == 1


def test_what_is_slower_or_missing_is_named() -> None:
    committed = {"kept": 1.0, "slower": 1.0, "gone": 1.0}
    assert exceeding({"kept": 1.3, "slower": 1.4, "new": 9.0}, committed, 0.35) == ["slower", "gone"]
