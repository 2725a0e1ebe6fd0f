"""Curator's recipes and Apache's Java client: a program of named checks, a test for each of them.

The program is in the folder `curator` beside this file. It is compiled once a run, and runs once
for each server, on a server of its own because it asks for a restart. On a cluster it has all three
hosts, and each of them is killed in turn.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.conformance.conftest import SERVERS
from tests.support import named_checks
from tests.support.curator import SOURCES
from tests.support.paddock_cluster import PaddockCluster, PaddockMember
from tests.support.server import Server

NAMES: Final = [
    f"{source.stem}.{name}"
    for source in SOURCES
    for name in named_checks.names([source], r"@Check\b[^{;]*?\bvoid (\w+)\(")
]


@pytest.fixture(scope="module")
def report(curator: list[str], server: Server) -> named_checks.Report:
    """What the program said about a server of this kind."""
    if isinstance(server, PaddockMember):
        with PaddockCluster() as cluster:
            command = [*curator, "Checks", cluster.hosts]
            return named_checks.run(command, {"restart the server": cluster.kill_in_turn})
    with SERVERS[server.name]() as own:
        command = [*curator, "Checks", own.hosts]
        return named_checks.run(command, {"restart the server": own.restart})


@pytest.mark.judge
@pytest.mark.parametrize("name", NAMES)
def test_curator_finds_what_it_expects(report: named_checks.Report, name: str) -> None:
    report.demand(name)


@pytest.mark.judge
def test_every_check_of_the_program_is_a_test(report: named_checks.Report) -> None:
    assert set(report.outcomes) <= set(NAMES)
