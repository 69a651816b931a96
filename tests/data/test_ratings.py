"""MovieLens and Jester: what is loaded, and every kind of row that is refused."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pretending import npz, pretend

from postserve import InvalidInput
from postserve.data import Ratings, jester, movielens

MODULE = sys.modules["postserve.data.movielens"]  # in the package, that name is the function's

GOOD = [(7, 30, 5, 100), (7, 10, 1, 300), (2, 30, 3, 200)]


def lines(rows: Any, separator: str) -> bytes:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows).encode()


def place(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, size: str, **counts: int) -> None:
    """Let these bytes be MovieLens, with the counts of GOOD unless others are given."""
    kind = MODULE.KINDS[size]
    monkeypatch.setitem(MODULE.KINDS, size, kind._replace(**{"rows": 3, "users": 2, "movies": 2} | counts))
    known = pretend(monkeypatch, kind.name, content)
    (folder / known.file).write_bytes(content)


@pytest.mark.parametrize(("size", "separator"), [("100k", "\t"), ("1m", "::")])
def test_ids_become_numbers_without_gaps(
    size: Any, separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lines(GOOD, separator)
    for content in (whole, whole.removesuffix(b"\n")):
        place(tmp_path, monkeypatch, content, size)
        loaded = movielens(tmp_path, size=size)
        assert isinstance(loaded, Ratings)
        assert loaded.users.tolist() == [1, 1, 0]
        assert loaded.movies.tolist() == [1, 0, 1]
        assert loaded.ratings.tolist() == [5.0, 1.0, 3.0]
        assert loaded.times.tolist() == [100, 300, 200]
        assert loaded.user_ids[loaded.users].tolist() == [7, 7, 2]
        assert loaded.movie_ids[loaded.movies].tolist() == [30, 10, 30]
        for name, column in loaded._asdict().items():
            assert column.dtype == (np.float64 if name == "ratings" else np.int64)
            assert column.flags.c_contiguous


BAD_ROWS = {
    "2": "has 1 columns in row 3, wanted 4: user, movie, rating, time",
    "2,30,3": "has 3 columns in row 3",
    "2,30,3,200,1": "has 5 columns in row 3",
    "": "has 1 columns in row 3",
    "x,30,3,200": "has user 'x' in row 3, wanted a whole number",
    "2,,3,200": "has movie '' in row 3",
    "2,30,3.5,200": "has rating '3.5' in row 3",
    "2,30,nan,200": "has rating 'nan' in row 3",
    "2,30,-3,200": "has rating '-3' in row 3",
    "2,30,3, 200": "has time ' 200' in row 3",
    "2,30,3,200\r": r"has time '200\r' in row 3",
    "2,30,3,²": "has time 'Â²' in row 3",
    "2,30,3,9999999999999999999": "has time '9999999999999999999' in row 3",
    "2,30,0,200": "has rating 0 in row 3, wanted 1 to 5",
    "2,30,6,200": "has rating 6 in row 3, wanted 1 to 5",
    "0,30,3,200": "has user 0 in row 3, wanted at least 1",
    "2,0,3,200": "has movie 0 in row 3, wanted at least 1",
    "7,30,3,200": "has user 7 and movie 30 again in row 3, wanted each pair once",
    "7,20,3,200": "has 1 users, wanted 2",
    "2,20,3,200": "has 3 movies, wanted 2",
}


@pytest.mark.parametrize(("size", "separator"), [("100k", "\t"), ("1m", "::")])
@pytest.mark.parametrize("row", BAD_ROWS)
def test_a_bad_row_is_named(
    row: str, size: Any, separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = lines(GOOD[:2], separator) + row.replace(",", separator).encode() + b"\n"
    place(tmp_path, monkeypatch, content, size)
    with pytest.raises(InvalidInput) as refused:
        movielens(tmp_path, size=size)
    assert BAD_ROWS[row] in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / ("u.data" if size == "100k" else "ratings.dat")))


def test_the_first_bad_row_is_the_one_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, monkeypatch, b"1\t1\t9\t1\n1\t2\t8\t1\n", "100k")
    with pytest.raises(InvalidInput, match="rating 9 in row 1"):
        movielens(tmp_path)
    place(tmp_path, monkeypatch, lines(GOOD + GOOD, "\t"), "100k")
    with pytest.raises(InvalidInput, match="user 7 and movie 30 again in row 4"):
        movielens(tmp_path)


def test_another_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, monkeypatch, lines(GOOD, "\t"), "100k", rows=4)
    with pytest.raises(InvalidInput, match="has 3 rows, wanted 4"):
        movielens(tmp_path)
    place(tmp_path, monkeypatch, b"", "100k")
    with pytest.raises(InvalidInput, match="has 1 columns in row 1"):
        movielens(tmp_path)


@pytest.mark.parametrize("size", ["10m", 100, None])
def test_a_size_that_there_is_not(size: Any) -> None:
    with pytest.raises(InvalidInput, match=r"size is .*, wanted one of '100k', '1m'"):
        movielens(size=size)


def test_the_real_movielens(real_data: Path) -> None:
    loaded = movielens(real_data)
    assert len(loaded.user_ids) == 943
    assert loaded.movie_ids.tolist() == list(range(1, 1683))
    assert [len(column) for column in loaded[:4]] == [100_000] * 4
    assert np.bincount(loaded.ratings.astype(int), minlength=6).tolist() == [
        0,
        6110,
        11370,
        27145,
        34174,
        21201,
    ]
    assert np.bincount(loaded.users).min() == 20  # as its README says


def test_a_rating_of_jester_out_of_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.zeros((5000, 100), dtype=np.float32)
    matrix[3, 4] = 10.5
    pretend(monkeypatch, "jester", matrix.tobytes(), shape=matrix.shape)
    (tmp_path / "jester5k.npz").write_bytes(npz(ratings=matrix))
    with pytest.raises(InvalidInput, match=r"has 10.5 at \[3, 4\], wanted ratings from -10 to 10"):
        jester(tmp_path)


def test_a_jester_that_was_changed_is_refused(real_data: Path, tmp_path: Path) -> None:
    matrix = np.load(io.BytesIO((real_data / "jester5k" / "jester5k.npz").read_bytes()))["ratings"].copy()
    matrix[0, 0] = np.nan
    (tmp_path / "jester5k.npz").write_bytes(npz(ratings=matrix))
    with pytest.raises(InvalidInput, match="was changed"):
        jester(tmp_path)


def test_the_real_jester(real_data: Path) -> None:
    ratings = jester(real_data)
    assert ratings.shape == (5000, 100)
    assert ratings.dtype == np.float64
    assert np.isfinite(ratings).sum() == 363_209
    assert np.isfinite(ratings).all(axis=1).sum() == 1_473
    assert np.isfinite(ratings).sum(axis=1).min() == 36
    assert (np.nanmin(ratings), np.nanmax(ratings)) == (-9.95, 9.9)
