"""kazoo's sessions and watches: what it notices when connections break and sessions end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NoAuthError
from kazoo.protocol.states import EventType, KeeperState
from kazoo.security import CREATOR_ALL_ACL

from tests.support import wire
from tests.support.kazoo_clients import DEADLINE_S, Inbox, KazooClients, watch_states
from tests.support.server import Server

#: A busy machine may keep a client from pinging for a second.
IDLE_SESSION_S = 3.0


@pytest.fixture
def clients(server: Server) -> Iterator[KazooClients]:
    with KazooClients(server.address) as clients:
        yield clients


@pytest.fixture
def kazoo(clients: KazooClients) -> KazooClient:
    """One session."""
    return clients.connect()


@pytest.fixture
def other(clients: KazooClients) -> KazooClient:
    """A second session."""
    return clients.connect()


def test_a_client_sees_itself_connect_and_close(clients: KazooClients) -> None:
    client = clients.prepare()
    states = watch_states(client)
    client.start(timeout=DEADLINE_S)
    assert states.take() == KazooState.CONNECTED
    client.stop()
    assert states.take() == KazooState.LOST
    assert states.empty()


def test_a_client_that_may_read_only_may_write(clients: KazooClients, base: str) -> None:
    client = clients.connect(read_only=True)
    assert client.client_state == KeeperState.CONNECTED
    client.set(base, b"written")


def test_a_client_may_restart(clients: KazooClients, kazoo: KazooClient, base: str) -> None:
    client = clients.connect()
    first = client.client_id
    client.create(f"{base}/e", ephemeral=True)
    client.restart()
    assert client.client_id != first
    assert kazoo.exists(f"{base}/e") is None


def test_a_chroot_is_invisible(clients: KazooClients, kazoo: KazooClient, base: str) -> None:
    kazoo.create(f"{base}/root")
    inside = clients.connect(chroot=f"{base}/root")
    assert inside.create("/a") == "/a"
    assert inside.create("/n-", sequence=True) == "/n-0000000001"
    assert inside.sync("/a") == "/a"
    events = Inbox()
    inside.exists("/a", watch=events.put)
    transaction = inside.transaction()
    transaction.create("/b")
    transaction.delete("/a")
    transaction.commit()
    assert events.take().path == "/a"
    assert sorted(kazoo.get_children(f"{base}/root")) == ["b", "n-0000000001"]


def test_one_shot_watches_tell_each_kind_of_event(
    kazoo: KazooClient, other: KazooClient, base: str
) -> None:
    events = Inbox()
    path = f"{base}/a"
    kazoo.exists(path, watch=events.put)
    other.create(path)
    assert tuple(events.take()) == (EventType.CREATED, KeeperState.CONNECTED, path)
    kazoo.get(path, watch=events.put)
    other.set(path, b"x")
    assert tuple(events.take()) == (EventType.CHANGED, KeeperState.CONNECTED, path)
    kazoo.get_children(path, watch=events.put)
    other.create(f"{path}/b")
    assert tuple(events.take()) == (EventType.CHILD, KeeperState.CONNECTED, path)
    kazoo.exists(f"{path}/b", watch=events.put)
    other.delete(f"{path}/b")
    assert tuple(events.take()) == (EventType.DELETED, KeeperState.CONNECTED, f"{path}/b")
    assert events.empty()


def test_a_data_watch_follows_a_node_through_its_life(
    kazoo: KazooClient, other: KazooClient, base: str
) -> None:
    seen = Inbox()
    path = f"{base}/a"

    def follow(data: bytes | None, stat: object, event: object) -> None:
        seen.put(data)

    kazoo.DataWatch(path, follow)
    assert seen.take() is None
    other.create(path, b"one")
    assert seen.take() == b"one"
    other.set(path, b"two")
    assert seen.take() == b"two"
    other.delete(path)
    assert seen.take() is None
    other.create(path, b"three")
    assert seen.take() == b"three"


def test_a_children_watch_follows_until_told_to_stop(
    kazoo: KazooClient, other: KazooClient, base: str
) -> None:
    seen = Inbox()

    def follow(children: list[str]) -> bool:
        seen.put(sorted(children))
        return len(children) < 2

    kazoo.ChildrenWatch(base, follow)
    assert seen.take() == []
    other.create(f"{base}/a")
    assert seen.take() == ["a"]
    other.create(f"{base}/b")
    assert seen.take() == ["a", "b"]
    other.create(f"{base}/c")
    kazoo.sync(base)
    assert seen.empty()


def test_a_broken_connection_is_made_again_for_the_same_session(
    clients: KazooClients, kazoo: KazooClient, base: str
) -> None:
    kazoo.create(f"{base}/e", ephemeral=True)
    before = kazoo.client_id
    states = watch_states(kazoo)
    for _ in range(3):
        clients.cut(kazoo)
        assert states.take() == KazooState.SUSPENDED
        assert states.take() == KazooState.CONNECTED
        assert kazoo.exists(f"{base}/e").owner_session_id == before[0]
    assert kazoo.client_id == before


def test_watchers_learn_what_changed_while_the_connection_was_broken(
    clients: KazooClients, kazoo: KazooClient, other: KazooClient, base: str
) -> None:
    data, children = Inbox(), Inbox()
    kazoo.DataWatch(base, lambda value, _stat: data.put(value))
    kazoo.ChildrenWatch(base, children.put)
    assert (data.take(), children.take()) == (b"", [])
    states = watch_states(kazoo)
    clients.cut_off(kazoo)
    assert states.take() == KazooState.SUSPENDED
    other.set(base, b"changed")
    other.create(f"{base}/a")
    clients.let_back(kazoo)
    assert states.take() == KazooState.CONNECTED
    assert (data.take(), children.take()) == (b"changed", ["a"])
    other.set(base, b"again")
    assert data.take() == b"again"


def test_credentials_are_given_again_on_a_new_connection(
    clients: KazooClients, kazoo: KazooClient, other: KazooClient, base: str
) -> None:
    kazoo.add_auth("digest", "ann:secret")
    kazoo.create(f"{base}/private", b"mine", acl=CREATOR_ALL_ACL)
    states = watch_states(kazoo)
    clients.cut(kazoo)
    states.take_until(lambda state: state == KazooState.CONNECTED)
    assert kazoo.get(f"{base}/private")[0] == b"mine"
    with pytest.raises(NoAuthError):
        other.get(f"{base}/private")


def test_a_session_moves_to_another_client(
    clients: KazooClients, kazoo: KazooClient, base: str
) -> None:
    kazoo.create(f"{base}/e", ephemeral=True)
    session = kazoo.client_id
    clients.cut_off(kazoo)
    heir = clients.connect(client_id=session)
    assert heir.client_id == session
    assert heir.exists(f"{base}/e").owner_session_id == session[0]


def test_a_session_that_stays_away_expires_and_others_see_it(
    clients: KazooClients, other: KazooClient, base: str
) -> None:
    client = clients.connect(timeout=0.5)
    first = client.client_id
    client.create(f"{base}/e", ephemeral=True)
    events = Inbox()
    assert other.exists(f"{base}/e", watch=events.put) is not None
    states = watch_states(client)
    clients.cut_off(client)
    assert states.take() == KazooState.SUSPENDED
    assert events.take().type == EventType.DELETED
    clients.let_back(client)
    assert states.take() == KazooState.LOST
    assert states.take() == KazooState.CONNECTED
    assert client.client_id[0] != first[0]
    client.create(f"{base}/e", ephemeral=True)


def test_a_session_closed_by_somebody_else_is_lost(
    server: Server, clients: KazooClients, kazoo: KazooClient, base: str
) -> None:
    first, password = kazoo.client_id
    states = watch_states(kazoo)
    with wire.connect(server.address, session_id=first, password=password) as thief:
        assert thief.session_id == first
        thief.close()
    states.take_until(lambda state: state == KazooState.LOST)
    states.take_until(lambda state: state == KazooState.CONNECTED)
    assert kazoo.client_id[0] != first


def test_an_idle_session_lives_on_pings(
    clients: KazooClients, other: KazooClient, base: str
) -> None:
    quiet = clients.connect(timeout=IDLE_SESSION_S)
    quiet.create(f"{base}/quiet", ephemeral=True)
    brief = clients.connect(timeout=IDLE_SESSION_S)
    brief.create(f"{base}/brief", ephemeral=True)
    states = watch_states(quiet)
    # The end of a session as short as the quiet one shows that enough time has passed.
    for _ in range(2):
        events = Inbox()
        other.exists(f"{base}/brief", watch=events.put)
        clients.cut_off(brief)
        assert events.take().type == EventType.DELETED
        brief = clients.connect(timeout=IDLE_SESSION_S)
        brief.create(f"{base}/brief", ephemeral=True)
    assert other.exists(f"{base}/quiet") is not None
    assert states.empty()
