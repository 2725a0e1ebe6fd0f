"""Settings of zoo.cfg that a client can notice, each on a server of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.conformance.conftest import another
from tests.conformance.differences import TTL_NODES_BY_DEFAULT
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code, Op
from tests.support.server import Options, Server


@contextlib.contextmanager
def started(server: Server, **extra: str | None) -> Iterator[Server]:
    """A server of the same kind with other settings; dots in keys are written as `__`."""
    keys = tuple((key.replace("__", "."), value) for key, value in extra.items())
    with another(server, Options(extra=keys)) as own:
        yield own


def test_timeouts_are_two_to_twenty_ticks_by_default(server: Server) -> None:
    defaults = {"minSessionTimeout": None, "maxSessionTimeout": None, "tickTime": "2000"}
    with started(server, **defaults) as own:
        for asked, granted in ((0, 4000), (2000, 4000), (5000, 5000), (1_000_000, 40_000)):
            with wire.connect(own.address, timeout_ms=asked) as client:
                assert client.handshake.timeout_ms == granted


def test_ttl_nodes_without_a_setting(server: Server) -> None:
    with (
        started(server, extendedTypesEnabled=None) as own,
        wire.connect(own.address) as client,
    ):
        reply = client.call(rq.create_ttl("/t", 3_600_000))
        assert reply.err == TTL_NODES_BY_DEFAULT.on(server)


def test_ttl_nodes_can_be_turned_off(server: Server) -> None:
    with (
        started(server, extendedTypesEnabled="false") as own,
        wire.connect(own.address) as client,
    ):
        before = client.call(rq.exists("/")).zxid
        for request in (
            rq.create_ttl("/t", 1000),
            rq.create_ttl("/t", 0),
            rq.create("/t", flags=5),
            rq.create_ttl("bad path", 1000, acl=()),
        ):
            assert client.call(request).err == Code.UNIMPLEMENTED
        assert client.call(rq.create_ttl("/t", 1000, flags=0)).err == Code.BAD_ARGUMENTS
        (result,) = client.call(rq.multi(rq.create_ttl("/t", 1000))).results
        assert result.err == Code.UNIMPLEMENTED
        # They take a zxid, the connection lives, and containers need no permission.
        assert client.call(rq.exists("/")).zxid == before + 6
        reply = client.call(rq.create_container("/c"))
        assert (reply.op, reply.path) == (Op.CREATE_CONTAINER, "/c")


def test_connections_of_one_address_are_limited(server: Server) -> None:
    with started(server, maxClientCnxns="3") as own, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(wire.connect(own.address)) for _ in range(3)]
        with pytest.raises((wire.ConnectionClosedError, OSError)):
            wire.connect(own.address)
        assert clients[0].call(rq.exists("/")).err == Code.OK
        clients[0].close()
        with wire.connect(own.address) as last:
            assert last.session_id != 0


@pytest.mark.parametrize("whitelist", ["srvr, ruok", None])
def test_four_letter_words_must_be_listed(server: Server, whitelist: str | None) -> None:
    key = {"4lw__commands__whitelist": whitelist}
    with started(server, **key) as own:
        assert wire.four_letter_word(own.address, "srvr").startswith("Zookeeper version: ")
        refused = "{} is not executed because it is not in the whitelist.\n"
        expected = "imok" if whitelist else refused.format("ruok")
        assert wire.four_letter_word(own.address, "ruok") == expected
        assert wire.four_letter_word(own.address, "mntr") == refused.format("mntr")


def test_with_enforced_authentication_strangers_are_sent_away(server: Server) -> None:
    enforced = {"enforce__auth__enabled": "true", "enforce__auth__schemes": "digest"}
    with started(server, **enforced) as own:
        for request in (rq.exists("/"), rq.create("/n"), rq.ping()):
            with wire.connect(own.address) as stranger:
                assert stranger.session_id != 0
                stranger.send(request)
                assert stranger.reply().err == Code.SESSION_CLOSED_REQUIRE_SASL
                assert stranger.wait_closed() == b""
        with wire.connect(own.address) as client:
            assert client.call(rq.auth("ip", b"")).err == Code.OK
            assert client.call(rq.auth("digest", b"user:password")).err == Code.OK
            assert client.call(rq.create("/n")).err == Code.OK
            assert client.call(rq.exists("/n")).err == Code.OK
