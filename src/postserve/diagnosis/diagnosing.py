"""Whether follow-ups will help on a log, before anything is changed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from postserve.data.finding import PathLike, as_path
from postserve.data.log import DecisionLog
from postserve.data.rounds import LoggedRounds
from postserve.diagnosis import objections as against
from postserve.diagnosis import questions
from postserve.diagnosis.advice import advice, code, verdict
from postserve.diagnosis.findings import Finding, Objection, Verdict
from postserve.diagnosis.gains import Gain, Plan, gains, horizon_of
from postserve.diagnosis.page import render
from postserve.diagnosis.sample import Sample, take_sample
from postserve.files import write_together
from postserve.types import BoolArray
from postserve.validation import integer

ROWS = 10_000
"""Rounds that are looked at, by default."""
LATE = (0.01, 0.25)
"""How late z and rewards are in the second gain, as parts of the rounds played, if the log does not say."""


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What a log says of follow-ups; `print` shows it in short, and `write` as a page with pictures.

    `helps` is "much", "a little", "no" or "unclear"; it is not to be trusted while one of the `objections` is
    grave. `gains` are those over LinUCB(x) in rounds resampled from the log, `now` and with `late` rewards.
    `suggestion` is Python code.

    >>> Diagnosis("no", "No: z is noise.", "", (), (), {}, {"rounds": 800})
    No: z is noise.
    """

    helps: Verdict
    summary: str
    suggestion: str
    findings: tuple[Finding, ...]
    objections: tuple[Objection, ...]
    gains: dict[str, Gain]
    about: dict[str, Any]

    @property
    def trusted(self) -> bool:
        """Whether nothing grave argues against the answer."""
        return not any(each.grave for each in self.objections)

    def __repr__(self) -> str:
        lines = [self.summary, ""]
        lines += [f"{each.question} {each.answer}" for each in self.findings]
        lines += ["", *(f"- {each.kind}: {each.text}" for each in self.objections)]
        return "\n".join(lines).rstrip()

    def to_json(self) -> str:
        """All of it, numbers with their intervals."""
        content = {
            "helps": self.helps,
            "trusted": self.trusted,
            "summary": self.summary,
            "suggestion": self.suggestion,
            "gains": {name: each._asdict() for name, each in self.gains.items()},
            "findings": [each._asdict() for each in self.findings],
            "objections": [each._asdict() for each in self.objections],
            "about": self.about,
        }
        return json.dumps(_finite(content), indent=1)

    def write(self, folder: PathLike) -> Path:
        """Write `diagnosis.html`, a page that needs no other file, and `diagnosis.json`; returns the page.

        Its pictures need matplotlib, without which it says so, and has the rest.
        """
        out = as_path("folder", folder)
        page = render(self).encode(errors="replace")
        out.mkdir(parents=True, exist_ok=True)
        write_together(out, {"diagnosis.html": page, "diagnosis.json": self.to_json().encode()})
        return out / "diagnosis.html"


def diagnose(log: DecisionLog | LoggedRounds, *, rows: int = ROWS, seed: int = 0) -> Diagnosis:
    """Ask a log whether follow-ups would help, how, and what argues against it.

    At most `rows` rounds are looked at, drawn at random; they need z, and arms that were served with known
    propensities. Columns of z that are the reward under another name, or were known before, are left out.

    >>> rng = np.random.default_rng(0)
    >>> x, noise, arms = rng.normal(size=(800, 2)), rng.normal(size=(800, 1)), rng.integers(2, size=800)
    >>> rewards = arms * x[:, 0] + rng.normal(size=800)                     # z is noise
    >>> log = LoggedRounds(x=x, z=noise, arms=arms, rewards=rewards, propensities=0.5)
    >>> found = diagnose(log)
    >>> found.helps, found.trusted
    ('no', True)
    """
    rng = np.random.default_rng(integer("seed", seed, least=0))
    whole = take_sample(log, integer("rows", rows, least=1), rng)
    copies, known = against.copies_of_reward(whole), against.known_before(whole)
    raised = [*against.leaks(whole, copies, known), *against.times(whole), *against.selection(whole)]
    raised += [*against.repetition(whole), *against.drift(whole), *against.missing(whole)]
    raised += [*against.support(whole), *against.collinearity(whole)]
    left: BoolArray = ~(copies | known)
    findings, found, suggestion = _of_columns(whole.with_z(left), rng) if left.any() else ([], {}, "")
    helps = verdict(findings, found)
    summary = advice(helps, findings, found, raised)
    rounds = whole.rounds
    about = {
        "rounds": whole.offered,
        "looked at": len(rounds),
        "complete": int(whole.complete.sum()),
        "arms": rounds.n_arms,
        "x": list(rounds.x_names),
        "z": list(rounds.z_names),
        "seed": seed,
    }
    return Diagnosis(helps, summary, suggestion, tuple(findings), tuple(raised), found, about)


def _of_columns(sample: Sample, rng: np.random.Generator) -> tuple[list[Finding], dict[str, Gain], str]:
    """Every question, then the gains of the policy that the answers suggest."""
    predictable = questions.predictability(sample)
    features = predictable.numbers["features"]
    moved, shared = questions.follows(sample), questions.sharing(sample, features)
    late = questions.lateness(sample)
    findings = [questions.worth(sample), predictable, moved, shared, late]
    own = bool(moved.numbers["follows"] or moved.numbers["may_follow"] or shared.numbers["own_slopes"])
    plan = Plan(features, own, "hybrid" if own and not shared.numbers["own_worth"] else "disjoint")
    delays = {"now": (0.0, 0.0), "late": _late_rounds(late.numbers, horizon_of(sample))}
    return findings, gains(sample, plan, delays, rng), code(sample, plan)


def _late_rounds(numbers: dict[str, Any], horizon: int) -> tuple[float, float]:
    """The log's own delays, as parts of its span; if it does not say them, `LATE`."""
    span = numbers["days"]
    if "reward_delay" in numbers and span > 0.0:
        found = (numbers.get("z_delay", 0.0) / span, numbers["reward_delay"] / span)
        if found[1] > 0.0:
            return horizon * max(found[0], 0.0), horizon * found[1]
    return horizon * LATE[0], horizon * LATE[1]


def _finite(content: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(content, dict):
        return {name: _finite(each) for name, each in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(each) for each in content]
    if isinstance(content, float | np.floating):
        return float(content) if np.isfinite(content) else None
    return content.item() if isinstance(content, np.generic) else content
