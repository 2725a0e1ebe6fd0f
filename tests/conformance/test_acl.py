"""Which permission each operation asks for, and of which node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.conftest import Connect, is_lone_check_refused
from tests.conformance.differences import EXISTS_NEEDS_READ
from tests.support import requests as rq
from tests.support.records import OPEN, Acl, Code, Mode, Op, Perm, Request
from tests.support.server import SUPER_CREDENTIALS, Server
from tests.support.wire import Client

PERMISSIONS = (Perm.READ, Perm.WRITE, Perm.CREATE, Perm.DELETE, Perm.ADMIN)


def world(perms: int) -> tuple[Acl]:
    return (Acl(perms, "world", "anyone"),)


#: Operation on `{}/n`, the node whose ACL counts (the node or its parent), and what suffices.
CASES: dict[str, tuple[Callable[[str], Request], str, set[int]]] = {
    "create": (lambda n: rq.create(f"{n}/new"), "node", {Perm.CREATE}),
    "create2": (lambda n: rq.create2(f"{n}/new"), "node", {Perm.CREATE}),
    "createContainer": (lambda n: rq.create_container(f"{n}/new"), "node", {Perm.CREATE}),
    "createTTL": (lambda n: rq.create_ttl(f"{n}/new", 3_600_000), "node", {Perm.CREATE}),
    "create sequential": (lambda n: rq.create(f"{n}/new", flags=2), "node", {Perm.CREATE}),
    "create ephemeral": (lambda n: rq.create(f"{n}/new", flags=1), "node", {Perm.CREATE}),
    "delete": (rq.delete, "parent", {Perm.DELETE}),
    "getData": (rq.get_data, "node", {Perm.READ}),
    "setData": (lambda n: rq.set_data(n, b""), "node", {Perm.WRITE}),
    "getACL": (rq.get_acl, "node", {Perm.READ, Perm.ADMIN}),
    "setACL": (lambda n: rq.set_acl(n, OPEN), "node", {Perm.ADMIN}),
    "getChildren": (rq.get_children, "node", {Perm.READ}),
    "getChildren2": (rq.get_children2, "node", {Perm.READ}),
    "getAllChildrenNumber": (rq.get_all_children_number, "node", {Perm.READ}),
    "exists": (rq.exists, "node", {Perm.READ}),
    "sync": (rq.sync, "node", {0, *PERMISSIONS}),
    "addWatch": (lambda n: rq.add_watch(n, 0), "node", {0, *PERMISSIONS}),
    "setWatches": (lambda n: rq.set_watches(1 << 60, [n]), "node", {0, *PERMISSIONS}),
    "removeWatches": (lambda n: rq.remove_watches(n, 3), "node", set()),
}


@pytest.mark.parametrize("perms", [0, *PERMISSIONS])
@pytest.mark.parametrize("name", [name for name in CASES if name != "removeWatches"])
def test_each_operation_needs_its_permission(
    server: Server, client: Client, base: str, name: str, perms: int
) -> None:
    make, whose, enough = CASES[name]
    if name == "exists" and not EXISTS_NEEDS_READ.on(server):
        enough = {0, *PERMISSIONS}
    node = f"{base}/n"
    client.call(rq.create(node))
    assert client.call(rq.set_acl(node if whose == "node" else base, world(perms))).err == 0
    reply = client.call(make(node))
    assert reply.err == (Code.OK if perms in enough else Code.NO_AUTH)


@pytest.mark.parametrize("name", list(CASES))
def test_the_super_user_may_do_everything(connect: Connect, base: str, name: str) -> None:
    make, _, _ = CASES[name]
    node = f"{base}/n"
    client, root = connect(), connect()
    client.call(rq.create(node))
    client.call(rq.set_acl(node, world(0)))
    client.call(rq.set_acl(base, world(0)))
    assert root.call(rq.auth("digest", SUPER_CREDENTIALS)).err == Code.OK
    expected = Code.NO_WATCHER if name == "removeWatches" else Code.OK
    assert root.call(make(node)).err == expected


@pytest.mark.parametrize("perms", [0, *PERMISSIONS])
@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("create", Op.CREATE),
        ("delete", Op.DELETE),
        ("setData", Op.SET_DATA),
        ("check", Op.CHECK),
    ],
)
def test_a_multi_asks_the_same_permissions(
    client: Client, base: str, name: str, op: int, perms: int
) -> None:
    node = f"{base}/n"
    make, whose, enough = CASES.get(name, (rq.check, "node", {Perm.READ}))
    client.call(rq.create(node))
    client.call(rq.set_acl(node if whose == "node" else base, world(perms)))
    (result,) = client.call(rq.multi(make(node))).results
    assert (result.type, result.err) == ((op, 0) if perms in enough else (-1, Code.NO_AUTH))


@pytest.mark.parametrize("perms", [0, *PERMISSIONS])
def test_a_multi_read_asks_for_read_and_reports_each(client: Client, base: str, perms: int) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    client.call(rq.set_acl(node, world(perms)))
    code = 0 if perms == Perm.READ else Code.NO_AUTH
    results = client.call(
        rq.multi_read(rq.get_data(node), rq.get_data(base), rq.get_children(node))
    ).results
    assert [result.err for result in results] == [code, 0, code]


@pytest.mark.parametrize("perms", [0, *PERMISSIONS])
def test_a_lone_check_asks_for_read(server: Server, client: Client, base: str, perms: int) -> None:
    if is_lone_check_refused(server, client):
        return
    client.call(rq.set_acl(base, world(perms)))
    reply = client.call(rq.check(base, 7))
    assert reply.err == (Code.BAD_VERSION if perms == Perm.READ else Code.NO_AUTH)


def test_an_acl_is_of_one_node_and_not_inherited(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    client.call(rq.set_acl(base, world(Perm.ADMIN)))
    assert client.call(rq.get_data(base)).err == Code.NO_AUTH
    assert client.call(rq.get_data(f"{base}/n")).err == Code.OK
    assert client.call(rq.create(f"{base}/n/below")).err == Code.OK


def test_no_auth_comes_after_no_node_and_before_versions(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    client.call(rq.create(f"{base}/n/c"))
    client.call(rq.set_acl(base, world(Perm.ADMIN)))
    client.call(rq.set_acl(f"{base}/n", world(0)))
    for request, code in (
        (rq.delete(f"{base}/n", 9), Code.NO_AUTH),
        (rq.delete(f"{base}/none"), Code.NO_AUTH),
        (rq.delete(f"{base}/none/none"), Code.NO_NODE),
        (rq.create(f"{base}/n"), Code.NO_AUTH),
        (rq.create(f"{base}/\x01"), Code.NO_AUTH),
        (rq.set_data(f"{base}/n", b"", 9), Code.NO_AUTH),
        (rq.set_acl(f"{base}/n", OPEN, 9), Code.NO_AUTH),
        (rq.set_acl(f"{base}/n", (), 9), Code.INVALID_ACL),
        (rq.set_acl(f"{base}/none", ()), Code.INVALID_ACL),
    ):
        assert client.call(request).err == code, request


def test_taking_admin_away_from_oneself_is_final(client: Client, base: str) -> None:
    assert client.call(rq.set_acl(base, world(Perm.ALL & ~Perm.ADMIN))).err == Code.OK
    assert client.call(rq.set_acl(base, OPEN)).err == Code.NO_AUTH


@pytest.mark.parametrize("perms", [0, 1, 31, 32, 1 << 30, -1])
def test_permission_bits_come_back_as_written(client: Client, base: str, perms: int) -> None:
    acl = (Acl(perms, "world", "anyone"), Acl(Perm.ALL, "ip", "127.0.0.1"))
    assert client.call(rq.set_acl(base, acl)).err == Code.OK
    assert client.call(rq.get_acl(base)).acl == acl


def test_the_servers_own_nodes_have_their_acl(client: Client) -> None:
    assert client.call(rq.get_acl("/zookeeper")).acl == OPEN
    assert client.call(rq.get_acl("/zookeeper/quota")).acl == OPEN
    assert client.call(rq.get_acl("/zookeeper/config")).acl == world(Perm.READ)
    assert client.call(rq.set_data("/zookeeper/config", b"")).err == Code.NO_AUTH
    assert client.call(rq.create("/zookeeper/config/n")).err == Code.NO_AUTH


def test_owning_an_ephemeral_gives_no_rights(client: Client, base: str) -> None:
    path = f"{base}/e"
    client.call(rq.create(path, acl=world(Perm.ADMIN), flags=Mode.EPHEMERAL))
    assert client.call(rq.get_data(path)).err == Code.NO_AUTH
    assert client.call(rq.set_data(path, b"")).err == Code.NO_AUTH
