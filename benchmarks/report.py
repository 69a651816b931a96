"""The results as a page and as pictures."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib.pyplot as plt

from benchmarks.against import BEFOREHAND
from benchmarks.running import SECTIONS
from benchmarks.streams import SCENARIOS

OURS = "postserve"
HEADS = {
    "us select": "select, µs",
    "us update": "update, µs",
    "reference_us select": "reference's select, µs",
    "reference_us update": "its update, µs",
    "ratio select": "select, ratio",
    "ratio update": "update, ratio",
    "ratio round": "round, ratio",
    "us": "µs",
    "reference_us": "reference's, µs",
    "ms": "ms",
    "create_ms": "to create, ms",
    "seconds": "seconds",
    "full_seconds": "from a full cache, s",
    "mb": "MB",
    "kilobytes": "KB",
    "gb_per_s": "GB/s",
    "ratio": "ratio",
    "per_second": "per second",
    "p50_ms": "median, ms",
    "p99_ms": "99%, ms",
    "refused": "refused",
    "value": "",
    "failed": "",
}
LEFT_OUT = {"us round", "reference_us round", "rounds", "after"}
BLUE, GREY = "#1f5fa8", "#b5b9bf"
plt.switch_backend("agg")


def write(results: dict[str, Any], out: Path) -> list[Path]:
    """results.md, and a picture for each section that has results."""
    found = results["results"]
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.md").write_text("\n".join(_page(results)) + "\n")
    written = [out / "results.md"]
    if any(_peers(found, scenario) for scenario in SCENARIOS):
        _draw_peers(found, out / "results.png")
        written.append(out / "results.png")
    if found.get("scaling"):
        _draw_scaling(found["scaling"], out / "scaling.png")
        written.append(out / "scaling.png")
    return written


def fill(results: dict[str, Any], page: Path) -> list[Path]:
    """Put tables between the marks `<!-- section -->` and `<!-- end -->` of a page, pictures beside it."""
    text, found = page.read_text(), results["results"]
    for section in found:
        table = "\n".join(_lines(found, section))
        text = re.sub(
            rf"(<!-- {section} -->\n).*?(<!-- end -->)",
            partial(_filled, table),
            text,
            flags=re.S,
        )
    page.write_text(text)
    _draw_peers(found, page.with_name("performance.png"))
    _draw_scaling(found["scaling"], page.with_name("scaling.png"))
    return [page, page.with_name("performance.png"), page.with_name("scaling.png")]


def _filled(table: str, marks: re.Match[str]) -> str:
    return f"{marks[1]}{table}\n{marks[2]}"


def line(value: Any) -> str:
    """A finding in one line."""
    if not isinstance(value, dict):
        return value if isinstance(value, str) else _short(value)
    if any(scenario in value for scenario in SCENARIOS):
        ratios = [_short(_ratio(value, scenario)) for scenario in SCENARIOS]
        return f"{value.get('version', '')} ({' / '.join(ratios)} times numpy on a / b / c / d)"
    if "failed" in value:
        return str(value["failed"])
    if isinstance(value.get("ratio"), dict):
        us, ratio = value["us"], value["ratio"]
        parts = [
            f"{what} {_short(us[what])} µs, ratio {_short(ratio[what])}" for what in ("select", "update")
        ]
        return f"{'; '.join(parts)}; round {_short(ratio['round'])}"
    return ", ".join(
        f"{what} {line(part)}" if isinstance(part, dict) else f"{what} {_short(part)}"
        for what, part in value.items()
    )


def _page(results: dict[str, Any]) -> Iterator[str]:
    computer, found = results["machine"], results["results"]
    caches = ", ".join(f"{level} {size}" for level, size in computer["caches"].items())
    yield "# What it costs"
    yield ""
    yield f"{computer['processor']}, {computer['cores']} cores, {caches}; one thread."
    yield ", ".join(f"{name} {number}" for name, number in results["versions"].items()) + "."
    for section, title in SECTIONS.items():
        if section not in found:
            continue
        quick = " (quick: few repeats)" if results["quick"].get(section) else ""
        yield from ("", f"## {title}{quick}", "")
        yield from _lines(found, section)


def _lines(found: dict[str, Any], section: str) -> Iterator[str]:
    """The lines of a section."""
    if section == "against":
        yield from _against(found[section])
        return
    yield from _table(found[section])
    if section == "floor":
        yield from _distances(found)


def _distances(found: dict[str, Any]) -> Iterator[str]:
    """Our select over the floor, for equal arms, where every width is computed."""
    for name, entry in found.get("rounds", {}).items():
        scenario = name.split()[1].rstrip(",")
        floor = found["floor"].get(f"floor {scenario}")
        if "weights equal" in name and floor:
            us = entry["us"]["select"]
            yield from (
                "",
                f"{name}: a select takes {_short(us)} µs, {_short(us / floor['us'])} times its floor.",
            )


def _against(players: dict[str, Any]) -> Iterator[str]:
    """Microseconds, select / update; then the round over numpy's, and how far ours is ahead."""
    ours = players.get(OURS, {})
    yield from ("Microseconds, select / update:", "", f"| library | {' | '.join(SCENARIOS)} |")
    yield "|---|" + "---:|" * len(SCENARIOS)
    for name, player in players.items():
        us = [player.get(scenario, {}).get("us") for scenario in SCENARIOS]
        cells = [f"{_short(each['select'])} / {_short(each['update'])}" if each else "–" for each in us]
        yield f"| {name} {player.get('version', '')} | {' | '.join(cells)} |"
    yield from ("", f"The whole round, on {' / '.join(SCENARIOS)}:", "")
    yield from ("| library | over numpy | ours is ahead by |", "|---|---:|---:|")
    for name, player in players.items():
        ratios = [_ratio(player, scenario) for scenario in SCENARIOS]
        mine = [_ratio(ours, scenario) for scenario in SCENARIOS]
        ahead = [
            _short(theirs / own if theirs and own else None) for theirs, own in zip(ratios, mine, strict=True)
        ]
        last = player.get("failed") or ("" if name == OURS else " / ".join(ahead))
        yield f"| {name} | {' / '.join(map(_short, ratios))} | {last} |"
    agree = [
        f"{name} {player['d']['agrees']:.0%}"
        for name, player in players.items()
        if "agrees" in player.get("d", {})
    ]
    reasons = {
        f"{name} on {scenario}: {player[scenario]['failed']}"
        for name, player in players.items()
        for scenario in SCENARIOS
        if "failed" in player.get(scenario, {})
    }
    yield from ("", *wrap(f"Same choice as numpy's after the same rounds: {', '.join(agree)}.", 110))
    for reason in sorted(reasons):
        yield from ("", f"{reason}.")


