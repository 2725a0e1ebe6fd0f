"""Transactions on a state: what each does, and what those do that the snapshot already has."""

import pytest

from paddock.protocol.acl import OPEN
from paddock.state.access import NodeACL
from paddock.state.limits import Quotas
from paddock.state.node import TTL_BASE, Node
from paddock.upgrade.state import NOT_YET_KNOWN, ApacheState, tree_digest
from paddock.upgrade.transaction import decode
from tests.unit.upgrade import files


@pytest.fixture
def state() -> ApacheState:
    """A fresh state in which /a has had 3 children, /a/b is there, and /mine is ephemeral."""
    state = ApacheState.fresh()
    apply(state, 1, files.create_session(5_000))
    apply(state, 2, files.create("/a", 1, b"data"))
    apply(state, 3, files.create("/a/b", 3))
    apply(state, 4, files.create("/mine", 2, ephemeral=True))
    return state


def apply(state: ApacheState, zxid: int, body: files.Body, session: int = files.SESSION) -> None:
    state.apply(decode(files.transaction(zxid, body, session=session)))


def children(state: ApacheState, path: bytes) -> set[bytes]:
    return set(state.nodes[path].child_names())


def acl_of(node: Node) -> NodeACL:
    return node.acl


def test_a_create_makes_a_node_and_counts_above(state: ApacheState) -> None:
    apply(state, 9, files.create("/a/c", 4, None, files.ALICE))
    node, parent = state.nodes[b"/a/c"], state.nodes[b"/a"]
    assert (node.data, node.czxid, node.mzxid, node.pzxid) == (None, 9, 9, 9)
    assert (node.ctime, node.mtime) == (files.TIME_MS + 9, files.TIME_MS + 9)
    assert (node.version, node.created, node.aversion, node.owner) == (0, 0, 0, 0)
    assert [entry.identity.id for entry in node.acl.entries] == ["alice:hash", "bob"]
    assert (parent.created, parent.pzxid) == (4, 9)
    assert children(state, b"/a") == {b"b", b"c"}
    assert state.zxid == 9


def test_a_create_of_3_3_counts_one_more_above(state: ApacheState) -> None:
    apply(state, 9, files.create("/a/c", None))
    assert (state.nodes[b"/a"].created, state.nodes[b"/a"].pzxid) == (4, 9)


def test_kinds_of_nodes_show_in_their_owners(state: ApacheState) -> None:
    apply(state, 9, files.create_container("/box", 3))
    apply(state, 10, files.create_ttl("/brief", 4, 5_000))
    apply(state, 11, files.create2("/plain", 5))
    assert state.nodes[b"/box"].owner == files.CONTAINER
    assert state.nodes[b"/brief"].owner == TTL_BASE + 5_000
    assert state.nodes[b"/plain"].owner == 0
    assert state.ephemerals == {files.SESSION: {b"/mine": None}}


@pytest.mark.parametrize("body", [files.delete("/a/b"), files.delete_container("/a/b")])
def test_a_delete_takes_a_node_away(state: ApacheState, body: files.Body) -> None:
    apply(state, 9, body)
    assert b"/a/b" not in state.nodes
    assert (children(state, b"/a"), state.nodes[b"/a"].pzxid) == (set(), 9)
    assert state.nodes[b"/a"].created == 3


def test_a_delete_of_an_ephemeral_takes_it_from_its_session(state: ApacheState) -> None:
    apply(state, 9, files.delete("/mine"))
    assert state.ephemerals == {files.SESSION: {}}


def test_data_are_set_with_the_version_that_was_logged(state: ApacheState) -> None:
    apply(state, 9, files.set_data("/a", None, 7))
    node = state.nodes[b"/a"]
    assert (node.data, node.version, node.mzxid, node.mtime) == (None, 7, 9, files.TIME_MS + 9)
    assert (node.czxid, node.pzxid) == (2, 3)
    apply(state, 10, files.set_data("/", b"root", 1))
    assert state.nodes[b""].data == b"root"
    apply(state, 11, files.reconfig(b"server.1=one:2888:3888", 3))
    assert state.nodes[b"/zookeeper/config"].version == 3


def test_an_acl_is_set_with_the_version_that_was_logged(state: ApacheState) -> None:
    apply(state, 9, files.set_acl("/a", files.ALICE, 5))
    node = state.nodes[b"/a"]
    assert (len(node.acl.entries), node.aversion, node.mzxid) == (2, 5, 2)


def test_errors_and_checks_only_take_a_zxid(state: ApacheState) -> None:
    before = tree_digest(state.nodes)
    apply(state, 9, files.error())
    apply(state, 10, files.check("/a", 0))
    apply(state, 11, files.multi(files.create("/x", 3), files.error()))
    assert tree_digest(state.nodes) == before
    assert state.zxid == 11


