"""One page with every figure of a folder: picture, table, settings, command, versions, verdicts."""

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postserve.experiments.figures import FIGURES
from postserve.experiments.tables import Table, tables

SECTION = "section.json"
"""What the page says of a figure, beside its numbers and its picture."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1200px; margin: 2em auto;
  padding: 0 1.5em; }
h1 { font-size: 1.6em; } h2 { margin-top: 2.5em; border-top: 1px solid #ddd; padding-top: 1em; }
img { max-width: 100%; } code { background: #f4f4f4; padding: 0.1em 0.3em; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
caption { text-align: left; padding: 0.3em 0; }
th, td { padding: 0.25em 0.7em; border-bottom: 1px solid #eee; text-align: right; }
th:first-child, td:first-child { text-align: left; } .wide { overflow-x: auto; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0.2em 1em; }
dt { color: #666; } dd { margin: 0; }
ul { padding-left: 0; list-style: none; } ul.claims li { display: flex; margin: 0.4em 0; }
.held, .failed, .told { flex: 0 0 8em; line-height: 2; font-size: 12px; font-weight: 600; }
.held { color: #00694d; } .failed { color: #b23c00; } .told { color: #666; }
"""


INTRODUCTION = (
    "Cumulative regret at phi(x), where a figure does not say otherwise, in worlds whose truth is known; "
    "where data are real it is said. All policies of one seed meet the same rounds, so differences are "
    "paired; bands and whiskers are one standard error, whiskers of paired differences and ratios two, "
    "slopes and what is in brackets have 95% intervals. What did not hold is said as plainly as what did.",
    "Names: poLinUCB and LinUCB(phi_hat) choose at (x, phi_hat(x)); LinUCB(phi_hat) learns from the "
    "prediction made before, or after, z was learnt; h are the features in which phi is linear, which maps "
    "are given unless told otherwise; evidence means that prior and noise are learnt from the rounds by "
    "maximising their evidence. The others have ridge 1 and a constant radius, unless a figure's settings "
    "say otherwise.",
)


def render(out: Path) -> str:
    """The page of all figures that lie in the folder, in the order of the list."""
    told = {name: _read(out / name) for name in FIGURES if (out / name / SECTION).exists()}
    index = (
        f'<li><a href="#{name}">{html.escape(section["title"])}</a>: {_verdict(section["claims"])}</li>'
        for name, section in told.items()
    )
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>postserve: figures</title>',
            f"<style>{STYLE}</style></head><body>",
            "<h1>Follow-ups Also Matter: every figure, run again</h1>",
            *_headline([section["headline"] for section in told.values() if section.get("headline")]),
            *(f"<p>{words}</p>" for words in INTRODUCTION),
            f"<ul>{''.join(index)}</ul>",
            *(_section(name, section) for name, section in told.items()),
            "</body></html>\n",
        ]
    )


def _headline(sentences: Sequence[str]) -> list[str]:
    """One sentence of several: on data that nobody made a method is believed or not, so it comes first."""
    words = [sentence.removesuffix(".") for sentence in sentences]
    rest = (f"{word[0].lower()}{word[1:]}" for word in words[1:])
    return [f"<p><b>{html.escape('; '.join([words[0], *rest]))}.</b></p>"] if words else []


def _read(folder: Path) -> dict[str, Any]:
    """All that the page says of a figure; of one whose files were damaged, that they were."""
    try:
        section: dict[str, Any] = json.loads((folder / SECTION).read_text(encoding="utf-8"))
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        section["tables"] = tables(summary)
        if not section["tables"]:
            raise ValueError("no rows")
        section["picture"] = base64.b64encode((folder / "figure.png").read_bytes()).decode()
        section["body"] = _body(section)
        return section
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        again = f"Its files are damaged: run postserve reproduce {folder.name} again."
        return {"title": folder.name, "claims": [], "body": f"<p>{again}</p>"}


def _section(name: str, section: dict[str, Any]) -> str:
    return f'<h2 id="{name}">{html.escape(section["title"])}</h2>\n{section["body"]}'


def _body(section: dict[str, Any]) -> str:
    about = {**section["settings"], "command": section["command"], "versions": section["versions"]}
    return "\n".join(
        [
            *_headline([section["headline"]] if section.get("headline") else []),
            f"<p>{html.escape(section['about'])}</p>",
            f"<p><b>{_verdict(section['claims'])}</b></p>",
            f'<ul class="claims">{"".join(_claim(claim) for claim in section["claims"])}</ul>',
            f'<img alt="{html.escape(section["title"])}" src="data:image/png;base64,{section["picture"]}">',
            *(_table(table) for table in section["tables"]),
            _definitions(about),
        ]
    )


def _verdict(claims: Sequence[dict[str, Any]]) -> str:
    judged = [claim["held"] for claim in claims if claim["held"] is not None]
    if not judged:
        return "Not judged: too few rounds and seeds to tell."
    return f"{sum(judged)} of {len(judged)} claims held."


def _claim(claim: dict[str, Any]) -> str:
    kind = {True: ("held", "held"), False: ("failed", "did not hold"), None: ("told", "seen")}[claim["held"]]
    return f'<li><span class="{kind[0]}">{kind[1]}</span> {html.escape(claim["text"])}</li>'


def _table(table: Table) -> str:
    def row(tag: str, texts: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(text)}</{tag}>' for text in texts)}</tr>"

    head, body = row("th", table.header), "".join(row("td", texts) for texts in table.rows)
    return (
        f'<div class="wide"><table><caption>{html.escape(table.title)}</caption>'
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div>"
    )


def _definitions(words: dict[str, str]) -> str:
    inside = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in words.items()
    )
    return f"<dl>{inside}</dl>"
