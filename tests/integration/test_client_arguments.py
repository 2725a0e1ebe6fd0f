"""What callers give wrongly is named before anything is sent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import paddock
from paddock import ACL, Client, Event, Identity, InvalidArgumentError, WatchKind
from paddock.client.requests.encoder import REQUEST_BYTES_MAX
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.integration.test_client import path, run, server
from tests.support.apis import api
from tests.support.server import Service

__all__ = ["api", "path", "server"]


async def nobody_awaits(event: Event) -> None:
    pass


@dataclass
class Unhashable:
    """A callback that compares itself with others, as dataclasses do, and so has no hash."""

    def __call__(self, event: Event) -> None:
        raise AssertionError("nobody calls it")


def acl(permissions: Any, identity: Any) -> dict[str, Any]:
    return {"acl": [ACL(permissions, identity)]}


ANYONE = Identity("world", "anyone")
# A type of the compiled modules does not even let itself be made of the wrong types.
FROM_ACL: list[tuple[Callable[[Any], Any], str]] = [
    (lambda client: client.create("/a", **acl(32, ANYONE)), "acl: 32 are no permissions"),
    (lambda client: client.create("/a", **acl(-1, ANYONE)), "acl: -1 are no permissions"),
    (lambda client: client.create("/a", **acl("rw", ANYONE)), "acl: 'rw' are no permissions"),
    (
        lambda client: client.create("/a", **acl(1, Identity("ip", "\ud800"))),
        "acl: the id '\\ud800'",
    ),
    (lambda client: client.create("/a", **acl(1, "world")), "acl: expected an Identity"),
    (lambda client: client.create("/a", **acl(1, Identity(7, "x"))), "acl: the scheme 7"),  # type: ignore[arg-type]
    (lambda client: client.create("/a", **acl(1, Identity("ip", b"x"))), "acl: the id b'x'"),  # type: ignore[arg-type]
]

CALLS: list[tuple[Callable[[Any], Any], str]] = [
    # Paths.
    (lambda client: client.get("no-slash"), "path: 'no-slash' does not begin with a slash"),
    (lambda client: client.get(""), "path: '' does not begin with a slash"),
    (lambda client: client.get("/a/"), "path: '/a/' ends with a slash"),
    (lambda client: client.get("/a//b"), "path: '/a//b' has two slashes"),
    (lambda client: client.get("/a/../b"), "path: '/a/../b' has a part . or .."),
    (lambda client: client.get("/./b"), "path: '/./b' has a part . or .."),
    (lambda client: client.get("/a\0b"), "path: '/a\\x00b' has a null character"),
    (lambda client: client.get("/a\x07"), "path: '/a\\x07' has a character"),
    (lambda client: client.get("/\ud800"), "path: '/\\ud800' has a character"),
    (lambda client: client.get(b"/a"), "path: expected text, not bytes"),
    (lambda client: client.get(None), "path: expected text, not NoneType"),
    (lambda client: client.create(5, sequential=True), "path: expected text, not int"),
    (lambda client: client.create(Path("/"), sequential=True), "path: expected text, not Posix"),
    (lambda client: client.create("a/", sequential=True), "path: 'a' does not begin"),
    (lambda client: client.create("a", protected=True), "path: "),
    (lambda client: client.watch("a"), "path: "),
    (lambda client: client.delete_tree("a"), "path: "),
    (lambda client: client.sync("a"), "path: "),
    (lambda client: client.transaction().check("a"), "path: "),
    (lambda client: client.multi_read().children("a"), "path: "),
    # Data.
    (lambda client: client.create("/a", "text"), "data: expected bytes, not str: encode it"),
    (lambda client: client.set("/a", bytearray()), "data: expected bytes, not bytearray"),
    (lambda client: client.transaction().set("/a", 1), "data: expected bytes, not int"),
    # Versions.
    (lambda client: client.set("/a", b"", version=-2), "version: -2 is no version"),
    (lambda client: client.set("/a", b"", version=2**31), "version: 2147483648"),
    (lambda client: client.delete("/a", version="1"), "version: '1'"),
    (lambda client: client.delete("/a", version=True), "version: True"),
    (lambda client: client.delete("/a", version=1.0), "version: 1.0"),
    (lambda client: client.set_acl("/a", paddock.OPEN_ACL, version=None), "version: None"),
    # ACLs.
    (lambda client: client.create("/a", acl=[]), "acl: an empty list"),
    (lambda client: client.create("/a", acl=["x"]), "acl: expected a list of ACL, not one with"),
    (lambda client: client.create("/a", acl=5), "acl: expected a list of ACL, not 5"),
    (lambda client: client.create("/a", acl=None), "acl: expected a list of ACL, not None"),
    (lambda client: client.set_acl("/a", paddock.OPEN_ACL[0]), "acl: expected a list of ACL, not"),
    *FROM_ACL,
    # Kinds of nodes.
    (lambda client: client.create("/a", ttl=0), "ttl: 0 is no number"),
    (lambda client: client.create("/a", ttl=-1), "ttl: -1"),
    (lambda client: client.create("/a", ttl=math.nan), "ttl: nan"),
    (lambda client: client.create("/a", ttl=math.inf), "ttl: inf"),
    (lambda client: client.create("/a", ttl="1"), "ttl: '1'"),
    (lambda client: client.create("/a", ttl=True), "ttl: True"),
    (lambda client: client.create("/a", ephemeral=True, ttl=1), "ephemeral, container, ttl: "),
    (lambda client: client.create("/a", container=True, ttl=1), "ephemeral, container, ttl: "),
    (lambda client: client.create("/a", container=True, ephemeral=True), "ephemeral, container"),
    (lambda client: client.create("/a", container=True, sequential=True), "ephemeral, container"),
    (lambda client: client.create("/a", ephemeral=1), "ephemeral: expected True or False, not 1"),
    (lambda client: client.create("/a", sequential="no"), "sequential: expected True or False"),
    (
        lambda client: client.create("/a", protected="no"),
        "protected: expected True, False or a mark",
    ),
    (lambda client: client.create("/a", protected="a-b" * 9), "protected: expected True, False or"),
    (lambda client: client.create("/a", protected=1), "protected: expected True, False or a mark"),
    (lambda client: client.create("/a", make_parents=1), "make_parents: expected True or False"),
    # Watches.
    (lambda client: client.get("/a", watch=True), "watch: True stands for the default watcher"),
    (lambda client: client.get("/a", watch="yes"), "watch: 'yes' cannot be called"),
    (lambda client: client.get("/a", watch=0), "watch: 0 cannot be called"),
    (lambda client: client.get("/a", watch=nobody_awaits), "watch: <function nobody_awaits at"),
    (lambda client: client.get("/a", watch=Unhashable()), "watch: Unhashable() has no hash"),
    (lambda client: client.add_watch("/a", Unhashable()), "watcher: Unhashable() has no hash"),
    (lambda client: client.add_watch("/a", None), "watcher: None cannot be called"),
    (lambda client: client.add_watch("/a", print, recursive=1), "recursive: expected True"),
    (lambda client: client.watch("/a", recursive=None), "recursive: expected True"),
    (lambda client: client.remove_watches("/a", "any"), "kind: expected a WatchKind"),
    (lambda client: client.remove_watches("/a", WatchKind.ANY, watcher=1), "watcher: 1 cannot"),
    # The rest.
    (lambda client: client.add_listener(None), "listener: None cannot be called"),
    (lambda client: client.add_listener(nobody_awaits), "listener: <function nobody_awaits at"),
    (lambda client: client.add_auth(7, b"x"), "scheme: expected text, not int"),
    (lambda client: client.add_auth("", b"x"), "scheme: expected text"),
    (lambda client: client.add_auth("\ud800", b"x"), "scheme: it has characters that cannot"),
    (lambda client: client.add_auth("digest", b"a:" + bytes(1 << 20)), "auth: the request has"),
    (lambda client: client.add_listener(None), "listener: None cannot be called"),
    (lambda client: client.add_listener(nobody_awaits), "listener: <function nobody_awaits at"),
    (lambda client: client.add_listener(Unhashable()), "listener: Unhashable() has no hash"),
    (lambda client: client.reconfig(joining="\ud800"), "joining: expected text or a list"),
    (lambda client: client.reconfig(leaving=["\ud800"]), "leaving: expected text or a list"),
    (lambda client: client.add_auth("digest", "a:b"), "credentials: expected bytes, not str"),
    (lambda client: client.delete_tree("/a", batch=0), "batch: 0 is not 1 or more"),
    (lambda client: client.delete_tree("/a", batch=True), "batch: True"),
    (lambda client: client.set("/a", bytes(1 << 20)), "set: the request has 1048598 bytes"),
    (lambda client: client.get("/" + "a" * (1 << 20)), "get: the request has 1048590 bytes"),
]


@pytest.mark.parametrize(("call", "named"), CALLS)
def test_a_call_that_cannot_be_sent_is_not(call: Callable[[Client], Any], named: str) -> None:
    async def scenario() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            paddock.connect(proxy.hosts) as client,
        ):
            try:
                with pytest.raises(InvalidArgumentError) as caught:
                    call(client)
            except TypeError:
                # A compiled record does not let itself be made of the wrong types.
                assert (call, named) in FROM_ACL
                return
            assert str(caught.value).startswith(named)
            assert "a:b" not in str(caught.value), "secrets are not shown"
            await asyncio.sleep(0)
            assert [request.name for request in proxy.requests] == ["create_session"]

    run_virtually(scenario())


@pytest.mark.parametrize(
    ("hosts", "settings", "named"),
    [
        ("", {}, "hosts '': an empty host"),
        (b"127.0.0.1", {}, "hosts: expected text"),
        ("a/\ud800", {}, "hosts 'a/\\ud800': '/\\ud800' is no valid path"),
        ("a", {"session_timeout": 0}, "session_timeout: 0 is no number"),
        ("a", {"session_timeout": -1.0}, "session_timeout: -1.0"),
        ("a", {"session_timeout": math.nan}, "session_timeout: nan"),
        ("a", {"session_timeout": math.inf}, "session_timeout: inf"),
        ("a", {"session_timeout": 2**31 / 1000}, "session_timeout: 2147483.648"),
        ("a", {"session_timeout": "10"}, "session_timeout: '10'"),
        ("a", {"session_timeout": True}, "session_timeout: True"),
        ("a", {"tls": True}, "tls: expected an ssl.SSLContext, not True"),
        ("a", {"read_only": 1}, "read_only: expected True or False"),
        ("a", {"random": 7}, "random: expected a random.Random, not 7"),
        (
            "a",
            {"sasl": ("bob", "a:b")},
            "sasl: expected SaslCredentials or KerberosCredentials, not tuple",
        ),
        ("a", {"default_watcher": 5}, "default_watcher: 5 cannot be called"),
        ("a", {"default_watcher": nobody_awaits}, "default_watcher: <function nobody_awaits"),
        ("a", {"max_request_bytes": 0}, "max_request_bytes: 0"),
        ("a", {"max_request_bytes": "1M"}, "max_request_bytes: '1M'"),
    ],
)
def test_a_client_that_cannot_be_made_is_not(
    hosts: Any, settings: dict[str, Any], named: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            paddock.connect(hosts, **settings)
        assert str(caught.value).startswith(named)

    asyncio.run(scenario())


def test_the_largest_request_that_we_send_is_taken(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        # The header, the path and the data with their lengths, and the version.
        rest = 8 + 4 + len(path) + 4 + 4
        data = bytes(REQUEST_BYTES_MAX - rest)
        with pytest.raises(InvalidArgumentError, match="the request has 1048576 bytes"):
            await client.set(path, data + b"x")
        assert (await client.set(path, data)).data_length == len(data)

    run(server, scenario)
