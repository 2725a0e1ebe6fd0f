"""Apache's C client: a program of named checks, a test for each of them.

The program is in the folder `c_client` beside this file. It is compiled once a run, and runs once
for each server, on a server of its own because it asks for a restart. Beside it a client of ours
has exact sessions, which it must not notice.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from paddock.testing import FaultProxy
from tests.conformance.conftest import another
from tests.support import named_checks
from tests.support.exact_neighbour import ANSWER_BYTES, ExactNeighbour, answers
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server

SOURCES: Final = sorted(Path(__file__).with_name("c_client").glob("*.c"))
HEADER: Final = Path("/usr/include/zookeeper/zookeeper.h")

NAMES: Final = named_checks.names(SOURCES, r"^CHECK\((\w+)\)")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the program."""
    if not HEADER.exists() or shutil.which("gcc") is None:
        missing = "the C client is missing (Debian: apt-get install libzookeeper-mt-dev gcc)"
        pytest.skip(missing)
    made = tmp_path_factory.mktemp("c_client") / "checks"
    options = ["-std=c11", "-D_GNU_SOURCE", "-DTHREADED", "-O1", "-Wall", "-Wextra", "-Werror"]
    compiled = subprocess.run(
        ["gcc", *options, "-o", made, *SOURCES, "-lzookeeper_mt", "-lpthread"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert compiled.returncode == 0, compiled.stdout
    return made


@pytest.fixture(scope="module")
def report(program: Path, server: Server) -> named_checks.Report:
    """What the program said about a server of this kind."""
    with (
        another(server) as own,
        FaultProxy(own.address) as direct,
        FaultProxy(own.address) as relay,
        ExactNeighbour(own.address) as neighbour,
    ):
        assert neighbour.is_exact == isinstance(own, PaddockServer)
        requests = {
            "restart the server": own.restart,
            "cut the relay": relay.cut,
            "close the relay": relay.refuse,
            "open the relay": relay.heal,
            "hand over an exact session": neighbour.hand_over,
            "take the exact session back": neighbour.take_back,
        }
        found = named_checks.run([program, direct.hosts, relay.hosts], requests)
        found.handshakes = answers(direct, relay)
        return found


@pytest.mark.judge
@pytest.mark.parametrize("name", NAMES)
def test_the_c_client_finds_what_it_expects(report: named_checks.Report, name: str) -> None:
    report.demand(name)


@pytest.mark.judge
def test_every_check_of_the_program_is_a_test(report: named_checks.Report) -> None:
    assert set(report.outcomes) <= set(NAMES)


@pytest.mark.judge
def test_no_handshake_is_answered_with_a_byte_more(report: named_checks.Report) -> None:
    assert len(report.handshakes) > len(NAMES)
    assert {len(answer) for answer in report.handshakes} == {ANSWER_BYTES}
