"""Sequence numbers: what counts, and in which order."""

from __future__ import annotations

import pytest

from tests.support import requests as rq
from tests.support.records import OPEN, Code, Mode, Request
from tests.support.wire import Client


def numbers(client: Client, prefix: str, count: int = 1) -> list[int]:
    paths = [client.call(rq.create(prefix, flags=Mode.SEQUENTIAL)).path for _ in range(count)]
    return [int(path.removeprefix(prefix)) for path in paths]


def test_numbers_start_at_zero_and_count_up(client: Client, base: str) -> None:
    assert numbers(client, f"{base}/n", 3) == [0, 1, 2]


def test_numbers_are_the_parents_whatever_the_prefix(client: Client, base: str) -> None:
    assert numbers(client, f"{base}/a") == [0]
    assert numbers(client, f"{base}/b") == [1]
    assert numbers(client, f"{base}/") == [2]


def test_children_without_a_number_count_too(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/plain"))
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    client.call(rq.create_container(f"{base}/c"))
    client.call(rq.create_ttl(f"{base}/t", 3_600_000))
    assert numbers(client, f"{base}/n") == [4]


def test_deletes_do_not_count(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/gone"))
    client.call(rq.delete(f"{base}/gone"))
    client.call(rq.create(f"{base}/gone"))
    client.call(rq.delete(f"{base}/gone"))
    assert numbers(client, f"{base}/n") == [2]


def test_failed_creates_do_not_count(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/there"))
    assert client.call(rq.create(f"{base}/there")).err == Code.NODE_EXISTS
    assert client.call(rq.create(f"{base}/n", acl=(), flags=2)).err == Code.INVALID_ACL
    assert client.call(rq.create(f"{base}/\x01", flags=2)).err == Code.BAD_ARGUMENTS
    assert numbers(client, f"{base}/n") == [1]


def test_a_failed_multi_does_not_count(client: Client, base: str) -> None:
    sequential = rq.create(f"{base}/n", flags=Mode.SEQUENTIAL)
    results = client.call(rq.multi(sequential, sequential, rq.delete(f"{base}/none"))).results
    assert [result.err for result in results] == [0, 0, Code.NO_NODE]
    assert numbers(client, f"{base}/n") == [0]


def test_each_create_in_a_multi_counts(client: Client, base: str) -> None:
    sequential = rq.create(f"{base}/n", flags=Mode.SEQUENTIAL)
    results = client.call(rq.multi(sequential, sequential)).results
    assert [result.path for result in results] == [f"{base}/n000000000{i}" for i in (0, 1)]


def test_pipelined_creates_are_numbered_in_their_order(client: Client, base: str) -> None:
    replies = client.calls(*[rq.create(f"{base}/n", flags=Mode.SEQUENTIAL)] * 50)
    assert [reply.path for reply in replies] == [f"{base}/n{i:010d}" for i in range(50)]


def test_a_number_that_is_taken_is_node_exists(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n0000000001"))
    reply = client.call(rq.create(f"{base}/n", flags=Mode.SEQUENTIAL))
    assert reply.err == Code.NODE_EXISTS
    # It failed, so the next one meets the same name.
    reply = client.call(rq.create(f"{base}/n", flags=Mode.SEQUENTIAL))
    assert reply.err == Code.NODE_EXISTS


def test_setting_data_and_acl_does_not_count(client: Client, base: str) -> None:
    client.call(rq.set_data(base, b"x"))
    client.call(rq.set_acl(base, OPEN))
    assert numbers(client, f"{base}/n") == [0]


@pytest.mark.parametrize(
    "create",
    [
        rq.create("{}/n", flags=Mode.EPHEMERAL_SEQUENTIAL),
        rq.create_container("{}/n", flags=Mode.SEQUENTIAL),
        rq.create_ttl("{}/n", 3_600_000, flags=Mode.SEQUENTIAL_TTL),
    ],
    ids=["ephemeral", "container", "ttl"],
)
def test_all_kinds_share_one_count(client: Client, base: str, create: Request) -> None:
    here = Request(create.op, rq.string(f"{base}/n") + create.body[len(rq.string("{}/n")) :])
    assert numbers(client, f"{base}/n") == [0]
    assert client.call(here).path == f"{base}/n0000000001"
    assert numbers(client, f"{base}/n") == [2]


def test_numbers_under_the_root_count_all_its_children(client: Client) -> None:
    first = client.call(rq.create("/seq", flags=Mode.SEQUENTIAL)).path
    second = client.call(rq.create("/seq", flags=Mode.SEQUENTIAL)).path
    assert int(second.removeprefix("/seq")) == int(first.removeprefix("/seq")) + 1
    client.call(rq.delete(first))
    client.call(rq.delete(second))
