"""A state in which anything changed by accident is refused, or is equal to what was saved."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.attack.size import LONG
from tests.attack.states import POLICIES, bits, load_kind, outcome, taught
from tests.stored import STATES, load_old

from postserve import StateMismatch, UnprovenState

FLIPS = 4000 if LONG else 24
CUTS = 400 if LONG else 8


@pytest.mark.parametrize("kind", POLICIES)
def test_a_flipped_bit_is_refused_or_changes_nothing(kind: str, tmp_path: Path) -> None:
    policy, path = taught(kind), tmp_path / "state.npz"
    policy.save(path)
    whole, seen = path.read_bytes(), Counter[str]()
    for at, mask in bits(len(whole), np.random.default_rng(1), FLIPS):
        damaged = bytearray(whole)
        damaged[at] ^= mask
        path.write_bytes(damaged)
        seen[outcome(kind, path, policy)] += 1
    print(dict(seen))
    assert seen["changed"] == 0
    assert seen.total() == FLIPS


def test_every_bit_of_a_shape_counts(tmp_path: Path) -> None:
    """One of these made 200 arms of 2,000."""
    kind, path = "many arms that share weights", tmp_path / "state.npz"
    policy = taught(kind)
    policy.save(path)
    whole = path.read_bytes()
    places = [at for at in range(len(whole)) if whole.startswith(b"(2000,)", at)]
    assert places
    for start in places:
        for at in range(start, start + 7):
            for bit in range(8):
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
                with pytest.raises(StateMismatch, match="wanted"):
                    load_kind(kind, path)


@pytest.mark.filterwarnings("ignore::postserve.UnprovenState")
@pytest.mark.parametrize("name", sorted(path.stem for path in STATES.glob("*.npz")))
def test_so_is_one_in_a_state_without_a_digest(name: str, tmp_path: Path) -> None:
    """Every byte of an array is read, and so its checksum is, too."""
    old, path = load_old(name), tmp_path / "state.npz"
    whole, seen = (STATES / f"{name}.npz").read_bytes(), Counter[str]()
    for at, mask in bits(len(whole), np.random.default_rng(2), FLIPS // 4):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        seen[outcome(name, path, old)] += 1
    print(dict(seen))
    assert seen["changed"] == 0


@pytest.mark.parametrize("kind", POLICIES)
def test_bytes_that_are_lost_added_or_exchanged_are_noticed(kind: str, tmp_path: Path) -> None:
    policy, path, rng = taught(kind), tmp_path / "state.npz", np.random.default_rng(3)
    policy.save(path)
    whole = path.read_bytes()
    for cut in range(CUTS):
        at, length = int(rng.integers(len(whole))), int(rng.integers(1, 600))
        other = int(rng.integers(len(whole)))
        for damaged in (
            whole[:at],
            whole[:at] + whole[at + length :],
            whole[:at] + bytes(length) + whole[at + length :],
            whole[:at] + rng.bytes(length) + whole[at:],
            whole[:at] + whole[other : other + length] + whole[at + length :],
            whole + rng.bytes(length),
        ):
            path.write_bytes(damaged)
            assert outcome(kind, path, policy) != "changed", (cut, at, length, other)


def test_a_warning_says_that_a_state_has_no_digest(tmp_path: Path) -> None:
    path = tmp_path / "old.npz"
    shutil.copy(STATES / "version2_shared.npz", path)
    with pytest.warns(UnprovenState, match=r"old.npz has version 2, which has no digest") as caught:
        old = load_kind("", path)
    assert caught[0].filename == load_kind.__code__.co_filename
    old.save(path)
    assert outcome("", path, old) == "equal"
