"""From answers to advice."""

from collections.abc import Mapping, Sequence
from typing import Any

from postserve.diagnosis.features import CODE
from postserve.diagnosis.findings import Finding, Objection, Verdict, counted
from postserve.diagnosis.gains import Gain, Plan
from postserve.diagnosis.questions import MATERIAL
from postserve.diagnosis.sample import Sample

MUCH = 0.3
"""From which share of LinUCB's regret on a saving is much, if at least half of it is certain."""
LITTLE = 0.03
"""Below this share it is none."""


def verdict(findings: Sequence[Finding], gains: Mapping[str, Gain]) -> Verdict:
    """Whether follow-ups help, by the gain with the log's own delays if rewards are late there.

    "no" is said only where z explains too little, or saves too little, at the upper end of the interval, too.
    """
    if not gains:
        return "no"
    beyond = _numbers(findings)["worth"]["beyond"]
    if beyond["high"] < MATERIAL:
        return "no"
    found = gains[deciding(findings)]
    explains = beyond["low"] > 0.0 and beyond["value"] >= MATERIAL
    if explains and found.saved_low > 0.0 and found.saved >= LITTLE:
        return "much" if found.saved >= MUCH and found.saved_low >= MUCH / 2.0 else "a little"
    return "no" if found.saved_high < MUCH else "unclear"


def deciding(findings: Sequence[Finding]) -> str:
    """The gain on which the verdict rests: "late" if rewards are late in the log, else "now"."""
    return "late" if _numbers(findings)["lateness"]["late"] else "now"


def _numbers(findings: Sequence[Finding]) -> dict[str, Any]:
    return {each.name: each.numbers for each in findings}


def advice(
    helps: Verdict, findings: Sequence[Finding], gains: Mapping[str, Gain], raised: Sequence[Objection]
) -> str:
    """The answer in a few sentences, with the gain first on which it rests."""
    if not gains:
        return "No: no column of z is left that came after serving and is not the reward itself."
    now, late = gains["now"], gains["late"]
    words = f"{_answer(helps, gains[deciding(findings)])}: follow-ups save"
    of = f"of the regret of LinUCB(x) in {now.rounds[-1]:,} rounds resampled from this log"
    if_late = f"if rewards come {counted(round(late.reward_delay), 'round')} late"
    if deciding(findings) == "late":
        words += f" {late.share} {of} {if_late}, as they do here, and {now.share} if they came at once."
    else:
        words += f" {now.share} {of}, and {late.share} {if_late}."
    grave = sorted({each.kind for each in raised if each.grave})
    if grave:
        return (
            f"Do not trust this log before its objections are met ({', '.join(grave)}). As it stands: {words}"
        )
    return words


def _answer(helps: Verdict, found: Gain) -> str:
    """The verdict in words that do not say more than its interval."""
    if helps == "a little" and found.saved >= MUCH:
        return "Yes, but it cannot be told how much"
    if helps == "no" and found.saved >= LITTLE:
        return "Not much, if anything"
    answers = {"much": "Yes, much", "a little": "Yes, a little", "no": "No"}
    return answers.get(helps, "It cannot be told from this log")


def code(sample: Sample, plan: Plan) -> str:
    """The suggested policy, as Python; it learns from the log, also where rounds have no z."""
    rounds = sample.rounds
    made = "HybridMap" if plan.own else "RidgeMap"
    imports, features, option = CODE.get(plan.features, ("", "", ""))
    options = "" if plan.model == "disjoint" else ', model="hybrid"'
    options += ', optimism="posterior"' if plan.own else ""
    options += "" if sample.has_z.all() else ', missing_z="impute"'
    lines = [
        imports,
        f"from postserve import {made}, PoLinUCB",
        features,
        f"phi_hat = {made}({rounds.dim_x}, {rounds.dim_z}{option})",
        f"policy = PoLinUCB({rounds.n_arms}, phi_hat{options})",
    ]
    return "\n".join(part for part in lines if part)
