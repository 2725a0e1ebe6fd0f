"""Connection strings, the order in which hosts are tried, and the pauses between rounds."""

from __future__ import annotations

from random import Random

import pytest

from paddock.client.session.hosts import Backoff, Host, HostRing, parse_hosts
from paddock.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("localhost", [("localhost", 2181)], ""),
        ("one:1,two:2", [("one", 1), ("two", 2)], ""),
        ("one, two:2/app", [("one", 2181), ("two", 2)], "/app"),
        ("one/a/b", [("one", 2181)], "/a/b"),
        ("one/", [("one", 2181)], ""),
        ("127.0.0.1:65535", [("127.0.0.1", 65535)], ""),
        ("[::1]:2182,[fe80::1%eth0]", [("::1", 2182), ("fe80::1%eth0", 2181)], ""),
    ],
)
def test_a_connection_string_is_read(text: str, hosts: list[tuple[str, int]], chroot: str) -> None:
    assert parse_hosts(text) == (tuple(Host(*host) for host in hosts), chroot)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "one,,two",
        "one:",
        "one:x",
        "one:0",
        "one:65536",
        "::1",
        "[::1",
        "a b",
        "one//a",
        "one:\u0661",
    ],
)
def test_what_is_no_connection_string_is_refused_and_named(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^hosts ") as caught:
        parse_hosts(text)
    assert repr(text) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("http://one:2181", "expected host:port, not a URL"),
        ("one:1,zk://two/app", "expected host:port, not a URL"),
        ("one:1,::1:2181", "'::1:2181' is no host:port; an address of IPv6 stands in brackets"),
    ],
)
def test_common_mistakes_are_told_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(InvalidArgumentError, match=advice):
        parse_hosts(text)


def test_a_connection_string_is_text() -> None:
    with pytest.raises(InvalidArgumentError, match="hosts: expected text, not bytes"):
        parse_hosts(b"one")  # type: ignore[arg-type]


def test_an_address_is_written_so_that_it_can_be_read_again() -> None:
    for text in ("one:1", "[::1]:2"):
        ((host,), _) = parse_hosts(text)
        assert str(host) == text


def test_every_host_is_tried_once_in_a_round_in_a_shuffled_order() -> None:
    hosts = [Host(str(number), 1) for number in range(10)]
    ring = HostRing(hosts, Random(1))
    first = [ring.take() for _ in range(10)]
    assert ring.is_round_over()
    assert [ring.take() for _ in range(10)] == first
    assert sorted(first, key=str) == hosts
    assert first != hosts
    assert HostRing(hosts, Random(2)).take() != first[0]


def test_pauses_are_random_and_grow_up_to_a_limit() -> None:
    class Highest(Random):
        def uniform(self, a: float, b: float) -> float:
            return b

    backoff = Backoff(Highest(), first=0.1, longest=0.5)
    assert [backoff.next() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    backoff.reset()
    assert backoff.next() == 0.1
    delays = Backoff(Random(1))
    assert len({delays.next() for _ in range(10)}) == 10
