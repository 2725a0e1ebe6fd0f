"""The list of servers in /zookeeper/config, as entries change it."""

from __future__ import annotations

from paddock.errors import BAD_ARGUMENTS, OK
from paddock.state.entry import DEPOSE, FORGET, LEAVE, Entry
from paddock.state.membership import config_data
from paddock.state.node import Node
from paddock.state.operations import Change
from paddock.state.roster_bodies import DeposeRequest, forget_body
from paddock.state.snapshot import Snapshot, restore
from paddock.state.tree import CONFIG
from tests.unit.state.shared_state import A, B, C, SharedState, join_entry


def config(state: SharedState) -> Node:
    node = state.machine.tree.nodes[CONFIG]
    assert node is not None
    return node


def test_a_new_address_is_listed_and_takes_a_zxid_as_a_reconfig_does() -> None:
    state = SharedState()
    (outcome,) = state.commit(A, join_entry(address="one:2181", time_ms=5_000))
    assert (outcome.error, outcome.zxid, state.machine.zxid) == (OK, 1, 1)
    (change,) = outcome.changes
    assert (change.kind, change.path, change.zxid) == (Change.DATA, CONFIG, 1)
    node = config(state)
    assert node.data == b"server.1=one:0:1:participant;one:2181\nversion=1"
    assert (node.mzxid, node.mtime, node.version, node.aversion) == (1, 5_000, -1, -1)
    assert state.machine.time_ms == 5_000


def test_the_version_of_the_list_is_the_zxid_in_hexadecimal() -> None:
    state = SharedState()
    state.machine.zxid = 0x4_0000_0009
    state.join(A, "one:2181")
    state.join(B, "two:2182")
    data = config(state).data
    assert data is not None
    assert data.splitlines() == [
        b"server.1=one:0:1:participant;one:2181",
        b"server.2=two:0:1:participant;two:2182",
        b"version=40000000b",
    ]


def test_without_an_address_nothing_is_listed_and_no_zxid_taken() -> None:
    state = SharedState()
    (outcome,) = state.commit(A, join_entry())
    assert (outcome.error, outcome.zxid, outcome.changes) == (OK, 0, [])
    assert (config(state).data, config(state).version) == (b"", 0)


def test_a_known_address_and_the_end_of_a_member_change_nothing() -> None:
    state = SharedState()
    state.join(A, "one:2181")
    state.join(B, "two:2181")
    before, zxid = config(state).data, state.machine.zxid
    state.commit(B, Entry(LEAVE, b""))
    state.join(C, "two:2181")
    last = state.roster.members[C].last_index
    (outcome,) = state.commit(A, Entry(DEPOSE, DeposeRequest(C, last).encode()))
    assert (outcome.error, outcome.changes) == (OK, [])
    assert (config(state).data, state.machine.zxid) == (before, zxid)


def test_a_forgotten_address_is_listed_no_more() -> None:
    state = SharedState()
    state.join(A, "one:2181")
    state.join(B, "two:2181")
    (refused,) = state.commit(A, Entry(FORGET, forget_body("two:2181")))
    assert (refused.error, refused.changes, state.machine.zxid) == (BAD_ARGUMENTS, [], 2)
    state.commit(B, Entry(LEAVE, b""))
    (outcome,) = state.commit(A, Entry(FORGET, forget_body("two:2181")))
    assert (outcome.error, outcome.zxid, len(outcome.changes)) == (OK, 3, 1)
    assert config(state).data == b"server.1=one:0:1:participant;one:2181\nversion=3"


def test_the_list_is_in_the_digest_and_in_a_snapshot() -> None:
    state, other = SharedState(), SharedState()
    state.join(A, "one:2181")
    other.join(A)
    other.machine.zxid = 1
    assert state.machine.shared_digest() != other.machine.shared_digest()
    again = restore(Snapshot(state.machine).chunks())
    assert again.shared_digest() == state.machine.shared_digest()
    found = again.tree.nodes[CONFIG]
    assert found is not None
    assert found.data == config(state).data


def test_an_ipv6_address_keeps_its_brackets() -> None:
    assert config_data(["[::1]:2181"], 255) == (
        b"server.1=[::1]:0:1:participant;[::1]:2181\nversion=ff"
    )


def test_no_servers_are_no_list() -> None:
    assert config_data([], 7) == b""
