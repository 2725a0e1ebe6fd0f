"""What a clean restart and a kill keep: the tree, the sessions and the numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import another
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Acl, Code, EventType, Mode
from tests.support.server import Server, digest

ANN = b"ann:secret"


@pytest.fixture
def own(server: Server) -> Iterator[Server]:
    """A server of the same kind for this test alone."""
    with another(server) as own:
        yield own


def fill(client: wire.Client) -> None:
    for request in (
        rq.create("/p", b"data"),
        rq.create("/p/null", None),
        rq.create("/p/hidden", b"x", (Acl(31, "digest", digest(ANN)),)),
        rq.create("/p/s", flags=Mode.SEQUENTIAL),
        rq.create_container("/c"),
        rq.create_ttl("/t", 3_600_000),
        rq.create("/e", flags=Mode.EPHEMERAL),
        rq.create("/p/gone"),
        rq.delete("/p/gone"),
        rq.set_data("/p", b"more"),
        rq.set_acl("/t", (Acl(31, "world", "anyone"), Acl(1, "ip", "10.0.0.0/8"))),
        rq.multi(rq.create("/m"), rq.create("/m/n"), rq.set_data("/m", b"x")),
    ):
        assert client.call(request).err == Code.OK
    assert client.call(rq.create("/p")).err == Code.NODE_EXISTS


def picture(client: wire.Client) -> dict[str, object]:
    """Everything that can be read, by path."""
    client.call(rq.auth("digest", ANN))
    seen: dict[str, object] = {"zxid": client.call(rq.exists("/")).zxid}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        data, children = client.call(rq.get_data(path)), client.call(rq.get_children(path))
        seen[path] = (data.data, data.stat, client.call(rq.get_acl(path)).acl, children.names)
        waiting += [f"{path.rstrip('/')}/{name}" for name in children.names]
    return seen


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
def test_everything_is_there_again(own: Server, kill: bool) -> None:
    with wire.connect(own.address) as client:
        fill(client)
        before = picture(client)
    if kill:
        own.kill()
        own.start()
    else:
        own.restart()
    again = wire.reattach(own.address, client, last_zxid=0)
    assert again.session_id == client.session_id
    after = picture(again)
    # The sessions with which the start was awaited have taken zxids.
    before_zxid, after_zxid = before.pop("zxid"), after.pop("zxid")
    assert isinstance(before_zxid, int)
    assert isinstance(after_zxid, int)
    assert after_zxid > before_zxid
    assert after == before
    assert again.call(rq.create("/p/s", flags=Mode.SEQUENTIAL)).path == "/p/s0000000004"
    assert again.call(rq.get_ephemerals("/")).names == {"/e"}
    again.close()
    with wire.connect(own.address) as other:
        assert other.call(rq.exists("/e")).err == Code.NO_NODE


def test_a_session_nobody_returns_to_expires_after_a_restart(own: Server) -> None:
    with wire.connect(own.address, timeout_ms=2000) as client:
        client.call(rq.create("/e", flags=Mode.EPHEMERAL))
    own.restart()
    with wire.connect(own.address) as watcher:
        assert watcher.call(rq.exists("/e", watch=True)).err == Code.OK
        event = watcher.next_event()
        assert (event.type, event.path) == (EventType.DELETED, "/e")
        # Once more, since Apache closes what reattaches in the very moment of the expiry.
        assert watcher.call(rq.exists("/e")).err == Code.NO_NODE
    again = wire.reattach(own.address, client)
    assert again.session_id == 0
    again.disconnect()


def test_a_clean_stop_closes_connections_and_ends_well(own: Server) -> None:
    with wire.connect(own.address) as client:
        own.stop()
        assert client.wait_closed() == b""
