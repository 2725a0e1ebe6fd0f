"""OpenStack's tooz on Paddock: its own tests, and members that lose Paddock or their lives."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from tests.applications import environment as env
from tests.applications.environment import block, observe, wait_until
from tests.applications.programs import Program
from tests.support.documents import Page, is_shown
from tests.support.judges import skipped_where_missing
from tests.support.paddock_server import PaddockServer

pytestmark = [pytest.mark.long, pytest.mark.judge]

PAGE: Final = Page("docs/how-to/run-applications.md")

# Those that need a server, and those that need none. The others are for other services.
_SUITES: Final = ("coordination", "hashring", "partitioner", "retry", "utils")
# The tests of `coordination` alone, of which some are skipped.
_AT_LEAST: Final = 80
# Why tooz skips some of its tests: what its driver for ZooKeeper does not have, or does not need.
_SKIPPED: Final = {
    "not implemented",
    "Test not applicable (heartbeating not required)",
    "This driver is not based on timeout",
    "This test only works with coordinators that have the ability to destroy groups.",
}


@pytest.fixture(scope="module")
def programs() -> Path:
    with skipped_where_missing():
        return env.installed("tooz")


@pytest.fixture
def folder(paddock: PaddockServer, tmp_path: Path) -> Path:
    """Return a folder with the program of the page."""
    text = block(PAGE, "member.py").replace("127.0.0.1:2181", paddock.hosts)
    (tmp_path / "member.py").write_text(text)
    return tmp_path


def test_its_own_tests_pass(programs: Path, paddock: PaddockServer, tmp_path: Path) -> None:
    suites = [f"tooz.tests.test_{suite}" for suite in _SUITES]
    done = subprocess.run(
        [str(programs / "python"), "-m", "unittest", "--verbose", *suites],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={**env.variables(programs), "TOOZ_TEST_URL": f"zookeeper://{paddock.hosts}"},
        timeout=env.DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    ran = re.search(r"^Ran (\d+) tests in (\S+)s", done.stdout, flags=re.MULTILINE)
    assert ran is not None, done.stdout[-5000:]
    assert int(ran[1]) >= _AT_LEAST
    skipped = re.findall(r"skipped ['\"](.*)['\"]$", done.stdout, flags=re.MULTILINE)
    assert set(skipped) <= _SKIPPED
    observe("tooz", f"{ran[1]} tests of its own in {ran[2]} s, {len(skipped)} of them skipped")


def test_the_program_of_the_page_does_what_it_shows(programs: Path, folder: Path) -> None:
    (console,) = (one for one in PAGE.every_block() if one.title == "Terminal 3")
    ((command, shown),) = console.commands()
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=env.variables(programs),
        timeout=env.DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert is_shown(shown, done.stdout)


def test_a_lock_outlives_paddock_and_is_handed_over_when_its_holder_is_killed(
    programs: Path, folder: Path, paddock: PaddockServer
) -> None:
    def member(name: str) -> Program:
        return Program(shlex.split(f"python member.py {name}"), programs, folder, name)

    with member("ann") as holder:
        holder.wait_said("has the lock")
        with member("bob") as waiter:
            waiter.wait_said("waits")
            paddock.kill()
            paddock.start()

            def is_owner() -> bool:
                # What is asked while the connection is lost may be answered with False.
                before = holder.said().count("\n")
                holder.type("")
                wait_until(lambda: holder.said().count("\n") > before, "ann answers", holder.said)
                return holder.said().endswith("True ann bob\n")

            wait_until(is_owner, "ann is owner again", holder.said)
            assert "has the lock" not in waiter.said()
            began = time.monotonic()
            holder.kill()
            waiter.wait_said("has the lock")
            observe(
                "tooz", f"handed over {time.monotonic() - began:.1f} s after the kill; timeout=10"
            )
            waiter.type("")
            waiter.wait_said("True bob")


def test_every_block_of_the_page_runs_here_or_beside() -> None:
    titles = {"a.yml", "As root", "tasks.py", "Terminal 1", "send.py", "Terminal 2"}
    assert {one.title for one in PAGE.every_block()} == titles | {"member.py", "Terminal 3"}