def test_a_multi_is_applied_part_by_part(state: ApacheState) -> None:
    apply(
        state,
        9,
        files.multi(
            files.create("/a/c", 4),
            files.create("/a/c/d", 1, ephemeral=True),
            files.set_data("/a/c", b"x", 1),
            files.delete("/a/b"),
        ),
    )
    assert children(state, b"/a") == {b"c"}
    assert state.nodes[b"/a/c"].data == b"x"
    assert state.nodes[b"/a/c/d"].owner == files.SESSION
    assert state.zxid == 9


@pytest.mark.parametrize("body", [files.close_session(), files.close_session(["/mine"])])
def test_a_session_that_ends_takes_its_nodes_along(state: ApacheState, body: files.Body) -> None:
    assert state.sessions == {files.SESSION: 5_000}
    apply(state, 9, body)
    assert (state.sessions, state.ephemerals) == ({}, {})
    assert b"/mine" not in state.nodes
    assert state.nodes[b"/"].pzxid == 9
    assert state.last_session == files.SESSION


def test_the_nodes_that_the_end_of_a_session_names_go_whoever_has_them(state: ApacheState) -> None:
    # The snapshot has the one that another session made in its place, later in the log.
    apply(state, 9, files.create("/theirs", 3, ephemeral=True), session=5)
    apply(state, 10, files.close_session(["/theirs", "/a/gone"]))
    assert b"/theirs" not in state.nodes
    assert state.nodes[b"/a"].pzxid == 10
    assert state.ephemerals == {5: {}}
    apply(state, 11, files.create("/theirs", 4, ephemeral=True), session=5)
    assert state.ephemerals == {5: {b"/theirs": None}}


# What a snapshot may have that was written while the server went on.


def test_a_create_of_a_node_that_is_there_mends_only_the_count_above(state: ApacheState) -> None:
    node = state.nodes[b"/a/b"]
    apply(state, 9, files.create("/a/b", 5, b"other"))
    assert state.nodes[b"/a/b"] is node
    assert node.data == b""
    assert (state.nodes[b"/a"].created, state.nodes[b"/a"].pzxid) == (5, 9)


def test_a_create_of_a_node_that_is_there_does_not_take_the_count_back(state: ApacheState) -> None:
    apply(state, 9, files.create("/a/b", 2))
    assert (state.nodes[b"/a"].created, state.nodes[b"/a"].pzxid) == (3, 3)


@pytest.mark.parametrize("kind", ["create2", "container", "ttl"])
def test_upstream_mends_the_count_for_plain_creates_only(state: ApacheState, kind: str) -> None:
    body = {
        "create2": files.create2("/a/b", 5),
        "container": files.create_container("/a/b", 5),
        "ttl": files.create_ttl("/a/b", 5, 1_000),
    }[kind]
    apply(state, 9, body)
    assert (state.nodes[b"/a"].created, state.nodes[b"/a"].pzxid) == (3, 3)


def test_a_node_that_came_and_went_does_not_take_the_count_back(state: ApacheState) -> None:
    # The snapshot saw /a after its second child had gone again.
    apply(state, 9, files.create("/a/x", 2))
    apply(state, 10, files.delete("/a/x"))
    assert (state.nodes[b"/a"].created, state.nodes[b"/a"].pzxid) == (3, 10)
    assert children(state, b"/a") == {b"b"}


def test_a_delete_of_a_node_that_is_gone_still_shows_above(state: ApacheState) -> None:
    apply(state, 9, files.delete("/a/gone"))
    assert state.nodes[b"/a"].pzxid == 9
    apply(state, 2, files.delete("/a/gone"))
    assert state.nodes[b"/a"].pzxid == 9


@pytest.mark.parametrize(
    "body",
    [
        files.create("/gone/x", 1),
        files.delete("/gone/x"),
        files.set_data("/gone", b"", 1),
        files.set_acl("/gone", files.ALICE, 1),
        files.close_session(["/gone/x", "/gone"]),
    ],
)
def test_what_happened_to_something_that_is_gone_is_passed_over(
    state: ApacheState, body: files.Body
) -> None:
    apply(state, 9, body, session=5)
    assert set(state.nodes) == {
        *(b"", b"/", b"/a", b"/a/b", b"/mine"),
        *(b"/zookeeper", b"/zookeeper/quota", b"/zookeeper/config"),
    }
    assert state.zxid == 9


def test_a_node_that_was_deleted_and_made_again_with_children_comes_out_even(
    state: ApacheState,
) -> None:
    # The snapshot has the second /a with a child; the log deletes the first.
    apply(state, 9, files.delete("/a"))
    apply(state, 10, files.create("/a", 3, b"second"))
    apply(state, 11, files.create("/a/b", 1, b"new"))
    assert children(state, b"/a") == {b"b"}
    assert (state.nodes[b"/a"].created, state.nodes[b"/a/b"].czxid) == (1, 11)


