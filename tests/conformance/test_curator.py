"""Curator's recipes and Apache's Java client: a program of named checks, a test for each of them.

The program is in the folder `curator` beside this file. It is compiled once a run, and runs once
for each server, on a server of its own because it asks for a restart. On a cluster it has all three
hosts, and each of them is killed in turn. Beside it a client of ours has exact sessions, which it
must not notice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import pytest

from paddock.testing import FaultProxy
from tests.conformance.conftest import SERVERS
from tests.support import named_checks
from tests.support.curator import SOURCES
from tests.support.exact_neighbour import ANSWER_BYTES, ExactNeighbour, answers
from tests.support.paddock_cluster import PaddockCluster, PaddockMember
from tests.support.paddock_server import PaddockServer
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
            return _run(curator, cluster.addresses, cluster.kill_in_turn, is_exact=True)
    with SERVERS[server.name]() as own:
        is_exact = isinstance(own, PaddockServer)
        return _run(curator, [own.address], own.restart, is_exact=is_exact)


def _run(
    curator: list[str],
    addresses: list[tuple[str, int]],
    restart: Callable[[], None],
    *,
    is_exact: bool,
) -> named_checks.Report:
    with contextlib.ExitStack() as stack:
        ways = [stack.enter_context(FaultProxy(address)) for address in addresses]
        neighbour = stack.enter_context(ExactNeighbour(addresses[0]))
        assert neighbour.is_exact == is_exact

        def restart_one() -> None:
            # A connection that Apache accepts while it starts may never be answered.
            ways[0].refuse()
            restart()
            ways[0].heal()

        requests = {
            "restart the server": restart_one if len(ways) == 1 else restart,
            "hand over an exact session": neighbour.hand_over,
            "take the exact session back": neighbour.take_back,
        }
        hosts = ",".join(way.hosts for way in ways)
        found = named_checks.run([*curator, "Checks", hosts], requests)
        found.handshakes = answers(*ways)
        return found


@pytest.mark.judge
@pytest.mark.parametrize("name", NAMES)
def test_curator_finds_what_it_expects(report: named_checks.Report, name: str) -> None:
    report.demand(name)


@pytest.mark.judge
def test_every_check_of_the_program_is_a_test(report: named_checks.Report) -> None:
    assert set(report.outcomes) <= set(NAMES)


@pytest.mark.judge
def test_no_handshake_is_answered_with_a_byte_more(report: named_checks.Report) -> None:
    assert len(report.handshakes) > len(NAMES)
    assert {len(answer) for answer in report.handshakes} == {ANSWER_BYTES}
