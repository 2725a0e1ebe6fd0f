"""Every field of Stat, and what moves it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import pytest

from tests.support import requests as rq
from tests.support.records import OPEN, Code, Mode, Request, Stat
from tests.support.wire import Client


def stat(client: Client, path: str) -> Stat:
    return client.call(rq.exists(path)).stat


def changed(before: Stat, after: Stat) -> dict[str, tuple[int, int]]:
    """Which fields differ, with both values."""
    pairs = zip(dataclasses.asdict(before).items(), dataclasses.asdict(after).items(), strict=True)
    return {name: (old, new) for (name, old), (_, new) in pairs if old != new}


def test_a_new_node_carries_its_zxid_and_time(client: Client, base: str) -> None:
    earlier = time.time() * 1000
    reply = client.call(rq.create2(f"{base}/n", b"abc"))
    assert reply.stat == Stat(
        czxid=reply.zxid,
        mzxid=reply.zxid,
        ctime=reply.stat.ctime,
        mtime=reply.stat.ctime,
        version=0,
        cversion=0,
        aversion=0,
        ephemeral_owner=0,
        data_length=3,
        num_children=0,
        pzxid=reply.zxid,
    )
    assert abs(reply.stat.ctime - earlier) < 10_000


def test_set_data_moves_version_mzxid_mtime_and_length(client: Client, base: str) -> None:
    before = stat(client, base)
    reply = client.call(rq.set_data(base, b"12345"))
    after = stat(client, base)
    assert reply.stat == after
    moved = changed(before, after)
    moved.pop("mtime", None)
    assert moved == {
        "version": (0, 1),
        "mzxid": (before.mzxid, reply.zxid),
        "data_length": (0, 5),
    }
    assert after.mtime >= before.mtime


def test_set_data_to_the_same_value_is_a_change(client: Client, base: str) -> None:
    client.call(rq.set_data(base, b"same"))
    reply = client.call(rq.set_data(base, b"same"))
    assert (reply.stat.version, reply.stat.mzxid) == (2, reply.zxid)


def test_set_acl_moves_only_aversion(client: Client, base: str) -> None:
    before = stat(client, base)
    reply = client.call(rq.set_acl(base, OPEN))
    assert reply.stat == stat(client, base)
    assert changed(before, reply.stat) == {"aversion": (0, 1)}


def test_creating_a_child_moves_the_parents_cversion_and_pzxid(client: Client, base: str) -> None:
    before = stat(client, base)
    reply = client.call(rq.create(f"{base}/n"))
    assert changed(before, stat(client, base)) == {
        "cversion": (0, 1),
        "num_children": (0, 1),
        "pzxid": (before.pzxid, reply.zxid),
    }


def test_deleting_a_child_moves_the_parents_cversion_and_pzxid(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    before = stat(client, base)
    reply = client.call(rq.delete(f"{base}/n"))
    assert changed(before, stat(client, base)) == {
        "cversion": (1, 2),
        "num_children": (1, 0),
        "pzxid": (before.pzxid, reply.zxid),
    }


def test_changing_a_child_leaves_the_parent_alone(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    before = stat(client, base)
    client.call(rq.set_data(f"{base}/n", b"x"))
    client.call(rq.set_acl(f"{base}/n", OPEN))
    client.call(rq.create(f"{base}/n/below"))
    assert stat(client, base) == before


def test_cversion_counts_creates_and_deletes(client: Client, base: str) -> None:
    for round_ in range(3):
        client.call(rq.create(f"{base}/n"))
        assert stat(client, base).cversion == 2 * round_ + 1
        client.call(rq.delete(f"{base}/n"))
        assert stat(client, base).cversion == 2 * round_ + 2


@pytest.mark.parametrize(
    "make",
    [
        lambda path: rq.create(path, flags=Mode.EPHEMERAL),
        lambda path: rq.create(path, flags=Mode.SEQUENTIAL),
        rq.create2,
        rq.create_container,
        lambda path: rq.create_ttl(path, 3_600_000),
        lambda path: rq.multi(rq.create(path)),
    ],
    ids=["ephemeral", "sequential", "create2", "container", "ttl", "multi"],
)
def test_every_kind_of_child_counts_for_cversion(
    client: Client, base: str, make: Callable[[str], Request]
) -> None:
    reply = client.call(make(f"{base}/n"))
    after = stat(client, base)
    assert (after.cversion, after.num_children, after.pzxid) == (1, 1, reply.zxid)


def test_operations_in_one_multi_share_zxid_and_time(client: Client, base: str) -> None:
    reply = client.call(
        rq.multi(
            rq.create(f"{base}/a"),
            rq.create(f"{base}/b"),
            rq.create(f"{base}/a/c"),
            rq.set_data(f"{base}/b", b"x"),
            rq.delete(f"{base}/a/c"),
        )
    )
    a, b = stat(client, f"{base}/a"), stat(client, f"{base}/b")
    assert (a.czxid, a.pzxid, b.czxid, b.mzxid) == (reply.zxid,) * 4
    assert a.ctime == b.ctime == b.mtime
    assert (a.cversion, a.num_children) == (2, 0)
    assert stat(client, base).cversion == 2


def test_a_multi_result_shows_the_stat_of_that_moment(client: Client, base: str) -> None:
    reply = client.call(
        rq.multi(rq.set_data(base, b"1"), rq.create(f"{base}/n"), rq.set_data(base, b"22"))
    )
    first, _, last = (result.stat for result in reply.results)
    assert first is not None
    assert last is not None
    assert (first.version, first.data_length, first.num_children) == (1, 1, 0)
    assert (last.version, last.data_length, last.num_children, last.cversion) == (2, 2, 1, 1)


def test_failed_writes_leave_the_stat_alone(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    before = stat(client, base), stat(client, f"{base}/n")
    for request in (
        rq.create(f"{base}/n"),
        rq.delete(base),
        rq.delete(f"{base}/n", 5),
        rq.set_data(base, b"x", 5),
        rq.set_acl(base, OPEN, 5),
        rq.set_acl(base, ()),
        rq.multi(rq.set_data(base, b"x"), rq.create(f"{base}/m"), rq.check(base, 5)),
    ):
        client.call(request)
    assert (stat(client, base), stat(client, f"{base}/n")) == before


def test_ephemeral_owner_is_the_session(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    client.call(rq.create(f"{base}/p"))
    assert stat(client, f"{base}/e").ephemeral_owner == client.session_id
    assert stat(client, f"{base}/p").ephemeral_owner == 0


@pytest.mark.parametrize("version", [0, 1, 3])
def test_set_acl_compares_aversion(client: Client, base: str, version: int) -> None:
    client.call(rq.set_acl(base, OPEN))
    client.call(rq.set_data(base, b""))
    reply = client.call(rq.set_acl(base, OPEN, version))
    assert reply.err == (Code.OK if version == 1 else Code.BAD_VERSION)


def test_the_roots_children_move_the_root(client: Client, base: str) -> None:
    before = stat(client, "/")
    reply = client.call(rq.create(f"{base}x"))
    after = stat(client, "/")
    assert (after.cversion, after.pzxid) == (before.cversion + 1, reply.zxid)
    assert stat(client, "") == after
    client.call(rq.delete(f"{base}x"))
    assert stat(client, "/").cversion == before.cversion + 2
