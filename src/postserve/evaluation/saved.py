"""Saved policies, compared on a log in files: the command `postserve evaluate`."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from postserve.data.encoder import Encoder
from postserve.data.finding import PathLike, as_path
from postserve.data.log import DecisionLog
from postserve.errors import InvalidInput
from postserve.evaluation.evaluating import compare
from postserve.evaluation.results import Comparison, Estimate, Evaluation
from postserve.evaluation.settings import Options
from postserve.files import write_together
from postserve.loading import load
from postserve.terminal import say

MOST_SHOWN = 20
"""So many arms are named above the table."""


def compare_saved(
    log: PathLike, policies: Sequence[PathLike], *, arms: Sequence[str] = (), **options: Unpack[Options]
) -> Comparison:
    """Compare policies in state files on the log at a path; they are named as their files are.

    `arms` are the names of the policies' arms in the order of their ids, by default the log's in rising
    order. Policies whose features are encoders encode the log by these, which must be the same for all.
    """
    decisions = DecisionLog.read(log)
    decisions.check()
    files = [as_path("policies", path) for path in policies]
    loaded = {file.stem: load(file) for file in files}
    if not loaded or len(loaded) < len(files):
        raise InvalidInput(
            f"policies are {', '.join(map(str, files)) or 'none'}, wanted files of different names"
        )
    x_encoder, z_encoder = (_common(loaded, side) for side in ("x_features", "z_features"))
    rounds = decisions.rounds(x_encoder, z_encoder, arm_names=list(arms) or None)
    return compare(loaded, rounds, **options)


def evaluate_and_show(
    log: Path, policies: Sequence[Path], arms: Sequence[str], out: Path, **options: Unpack[Options]
) -> None:
    """Print a comparison, and write it as JSON and as a forest plot."""
    arms = arms or DecisionLog.read(log).arm_names
    found = compare_saved(log, policies, arms=arms, **options)
    ids, names = (", ".join(map(str, each)) for each in (range(len(arms))[:MOST_SHOWN], arms[:MOST_SHOWN]))
    more = ", …" if len(arms) > MOST_SHOWN else ""
    say(f"arms {ids}{more} are {names}{more}")
    say(repr(found))
    out.mkdir(parents=True, exist_ok=True)
    content = {
        "to": found.to,
        "policies": {name: _numbers(each) for name, each in found.evaluations.items()},
        "differences": {name: _numbers(each) for name, each in found.differences.items()},
    }
    files = {"evaluation.json": json.dumps(content, indent=1).encode()}
    try:
        picture = io.BytesIO()
        found.forest(picture)
        files["evaluation.png"] = picture.getvalue()
    except ModuleNotFoundError as missing:
        say(f"not drawn: {missing}")
    write_together(out, files)
    say(f"written: {', '.join(str(out / name) for name in files)}")


def _common(policies: dict[str, Any], side: str) -> Encoder | None:
    """The encoder that all policies have that use x, or z, or None if none has one."""
    users = {name: each for name, each in policies.items() if getattr(each, f"dim_{side[0]}", 0) is not None}
    found = {name: getattr(policy, side, None) for name, policy in users.items()}
    encoders = {name: each for name, each in found.items() if isinstance(each, Encoder)}
    if not encoders:
        return None
    first, one = next(iter(encoders.items()))
    others = [
        name for name, each in found.items() if not isinstance(each, Encoder) or each.columns != one.columns
    ]
    if others:
        raise InvalidInput(
            f"{first} and {others[0]} encode {side[0]} differently, wanted the same encoder in all"
        )
    return one


def _numbers(each: Evaluation | Estimate) -> dict[str, float]:
    return {name: getattr(each, name) for name in Estimate._fields}
