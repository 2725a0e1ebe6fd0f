"""pytest as our users run it: in a process and a folder of its own, on a file of tests.

run = run_pytest(tmp_path, source)
assert run.outcomes == {"test_one": "passed"}
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.support.documents import DEADLINE_S

# As strict as it gets: whatever we leave open or is deprecated fails a test.
STRICT: Final = """
    [pytest]
    addopts = --strict-markers --strict-config -p no:cacheprovider
    filterwarnings = error
"""
STRICT_ASYNCIO: Final = f"""{STRICT}
    asyncio_default_fixture_loop_scope = function
"""
# The plugins that our own environment has; those of the user come back in with `plugins`.
_OTHERS: Final = ("asyncio", "anyio", "xdist", "hypothesispytest", "paddock")


@dataclass(frozen=True, slots=True)
class PytestRun:
    """What came of it: each test by its name, and what pytest wrote."""

    outcomes: dict[str, str]
    output: str

    @property
    def passed(self) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome == "passed"]


def run_pytest(
    folder: Path,
    source: str,
    *options: str,
    settings: str = STRICT,
    plugins: tuple[str, ...] = ("paddock",),
    others: Sequence[str] = (),
) -> PytestRun:
    """Run a file of tests, or several, with these plugins and no others."""
    for number, text in enumerate((source, *others)):
        file = folder / f"test_users_{number}.py"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    (folder / "pytest.ini").write_text(textwrap.dedent(settings), encoding="utf-8")
    report = folder / "report.xml"
    without = [option for name in _OTHERS if name not in plugins for option in ("-p", f"no:{name}")]
    ours = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", f"--junitxml={report}", *without, *options],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in ours},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    output = result.stdout + result.stderr
    assert report.exists(), output
    return PytestRun(_outcomes(report), output)


def _outcomes(report: Path) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        # A test that has passed may still fail afterwards, and is listed twice then.
        troubles = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        if troubles or case.attrib["name"] not in outcomes:
            outcomes[case.attrib["name"]] = troubles[0] if troubles else "passed"
    return outcomes
