"""The three servers of the tests: members can be lost in every way, and all come back."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooState

from tests.support import requests as rq
from tests.support import wire
from tests.support.ensemble import ApacheEnsemble, choose_ports
from tests.support.kazoo_clients import KazooClients, watch_states
from tests.support.members import Ensemble, Member, move
from tests.support.paddock_cluster import PaddockCluster
from tests.support.records import Code, Mode
from tests.support.server import ServerMissingError

pytestmark = pytest.mark.judge

_numbers = itertools.count()


@pytest.fixture
def node() -> str:
    """The name of a node that does not exist yet."""
    return f"/ensemble{next(_numbers)}"


@pytest.fixture
def clients(several: Ensemble) -> Iterator[KazooClients]:
    with KazooClients(*several.addresses) as clients:
        yield clients


def write(member: Member, path: str) -> None:
    with wire.connect(member.address) as client:
        assert client.call(rq.create(path)).err == Code.OK
        client.close()


def has(member: Member, path: str) -> bool:
    """Whether a member has a node, once it knows all that the leader knows."""
    with wire.connect(member.address) as client:
        assert client.call(rq.sync("/")).err == Code.OK
        found = client.call(rq.exists(path)).err == Code.OK
        client.close()
        return found


def test_three_members_serve_one_tree(several: Ensemble, node: str) -> None:
    for member in several.members:
        assert member.is_serving()
        write(member, f"{node}-{member.number}")
    for member in several.members:
        assert all(has(member, f"{node}-{number}") for number in (1, 2, 3))


def test_one_leads_and_two_follow(several: Ensemble) -> None:
    leader = several.leader()
    assert leader.mode() == "leader"
    assert [member.mode() for member in several.followers()] == ["follower", "follower"]
    assert leader not in several.followers()


@pytest.mark.parametrize("end", [Member.kill, Member.stop], ids=["kill", "stop"])
def test_a_lost_leader_is_replaced_and_comes_back(several: Ensemble, node: str, end: type) -> None:
    lost = several.leader()
    write(lost, f"{node}-before")
    end(lost)
    assert not lost.alive
    assert not lost.is_serving()
    assert not lost.crashed
    leader = several.wait_quorum()
    assert leader is not lost
    write(leader, f"{node}-after")
    lost.start()
    assert lost.is_serving()
    assert has(lost, f"{node}-before")
    assert has(lost, f"{node}-after")
    assert several.wait_quorum() is leader


def test_a_paused_leader_is_replaced_and_follows_when_resumed(several: Ensemble, node: str) -> None:
    paused = several.leader()
    paused.pause()
    assert paused.alive
    assert not paused.is_serving()
    leader = several.wait_quorum()
    assert leader is not paused
    write(leader, node)
    paused.resume()
    assert several.wait_quorum() is leader
    assert paused.mode() == "follower"
    assert has(paused, node)


def test_the_majority_serves_while_a_follower_is_paused(several: Ensemble, node: str) -> None:
    leader = several.leader()
    paused, other = several.followers()
    paused.pause()
    assert several.wait_quorum() is leader
    write(other, node)
    paused.resume()
    several.wait_quorum()
    assert has(paused, node)


def test_one_member_alone_serves_nobody_and_two_do_again(
    ensemble: ApacheEnsemble, node: str
) -> None:
    first, second, last = ensemble.members
    with wire.connect(last.address) as client:
        first.kill()
        second.kill()
        client.wait_closed()
    assert not last.is_serving()
    with pytest.raises(AssertionError, match="no majority"):
        ensemble.wait_quorum()
    second.launch()
    ensemble.wait_quorum()
    write(last, node)
    assert has(second, node)


def test_a_member_of_a_cluster_serves_alone(cluster: PaddockCluster, node: str) -> None:
    first, second, last = cluster.members
    first.kill()
    second.kill()
    assert cluster.wait_quorum() is last
    write(last, node)
    second.start()
    assert has(second, node)


def test_a_cluster_without_etcd_serves_nobody_and_is_back_with_it(
    cluster: PaddockCluster, node: str
) -> None:
    for one in cluster.etcd:
        one.kill()
    for member in cluster.members:
        # It ends its lease by itself.
        with (
            contextlib.suppress(OSError, wire.ConnectionClosedError),
            wire.connect(member.address) as client,
        ):
            client.wait_closed()
        assert not member.is_serving()
    cluster.heal_etcd()
    cluster.wait_quorum()
    write(cluster.members[0], node)


def test_healing_brings_back_the_killed_and_the_paused(several: Ensemble) -> None:
    killed, paused, _ = several.members
    paused.pause()
    killed.kill()
    several.heal()
    assert all(member.is_serving() for member in several.members)


def test_a_renewed_ensemble_serves_and_has_forgotten_everything(
    several: Ensemble, node: str
) -> None:
    write(several.members[0], node)
    several.renew()
    assert all(member.is_serving() for member in several.members)
    assert not any(has(member, node) for member in several.members)


def test_a_raw_client_moves_its_session_to_another_member(several: Ensemble, node: str) -> None:
    first, *others = several.members
    with wire.connect(first.address) as client:
        seen = client.call(rq.create(node, flags=Mode.EPHEMERAL)).zxid
        first.kill()
        client.wait_closed()
    for member in others:
        with move(client, member, seen) as moved:
            assert moved.session_id == client.session_id
            assert moved.call(rq.get_ephemerals("/")).names == {node}
    with move(client, others[0], seen) as last:
        last.close()
    assert not has(others[1], node)


def test_a_kazoo_client_survives_the_kill_of_its_member(
    several: Ensemble, clients: KazooClients, node: str
) -> None:
    client = clients.connect(timeout=20.0)
    session, states = client.client_id, watch_states(client)
    client.create(node, ephemeral=True)
    port = client._connection._socket.getpeername()[1]
    several.at(port).kill()
    assert states.take() == KazooState.SUSPENDED
    assert states.take() == KazooState.CONNECTED
    assert client.client_id == session
    client.set(node, b"still ours")
    data, stat = client.get(node)
    assert (data, stat.ephemeralOwner) == (b"still ours", session[0])
    assert client._connection._socket.getpeername()[1] != port


@pytest.mark.usefixtures("shared_ensemble", "shared_cluster")
@pytest.mark.parametrize("kind", [ApacheEnsemble, PaddockCluster])
def test_a_failed_test_leaves_nothing_behind(kind: type[Ensemble]) -> None:
    own = kind()
    pids: list[int] = []

    def fail() -> None:
        with own:
            pids.extend(member.pid for member in own.members)
            killed, paused, _ = own.members
            paused.pause()
            killed.kill()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not own.folder.exists()


def test_an_ensemble_that_cannot_start_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ZOOKEEPER_JAR", str(tmp_path / "none.jar"))
    own = ApacheEnsemble()
    with pytest.raises(ServerMissingError, match="apt-get install"):
        own.__enter__()
    assert not own.folder.exists()


def test_no_two_ports_are_the_same_and_none_is_one_the_system_gives_away() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = [port for each in choose_ports() for port in (each.client, each.quorum, each.election)]
    assert len(set(ports)) == 9
    assert max(ports) < lowest
