"""No ACL is bypassed: every operation, by every route, with each permission alone and all but each.

The ground is three nodes, one below the other: `above`, `node` and `child`. Ann has some rights on
the first two, and nobody has any on the third; the superuser made them and looks at them before and
after. Whatever Ann was refused must have changed nothing, shown nothing, and set no watch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from paddock.protocol import operations
from tests.conformance.conftest import Connect, is_delete_container_refused, is_lone_check_refused
from tests.conformance.differences import (
    DELETE_CONTAINER_NEEDS_DELETE,
    DELETE_CONTAINER_WORKS,
    EXISTS_NEEDS_READ,
    SET_WATCHES_SHOWS_THE_UNREADABLE,
)
from tests.support import requests as rq
from tests.support.records import OPEN, Acl, Code, EventType, Mode, Op, Perm, Reply, Request
from tests.support.server import SUPER_CREDENTIALS, Server, digest
from tests.support.wire import Client, events

ANN = b"ann:secret"
SECRET = b"nobody may read this"
PERMISSIONS = (Perm.READ, Perm.WRITE, Perm.CREATE, Perm.DELETE, Perm.ADMIN)
NOBODY = (Acl(0, "world", "anyone"),)
FAR_FUTURE = 1 << 60

CREATED = EventType.CREATED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED

#: What Ann may do with `above` and with `node`.
Rights = tuple[int, int]
ALONE: list[Rights] = [
    (0, 0),
    *((0, one) for one in PERMISSIONS),
    *((one, 0) for one in PERMISSIONS),
]
ALL_BUT: list[Rights] = [(Perm.ALL & ~one, Perm.ALL & ~one) for one in PERMISSIONS]

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Ground:
    """The nodes of one case."""

    above: str
    node: str
    child: str
    #: A node that anybody may do anything with.
    free: str


@dataclass(frozen=True, slots=True)
class Row:
    """An operation: what it takes, on which node, and how it ends for who has it."""

    make: Callable[[Ground], Request]
    #: Any of these bits of `node`, or of `above`; 0 is nothing at all.
    needs: int
    of: str = "node"
    ends: int = Code.OK


ROWS: dict[str, Row] = {
    "create": Row(lambda g: rq.create(f"{g.node}/new"), Perm.CREATE),
    "create ephemeral": Row(
        lambda g: rq.create(f"{g.node}/new", flags=Mode.EPHEMERAL), Perm.CREATE
    ),
    "create sequential": Row(
        lambda g: rq.create(f"{g.node}/new", flags=Mode.SEQUENTIAL), Perm.CREATE
    ),
    "create what is there": Row(lambda g: rq.create(g.child), Perm.CREATE, ends=Code.NODE_EXISTS),
    "create2": Row(lambda g: rq.create2(f"{g.node}/new"), Perm.CREATE),
    "createContainer": Row(lambda g: rq.create_container(f"{g.node}/new"), Perm.CREATE),
    "createTTL": Row(lambda g: rq.create_ttl(f"{g.node}/new", 3_600_000), Perm.CREATE),
    "delete": Row(lambda g: rq.delete(g.child), Perm.DELETE),
    "delete what is not there": Row(
        lambda g: rq.delete(f"{g.node}/none"), Perm.DELETE, ends=Code.NO_NODE
    ),
    "delete a parent": Row(
        lambda g: rq.delete(g.node), Perm.DELETE, of="above", ends=Code.NOT_EMPTY
    ),
    "exists": Row(lambda g: rq.exists(g.node), Perm.READ),
    "exists of what is not there": Row(lambda g: rq.exists(f"{g.node}/none"), 0, ends=Code.NO_NODE),
    "getData": Row(lambda g: rq.get_data(g.node), Perm.READ),
    "setData": Row(lambda g: rq.set_data(g.node, b"x"), Perm.WRITE),
    "setData of a version": Row(
        lambda g: rq.set_data(g.node, b"x", 9), Perm.WRITE, ends=Code.BAD_VERSION
    ),
    "getACL": Row(lambda g: rq.get_acl(g.node), Perm.READ | Perm.ADMIN),
    "setACL": Row(lambda g: rq.set_acl(g.node, OPEN), Perm.ADMIN),
    "getChildren": Row(lambda g: rq.get_children(g.node), Perm.READ),
    "getChildren2": Row(lambda g: rq.get_children2(g.node), Perm.READ),
    "getAllChildrenNumber": Row(lambda g: rq.get_all_children_number(g.node), Perm.READ),
    "check": Row(lambda g: rq.check(g.node, 9), Perm.READ, ends=Code.BAD_VERSION),
    "sync": Row(lambda g: rq.sync(g.node), 0),
    "addWatch": Row(lambda g: rq.add_watch(g.node, 0), 0),
    "addWatch recursive": Row(lambda g: rq.add_watch(g.node, 1), 0),
    "setWatches": Row(lambda g: rq.set_watches(FAR_FUTURE, [g.node], [], [g.node]), 0),
    "setWatches2": Row(lambda g: rq.set_watches2(FAR_FUTURE, [], [], [], [g.node], [g.node]), 0),
    "checkWatches": Row(lambda g: rq.check_watches(g.node, 3), 0, ends=Code.NO_WATCHER),
    "removeWatches": Row(lambda g: rq.remove_watches(g.node, 3), 0, ends=Code.NO_WATCHER),
    "getEphemerals": Row(lambda g: rq.get_ephemerals(g.node), 0),
    "reconfig": Row(lambda g: rq.reconfig("", "", ""), 0, ends=Code.RECONFIG_DISABLED),
    "whoAmI": Row(lambda g: rq.who_am_i(), 0),
}
#: These are about no node: they cannot pass an ACL by.
ABOUT_NO_NODE = {Op.NOTIFICATION, Op.PING, Op.AUTH, Op.SASL, Op.CREATE_SESSION, Op.CLOSE_SESSION}
#: These carry others, or have a test of their own.
ROUTES = {Op.MULTI, Op.MULTI_READ, Op.DELETE_CONTAINER}

_OPS = {name: row.make(Ground("", "", "", "")).op for name, row in ROWS.items()}
IN_MULTI, IN_MULTI_READ = (
    [name for name, op in _OPS.items() if operations.BY_NUMBER[op].step_of == whole]
    for whole in (Op.MULTI, Op.MULTI_READ)
)


@pytest.fixture
def root(connect: Connect) -> Client:
    """The superuser."""
    client = connect()
    assert client.call(rq.auth("digest", SUPER_CREDENTIALS)).err == Code.OK
    return client


@pytest.fixture
def ann(connect: Connect) -> Client:
    client = connect()
    assert client.call(rq.auth("digest", ANN)).err == Code.OK
    return client


def for_ann(permissions: int) -> tuple[Acl, ...]:
    return (Acl(permissions, "digest", digest(ANN)),)


def prepare(root: Client, base: str, rights: Rights) -> Ground:
    number = next(_numbers)
    above, free = f"{base}/above{number}", f"{base}/free{number}"
    ground = Ground(above, f"{above}/node", f"{above}/node/child", free)
    results = root.call(
        rq.multi(
            rq.create(free),
            rq.create(above, SECRET, for_ann(rights[0])),
            rq.create(ground.node, SECRET, for_ann(rights[1])),
            rq.create(ground.child, SECRET, NOBODY),
        )
    ).results
    assert [result.err for result in results] == [Code.OK] * 4
    return ground


def seen(root: Client, ground: Ground) -> list[object]:
    """Everything about the three nodes."""
    replies = root.calls(
        *[
            ask(path)
            for path in (ground.above, ground.node, ground.child)
            for ask in (rq.get_data, rq.get_acl, rq.get_children)
        ]
    )
    return [(reply.err, reply.body) for reply in replies]


def row_on(server: Server, name: str) -> Row:
    """Return what an operation takes on a server, outside a multi."""
    row = ROWS[name]
    if name == "exists" and not EXISTS_NEEDS_READ.on(server):
        return replace(row, needs=0)
    return row


def may(row: Row, rights: Rights) -> bool:
    return not row.needs or bool(row.needs & rights[0 if row.of == "above" else 1])


def check_refused(root: Client, ground: Ground, before: list[object], reply: Reply) -> None:
    assert reply.err == Code.NO_AUTH
    assert reply.body == b""
    assert seen(root, ground) == before


def test_every_operation_is_in_the_matrix() -> None:
    # Of a feed each change needs its own; see tests/integration/test_client_changes.py.
    assert {*_OPS.values(), Op.CHANGES} | ABOUT_NO_NODE | ROUTES == set(Op)
    assert {int(op) for op in Op} >= operations.WRITES | operations.READS


@pytest.mark.parametrize("name", [name for name in ROWS if name != "exists of what is not there"])
def test_the_table_of_operations_names_the_permissions(name: str) -> None:
    operation = operations.BY_NUMBER[_OPS[name]]
    # A create and a delete need theirs on the parent of what they name, so that of `node`.
    assert ROWS[name].needs == (operation.permission or operation.parent_permission)


@pytest.mark.parametrize("name", ROWS)
def test_an_operation_takes_its_permission_and_no_other_will_do(
    server: Server, root: Client, ann: Client, base: str, name: str
) -> None:
    if name == "check" and is_lone_check_refused(server, ann):
        return
    row = row_on(server, name)
    for rights in (*ALONE, *ALL_BUT):
        ground = prepare(root, base, rights)
        before = seen(root, ground)
        reply = ann.call(row.make(ground))
        if may(row, rights):
            assert reply.err == row.ends, rights
        else:
            check_refused(root, ground, before, reply)
        # A watch of this case must not outlive it.
        ann.calls(rq.remove_watches(ground.node, 3), rq.remove_watches(ground.above, 3))


@pytest.mark.parametrize("name", IN_MULTI)
def test_a_transaction_takes_the_same_and_undoes_what_it_had_begun(
    root: Client, ann: Client, base: str, name: str
) -> None:
    row = ROWS[name]
    for rights in (*ALONE, *ALL_BUT):
        ground = prepare(root, base, rights)
        before = seen(root, ground)
        step = row.make(ground)
        reply = ann.call(rq.multi(rq.set_data(ground.free, b"begun"), step, rq.check(ground.free)))
        errors = [result.err for result in reply.results]
        if may(row, rights):
            assert errors[1] == row.ends, rights
        else:
            assert errors == [Code.OK, Code.NO_AUTH, Code.RUNTIME_INCONSISTENCY]
            assert SECRET not in reply.body
            assert seen(root, ground) == before
            assert root.call(rq.get_data(ground.free)).data == b""


@pytest.mark.parametrize("name", IN_MULTI_READ)
def test_a_multi_read_takes_the_same(root: Client, ann: Client, base: str, name: str) -> None:
    row = ROWS[name]
    for rights in (*ALONE, *ALL_BUT):
        ground = prepare(root, base, rights)
        reply = ann.call(rq.multi_read(row.make(ground), rq.get_data(ground.free)))
        expected = row.ends if may(row, rights) else Code.NO_AUTH
        assert [result.err for result in reply.results] == [expected, Code.OK]
        if not may(row, rights):
            assert SECRET not in reply.body
            assert b"child" not in reply.body


def test_the_opcode_that_deletes_containers_takes_delete(
    server: Server, root: Client, ann: Client, base: str
) -> None:
    if is_delete_container_refused(server, ann, base):
        return
    row = Row(lambda g: rq.delete_container(g.child), Perm.DELETE)
    for rights in (*ALONE, *ALL_BUT):
        ground = prepare(root, base, rights)
        before = seen(root, ground)
        reply = ann.call(row.make(ground))
        if not DELETE_CONTAINER_WORKS.on(server):
            assert reply.err == Code.BAD_ARGUMENTS
        elif may(row, rights) or not DELETE_CONTAINER_NEEDS_DELETE.on(server):
            assert reply.err == Code.OK, rights
        else:
            check_refused(root, ground, before, reply)


@pytest.mark.parametrize("name", ROWS)
def test_who_proves_to_be_somebody_may_from_then_on(
    server: Server, connect: Connect, root: Client, base: str, name: str
) -> None:
    client = connect()
    if name == "check" and is_lone_check_refused(server, client):
        return
    row = row_on(server, name)
    ground = prepare(root, base, (Perm.ALL, Perm.ALL))
    first = client.call(row.make(ground))
    assert first.err == (Code.NO_AUTH if row.needs else row.ends)
    client.call(rq.remove_watches(ground.node, 3))
    assert client.call(rq.auth("digest", b"ann:wrong")).err == Code.OK
    if row.needs:
        assert client.call(row.make(ground)).err == Code.NO_AUTH
    assert client.call(rq.auth("digest", ANN)).err == Code.OK
    assert client.call(row.make(ground)).err == row.ends


@pytest.mark.parametrize("name", ROWS)
def test_the_superuser_may_do_everything(
    server: Server, root: Client, base: str, name: str
) -> None:
    if name == "check" and is_lone_check_refused(server, root):
        return
    row = row_on(server, name)
    assert root.call(row.make(prepare(root, base, (0, 0)))).err == row.ends


def test_who_may_read_a_node_sees_no_digest_of_its_acl(
    root: Client, ann: Client, base: str
) -> None:
    for permissions, shown in ((Perm.READ, "ann:x"), (Perm.ADMIN, digest(ANN))):
        ground = prepare(root, base, (0, permissions))
        assert [acl.id for acl in ann.call(rq.get_acl(ground.node)).acl] == [shown]


def test_ephemerals_of_others_are_not_listed(root: Client, ann: Client, base: str) -> None:
    ground = prepare(root, base, (Perm.ALL, Perm.ALL))
    root.call(rq.create(f"{ground.node}/theirs", flags=Mode.EPHEMERAL))
    ann.call(rq.create(f"{ground.node}/mine", acl=NOBODY, flags=Mode.EPHEMERAL))
    assert ann.call(rq.get_ephemerals(ground.node)).strings == (f"{ground.node}/mine",)


#: Ways to watch `node`, and what one hears then who may read it, when its data is set and a child
#: that nobody may read comes and goes.
WATCHES: dict[str, tuple[Callable[[Ground], Request], list[int]]] = {
    "exists": (lambda g: rq.exists(g.node, True), [CHANGED]),
    "getData": (lambda g: rq.get_data(g.node, True), [CHANGED]),
    "getChildren": (lambda g: rq.get_children(g.node, True), [CHILDREN]),
    "getChildren2": (lambda g: rq.get_children2(g.node, True), [CHILDREN]),
    "addWatch": (lambda g: rq.add_watch(g.node, 0), [CHANGED, CHILDREN, CHILDREN]),
    "addWatch recursive": (lambda g: rq.add_watch(g.node, 1), [CHANGED]),
    "addWatch recursive above": (lambda g: rq.add_watch(g.above, 1), [CHANGED]),
    "setWatches": (
        lambda g: rq.set_watches(FAR_FUTURE, [g.node], [], [g.node]),
        [CHANGED, CHILDREN],
    ),
    "setWatches2": (
        lambda g: rq.set_watches2(FAR_FUTURE, [], [], [], [g.node], [g.above]),
        [CHANGED, CHILDREN, CHILDREN],
    ),
    "multiRead": (lambda g: rq.multi_read(rq.get_data(g.node, True)), []),
}


@pytest.mark.parametrize("name", WATCHES)
def test_only_who_may_read_a_node_is_told_of_it(
    root: Client, ann: Client, base: str, name: str
) -> None:
    watch, kinds = WATCHES[name]
    for permissions in (0, *PERMISSIONS, Perm.ALL & ~Perm.READ):
        ground = prepare(root, base, (Perm.ALL, permissions))
        ann.call(watch(ground))
        root.calls(
            rq.set_data(ground.node, b"x"),
            rq.create(f"{ground.node}/hidden", acl=NOBODY),
            rq.delete(f"{ground.node}/hidden"),
        )
        heard = kinds if permissions == Perm.READ else []
        assert ann.drain() == events(*((kind, ground.node) for kind in heard)), permissions


@pytest.mark.parametrize("name", ["getData", "getChildren", "getChildren2"])
def test_a_read_that_was_refused_has_set_no_watch(
    root: Client, ann: Client, base: str, name: str
) -> None:
    ground = prepare(root, base, (Perm.ALL, Perm.ALL & ~Perm.READ))
    assert ann.call(WATCHES[name][0](ground)).err == Code.NO_AUTH
    assert ann.call(rq.remove_watches(ground.node, 3)).err == Code.NO_WATCHER
    root.calls(rq.set_acl(ground.node, OPEN), rq.set_data(ground.node, b"x"))
    root.call(rq.create(f"{ground.node}/new"))
    assert ann.drain() == []


def test_an_exists_that_was_refused_has_set_no_watch(
    server: Server, root: Client, ann: Client, base: str
) -> None:
    ground = prepare(root, base, (Perm.ALL, Perm.ALL & ~Perm.READ))
    refused = EXISTS_NEEDS_READ.on(server)
    assert ann.call(rq.exists(ground.node, watch=True)).err == (
        Code.NO_AUTH if refused else Code.OK
    )
    assert ann.call(rq.remove_watches(ground.node, 3)).err == (
        Code.NO_WATCHER if refused else Code.OK
    )


def test_exists_of_what_is_not_there_asks_nobody_above(
    root: Client, ann: Client, base: str
) -> None:
    ground = prepare(root, base, (0, 0))
    missing = f"{ground.node}/new"
    assert ann.call(rq.exists(missing, watch=True)).err == Code.NO_NODE
    root.call(rq.create(missing, acl=OPEN))
    assert ann.drain() == events((CREATED, missing))


def test_what_set_watches_fires_at_once_takes_read(
    server: Server, root: Client, ann: Client, base: str
) -> None:
    for permissions in (0, *PERMISSIONS, Perm.ALL & ~Perm.READ):
        for ask in (rq.set_watches, rq.set_watches2):
            ground = prepare(root, base, (Perm.ALL, permissions))
            node = ground.node
            assert ann.call(ask(0, [node], [node], [node])).err == Code.OK
            told = permissions == Perm.READ or SET_WATCHES_SHOWS_THE_UNREADABLE.on(server)
            everything = events((CHANGED, node), (CREATED, node), (CHILDREN, node))
            assert ann.drain() == (everything if told else []), permissions


def test_the_nodes_of_a_quota_have_their_acls_like_all_others(
    root: Client, ann: Client, base: str
) -> None:
    """The server updates them all the same; a writer below needs no permission on them."""
    quota = f"/zookeeper/quota{base}"
    statistics = f"{quota}/zookeeper_stats"
    root.calls(
        rq.create(quota, acl=NOBODY),
        rq.create(f"{quota}/zookeeper_limits", b"count=1,bytes=1", NOBODY),
        rq.create(statistics, b"", NOBODY),
    )
    ann.call(rq.add_watch("/zookeeper/quota", 1))
    assert ann.call(rq.create(f"{base}/n", b"12")).err == Code.OK
    assert root.call(rq.get_data(statistics)).data == b"count=2,bytes=2"
    for request in (
        rq.get_data(statistics),
        rq.set_data(statistics, b""),
        rq.set_data(f"{quota}/zookeeper_limits", b""),
        rq.delete(f"{quota}/zookeeper_limits"),
        rq.create(f"{quota}/zookeeper_other"),
        rq.set_acl(statistics, OPEN),
    ):
        assert ann.call(request).err == Code.NO_AUTH, request
    (result,) = ann.call(rq.multi(rq.delete(statistics))).results
    assert result.err == Code.NO_AUTH
    assert ann.drain() == []


def test_the_configuration_can_be_read_and_nothing_else(ann: Client) -> None:
    path = "/zookeeper/config"
    for ask in (rq.get_data, rq.get_children, rq.get_children2, rq.get_acl):
        assert ann.call(ask(path)).err == Code.OK
    for request in (
        rq.set_data(path, b"x"),
        rq.set_acl(path, OPEN),
        rq.create(f"{path}/n"),
        rq.create_container(f"{path}/n"),
        rq.create_ttl(f"{path}/n", 3_600_000),
        rq.delete(f"{path}/n"),
    ):
        assert ann.call(request).err == Code.NO_AUTH, request
    (result,) = ann.call(rq.multi(rq.set_data(path, b"x"))).results
    assert result.err == Code.NO_AUTH