def _table(entries: dict[str, Any]) -> Iterator[str]:
    """One column for each value that any entry has."""
    rows = {name: _flat(value) for name, value in entries.items()}
    known = {what for row in rows.values() for what in row}
    columns = [what for what in HEADS if what in known] + sorted(known - set(HEADS) - LEFT_OUT)
    yield f"| | {' | '.join(HEADS.get(what, what) for what in columns)} |"
    yield "|---|" + "---:|" * len(columns)
    for name, row in rows.items():
        yield f"| {name} | {' | '.join(_short(row.get(what), '') for what in columns)} |"


def _flat(value: Any, before: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {before or "value": value}
    return {
        key: part
        for name, inner in value.items()
        for key, part in _flat(inner, f"{before} {name}".strip()).items()
    }


def _draw_peers(found: dict[str, Any], path: Path) -> None:
    """One panel per scenario: the time of one round over numpy's, ours and each peer's, logarithmic."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 7.2), layout="constrained")
    for panel, (scenario, (n_arms, dim)) in zip(panels.flat, SCENARIOS.items(), strict=True):
        bars = sorted(_peers(found, scenario).items(), key=lambda pair: -pair[1])
        names, ratios = [name for name, _ in bars], [ratio for _, ratio in bars]
        panel.barh(names, ratios, color=[BLUE if name == OURS else GREY for name in names], log=True)
        for i, (name, ratio) in enumerate(bars):
            weight = "bold" if name == OURS else "normal"
            text = panel.text(ratio * 1.12, i, _short(ratio), va="center", fontsize=9, fontweight=weight)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        panel.axvline(1.0, color="black", linewidth=0.8, linestyle="--", zorder=0)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.set_xlim(min([*ratios, 1.0]) / 2.0, max([*ratios, 1.0]) * 4.0)
        cold = ", 300 rounds from cold" if scenario == "c" else ""
        panel.set_title(f"{n_arms:,} arms, {dim} dimensions{cold}", fontsize=11, loc="left")
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.tick_params(axis="x", which="minor", length=0)
    figure.suptitle(
        "One round of LinUCB, select and update: time over plain numpy's (less is faster)", fontsize=13
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_scaling(entries: dict[str, Any], path: Path) -> None:
    """Microseconds against arms and against dimensions, logarithmic."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    for panel, label, pattern in zip(
        panels, ("arms, of 64 dimensions", "dimensions, 10 arms"), (" arms of 64", "10 arms of "), strict=True
    ):
        points = {}
        for name, value in entries.items():
            number = name.replace(pattern, "")
            if pattern in name and number.isdigit() and "us" in value:
                points[int(number)] = value["us"]
        sizes = sorted(points)
        for what, colour in (("select", BLUE), ("update", "#d1495b")):
            costs = [points[size][what] for size in sizes]
            panel.loglog(sizes, costs, "o-", color=colour, label=what)
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("microseconds")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _peers(found: dict[str, Any], scenario: str) -> dict[str, float]:
    """Rounds over numpy's; the library's own first."""
    players = found.get("against", {})
    shown = {name: player for name, player in players.items() if BEFOREHAND not in name}
    return {name: ratio for name, player in shown.items() if (ratio := _ratio(player, scenario))}


def _ratio(player: dict[str, Any], scenario: str) -> float | None:
    ratio = player.get(scenario, {}).get("ratio")
    return float(ratio["round"]) if ratio else None


def _short(value: Any, missing: str = "–") -> str:
    """Three digits, or two below 0.1."""
    if value is None:
        return missing
    if not isinstance(value, int | float):
        return str(value)
    size = abs(value)
    return (
        f"{value:,.0f}" if size >= 100 else f"{value:.{1 if size >= 10 else 2}{'f' if size >= 0.1 else 'g'}}"
    )
