"""What all tests share: under CI=true a skip is a failure, for what cannot run there must not pass unseen."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

Reported = Generator[None, pytest.TestReport, pytest.TestReport]
Collected = Generator[None, pytest.CollectReport, pytest.CollectReport]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Reported:
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Collected:
    report = yield
    return _refuse_skip(report)


def _refuse_skip(report: Any) -> Any:
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped under CI=true: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def data_if_any() -> Path | None:
    """The folder with the real data sets, which are not part of this repository, or None."""
    chosen = os.environ.get("POSTSERVE_DATA")
    folder = Path(chosen) if chosen else Path(__file__).parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def real_data(data_if_any: Path | None) -> Path:
    """The same, for tests that cannot do without."""
    if data_if_any is None:
        pytest.skip("no real data in ../shared/data, beside the project's root, nor in $POSTSERVE_DATA")
    return data_if_any
