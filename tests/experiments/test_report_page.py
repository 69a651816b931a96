"""The report in a real browser: everything shows, and nothing is asked of the network."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from postserve.experiments.reproduce import plan, reproduce

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Any:
    sync_api = pytest.importorskip("playwright.sync_api")
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        pytest.skip(f"no browser is installed, wanted one of {', '.join(BROWSERS)}")
    out = tmp_path_factory.mktemp("report")
    list(reproduce(plan(["figure1", "observation1"], quick=True, seeds=2, horizon=60), out))
    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=browser_path, args=OPTIONS)
        opened = browser.new_page(viewport={"width": 1300, "height": 900})
        opened.asked, opened.complaints = [], []
        opened.on("request", lambda request: opened.asked.append(request.url))
        opened.on("console", lambda message: opened.complaints.append(message.text))
        opened.goto((out / "report.html").as_uri())
        yield opened
        browser.close()


def test_it_asks_for_nothing_but_itself(page: Any) -> None:
    outside = [url for url in page.asked if not url.startswith("data:")]
    assert [Path(url).name for url in outside] == ["report.html"]
    assert page.complaints == []


def test_every_picture_shows(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    sizes = page.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])")
    assert len(sizes) == 3
    assert all(complete and natural > 500 and shown > 500 for complete, natural, shown in sizes)


def test_the_picture_leads_and_claims_are_folded(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    first = page.evaluate("document.images[0].getBoundingClientRect().bottom")
    assert first < 900  # on the first screen
    assert not page.locator("ul.claims").first.is_visible()
    for word in ("regret", "oracle", "x", "z"):
        assert page.locator("dt", has_text=re.compile(f"^{word}$")).first.is_visible()


def test_nothing_sticks_out(page: Any) -> None:
    for width in (1300, 500):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_index_leads_to_the_figures(page: Any) -> None:
    page.click("text=Observation 1")
    assert page.url.endswith("#observation1")
    assert page.evaluate("document.querySelector('#observation1').getBoundingClientRect().top") < 400
