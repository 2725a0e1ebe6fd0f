"""Patroni with three PostgreSQL servers on Paddock: what is acknowledged stays, and one leads.

A writer adds rows all the time, each by a connection of its own. Rows are acknowledged in
synchronous mode, so each of them has to be there in the end, after any kill.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

import pytest

from paddock.sync import connect
from tests.applications.environment import DEADLINE_S, observe, wait_until
from tests.applications.patroni_cluster import Cluster, Node, QueryError, running
from tests.support.judges import skipped_where_missing
from tests.support.paddock_server import PaddockServer

pytestmark = [pytest.mark.long, pytest.mark.judge]

_ROWS: Final = 10
# No row is tried twice, so that one which was refused and is there does no harm.
_NUMBERS: Final = itertools.count(1)


class Writer:
    """Adds rows by way of the primary, and notes which ones were acknowledged."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self.acknowledged: list[int] = []
        self.refused = 0
        #: The longest time between two acknowledgements.
        self.longest_gap_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()

    def wait_rows(self) -> None:
        """Wait until some more rows have been acknowledged."""
        goal = len(self.acknowledged) + _ROWS
        story = self._cluster.story
        wait_until(lambda: len(self.acknowledged) >= goal, "rows are acknowledged", story)

    def _run(self) -> None:
        last = time.monotonic()
        node = self._cluster.nodes[0]
        while not self._over.is_set():
            row = next(_NUMBERS)
            try:
                node.ask(self._cluster.writable, f"insert into rows values ({row})")
            except QueryError:
                self.refused += 1
                # A node that is down refuses at once.
                self._over.wait(0.2)
                continue
            now = time.monotonic()
            self.longest_gap_s = max(self.longest_gap_s, now - last)
            last = now
            self.acknowledged.append(row)


@pytest.fixture(scope="module")
def cluster(paddock: PaddockServer) -> Iterator[Cluster]:
    with skipped_where_missing(), running(paddock.address) as nodes:
        nodes.leader().query("create table rows (n bigint primary key)")
        yield nodes


@pytest.fixture
def writer(cluster: Cluster) -> Iterator[Writer]:
    cluster.leader().query("truncate rows")
    with Writer(cluster) as one:
        one.wait_rows()
        yield one


def timeline(node: Node) -> int:
    """Return how often a primary was promoted in the history of this node."""
    found = node.status()["timeline"]
    assert isinstance(found, int)
    return found


def holder(paddock: PaddockServer, cluster: Cluster) -> tuple[str, int]:
    """Return who holds the leader's node, as Paddock says, and in which session."""
    with connect(paddock.hosts) as client:
        data, stat = client.get(f"/service/{cluster.scope}/leader")
    return data.decode(), stat.ephemeral_owner


def missing(writer: Writer, node: Node) -> set[int]:
    """Return the rows that were acknowledged and that a node does not have."""
    # In this order: the writer goes on.
    wanted = set(writer.acknowledged)
    found = {int(line) for line in node.query("select n from rows").splitlines()}
    return wanted - found


def assert_nothing_is_lost(
    paddock: PaddockServer, cluster: Cluster, writer: Writer, leader: Node
) -> None:
    """Check that all is well again with this leader, and that every row is on every node."""
    writer.wait_rows()
    assert cluster.leader() is leader
    assert holder(paddock, cluster)[0] == leader.name
    assert missing(writer, leader) == set()
    replicas = [node for node in cluster.nodes if node is not leader]
    wait_until(lambda: not any(missing(writer, one) for one in replicas), "replicas catch up")


def test_patronictl_shows_who_leads(cluster: Cluster) -> None:
    leader = cluster.leader()
    for node in cluster.nodes:
        rows = node.control("list").splitlines()
        (found,) = (row for row in rows if "Leader" in row)
        assert found.split("|")[1].strip() == leader.name


