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
img { width: 100%; max-width: 640px; display: block; margin: 0.8em 0; }
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
        *_objections(found),
        *_gains(found, drawn=not lacks),
    ]
    for each in found.findings:
        parts.append(f"<h2>{escape(each.question)}</h2><p>{escape(each.answer)}</p>")
        drawn = None if lacks else picture(each)
        if drawn:
            parts.append(f'<img alt="{escape(each.question)}" src="{drawn}">')
    parts.append(_about(found.about))
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
    head = "<th></th><th>z after</th><th>reward after</th><th>more per round</th><th>regret saved</th>"
    return [
        f"<h2>What {'is suggested' if advised else 'was tried'}, and what it gains over LinUCB(x)</h2>",
        f"<pre>{escape(found.suggestion)}</pre>",
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>',
        "<p>Both play in worlds made of this log: rows drawn from it with replacement, and what other arms "
        "would have done by lines fitted to them. Delays are in rounds: late rewards come after as large a "
        "part of these rounds as the log's median delay is of its span, or after a quarter of them if the "
        "log has no times. Intervals are 95%, over worlds and over luck in them.</p>",
        *([f'<img alt="Mean regret of both" src="{picture_of_gains(found.gains)}">'] if drawn else []),
    ]


def _about(about: Mapping[str, Any]) -> str:
    texts = {name: ", ".join(each) if isinstance(each, list) else f"{each:,}" for name, each in about.items()}
    inside = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in texts.items())
    return f"<details><summary>The log</summary><dl>{inside}</dl></details>"
