"""What all tests share.

Under CI=true a skip is a failure, so that nothing passes because it could not run. Where tests run on several
cores (`make test`), those that start clusters, browsers or commands do not run at the same time.
"""

import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest

Reported = Generator[None, pytest.TestReport, pytest.TestReport]
Collected = Generator[None, pytest.CollectReport, pytest.CollectReport]
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# A shell starts background jobs with interrupts ignored, which the commands under test would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Reported:
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Collected:
    report = yield
    return _refuse_skip(report)


START_PROCESSES = ("test_cli", "test_engines", "test_report_page")
"""Files with tests that start clusters, browsers or commands, and need all cores."""

SHARE_A_FIXTURE = ("test_bad_input", "test_coverage", "test_figures", "test_regret")
"""Files with tests that share a slow fixture: one process makes it once."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of one group run one after another, in one process.

    By name: with pytest 9.2, pytest-xdist 3.8 does not see the groups that marks give.
    """
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group_of
    return scheduler


def _group_of(nodeid: str) -> str:
    """The group of a test: all that start processes, its file if that shares a fixture, or itself."""
    name = Path(nodeid.partition("::")[0]).stem
    if name in START_PROCESSES:
        return "processes"
    return name if name in SHARE_A_FIXTURE else nodeid


def _refuse_skip(report: Report) -> Report:
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
    """The same, for tests that need the data."""
    if data_if_any is None:
        pytest.skip("no real data in ../shared/data, beside the project's root, nor in $POSTSERVE_DATA")
    return data_if_any