def test_an_acl_that_was_not_known_comes_with_the_transaction(state: ApacheState) -> None:
    created, changed = state.nodes[b"/a"], state.nodes[b"/a/b"]
    created.acl = changed.acl = NOT_YET_KNOWN
    apply(state, 9, files.create("/a", 1, b"", files.ALICE))
    apply(state, 10, files.set_acl("/a/b", files.ALICE, 1))
    assert acl_of(created) is acl_of(changed)
    assert len(created.acl.entries) == 2
    # One that is known is what a later transaction made of it.
    apply(state, 11, files.create("/mine", 3, b"", files.ALICE))
    assert state.nodes[b"/mine"].acl.entries == OPEN


# The digest that comes with transactions.


def test_the_digest_of_a_fresh_server_is_the_one_that_apache_logs() -> None:
    assert tree_digest(ApacheState.fresh().nodes) == 1371985504


def test_the_digest_counts_as_long_as_nothing_changes_after_it(state: ApacheState) -> None:
    def transact(zxid: int, body: files.Body, digest: int | None) -> int | None:
        state.apply(decode(files.transaction(zxid, body, digest=digest)))
        return state.digest

    assert transact(9, files.delete("/a/b"), 77) == 77
    assert transact(10, files.error(), None) == 77
    assert transact(11, files.create_session(), None) == 77
    assert transact(12, files.multi(files.create("/x", 3), files.error()), None) == 77
    assert transact(13, files.create("/x", 3), None) is None
    assert transact(14, files.set_data("/x", b"", 1), -5) == -5


# Quotas.


STATISTICS = b"/zookeeper/quota/a/zookeeper_stats"


def with_quota(state: ApacheState) -> None:
    apply(state, 20, files.create("/zookeeper/quota/a", 1))
    apply(state, 21, files.create("/zookeeper/quota/a/zookeeper_limits", 1, b"count=1,bytes=-1"))
    apply(state, 22, files.create("/zookeeper/quota/a/zookeeper_stats", 2, b"count=0,bytes=0"))


def test_a_quota_counts_what_is_there_and_then_every_change(state: ApacheState) -> None:
    with_quota(state)
    node = state.nodes[STATISTICS]
    for zxid, body, expected in (
        (23, files.error(), b"count=2,bytes=4"),
        (24, files.create("/a/c", 4, b"123"), b"count=3,bytes=7"),
        (25, files.create("/a/c", 5, b"123"), b"count=3,bytes=7"),
        (26, files.set_data("/a/c", None, 1), b"count=3,bytes=4"),
        (27, files.delete("/a/b"), b"count=2,bytes=4"),
        (28, files.delete("/a/b"), b"count=2,bytes=4"),
        (29, files.create("/ab", 3, b"123"), b"count=2,bytes=4"),
    ):
        apply(state, zxid, body)
        assert node.data == expected
    assert (node.version, node.mzxid) == (0, 22)
    apply(state, 30, files.delete("/zookeeper/quota/a/zookeeper_limits"))
    apply(state, 31, files.create("/a/d", 6))
    assert node.data == b"count=2,bytes=4"


def test_quotas_of_a_snapshot_are_counted_when_it_is_loaded(state: ApacheState) -> None:
    with_quota(state)
    state.quotas = Quotas()
    state.nodes[STATISTICS].data = b"count=99,bytes=99=;byteHardLimit=-1"
    state.count_quotas()
    assert [one.governed for one in state.quotas] == [b"/a"]
    assert state.nodes[STATISTICS].data == b"count=2,bytes=4"


def test_further_numbers_in_the_statistics_stay(state: ApacheState) -> None:
    with_quota(state)
    state.nodes[STATISTICS].data = b"count=2,bytes=4=;countHardLimit=-1;byteHardLimit=7"
    apply(state, 24, files.create("/a/c", 4, b"123"))
    assert state.nodes[STATISTICS].data == b"count=3,bytes=7=;byteHardLimit=7;countHardLimit=-1"


def test_the_nearest_quota_counts(state: ApacheState) -> None:
    with_quota(state)
    apply(state, 23, files.create("/zookeeper/quota/a/b", 3))
    apply(state, 24, files.create("/zookeeper/quota/a/b/zookeeper_limits", 1, b"count=1,bytes=-1"))
    apply(state, 25, files.create("/zookeeper/quota/a/b/zookeeper_stats", 2))
    apply(state, 26, files.create("/a/b/c", 1, b"xyz"))
    assert state.nodes[b"/zookeeper/quota/a/b/zookeeper_stats"].data == b"count=2,bytes=3"
    assert state.nodes[STATISTICS].data == b"count=2,bytes=4"


@pytest.mark.parametrize("data", [None, b"hello", b"count=x", b"=;=;"])
def test_statistics_that_somebody_wrote_over_are_left_alone(
    state: ApacheState, data: bytes | None
) -> None:
    with_quota(state)
    state.nodes[STATISTICS].data = data
    apply(state, 24, files.create("/a/c", 4, b"123"))
    assert state.nodes[STATISTICS].data == data
