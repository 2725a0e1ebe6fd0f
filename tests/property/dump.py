"""A machine as plain data: two machines are equal if their dumps are.

What is only kept to be fast is checked on the way and is not part of the dump: encodings that a
node holds are those of its fields, and the counters are what counting gives.
"""

from __future__ import annotations

from typing import Any

from librt.strings import BytesWriter

from paddock.protocol.records import Stat
from paddock.protocol.replies import GetDataResponse
from paddock.state.kept_replies import CHUNK, OWN_BYTES, SESSION_BYTES_MAX, WINDOW, KeptReplies
from paddock.state.limits import LIMITS, QUOTA
from paddock.state.machine import StateMachine
from paddock.state.node import (
    CONTAINER,
    Node,
    node_term,
)
from paddock.state.tree import Tree


def dump(machine: StateMachine) -> dict[str, Any]:
    """Return everything that a machine holds."""
    tree = machine.tree
    check(tree)
    return {
        "zxid": machine.zxid,
        "time_ms": machine.time_ms,
        "last_id": machine.sessions.last_id,
        "sessions": {
            session.id: (session.generation, session.timeout_ms, session.password)
            for session in machine.sessions.by_id.values()
        },
        "kept": dump_kept(machine),
        "nodes": {path: dump_node(node) for path, node in tree.nodes.items() if path},
        "ephemerals": {owner: sorted(paths) for owner, paths in tree.ephemerals.items()},
        "containers": sorted(tree.containers),
        "ttls": sorted(tree.ttls),
        "acls": {wire: acl.users for wire, acl in tree.acls._by_key.items()},
        "quotas": sorted(quota.governed for quota in tree.quotas),
        "data_bytes": tree.data_bytes,
        "digest": machine.digest(),
        "shared": dump_shared(machine),
    }


def dump_kept(machine: StateMachine) -> dict[int, tuple[int, int, list[bytes]]]:
    """Return what exact sessions keep, in its chunks."""
    sessions = machine.sessions
    found = {}
    total = 0
    for session in sessions.by_id.values():
        kept = session.kept
        if kept is not None:
            found[session.id] = kept.generation, kept.confirmed, kept.chunks()
            assert (kept.generation == 0) == (kept.count == 0)
            total += max(0, kept.size - OWN_BYTES)
            fresh = KeptReplies()
            assert fresh.adopt(*found[session.id])
            assert (kept.size, kept.count) == (fresh.size, fresh.count)
            assert kept.size <= SESSION_BYTES_MAX
            assert kept.count < WINDOW + 2 * CHUNK
            if machine.roster is not None:
                fresh.adopt_term(session.id)
            assert kept.term == fresh.term
    assert sessions.kept_bytes == total
    return found


def dump_shared(machine: StateMachine) -> dict[str, Any] | None:
    """Return what only servers have that share a log."""
    roster, sessions = machine.roster, machine.sessions
    if roster is None:
        assert not any(session.owner for session in sessions.by_id.values())
        assert sessions.digests == {}
        return None
    digests: dict[int, int] = {}
    for session in sessions.by_id.values():
        digests[session.owner] = digests.get(session.owner, 0) + session.term()
    assert sessions.digests == digests
    assert roster.held_count == sum(len(member.held) for member in roster.members.values())
    fields = (
        *("service", "last_join", "rules", "index", "revision", "last_boot", "last_number"),
        *("ended", "addresses"),
    )
    of_member = (
        *("number", "boot", "next", "last_index", "held", "rules_max", "address", "settings"),
        *("version", "lag"),
    )
    return {
        "members": [
            (boot, {name: _in_order(getattr(member, name)) for name in of_member})
            for boot, member in roster.members.items()
        ],
        "roster": {name: _in_order(getattr(roster, name)) for name in fields},
        "owners": {session.id: session.owner for session in sessions.by_id.values()},
        "digest": machine.shared_digest(),
    }


def _in_order(value: object) -> object:
    """Return a copy in which the order counts."""
    if isinstance(value, dict):
        return list(value.items())
    return list(value) if isinstance(value, list) else value


