"""kazoo, the Python client: its operations. Its sessions and recipes have files of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    ReconfigDisabledError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, make_digest_acl

from tests.support.kazoo_clients import DEADLINE_S, Inbox, KazooClients
from tests.support.server import SUPER_CREDENTIALS, Server, named_release


@pytest.fixture
def clients(server: Server) -> Iterator[KazooClients]:
    with KazooClients(server.address) as clients:
        yield clients


@pytest.fixture
def kazoo(clients: KazooClients) -> KazooClient:
    """One session."""
    return clients.connect()


def test_create_gives_the_path(kazoo: KazooClient, base: str) -> None:
    assert kazoo.create(f"{base}/a", b"data") == f"{base}/a"
    data, stat = kazoo.get(f"{base}/a")
    assert (data, stat.version, stat.dataLength) == (b"data", 0, 4)
    assert stat.owner_session_id is None


def test_create_with_its_stat(kazoo: KazooClient, base: str) -> None:
    path, stat = kazoo.create(f"{base}/a", b"data", include_data=True)
    assert path == f"{base}/a"
    assert stat == kazoo.get(path)[1]


def test_create_ephemeral(clients: KazooClients, kazoo: KazooClient, base: str) -> None:
    owner = clients.connect()
    owner.create(f"{base}/e", ephemeral=True)
    assert kazoo.exists(f"{base}/e").owner_session_id == owner.client_id[0]
    owner.stop()
    assert kazoo.exists(f"{base}/e") is None


@pytest.mark.parametrize("ephemeral", [False, True])
def test_create_sequence(kazoo: KazooClient, base: str, ephemeral: bool) -> None:
    names = [
        kazoo.create(f"{base}/n-", sequence=True, ephemeral=ephemeral, include_data=more)
        for more in (False, False, True)
    ]
    assert names[:2] == [f"{base}/n-0000000000", f"{base}/n-0000000001"]
    path, stat = names[2]
    assert path == f"{base}/n-0000000002"
    assert bool(stat.owner_session_id) == ephemeral


def test_create_with_missing_parents(kazoo: KazooClient, base: str) -> None:
    assert kazoo.create(f"{base}/a/b/c", b"x", makepath=True) == f"{base}/a/b/c"
    path = kazoo.create(f"{base}/d/e/", sequence=True, makepath=True)
    assert path == f"{base}/d/e/0000000000"


def test_create_keeps_null_and_empty_data_apart(kazoo: KazooClient, base: str) -> None:
    kazoo.create(f"{base}/null", None)
    kazoo.create(f"{base}/empty", b"")
    assert kazoo.get(f"{base}/null")[0] is None
    assert kazoo.get(f"{base}/empty")[0] == b""


def test_create_errors(kazoo: KazooClient, base: str) -> None:
    kazoo.create(f"{base}/e", ephemeral=True)
    for path, error in (
        (f"{base}/e", NodeExistsError),
        (f"{base}/no/child", NoNodeError),
        (f"{base}/e/child", NoChildrenForEphemeralsError),
        (f"{base}/\U0001f434", BadArgumentsError),
    ):
        with pytest.raises(error):
            kazoo.create(path)


def test_ensure_path_is_idempotent(kazoo: KazooClient, base: str) -> None:
    assert kazoo.ensure_path(f"{base}/a/b/c")
    assert kazoo.ensure_path(f"{base}/a/b/c")
    assert kazoo.get_children(f"{base}/a/b") == ["c"]


def test_exists(kazoo: KazooClient, base: str) -> None:
    assert kazoo.exists(f"{base}/a") is None
    kazoo.create(f"{base}/a")
    assert kazoo.exists(f"{base}/a") == kazoo.get(f"{base}/a")[1]


def test_set_and_get(kazoo: KazooClient, base: str) -> None:
    assert kazoo.set(base, b"one").version == 1
    assert kazoo.set(base, b"two", version=1).version == 2
    with pytest.raises(BadVersionError):
        kazoo.set(base, b"three", version=1)
    assert kazoo.get(base)[0] == b"two"
    for operation in (kazoo.get, lambda path: kazoo.set(path, b"")):
        with pytest.raises(NoNodeError):
            operation(f"{base}/missing")


def test_values_up_to_the_limit(kazoo: KazooClient, base: str) -> None:
    kazoo.set(base, bytes(1_000_000))
    assert len(kazoo.get(base)[0]) == 1_000_000
    with pytest.raises(ConnectionLoss):
        kazoo.set(base, bytes(1_100_000))
    assert kazoo.retry(kazoo.get, base)[1].version == 1


def test_get_children(kazoo: KazooClient, base: str) -> None:
    for name in "abc":
        kazoo.create(f"{base}/{name}")
    assert sorted(kazoo.get_children(base)) == ["a", "b", "c"]
    children, stat = kazoo.get_children(base, include_data=True)
    assert (sorted(children), stat.numChildren) == (["a", "b", "c"], 3)
    with pytest.raises(NoNodeError):
        kazoo.get_children(f"{base}/missing")


def test_delete(kazoo: KazooClient, base: str) -> None:
    kazoo.ensure_path(f"{base}/a/b")
    with pytest.raises(NotEmptyError):
        kazoo.delete(f"{base}/a")
    with pytest.raises(BadVersionError):
        kazoo.delete(f"{base}/a/b", version=3)
    kazoo.delete(f"{base}/a/b", version=0)
    with pytest.raises(NoNodeError):
        kazoo.delete(f"{base}/a/b")


def test_delete_recursively(kazoo: KazooClient, base: str) -> None:
    for leaf in ("a/b/c", "a/d", "a/b/e"):
        kazoo.ensure_path(f"{base}/{leaf}")
    kazoo.delete(f"{base}/a", recursive=True)
    assert kazoo.get_children(base) == []


def test_sync_echoes_the_path(kazoo: KazooClient, base: str) -> None:
    assert kazoo.sync(base) == base
    assert kazoo.sync("/missing") == "/missing"


def test_acls(kazoo: KazooClient, base: str) -> None:
    acls, stat = kazoo.get_acls(base)
    assert (acls, stat.aversion) == (OPEN_ACL_UNSAFE, 0)
    reader = make_digest_acl("ann", "secret", read=True, admin=True)
    assert kazoo.set_acls(base, [reader], version=0).aversion == 1
    with pytest.raises(NoAuthError):
        kazoo.get(base)
    kazoo.add_auth("digest", "ann:secret")
    assert kazoo.get_acls(base)[0] == [reader]
    with pytest.raises(NoAuthError):
        kazoo.set(base, b"")
    with pytest.raises(BadVersionError):
        kazoo.set_acls(base, OPEN_ACL_UNSAFE, version=0)
    with pytest.raises(InvalidACLError):
        kazoo.set_acls(base, [reader._replace(id=reader.id._replace(scheme="nonsense"))])


def test_add_auth_opens_what_its_creator_closed(
    clients: KazooClients, kazoo: KazooClient, base: str
) -> None:
    author = clients.connect(auth_data=[("digest", "ann:secret")], default_acl=CREATOR_ALL_ACL)
    author.create(f"{base}/private", b"mine")
    with pytest.raises(NoAuthError):
        kazoo.get(f"{base}/private")
    assert kazoo.add_auth("digest", "ann:secret") is True
    assert kazoo.get(f"{base}/private")[0] == b"mine"


def test_super_may_do_anything(kazoo: KazooClient, base: str) -> None:
    kazoo.set_acls(base, [make_digest_acl("nobody", "unknown", all=True)])
    with pytest.raises(NoAuthError):
        kazoo.get_acls(base)
    kazoo.add_auth("digest", SUPER_CREDENTIALS.decode())
    kazoo.set(base, b"done")


def test_an_unknown_scheme_fails_the_authentication(clients: KazooClients) -> None:
    client = clients.connect()
    with pytest.raises(AuthFailedError):
        client.add_auth("nonsense", "ann:secret")


def test_transaction_does_all(kazoo: KazooClient, base: str) -> None:
    kazoo.create(f"{base}/old")
    transaction = kazoo.transaction()
    transaction.check(base, version=0)
    transaction.create(f"{base}/new", b"x")
    transaction.create(f"{base}/n-", sequence=True, ephemeral=True)
    transaction.set_data(base, b"changed", version=0)
    transaction.delete(f"{base}/old", version=0)
    results = transaction.commit()
    assert results[:3] == [True, f"{base}/new", f"{base}/n-0000000002"]
    assert results[3] == kazoo.get(base)[1]._replace(numChildren=3, cversion=3)
    assert results[4] is True
    assert sorted(kazoo.get_children(base)) == ["n-0000000002", "new"]


def test_transaction_does_nothing_if_one_part_fails(kazoo: KazooClient, base: str) -> None:
    transaction = kazoo.transaction()
    transaction.create(f"{base}/a")
    transaction.check(base, version=7)
    transaction.delete(base)
    kinds = [type(result) for result in transaction.commit()]
    assert kinds == [RolledBackError, BadVersionError, RuntimeInconsistency]
    assert kazoo.get_children(base) == []


def test_many_requests_in_flight_are_answered_in_order(kazoo: KazooClient, base: str) -> None:
    # Links are called by a thread of kazoo's.
    finished = Inbox()
    results = []
    for number in range(500):
        result = kazoo.create_async(f"{base}/n-", sequence=True)
        result.rawlink(lambda _, at=number: finished.put(at))
        results.append(result)
    paths = [result.get(timeout=DEADLINE_S) for result in results]
    assert paths == [f"{base}/n-{number:010d}" for number in range(500)]
    assert [finished.take() for _ in results] == list(range(500))


def test_four_letter_words(kazoo: KazooClient) -> None:
    assert kazoo.command(b"ruok") == "imok"
    assert "Mode: standalone" in kazoo.command(b"srvr")


def test_server_version(server: Server, kazoo: KazooClient) -> None:
    assert kazoo.server_version() == named_release(server)


def test_reconfig_is_disabled(kazoo: KazooClient) -> None:
    with pytest.raises(ReconfigDisabledError):
        kazoo.reconfig(joining=None, leaving="1", new_members=None)
