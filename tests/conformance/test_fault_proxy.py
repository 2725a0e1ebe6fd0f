"""The proxy of `paddock.testing` before either server: it must not matter which one it is."""

from __future__ import annotations

import contextlib

import pytest

from paddock.testing import (
    Cut,
    CutPoint,
    FaultProxy,
    at_every_cut_blocking,
    expire_session_blocking,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code
from tests.support.server import Server

pytestmark = pytest.mark.judge


def test_a_create_is_there_or_not_by_where_it_was_cut(server: Server) -> None:
    def scenario(proxy: FaultProxy, point: CutPoint | None) -> None:
        path = "/proxied"
        with contextlib.suppress(wire.ConnectionClosedError), wire.connect(proxy.address) as client:
            assert client.calls(rq.exists("/"), rq.create(path), rq.exists(path))[1].err == Code.OK
        with wire.connect(server.address) as client:
            is_there = client.call(rq.delete(path)).err == Code.OK
            client.close()
        assert is_there == (
            point is None
            or point.request.number > 3
            or (point.request.number == 3 and point.cut is not Cut.BEFORE)
        )

    points = at_every_cut_blocking(lambda: contextlib.nullcontext(server), scenario, tuple(Cut))
    names = [point.request.name for point in points if point.cut is Cut.BEFORE]
    assert names == ["create_session", "exists", "create", "exists"]


def test_a_session_can_be_ended_from_outside(server: Server) -> None:
    with wire.connect(server.address) as client:
        assert client.call(rq.create("/mine", flags=1)).err == Code.OK
        expire_session_blocking(server.address, client.session_id, client.password)
        client.wait_closed()
        with wire.reattach(server.address, client) as again:
            assert again.session_id == 0
    with wire.connect(server.address) as other:
        assert other.call(rq.exists("/mine")).err == Code.NO_NODE
        other.close()