def dump_node(node: Node) -> dict[str, Any]:
    return {
        "data": node.data,
        "acl": node.acl.entries,
        "czxid": node.czxid,
        "mzxid": node.mzxid,
        "pzxid": node.pzxid,
        "ctime": node.ctime,
        "mtime": node.mtime,
        "version": node.version,
        "aversion": node.aversion,
        "created": node.created,
        "owner": node.owner,
        "children": sorted(node.child_names()),
    }


def check(tree: Tree) -> None:
    """Compare what the tree keeps beside its nodes with what its nodes say."""
    nodes = {path: node for path, node in tree.nodes.items() if path}
    assert tree.nodes[b""] is nodes[b"/"]
    assert len(tree) == len(nodes)
    digest = data_bytes = 0
    users: dict[bytes, int] = {}
    ephemerals: dict[int, list[bytes]] = {}
    containers, ttls, quotas = [], [], []
    children: dict[bytes, list[bytes]] = {path: [] for path in nodes}
    for path, node in nodes.items():
        digest += node_term(path, node, BytesWriter())
        data_bytes += len(path) + len(node.data or b"")
        users[node.acl.wire] = users.get(node.acl.wire, 0) + 1
        assert tree.acls._by_key[node.acl.wire] is node.acl
        if path.startswith(QUOTA + b"/") and path.endswith(LIMITS) and path != QUOTA + LIMITS:
            quotas.append(path[len(QUOTA) : -len(LIMITS)])
        if node.owner > 0:
            ephemerals.setdefault(node.owner, []).append(path)
        elif node.owner == CONTAINER:
            containers.append(path)
        elif node.owner < 0:
            ttls.append(path)
        if path != b"/":
            above, _, name = path.rpartition(b"/")
            children[above or b"/"].append(name)
    for path, node in nodes.items():
        names = node.child_names()
        assert sorted(names) == sorted(children[path]), path
        _check_encodings(tree, node, names)
    lists = [node.children.wire for node in nodes.values() if node.children is not None]
    kept = [*lists, *(node.wire for node in nodes.values())]
    assert tree.answers.size == sum(len(wire) for wire in kept if wire is not None)
    _check_subtrees(tree, nodes)
    assert tree.digest() == digest
    assert tree.data_bytes == data_bytes
    assert {wire: acl.users for wire, acl in tree.acls._by_key.items()} == users
    assert {owner: sorted(paths) for owner, paths in tree.ephemerals.items()} == {
        owner: sorted(paths) for owner, paths in ephemerals.items()
    }
    assert sorted(tree.containers) == sorted(containers)
    assert sorted(tree.ttls) == sorted(ttls)
    assert sorted(quota.governed for quota in tree.quotas) == sorted(quotas)
    assert tree.quotas.size == len(quotas)


def _check_subtrees(tree: Tree, nodes: dict[bytes, Node]) -> None:
    """See that what is kept about subtrees is what counting them gives."""
    below = dict.fromkeys(nodes, (0, 0))
    for path, node in nodes.items():
        above = path
        while above != b"/":
            above = above.rpartition(b"/")[0] or b"/"
            count, size = below[above]
            below[above] = count + 1, size + len(node.data or b"")
    for path, (count, size) in below.items():
        assert tree.descendants(path) == count, path
        assert tree.subtree(path) == (count + 1, size + len(nodes[path].data or b"")), path


def _check_encodings(tree: Tree, node: Node, names: list[bytes]) -> None:
    cversion = (2 * node.created - len(names) + (1 << 31)) % (1 << 32) - (1 << 31)
    stat = Stat(
        czxid=node.czxid,
        mzxid=node.mzxid,
        ctime=node.ctime,
        mtime=node.mtime,
        version=node.version,
        cversion=cversion,
        aversion=node.aversion,
        ephemeral_owner=max(0, node.owner),
        data_length=len(node.data or b""),
        num_children=len(names),
        pzxid=node.pzxid,
    )
    writer = BytesWriter()
    GetDataResponse(node.data, stat).write(writer)
    assert node.wire in (None, writer.getvalue())
    assert tree.answers.data_and_stat(node) == writer.getvalue()
    assert tree.answers.child_list(node) == len(names).to_bytes(4, "big") + b"".join(
        len(name).to_bytes(4, "big") + name for name in names
    )
