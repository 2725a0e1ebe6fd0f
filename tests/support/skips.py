"""With CI set, a test that is skipped fails: what it needs is to be there. Hooks of pytest."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped on CI."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_on_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that is skipped on CI."""
    report = yield
    if report.skipped:
        _fail_on_ci(report)
    return report


def _fail_on_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure where CI is set: {report.longrepr}"
