"""One page with every figure of a folder: picture, numbers, verdicts, settings, command, versions."""

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postserve.experiments.figures import FIGURES
from postserve.experiments.tables import Table, tables

SECTION = "section.json"
"""What the page says of a figure, beside its numbers and its pictures."""

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
dt { color: #666; } dd { margin: 0; overflow-wrap: anywhere; }
ul { padding-left: 0; list-style: none; } ul.claims li { display: flex; margin: 0.4em 0; }
details { margin: 0.8em 0; } summary { cursor: pointer; font-weight: 600; }
.held, .failed, .seen { flex: 0 0 8em; line-height: 2; font-size: 12px; font-weight: 600; }
.held { color: #00694d; } .failed { color: #b23c00; } .seen { color: #666; }
@media (max-width: 600px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.5em; }
  ul.claims li { display: block; } img { max-width: none; width: 760px; } }
"""

GLOSSARY = {
    "round": "Somebody arrives; the policy serves one of several arms (a video, a course, a treatment).",
    "x": "What is known before the choice.",
    "z": "The follow-up: what is measured after the arm was served (watch time, completion, a lab value). It "
    "comes too late for the choice, but it shows why a reward was high or low.",
    "phi(x)": "The mean of z given x. poLinUCB learns it, and predicts z when it chooses.",
    "regret": "How much reward was lost, so far, by not serving the best arm in every round. Lower is "
    "better; a curve that flattens out has learnt.",
    "LinUCB(x)": "Ignores follow-ups. What is gained by them is the distance from its line to poLinUCB's.",
    "poLinUCB": "The paper's policy: the line to look at.",
    "LinUCB(phi_hat)": "Learns from the predicted z instead of the observed one, the prediction being made "
    "before or after z was learnt (two readings of the paper's Algorithm 2).",
    "LinUCB(x, h(x))": "Is given the features h that poLinUCB's map is given: a fair baseline.",
    "oracle": "Is shown z before it chooses, which is impossible in practice. Regret is measured at phi(x), "
    "not at the z it sees, so it is not always best.",
    "evidence": "Prior and noise are learnt from the rounds, our default. The others have ridge 1 (a fixed "
    "prior) and a fixed radius, unless a figure's settings say otherwise.",
    "errors": "Bands are one standard error over seeds, whiskers of paired differences and ratios two; "
    "brackets are 95% intervals. All policies of a seed meet the same rounds. Slopes are growth exponents "
    "over the last nine tenths of the rounds, unless stated otherwise.",
}


def render(out: Path) -> str:
    """The page of all figures in the folder, in the order of the list."""
    found = {name: _read(out / name) for name in FIGURES if (out / name / SECTION).exists()}
    on_data = [each["headline"] for name, each in found.items() if FIGURES[name].data and each["headline"]]
    index = [
        f'<li><a href="#{name}">{html.escape(section["title"])}</a>: {_verdict(section["claims"])}</li>'
        for name, section in found.items()
    ]
    sections = [
        f'<h2 id="{name}">{html.escape(section["title"])}</h2>\n{_body(section, glossary=i == 0)}'
        for i, (name, section) in enumerate(found.items())
    ]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>postserve: figures</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{STYLE}</style></head><body>",
            "<h1>Follow-ups Also Matter (NeurIPS 2023): the figures, run again</h1>",
            *(f"<p><b>{html.escape(sentence)}</b></p>" for sentence in on_data),
            *([f"<ul>{''.join(index)}</ul>"] if len(index) > 1 else []),
            *sections,
            "</body></html>\n",
        ]
    )


def _read(folder: Path) -> dict[str, Any]:
    """All that the page says of a figure; if its files were damaged, only that."""
    try:
        section: dict[str, Any] = json.loads((folder / SECTION).read_text(encoding="utf-8"))
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        section["tables"] = tables(summary)
        if not section["tables"]:
            raise ValueError("no rows")
        section["pictures"] = [
            base64.b64encode((folder / name).read_bytes()).decode()
            for name in ("overview.png", "figure.png")
            if name == "figure.png" or (folder / name).exists()
        ]
        _body(section, glossary=False)  # finds out whether it is whole
        return section
    except Exception:  # whatever is wrong with them, the other figures are shown
        again = f"Its files are damaged: run postserve reproduce {folder.name} again."
        return {"title": folder.name, "claims": [], "headline": None, "damaged": again}


def _body(section: dict[str, Any], *, glossary: bool) -> str:
    """The picture first, then what it shows; claims, numbers and settings can be unfolded."""
    if "damaged" in section:
        return f"<p>{section['damaged']}</p>"
    image = f'<div class="wide"><img alt="{html.escape(section["title"])}" src="data:image/png;base64,'
    first, *others = (f'{image}{picture}"></div>' for picture in section["pictures"])
    claims = "".join(_claim(claim) for claim in section["claims"])
    about = {**section["settings"], "command": section["command"], "versions": section["versions"]}
    headline = f"<p><b>{html.escape(section['headline'])}</b></p>" if section["headline"] else ""
    parts = [first, headline]
    if glossary:
        parts.append(f"<h3>How to read it</h3>{_definitions(GLOSSARY)}<h3>What was run</h3>")
    parts.append(f"<p>{html.escape(section['about'])}</p>")
    if others:
        parts.append(_folded("All panels: both priors, and paired differences", *others))
    parts.append(_folded(f"Claims: {_verdict(section['claims'])}", f'<ul class="claims">{claims}</ul>'))
    parts.append(_folded("Numbers", *(_table(table) for table in section["tables"])))
    parts.append(_folded("Settings, command and versions", _definitions(about)))
    return "\n".join(parts)


def _folded(title: str, *parts: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{''.join(parts)}</details>"


def _verdict(claims: Sequence[dict[str, Any]]) -> str:
    judged = [claim["held"] for claim in claims if claim["held"] is not None]
    if not judged:
        return "not judged, too few rounds and seeds."
    return f"{sum(judged)} of {len(judged)} held."


def _claim(claim: dict[str, Any]) -> str:
    kind = {True: ("held", "held"), False: ("failed", "did not hold"), None: ("seen", "not judged")}[
        claim["held"]
    ]
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
