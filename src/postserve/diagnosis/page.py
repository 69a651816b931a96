"""A diagnosis as one page that needs no other file."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from postserve.diagnosis.pictures import picture, picture_of_gains, why_not_drawn

if TYPE_CHECKING:
    from postserve.diagnosis.diagnosing import Diagnosis

STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #222; max-width: 46em; margin: 2em auto;
  padding: 0 1.2em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2.2em 0 0.4em; }
img { width: 100%; max-width: 560px; display: block; margin: 0.8em 0; }
.answer { border-left: 4px solid #0072b2; padding: 0.2em 1em; font-size: 1.1em; }
.answer.doubtful { border-color: #d55e00; }
.objection { border-left: 4px solid #e0a800; padding: 0.1em 1em; margin: 0.8em 0; }
.grave { border-color: #d55e00; }
pre { background: #f4f4f4; padding: 0.8em; overflow-x: auto; font-size: 13px; }
table { border-collapse: collapse; font-size: 14px; } .wide { overflow-x: auto; }
th, td { padding: 0.25em 0.8em 0.25em 0; border-bottom: 1px solid #eee; text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
@media (max-width: 30em) { table { font-size: 12px; } th, td { white-space: normal; padding-right: 0.4em; } }
details { margin: 1.5em 0; } summary { cursor: pointer; font-weight: 600; }
dt { color: #666; } dd { margin: 0 0 0.5em; overflow-wrap: anywhere; }
"""

GLOSSARY = {
    "round": "Somebody arrives; one of several arms (a video, a course, a treatment) is served.",
    "x": "What is known before the choice.",
    "z": "The follow-up: what is measured after the arm was served. It comes too late for the choice, but it "
    "shows why a reward was high or low.",
    "phi(x)": "The mean of z given x. poLinUCB learns it, and predicts z when it chooses.",
    "LinUCB(x)": "A policy that ignores follow-ups: what is gained by them is gained over it.",
    "regret": "How much reward was lost, so far, by not serving the best arm in every round. Lower is "
    "better.",
    "held-out": "Predicted by a model that was not fitted to these rounds, so that luck explains nothing.",
    "products, bumps, a forest": "Models of z that bend: squares and products of x; smooth bumps around some "
    "rounds; and many trees of yes-or-no questions about x.",
    "brackets and whiskers": "95% intervals.",
}
"""What a reader must know who has not met a bandit; the report of the experiments has the same words."""


def render(found: "Diagnosis") -> str:
    """The whole page."""
    doubtful, lacks = "" if found.trusted else " doubtful", why_not_drawn()
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>postserve: diagnosis</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body>",
        "<h1>Will follow-ups help?</h1>",
        f'<p class="answer{doubtful}">{escape(found.summary)}</p>',
        *([f"<p>Pictures are {escape(lacks)}</p>"] if lacks else []),
        _folded("How to read it", GLOSSARY),
        *_objections(found),
        *_gains(found, drawn=not lacks),
    ]
    for each in found.findings:
        parts.append(f"<h2>{escape(each.question)}</h2><p>{escape(each.answer)}</p>")
        drawn = None if lacks else picture(each)
        if drawn:
            parts.append(_image(each.question, drawn))
    parts.append(_folded("The log", _texts(found.about)))
    return "\n".join([*parts, "</body></html>\n"])


def _objections(found: "Diagnosis") -> list[str]:
    parts = ["<h2>What argues against it</h2>"]
    if not found.objections:
        parts.append(
            "<p>Nothing: no drift, no leak, no repeated columns; arms were served as propensities say.</p>"
        )
    for each in found.objections:
        grave = " grave" if each.grave else ""
        parts.append(
            f'<div class="objection{grave}"><p><b>{escape(each.kind)}.</b> {escape(each.text)}</p></div>'
        )
    return parts


def _gains(found: "Diagnosis", *, drawn: bool) -> list[str]:
    if not found.gains:
        return []
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{each.z_delay:,.0f}</td><td>{each.reward_delay:,.0f}</td>"
        f"<td>{each.value:.3g} [{each.low:.3g}, {each.high:.3g}]</td>"
        f"<td>{each.share}</td></tr>"
        for name, each in found.gains.items()
    )
    advised = found.helps in ("much", "a little")
    titles = ("", "z after (rounds)", "reward after (rounds)", "more reward per round", "regret saved")
    head = "".join(f"<th>{title}</th>" for title in titles)
    return [
        f"<h2>What {'is suggested' if advised else 'was tried'}, and what it gains over LinUCB(x)</h2>",
        f"<pre>{escape(found.suggestion)}</pre>",
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>',
        "<p>Both play in worlds made of this log: rows drawn from it with replacement, and what other arms "
        "would have done by lines fitted to them. Late rewards, and their z, come after as large a part of "
        "these rounds as the log's median delays are of its span, or, if the log has no times, after a "
        "quarter and a hundredth of them. Intervals are 95%, over worlds and over luck in them.</p>",
        *([_image("Mean regret of both", picture_of_gains(found.gains))] if drawn else []),
    ]


def _image(title: str, drawn: str) -> str:
    return f'<img alt="{escape(title)}" src="{drawn}">'


def _texts(about: Mapping[str, Any]) -> dict[str, str]:
    return {name: ", ".join(each) if isinstance(each, list) else f"{each:,}" for name, each in about.items()}


def _folded(title: str, texts: Mapping[str, str]) -> str:
    inside = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in texts.items())
    return f"<details><summary>{title}</summary><dl>{inside}</dl></details>"
