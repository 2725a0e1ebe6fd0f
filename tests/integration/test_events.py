"""The events of a server on real sockets and a real disk, on both kinds of event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from paddock.storage import events
from paddock.storage.events import Event, read_events
from paddock.testing.embedded import ServerThread
from tests.support import requests as rq
from tests.support import wire

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("factory", LOOPS, ids=["asyncio", "uvloop"])
def test_each_client_leaves_its_own_trace(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with ServerThread(tmp_path, loop=factory()) as server:
        closes, goes, resets, stays, moves = (wire.connect(server.address) for _ in range(5))
        wants = {
            closes.session_id: events.CLOSED,
            goes.session_id: events.EOF,
            resets.session_id: events.RESET,
            stays.session_id: events.STOPPING,
            moves.session_id: events.REPLACED,
        }
        port = closes.port
        resets.call(rq.create("/held", flags=1))
        closes.close()
        goes.disconnect()
        # As the system does for a process that was killed with something unread.
        resets._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        resets.disconnect()
        again = wire.reattach(server.address, moves)
        moves.wait_closed()
        # What was sent before is noticed by now.
        stays.call(rq.ping())
        again.close()
    for client in (stays, moves):
        client.disconnect()
    found = list(read_events(tmp_path / events.FOLDER))
    ends: dict[int, Event] = {}
    for event in found:
        if event.kind == events.CONNECTION_ENDED:
            ends.setdefault(event.session, event)
    assert {session: event.reason for session, event in ends.items()} == wants
    assert ends[closes.session_id].address == f"127.0.0.1:{port}"
    assert [event.kind for event in found].count(events.SESSION_OPENED) == 5
    assert (found[0].kind, found[-1].kind) == (events.SERVER_STARTED, events.SERVER_STOPPED)


def test_a_server_in_memory_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ServerThread() as server:
        wire.connect(server.address).close()
    assert list(tmp_path.iterdir()) == []
