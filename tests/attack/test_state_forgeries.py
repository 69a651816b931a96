"""Files with valid checksums and a valid digest, made to harm: refused, soon and within bounds."""

import json
import os
import struct
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attack.size import LONG
from tests.attack.states import POLICIES, load_kind, outcome, taught
from tests.stored import arrays_in, write_arrays

from postserve import InvalidInput, LinUCB, PoLinUCB, RidgeMap, StateMismatch, load

NUMBERS = [-1, 0, 7, 2**16, 3e8, 10**12, 10**30, float("nan")]
VALUES: list[Any] = [None, True, *NUMBERS, "", "evidence", [], [1], {}]
SIZES = [10**6, 3 * 10**8, 10**12, 10**30]
PATCHES = 600 if LONG else 12


def settings_in(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every entry of a header that holds a value."""
    for entry in node["settings"].values():
        yield from _values_in(entry)


def _values_in(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "value" in entry:
        yield entry
    for part in entry.get("list", []):
        yield from _values_in(part)
    if "state" in entry:
        yield from settings_in(entry["state"])


def peak_of(kind: str, path: Path) -> tuple[int, str]:
    """The most memory in use at once, and whether the state was refused."""
    tracemalloc.start()
    try:
        load_kind(kind, path)
        return tracemalloc.get_traced_memory()[1], "loaded"
    except StateMismatch:
        return tracemalloc.get_traced_memory()[1], "refused"
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", POLICIES)
def test_settings_of_any_kind_are_refused_or_load(kind: str, tmp_path: Path) -> None:
    policy, path = taught(kind), tmp_path / "state.npz"
    policy.save(path)
    arrays, seen = arrays_in(path), Counter[str]()
    header = json.loads(str(arrays["header"]))
    entries = list(settings_in(header["state"]))
    for number, entry in enumerate(entries):
        true = entry["value"]
        for value in VALUES if LONG else VALUES[number % 12 :: 12]:
            entry["value"] = value
            write_arrays(path, {**arrays, "header": np.array(json.dumps(header))})
            seen["refused" if outcome(kind, path, policy) == "refused" else "loaded"] += 1
        entry["value"] = true
    assert seen["refused"] > 0


@pytest.mark.parametrize("kind", POLICIES)
def test_sizes_that_no_array_bears_out_take_no_memory(kind: str, tmp_path: Path) -> None:
    """n_arms of 3e8 took 9.4 GB, in a state of 13.6 KB that then loaded."""
    path = tmp_path / "state.npz"
    taught(kind).save(path)
    honest, _ = peak_of(kind, path)
    arrays = arrays_in(path)
    header = json.loads(str(arrays["header"]))
    for entry in settings_in(header["state"]):
        true = entry["value"]
        if type(true) is not int:
            continue
        for value in SIZES:
            entry["value"] = value
            write_arrays(path, {**arrays, "header": np.array(json.dumps(header))})
            assert peak_of(kind, path)[0] <= 2 * honest + 2**20, (value, header)
        entry["value"] = true


def test_a_number_of_arms_other_than_that_of_the_arms_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    PoLinUCB(3, RidgeMap(2, 1), model="shared").save(path)
    arrays = arrays_in(path)
    for n_arms, message in (
        (2, r"arms has shape \(3,\), wanted \(2,\)"),
        (None, r"wanted \(0,\): \(n_arms\)"),
    ):
        header = json.loads(str(arrays["header"]))
        header["state"]["settings"]["n_arms"]["value"] = n_arms
        write_arrays(path, {**arrays, "header": np.array(json.dumps(header))})
        with pytest.raises(StateMismatch, match=message):
            load(path)
    write_arrays(path, {name: array for name, array in arrays.items() if name != "arms"})
    with pytest.raises(StateMismatch, match=r"arms is not there, wanted \(3,\): \(n_arms\)"):
        load(path)


def patched(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The same with one array changed in some way."""
    names = sorted(arrays)
    name, other = (names[int(k)] for k in rng.integers(len(names), size=2))
    array = arrays[name].copy()
    change = int(rng.integers(9))
    if array.size and array.dtype.kind == "f" and change < 4:
        flat = array.reshape(-1)
        flat[rng.integers(len(flat))] = rng.choice([0.0, -1.0, 1e-300, 1e48, 1e300, np.inf, np.nan])
    elif array.size and array.dtype.kind == "i" and change < 4:
        flat = array.reshape(-1)
        flat[rng.integers(len(flat))] = rng.choice([-(2**62), -1, 0, 1, 2**31, 2**62])
    elif change == 4:
        array = arrays[other]
    elif change == 5:
        return {key: value for key, value in arrays.items() if key != name}
    elif change == 6:
        array = array[..., :-1] if array.ndim else array[None]
    elif change == 7:
        array = array.astype(rng.choice(["f4", "i8", "U3", "?"])) if array.dtype.kind != "U" else array[None]
    else:
        array = np.concatenate([array, array]) if array.ndim else np.array([[array.item()]])
    return {**arrays, name: array}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", POLICIES)
def test_arrays_patched_with_a_valid_digest_raise_nothing_else(kind: str, tmp_path: Path) -> None:
    policy, path, rng = taught(kind), tmp_path / "state.npz", np.random.default_rng(4)
    policy.save(path)
    arrays, seen = arrays_in(path), Counter[str]()
    for _ in range(PATCHES):
        write_arrays(path, patched(arrays, rng))
        seen[outcome(kind, path, policy)] += 1
    print(dict(seen))
    assert seen.total() == PATCHES
    assert seen["refused"] > 0


SUMS = ("dense_gram", "dense_moment", "row_u", "row_y")
CACHES = ("dense_inverse", "dense_weights", "row_g", "row_c", "landmarks_factor")
BELONG_TOGETHER = (*SUMS, *CACHES, "frame_u", "frame_y", "block_ridge", "columns")


@pytest.mark.parametrize("kind", POLICIES)
def test_an_array_of_an_older_checkpoint_is_refused(kind: str, tmp_path: Path) -> None:
    """Sums, caches, prior and centres must fit each other."""
    old, new, path = tmp_path / "old.npz", tmp_path / "new.npz", tmp_path / "both.npz"
    taught(kind, 30).save(old)
    taught(kind, 40).save(new)
    before, after, seen = arrays_in(old), arrays_in(new), Counter[str]()
    for name in sorted(before.keys() & after.keys())[:: 1 if LONG else 3]:
        one, other = before[name], after[name]
        part = name.split(".")[-1].removeprefix("shared_").removeprefix("learnability_")
        if one.shape == other.shape and not np.array_equal(one, other):
            write_arrays(path, {**after, name: one})
            refused = outcome(kind, path, load_kind(kind, new)) == "refused"
            seen["refused" if refused else f"loads: {name}"] += 1
            assert refused or part not in BELONG_TOGETHER, name
    print(dict(seen))


# Bombs


def with_member(path: Path, name: str, content: bytes, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr(name, content)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    taught("default").save(tmp_path / "state.npz")
    return tmp_path / "state.npz"


def npy(descr: str, shape: str, content: bytes = b"") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


@pytest.mark.parametrize(
    "content",
    [
        npy("'<f8'", "(1000000000000,)"),
        npy("'<f8'", f"({10**30},)"),
        npy("'<f8'", f"({'9' * 5000},)"),
        npy("'<f8'", f"(0, {10**30})"),
        npy("'<f8'", "(" + "1, " * 100 + ")", bytes(8)),
        npy("'<f8'", "(-1,)"),
        npy("'<f8'", "(2,", bytes(16)),
        npy("'<f8'", "(2,)", bytes(15)),
        npy("'<f8'", "(2,)", bytes(17)),
        npy("'|O'", "(1,)", bytes(8)),
        npy("'|O8'", "(1,)", bytes(8)),
        npy("'<U0'", "(1,)"),
        npy("'<f3'", "(1,)", bytes(3)),
        npy("[('a', '<f8')]", "(1,)", bytes(8)),
        npy("__import__('os').abort()", "(1,)", bytes(8)),
        npy("'<f8'", "(" * 200 + ")" * 200),
        b"\x93NUMPY\x02\x00" + bytes(100),
        b"\x93NUMPY",
        b"",
    ],
)
def test_an_array_that_is_not_its_bytes_is_refused(state: Path, content: bytes) -> None:
    with_member(state, "more.npy", content)
    with pytest.raises(StateMismatch, match="damaged or no state file"):
        load(state)


def test_nothing_is_decompressed(state: Path) -> None:
    with_member(state, "more.npy", npy("'|u1'", f"({2**24},)", bytes(2**24)), zipfile.ZIP_DEFLATED)
    assert state.stat().st_size < 2**17
    peak, got = peak_of("default", state)
    assert got == "refused"
    assert peak < 2**20


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_state_packed_again_is_refused(state: Path, method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(state) as old, zipfile.ZipFile(tmp_path / "again.npz", "w", method) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(StateMismatch, match="is compressed"):
        load(tmp_path / "again.npz")


def test_members_that_overlap_are_not_read_twice(tmp_path: Path) -> None:
    """One member of 4 MB, named by 100 entries of the directory."""
    path, content = tmp_path / "state.npz", npy("'|u1'", f"({2**22},)", bytes(2**22))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", content)
        first = archive.infolist()[0]
        for number in range(100):
            again = zipfile.ZipInfo(f"b{number}.npy")
            again.header_offset, again.CRC = first.header_offset, first.CRC
            again.file_size = again.compress_size = first.file_size
            archive.filelist.append(again)
    peak, got = peak_of("", path)
    assert got == "refused"
    assert peak < 2**20


def test_a_directory_without_members_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(60_000):
            empty = zipfile.ZipInfo(f"{number}.npy")
            empty.header_offset = empty.CRC = 0
            archive.filelist.append(empty)
    size = path.stat().st_size
    peak, got = peak_of("", path)
    assert got == "refused"
    assert peak < size // 2


def test_two_members_of_one_name_are_refused(state: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_member(state, "arms.npy", npy("'<i8'", "(1,)", bytes(8)))
    with pytest.raises(StateMismatch, match="two members have one name"):
        load(state)


@pytest.mark.parametrize("name", ["more.txt", "more", "../more.npy", "digest"])
def test_a_member_that_save_did_not_write_is_refused(state: Path, name: str) -> None:
    with_member(state, name, npy("'<f8'", "(1,)", bytes(8)))
    with pytest.raises(StateMismatch, match="damaged"):
        load(state)


def test_a_digest_cannot_be_left_out(state: Path) -> None:
    arrays = arrays_in(state)
    np.savez(state, **arrays)
    with pytest.raises(StateMismatch, match="has no digest, wanted one"):
        load(state)
    for digest in (np.array("0" * 64), np.zeros(3), np.array([2**31] * 3, dtype="u4").view("U3")):
        np.savez(state, **arrays, digest=digest)
        with pytest.raises(StateMismatch, match="damaged"):
            load(state)


def test_a_large_file_is_not_read_unless_the_caller_says_so(state: Path, tmp_path: Path) -> None:
    size = state.stat().st_size
    with pytest.raises(
        StateMismatch, match=rf"has {size} bytes, wanted at most {size - 1}, or load\(path, most"
    ):
        load(state, most_bytes=size - 1)
    assert isinstance(load(state, most_bytes=size), PoLinUCB)
    with (tmp_path / "sparse.npz").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(StateMismatch, match="wanted at most 8589934592, or"):
        load(tmp_path / "sparse.npz")
    with (tmp_path / "sparse.npz").open("wb") as file:
        file.truncate(2**32)
    peak, got = peak_of("", tmp_path / "sparse.npz")
    assert got == "refused"
    assert peak < 2**20


@pytest.mark.parametrize("depth", [40, 400, 100_000])
@pytest.mark.parametrize(
    "form", ['{"list": [', '{"state": {"class": "EpsilonGreedy", "settings": {"policy": ']
)
def test_settings_nested_without_end_are_refused(state: Path, form: str, depth: int) -> None:
    closing = {"[": "]}", " ": "}}}"}[form[-1]]
    nested = form * depth + '{"value": 1}' + closing * depth
    header = '{"format": "postserve", "version": 3, "state": {"class": "LinUCB", "settings": {"n_arms": %s}}}'
    write_arrays(state, {**arrays_in(state), "header": np.array(header % nested)})
    with pytest.raises(StateMismatch, match="damaged or no state file"):
        load(state)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_does_not_make_load_wait(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "state.npz")
    with pytest.raises((StateMismatch, IsADirectoryError), match=r"no regular file, wanted|directory"):
        load(tmp_path / "state.npz")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_nor_does_a_device(device: str) -> None:
    with pytest.raises(StateMismatch, match="no regular file, wanted"):
        load(device)


def test_a_link_to_a_state_is_followed(state: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(state)
    assert isinstance(load(tmp_path / "link"), PoLinUCB)


def test_arms_named_twice_are_refused_before_their_maps_are_made(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    taught("best policy").save(path)
    arrays = arrays_in(path)
    name = next(name for name in arrays if name.endswith("maps.1.arms"))
    write_arrays(path, {**arrays, name: np.zeros(10**5, dtype=np.int64)})
    with pytest.raises(StateMismatch, match="each arm once"):
        load_kind("best policy", path)


def test_names_that_the_file_needs_cannot_be_arrays(tmp_path: Path) -> None:
    for name in ("header", "digest"):

        class Takes(LinUCB, abstract=True):
            taken = name

            def _arrays(self) -> dict[str, Any]:
                return {**super()._arrays(), self.taken: np.zeros(1)}

        with pytest.raises(InvalidInput, match=f"an array is named '{name}', wanted another"):
            Takes(2, 2).save(tmp_path / "state.npz")
    assert list(tmp_path.iterdir()) == []
