"""Tests that are skipped fail on CI, however they are skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = """
import pytest

@pytest.fixture
def missing():
    pytest.skip("by a fixture")

def test_body(): pytest.skip("by the test")
def test_fixture(missing): pass
@pytest.mark.skip(reason="by a mark")
def test_mark(): pass
def test_import(): pytest.importorskip("a_module_that_nobody_has")
@pytest.mark.xfail
def test_expected_failure(): assert False
"""
MODULE = 'import pytest\npytest.skip("the module", allow_module_level=True)\n'


def run(folder: Path, source: str, ci: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(source)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.skips", "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CI": ci, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout


def test_each_way_to_skip_is_a_failure_on_ci(tmp_path: Path) -> None:
    status, said = run(tmp_path, TESTS, "true")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 1 xfailed, 2 errors" in said
    status, said = run(tmp_path, TESTS, "")
    assert status == pytest.ExitCode.OK
    assert "4 skipped, 1 xfailed" in said


def test_a_module_that_is_skipped_is_a_failure_on_ci(tmp_path: Path) -> None:
    assert "1 error" in run(tmp_path, MODULE, "true")[1]
    assert "1 skipped" in run(tmp_path, MODULE, "")[1]
