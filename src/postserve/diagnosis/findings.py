"""What a diagnosis says: answers to questions, and objections."""

from typing import Any, Literal, NamedTuple

Verdict = Literal["much", "a little", "no", "unclear"]


class Finding(NamedTuple):
    """One question, its answer in words, and the numbers behind it, from which its picture is drawn."""

    name: str
    question: str
    answer: str
    numbers: dict[str, Any]


class Objection(NamedTuple):
    """What argues against the answer; while a `grave` one stands, the answer should not be trusted."""

    kind: str
    grave: bool
    text: str


def counted(n: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "round"), counted(2000, "round")
    ('1 round', '2,000 rounds')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def unit_of(days: float) -> tuple[str, float]:
    """The unit that fits a duration, and how many days it has.

    >>> unit_of(2.5), unit_of(0.0)
    (('days', 1.0), ('seconds', 1.1574074074074073e-05))
    """
    units = (("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440))
    return next((each for each in units if days >= 2 * each[1]), ("seconds", 1 / 86_400))


def listed(names: list[str], most: int = 4) -> str:
    """A few names and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
