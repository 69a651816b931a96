"""MovieLens: ratings of movies by users."""

import re
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.data.finding import PathLike, find, read_checked
from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray
from postserve.validation import one_of


class Ratings(NamedTuple):
    """One rating per row, in the publisher's order. Users and movies are numbered from 0, without gaps.

    Number i is the publisher's `user_ids[i]` or `movie_ids[i]`; times are seconds since 1970, UTC.
    """

    users: IntArray
    movies: IntArray
    ratings: FloatArray
    times: IntArray
    user_ids: IntArray
    movie_ids: IntArray


class _Kind(NamedTuple):
    name: str
    separator: bytes
    rows: int
    users: int
    movies: int


KINDS = {
    "100k": _Kind("movielens-100k", b"\t", 100_000, 943, 1_682),
    "1m": _Kind("movielens-1m", b"::", 1_000_209, 6_040, 3_706),
}
COLUMNS = ("user", "movie", "rating", "time")


def movielens(path: PathLike | None = None, size: Literal["100k", "1m"] = "100k") -> Ratings:
    """The ratings of MovieLens 100K or 1M, from a folder or where `find` looks.

    100K is checked by its sha256, 1M by its length; both by the form of each row, the numbers of rows, users
    and movies, ratings from 1 to 5, and no repeated pairs.

    >>> movielens("nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: movielens-100k is not at nowhere, wanted a folder with ml-100k/u.data; ...
    """
    kind = KINDS[one_of("size", size, tuple(KINDS))]
    title = str(find(kind.name, path))
    rows = _rows(read_checked(kind.name, path), kind.separator, title)
    user, movie, rating, time = rows.T
    _refuse(title, "user", user, user < 1, "at least 1")
    _refuse(title, "movie", movie, movie < 1, "at least 1")
    _refuse(title, "rating", rating, (rating < 1) | (rating > 5), "1 to 5")
    user_ids, users = np.unique(user, return_inverse=True)
    movie_ids, movies = np.unique(movie, return_inverse=True)
    pairs = users * len(movie_ids) + movies
    order = np.argsort(pairs, kind="stable")
    again = order[1:][np.diff(pairs[order]) == 0]
    if len(again):
        row = again.min()
        pair = f"user {user[row]} and movie {movie[row]}"
        raise InvalidInput(f"{title} has {pair} again in row {row + 1}, wanted each pair once")
    counts = {"rows": len(rows), "users": len(user_ids), "movies": len(movie_ids)}
    for what, got in counts.items():
        wanted = getattr(kind, what)
        if got != wanted:
            raise InvalidInput(f"{title} has {got:,} {what}, wanted {wanted:,}")
    return Ratings(users, movies, rating.astype(np.float64), time.copy(), user_ids, movie_ids)


def _rows(content: bytes, separator: bytes, title: str) -> IntArray:
    """All numbers, one row per line; a line of another form is an error."""
    content = content.removesuffix(b"\n")
    form = separator.join([rb"\d{1,18}"] * len(COLUMNS))
    bad = re.search(rb"^(?!" + form + rb"$).*$", content, re.MULTILINE)
    if bad:
        fields = bad[0].split(separator)
        row = content.count(b"\n", 0, bad.start()) + 1
        if len(fields) != len(COLUMNS):
            wanted = f"{len(COLUMNS)}: {', '.join(COLUMNS)}"
            raise InvalidInput(f"{title} has {len(fields)} columns in row {row}, wanted {wanted}")
        column = next(i for i, field in enumerate(fields) if not re.fullmatch(rb"\d{1,18}", field))
        got = fields[column].decode("latin-1")
        raise InvalidInput(f"{title} has {COLUMNS[column]} {got!r:.60} in row {row}, wanted a whole number")
    numbers = np.fromstring(content.replace(separator, b" "), dtype=np.int64, sep=" ")
    return numbers.reshape(-1, len(COLUMNS))


def _refuse(title: str, column: str, values: IntArray, bad: npt.NDArray[np.bool_], wanted: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"{title} has {column} {values[row]} in row {row + 1}, wanted {wanted}")
