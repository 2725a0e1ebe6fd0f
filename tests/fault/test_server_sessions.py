"""Sessions across a restart: each has its full timeout again, then ends as it would have before."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fault.stage.process import DEADLINE_S, FaultServer, eventually, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code, EventType, Mode

TIMEOUT_MS = 2_000


@pytest.fixture
def server(tmp_path: Path) -> FaultServer:
    return FaultServer(tmp_path)


def test_session_has_its_full_timeout_again_after_a_restart(server: FaultServer) -> None:
    with server:
        with wire.connect(server.address, timeout_ms=TIMEOUT_MS) as client:
            client.call(rq.create("/e", flags=Mode.EPHEMERAL))
        server.kill()
        # Nobody serves for longer than the timeout, and that does not count.
        passed = time.monotonic() + 1.2 * TIMEOUT_MS / 1000
        eventually(lambda: time.monotonic() > passed, "time to pass")
        server.start()
        with wire.reattach(server.address, client) as again:
            assert again.session_id == client.session_id
            assert again.handshake.timeout_ms == TIMEOUT_MS
            assert again.call(rq.get_ephemerals("/")).names == {"/e"}


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_ephemerals_of_a_client_that_stays_away_vanish_in_one_transaction(
    server: FaultServer, kill: bool
) -> None:
    with server:
        with wire.connect(server.address) as client:
            for path in ("/one", "/two", "/plain"):
                client.call(rq.create(path))
            with wire.connect(server.address, timeout_ms=TIMEOUT_MS) as gone:
                for path in ("/one/e", "/two/e", "/two/f"):
                    gone.call(rq.create(path, flags=Mode.EPHEMERAL))
        if kill:
            server.kill()
        else:
            assert server.stop() == 0
        server.start()
        with wire.reattach(server.address, client) as watcher:
            zxid = watcher.call(rq.exists("/one/e", watch=True)).zxid
            assert watcher.call(rq.get_children("/one", watch=True)).names == {"e"}
            assert watcher.call(rq.get_children("/two", watch=True)).names == {"e", "f"}
            events = {(e.type, e.path) for e in (watcher.next_event(DEADLINE_S) for _ in range(3))}
            assert events == {
                (EventType.DELETED, "/one/e"),
                (EventType.CHILDREN_CHANGED, "/one"),
                (EventType.CHILDREN_CHANGED, "/two"),
            }
            tree = read_tree(watcher)
            assert set(tree) == {"/one", "/two", "/plain"}
            assert {tree[path][1].pzxid for path in ("/one", "/two")} == {zxid + 1}
            assert watcher.drain() == []
            assert watcher.call(rq.exists("/")).zxid == zxid + 1
        # The end of the session was logged: it is over after another crash, too.
        server.kill()
        server.start()
        with wire.reattach(server.address, client) as again:
            assert read_tree(again) == tree
        with wire.reattach(server.address, gone) as late:
            assert late.session_id == 0


def test_closed_session_stays_closed_after_a_kill(server: FaultServer) -> None:
    with server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/e", flags=Mode.EPHEMERAL))
            client.close()
        server.kill()
        server.start()
        with wire.reattach(server.address, client) as late:
            assert late.session_id == 0
        with wire.connect(server.address) as other:
            assert other.call(rq.exists("/e")).err == Code.NO_NODE


def test_write_of_a_connection_that_was_left_behind_does_not_come_back_after_a_kill(
    server: FaultServer,
) -> None:
    with server:
        with wire.connect(server.address) as old, wire.reattach(server.address, old) as new:
            with pytest.raises((wire.ConnectionClosedError, ConnectionError)):
                old.call(rq.create("/late"))
            zxid = new.call(rq.create("/now")).zxid
        server.kill()
        server.start()
        with wire.reattach(server.address, new, last_zxid=zxid) as again:
            assert again.session_id == old.session_id
            assert set(read_tree(again)) == {"/now"}
