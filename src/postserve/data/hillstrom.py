"""The MineThatData e-mail challenge: e-mails sent at random, visits and purchases."""

from typing import Literal

from postserve.data.columns import checked_table
from postserve.data.finding import PathLike
from postserve.data.follows import without_warning
from postserve.data.frame import from_frame
from postserve.data.rounds import LoggedRounds
from postserve.validation import one_of

ROWS = 64_000
WHOLE = ("recency", "mens", "womens", "newbie", "visit", "conversion")
TYPES = {
    **dict.fromkeys(WHOLE, "Int64"),
    **dict.fromkeys(("history", "spend"), "Float64"),
    **dict.fromkeys(("history_segment", "zip_code", "channel", "segment"), "String"),
}
ARMS = ("No E-Mail", "Mens E-Mail", "Womens E-Mail")


def hillstrom(
    path: PathLike | None = None, *, reward: Literal["spend", "conversion"] = "spend"
) -> LoggedRounds:
    """64,000 customers, one of three e-mails (or none) at random, 1/3 each; z is whether they visited.

    x: recency, history, mens, womens, newbie, zip code and channel, not history_segment, which repeats
    history. The reward is what they spent within two weeks, in dollars, or whether they bought anything.

    >>> hillstrom("nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    postserve.errors.InvalidInput: hillstrom is not at nowhere, wanted a folder with hillstrom/...
    """
    one_of("reward", reward, ("spend", "conversion"))
    table = checked_table("hillstrom", path, ROWS, TYPES)
    with without_warning():
        return from_frame(
            table,
            x=["recency", "history", "mens", "womens", "newbie", "zip_code", "channel"],
            z="visit",
            arm="segment",
            reward=reward,
            propensity=1 / 3,
            arms=ARMS,
            categories=["zip_code", "channel"],
        )
