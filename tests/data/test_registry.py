"""The known data sets, where they are looked for, and the messages about files that are not right."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pretending import npz, pretend

from postserve import InvalidInput
from postserve.data import SETS, DataSet, data_set, find, read_checked
from postserve.data.finding import checked, data_folder
from postserve.data.registry import MOST_BYTES

CONTENT = b"1\t2\t3\t4\n"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """MovieLens 100K, were it this one line."""
    return pretend(monkeypatch, "movielens-100k", CONTENT)


def refusal(name: str, path: Any) -> str:
    with pytest.raises(InvalidInput) as refused:
        read_checked(name, path)
    return str(refused.value)


@pytest.mark.parametrize("known", SETS.values(), ids=list(SETS))
def test_an_entry_says_all_there_is_to_say(known: DataSet) -> None:
    assert SETS[known.name] is known is data_set(known.name)
    assert known.address.startswith(("https://", "http://www.minethatdata.com/"))
    algorithm, digits = known.download.split(":")
    assert re.fullmatch(r"[0-9a-f]+", digits)
    assert len(digits) == {"sha256": 64, "md5": 32}[algorithm]
    assert (known.form == "file") == (known.inside == "")
    assert (known.form == "rda") == (known.shape is not None)
    assert known.shape is None or 4 * np.prod(known.shape) == known.size
    assert known.size < MOST_BYTES
    assert known.sha256 is None or re.fullmatch("[0-9a-f]{64}", known.sha256)
    assert (known.sha256 is None) == (known.name == "movielens-1m")
    assert known.form != "file" or known.download == f"sha256:{known.sha256}"
    assert known.size > 0
    for words in (known.title, known.terms, known.cite):
        assert len(words) > 20


def test_terms_are_the_publishers() -> None:
    for name in ("movielens-100k", "movielens-1m"):
        assert "no commercial use and no redistribution" in data_set(name).terms
        assert "10.1145/2827872" in data_set(name).cite
    assert "No licence is stated" in data_set("hillstrom").terms
    assert "GPL" in data_set("actg175").terms
    assert "GPL" in data_set("jester").terms


@pytest.mark.parametrize("name", ["movielens", "", "MOVIELENS-100K", 3, None, ["jester"]])
def test_a_name_that_there_is_not(name: Any) -> None:
    with pytest.raises(InvalidInput, match=r"wanted one of 'movielens-100k', .*'jester'"):
        data_set(name)


@pytest.mark.parametrize("name", ["movielens-100k", "hillstrom", "actg175", "jester"])
def test_the_real_files_are_right(name: str, real_data: Path) -> None:
    assert len(read_checked(name, real_data)) == SETS[name].size
    assert find(name, real_data) == find(name, real_data / SETS[name].folder)


def test_a_folder_of_sets_the_sets_own_folder_or_the_file(known: DataSet, tmp_path: Path) -> None:
    file = tmp_path / known.place
    file.parent.mkdir()
    file.write_bytes(CONTENT)
    renamed = tmp_path / "mine.tsv"
    renamed.write_bytes(CONTENT)
    for path in (tmp_path, str(tmp_path), file.parent, file):
        assert find(known.name, path) == file
        assert read_checked(known.name, path) == CONTENT
    assert find(known.name, renamed) == renamed


def test_without_a_path_the_environment_says_where(
    known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTSERVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("POSTSERVE_DATA", raising=False)
    assert data_folder() == tmp_path / "cache"
    monkeypatch.setenv("POSTSERVE_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    (tmp_path / "data" / known.folder).mkdir(parents=True)
    (tmp_path / "data" / known.place).write_bytes(CONTENT)
    assert find(known.name) == tmp_path / "data" / known.place
    monkeypatch.setenv("POSTSERVE_DATA", "")  # as good as none
    assert data_folder() == tmp_path / "cache"
    monkeypatch.setenv("POSTSERVE_CACHE", "relative")
    assert data_folder().is_absolute()
    monkeypatch.delenv("POSTSERVE_CACHE")
    assert data_folder().name == "postserve"


def test_home_is_home(known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / known.file).write_bytes(CONTENT)
    assert find(known.name, "~") == tmp_path / known.file


def test_what_is_not_there_is_told_with_what_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal("jester", tmp_path) == (
        f"jester is not at {tmp_path}, wanted a folder with jester5k/jester5k.npz; "
        f"`postserve data fetch jester --folder {tmp_path}` gets it"
    )
    monkeypatch.setenv("POSTSERVE_DATA", str(tmp_path))
    assert refusal("jester", None).endswith("; `postserve data fetch jester` gets it")


@pytest.mark.parametrize("path", [3, b"x", ["x"], "~nobody-of-this-name/x"])
def test_what_is_no_path(path: Any) -> None:
    assert "wanted a path" in refusal("jester", path)


def test_a_file_cut_short_made_longer_or_changed(known: DataSet, tmp_path: Path) -> None:
    file = tmp_path / known.file
    file.write_bytes(CONTENT[:-3])
    assert f"{file} is cut short: it has 5 bytes, wanted 8; `postserve data fetch" in refusal(
        known.name, file
    )
    file.write_bytes(CONTENT.replace(b"\n", b"\r\n"))
    assert f"{file} is too long: it has 9 bytes, wanted 8;" in refusal(known.name, file)
    file.write_bytes(CONTENT.replace(b"3", b"5"))
    told = refusal(known.name, tmp_path)
    assert f"{file} was changed: its sha256 is " in told
    assert f"wanted {known.sha256}" in told
    assert f"--folder {tmp_path}` refetches it" in told
    file.write_bytes(b"")
    assert "it has 0 bytes" in refusal(known.name, file)


def test_where_no_hash_is_known_the_size_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(SETS, "movielens-1m", SETS["movielens-1m"]._replace(size=3))
    file = tmp_path / "ratings.dat"
    file.write_bytes(b"abc")
    assert read_checked("movielens-1m", file) == b"abc"
    file.write_bytes(b"ab")
    assert "cut short" in refusal("movielens-1m", file)


def test_a_file_that_cannot_be_read(known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / known.file).write_bytes(CONTENT)
    monkeypatch.setattr(Path, "read_bytes", denied)
    assert "cannot be read (Permission denied), wanted a file that can" in refusal(known.name, tmp_path)


def test_of_a_matrix_the_numbers_count_and_not_the_zip(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.array([[1.0, np.nan]], dtype=np.float32)
    known = pretend(monkeypatch, "jester", matrix.tobytes(), shape=matrix.shape)
    packed = io.BytesIO()
    np.savez_compressed(packed, ratings=matrix)
    for content in (npz(ratings=matrix), packed.getvalue(), npz(ratings=np.asfortranarray(matrix))):
        assert checked(known, content, "it") == matrix.tobytes()
    for content, message in (
        (npz(ratings=matrix + 1), "the matrix in it was changed"),
        (npz(ratings=matrix[:, :1]), "the matrix in it is cut short: it has 4 bytes, wanted 8"),
        (npz(ratings=matrix.T), "it has ratings of shape (2, 1), wanted (1, 2)"),
        (npz(ratings=matrix[0]), "it has ratings of shape (2,), wanted (1, 2)"),
        (npz(ratings=matrix.astype(float)), "it has ratings of dtype float64, wanted float32"),
        (npz(other=matrix), "it is not a complete .npz"),
        (npz(ratings=np.array([None])), "it is not a complete .npz"),
        (npz(ratings=matrix)[:-30], "it is not a complete .npz"),
        (b"", "it is not a complete .npz"),
        (b"PK", "it is not a complete .npz"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            checked(known, content, "it")


def test_a_matrix_with_any_byte_changed_is_whole_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    known = pretend(monkeypatch, "jester", matrix.tobytes(), shape=matrix.shape)
    packed = io.BytesIO()
    np.savez_compressed(packed, ratings=matrix)
    content = packed.getvalue()
    refused = 0
    for at in range(len(content)):
        for other in (0, 1, 77, 255):
            try:
                found = checked(known, content[:at] + bytes([other]) + content[at + 1 :], "it")
            except InvalidInput:
                refused += 1
            else:  # a date, say
                assert found == matrix.tobytes()
    assert refused > len(content)


def test_the_room_needs_no_extra_until_it_downloads(real_data: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('pooch', 'rdata', 'requests', 'polars', 'rich', 'typer'): sys.modules[name] = None\n"
        "from postserve.data import fetch, jester, movielens\n"
        f"print(len(movielens({str(real_data)!r}).users), jester({str(real_data)!r}).shape)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert run.stdout.split("\n")[0] == "100000 (5000, 100)", run.stderr


def test_without_pooch_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("POSTSERVE_DATA", raising=False)
    monkeypatch.delenv("POSTSERVE_CACHE", raising=False)
    assert "pooch is not installed, wanted: pip install 'postserve[data]'" in refusal("jester", None)
