"""Apache's C shell `cli_mt`: a process and a session for each command."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.server import Server

PROGRAM: Final = Path("/usr/lib/zookeeper/bin/cli_mt")
DEADLINE_S: Final = 20.0

#: Its log, what it says about itself and the connection, and what differs from run to run.
NOISE: Final = re.compile(
    r"\d{4}-\d\d-\d\d .*|Batch mode: .*|Creating \[.*|Watcher SESSION_EVENT .*"
    r"|Got a new session id: .*|time = .*|[cm]time ?=.*|[cm]zxid=.*|"
)


@pytest.fixture(autouse=True)
def program() -> None:
    """Look for the shell; without it these tests are skipped, on CI they fail."""
    if not PROGRAM.exists():
        missing = "the C shell is missing (Debian: apt-get install zookeeper-bin)"
        pytest.skip(missing)


def run(server: Server, command: str) -> list[str]:
    """Run one command; return what it prints about its outcome."""
    finished = subprocess.run(
        [PROGRAM, "-h", f"{server.host}:{server.port}", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    lines = [line.strip() for line in finished.stdout.splitlines()]
    return [
        re.sub(r"^(ephemeralOwner) = (?!0$)[0-9a-f]+$", r"\1 = #", line)
        for line in lines
        if not NOISE.fullmatch(line)
    ]


def stat(version: int, owner: str = "0") -> list[str]:
    return [f"version={version}\taversion=0", f"ephemeralOwner = {owner}"]


def test_the_c_shell_creates_every_kind_of_node(server: Server, base: str) -> None:
    for command, path, outcome in (
        ("create {}", "a", []),
        ("create2 {}", "b", stat(0)),
        ("create +s {}", "n-", []),
        ("create2 +es {}", "n-", stat(0, owner="#")),
        ("create2 +c {}", "box", stat(0)),
        ("create +t=60000 {}", "ttl", []),
    ):
        asked = f"{base}/{path}"
        printed = run(server, command.format(asked))
        assert printed[0] == f"[{asked}]: rc = 0"
        assert re.fullmatch(rf"name = {asked}(\d{{10}})?", printed[1])
        assert printed[2:] == outcome
    # The ephemeral one went with its session.
    children = ["a", "b", "box", "n-0000000002", "ttl"]
    printed = run(server, f"ls {base}")
    assert (printed[0], sorted(printed[1:])) == (f"{base}: rc = 0", children)


def test_the_c_shell_reads_and_writes(server: Server, base: str) -> None:
    assert run(server, f"set {base} more") == [f"{base}: rc = 0 Stat:", *stat(1)]
    value = [f"{base}: rc = 0", "value_len = 4", "more", "Stat:", *stat(1)]
    assert run(server, f"get {base}") == value
    assert run(server, f"ls2 {base}") == [f"{base}: rc = 0", *stat(1)]
    assert run(server, f"sync {base}") == [f"[{base}]: rc = 0", f"name = {base}"]
    run(server, f"create {base}/child")
    assert run(server, f"delete {base}") == [f"{base}: rc = -111"]
    assert run(server, f"delete {base}/child") == [f"{base}/child: rc = 0"]


def test_the_c_shell_is_told_what_is_wrong(server: Server, base: str) -> None:
    missing = f"{base}/missing"
    assert run(server, f"create {missing}/child") == [f"[{missing}/child]: rc = -101"]
    assert run(server, f"create {base}") == [f"[{base}]: rc = -110"]
    assert run(server, f"delete {missing}") == [f"{missing}: rc = -101"]
    assert run(server, f"get {missing}")[0] == f"{missing}: rc = -101"
    assert "rc = -123" in run(server, "reconfig -remove 1")[0]