def test_a_leader_that_is_killed_is_followed_by_one_other(
    paddock: PaddockServer, cluster: Cluster, writer: Writer
) -> None:
    before = cluster.leader()
    promoted = timeline(before)
    began = time.monotonic()
    before.kill()
    after = cluster.successor(before)
    observe("patroni", f"a new primary {time.monotonic() - began:.1f} s after the kill")
    writer.wait_rows()
    before.start()
    assert_nothing_is_lost(paddock, cluster, writer, after)
    # Nobody was promoted in between.
    assert timeline(after) == promoted + 1
    rows = f"{len(writer.acknowledged)} rows acknowledged, {writer.refused} attempts refused"
    observe("patroni", f"{rows}, longest gap {writer.longest_gap_s:.1f} s")


def test_a_leader_that_was_paused_beyond_its_session_follows_its_successor(
    paddock: PaddockServer, cluster: Cluster, writer: Writer
) -> None:
    before = cluster.leader()
    promoted = timeline(before)
    began = time.monotonic()
    before.pause()
    try:
        after = cluster.successor(before)
        observe("patroni", f"a new primary {time.monotonic() - began:.1f} s after the pause")
        writer.wait_rows()
    finally:
        before.resume()
    assert_nothing_is_lost(paddock, cluster, writer, after)
    assert timeline(after) == promoted + 1


def test_a_leader_that_is_cut_off_from_paddock_stops_before_another_leads(
    paddock: PaddockServer, cluster: Cluster, writer: Writer
) -> None:
    before = cluster.leader()
    promoted = timeline(before)
    began = time.monotonic()
    before.way_to_paddock.blackhole()
    try:
        after = cluster.successor(before)
        assert not before.is_primary()
        observe("patroni", f"a new primary {time.monotonic() - began:.1f} s after the cut")
        writer.wait_rows()
    finally:
        before.way_to_paddock.heal()
    assert_nothing_is_lost(paddock, cluster, writer, after)
    assert timeline(after) == promoted + 1


def test_the_leader_stays_while_paddock_is_killed_and_comes_back(
    paddock: PaddockServer, cluster: Cluster, writer: Writer
) -> None:
    before = cluster.leader()
    promoted = timeline(before)
    held = holder(paddock, cluster)
    began = time.monotonic()
    paddock.kill()
    paddock.start()
    away_s = time.monotonic() - began
    observe("patroni", f"Paddock was away for {away_s:.1f} s")
    if away_s > cluster.retry_timeout_s:
        pytest.skip("on this machine, Paddock takes longer to start than Patroni waits for it")
    assert_nothing_is_lost(paddock, cluster, writer, before)
    # In the session that it had before.
    assert holder(paddock, cluster) == held
    assert timeline(before) == promoted
    observe("patroni", f"the leader stayed; longest gap {writer.longest_gap_s:.1f} s")


def test_a_primary_without_paddock_stops_and_one_leads_when_it_is_back(
    paddock: PaddockServer, cluster: Cluster, writer: Writer
) -> None:
    cluster.leader()
    began = time.monotonic()
    paddock.kill()
    try:
        wait_until(
            lambda: all(one.is_read_only() for one in cluster.nodes),
            "all nodes are read-only",
            cluster.story,
        )
        observe("patroni", f"read-only {time.monotonic() - began:.1f} s after Paddock was killed")
    finally:
        back = time.monotonic()
        paddock.start()
    assert_nothing_is_lost(paddock, cluster, writer, cluster.leader())
    observe("patroni", f"all well {time.monotonic() - back:.1f} s after Paddock was started again")


def test_with_failsafe_mode_the_primary_goes_on_without_paddock(
    paddock: PaddockServer, cluster: Cluster, writer: Writer
) -> None:
    before = cluster.leader()
    before.configure({"failsafe_mode": True})
    with connect(paddock.hosts) as client:
        members = f"/service/{cluster.scope}/failsafe"
        wait_until(lambda: client.exists(members) is not None, "the mode is on", cluster.story)
    promoted = timeline(before)
    paddock.kill()
    try:
        active = "failsafe_mode_is_active"
        wait_until(lambda: bool(before.status().get(active)), active, cluster.story)
        writer.wait_rows()
        assert cluster.primaries() == [before]
    finally:
        paddock.start()
    assert_nothing_is_lost(paddock, cluster, writer, before)
    assert timeline(before) == promoted
    observe("patroni", f"with failsafe_mode, longest gap {writer.longest_gap_s:.1f} s")
