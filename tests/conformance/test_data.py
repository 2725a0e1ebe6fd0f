"""getData, setData, exists, the children reads and getEphemerals."""

from __future__ import annotations

import pytest

from tests.support import requests as rq
from tests.support.records import OPEN, Code, Mode
from tests.support.wire import Client


@pytest.mark.parametrize("data", [None, b"", b"\x00\xff", b"y" * 200_000])
def test_set_data_replaces_the_data(client: Client, base: str, data: bytes | None) -> None:
    reply = client.call(rq.set_data(base, data))
    assert reply.stat.data_length == len(data or b"")
    read = client.call(rq.get_data(base))
    assert read.data == data
    assert read.stat == reply.stat


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (-1, Code.OK),
        (1, Code.OK),
        (0, Code.BAD_VERSION),
        (2, Code.BAD_VERSION),
        (-2, Code.BAD_VERSION),
        (-(1 << 31), Code.BAD_VERSION),
    ],
)
def test_set_data_compares_the_version(client: Client, base: str, version: int, code: int) -> None:
    client.call(rq.set_data(base, b"old"))
    reply = client.call(rq.set_data(base, b"new", version))
    assert reply.err == code
    read = client.call(rq.get_data(base))
    assert read.data == (b"new" if code == Code.OK else b"old")
    assert read.stat.version == (2 if code == Code.OK else 1)


def test_reads_and_set_data_of_nothing_are_no_node(client: Client, base: str) -> None:
    path = f"{base}/none"
    for request in (
        rq.get_data(path),
        rq.get_data(path, watch=True),
        rq.set_data(path, b""),
        rq.exists(path),
        rq.get_children(path),
        rq.get_children2(path),
        rq.get_acl(path),
        rq.set_acl(path, OPEN),
        rq.get_all_children_number(path),
    ):
        reply = client.call(request)
        assert (reply.err, reply.body) == (Code.NO_NODE, b""), request


def test_exists_answers_the_stat(client: Client, base: str) -> None:
    assert client.call(rq.exists(base)).stat == client.call(rq.get_data(base)).stat


def test_get_children_lists_names_not_paths(client: Client, base: str) -> None:
    for name in ("a", "b", "é"):
        client.call(rq.create(f"{base}/{name}"))
    client.call(rq.create(f"{base}/a/below"))
    assert client.call(rq.get_children(base)).names == {"a", "b", "é"}
    reply = client.call(rq.get_children2(base))
    assert reply.names == {"a", "b", "é"}
    assert reply.stat == client.call(rq.exists(base)).stat


def test_get_all_children_number_counts_the_whole_subtree(client: Client, base: str) -> None:
    assert client.call(rq.get_all_children_number(base)).number == 0
    for name in ("a", "a/b", "a/b/c", "d"):
        client.call(rq.create(f"{base}/{name}"))
    client.call(rq.create(f"{base}-sibling"))
    assert client.call(rq.get_all_children_number(base)).number == 4
    assert client.call(rq.get_all_children_number(f"{base}/a")).number == 2


def test_get_all_children_number_of_the_root_leaves_itself_out(client: Client, base: str) -> None:
    whole = client.call(rq.get_all_children_number("/")).number
    client.call(rq.create(f"{base}/n"))
    assert client.call(rq.get_all_children_number("/")).number == whole + 1
    # The empty path means the root as well, but then the root counts.
    assert client.call(rq.get_all_children_number("")).number == whole + 2


def test_get_ephemerals_lists_ones_own_by_prefix(client: Client, other: Client, base: str) -> None:
    for path in ("a", "ab"):
        client.call(rq.create(f"{base}/{path}", flags=Mode.EPHEMERAL))
    client.call(rq.create(f"{base}/parent"))
    client.call(rq.create(f"{base}/parent/a", flags=Mode.EPHEMERAL))
    other.call(rq.create(f"{base}/others", flags=Mode.EPHEMERAL))
    everything = {f"{base}/a", f"{base}/ab", f"{base}/parent/a"}
    for prefix in ("/", "", None, "  ", " / "):
        assert client.call(rq.get_ephemerals(prefix)).names == everything, prefix
    assert client.call(rq.get_ephemerals(base)).names == everything
    # The prefix is one of the text, not of the tree.
    assert client.call(rq.get_ephemerals(f"{base}/a")).names == {f"{base}/a", f"{base}/ab"}
    assert client.call(rq.get_ephemerals(f"{base}/parent/")).names == {f"{base}/parent/a"}
    assert client.call(rq.get_ephemerals("nothing")).names == set()
    assert other.call(rq.get_ephemerals("/")).names == {f"{base}/others"}


def test_ephemerals_of_every_kind_are_listed_and_no_others(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    sequential = client.call(rq.create2(f"{base}/s", flags=Mode.EPHEMERAL_SEQUENTIAL)).path
    client.call(rq.multi(rq.create(f"{base}/m", flags=Mode.EPHEMERAL)))
    client.call(rq.create(f"{base}/p"))
    client.call(rq.create_container(f"{base}/c"))
    client.call(rq.create_ttl(f"{base}/t", 3_600_000))
    assert client.call(rq.get_ephemerals(base)).names == {f"{base}/e", f"{base}/m", sequential}


def test_a_read_between_two_writes_sees_the_first_and_not_the_second(
    client: Client, base: str
) -> None:
    replies = client.calls(
        rq.set_data(base, b"first"),
        rq.get_data(base),
        rq.set_data(base, b"second"),
        rq.get_data(base),
        rq.create(f"{base}/n"),
        rq.get_children(base),
        rq.delete(f"{base}/n"),
        rq.exists(f"{base}/n"),
    )
    assert [reply.err for reply in replies] == [0, 0, 0, 0, 0, 0, 0, Code.NO_NODE]
    assert (replies[1].data, replies[3].data) == (b"first", b"second")
    assert replies[5].names == {"n"}
