"""Jester: how 5,000 users found 100 jokes."""

import numpy as np

from postserve.data.finding import PathLike, find, read_checked
from postserve.errors import InvalidInput
from postserve.types import FloatArray

USERS, JOKES, MOST = 5_000, 100, 10.0


def jester(path: PathLike | None = None) -> FloatArray:
    """The ratings of Jester5k, from -10 to 10: one row per user, one column per joke, NaN for none.

    The numbers, with two decimals as published, are checked by their sha256.

    >>> jester("nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: jester is not at nowhere, wanted a folder with jester5k/jester5k.npz; ...
    """
    file = find("jester", path)
    kept = np.frombuffer(read_checked("jester", path), dtype="<f4").reshape(USERS, JOKES)
    ratings = kept.astype(np.float64)
    np.round(ratings, 2, out=ratings)  # undo what float32 did to two decimals
    bad = np.argwhere(np.abs(ratings) > MOST)
    if len(bad):
        user, joke = bad[0]
        got = f"{ratings[user, joke]:g} at [{user}, {joke}]"
        raise InvalidInput(f"{file} has {got}, wanted ratings from {-MOST:g} to {MOST:g}")
    return ratings
