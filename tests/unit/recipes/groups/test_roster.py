"""Who is there, read again: what was told is read, however often that takes."""

from __future__ import annotations

import asyncio
from typing import cast

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import ConnectionLostError
from paddock.protocol.records import Stat
from paddock.recipes.groups.roster import MembershipChange, Roster


class FakeClient:
    """A service with one member, and a connection that is lost now and then."""

    def __init__(self) -> None:
        self.payload, self.version = b"first", 0
        self.losses = 0

    async def children(self, path: str, *, watch: object) -> list[str]:
        return ["one"]

    async def get(self, path: str, *, watch: object) -> NodeData:
        if self.losses:
            self.losses -= 1
            raise ConnectionLostError("get", path)
        stat = Stat(7, 7, 0, 0, self.version, 0, 0, 1, len(self.payload), 0, 7)
        return NodeData(self.payload, stat)

    async def wait_connected(self) -> None:
        pass


def test_what_was_told_is_read_though_the_connection_is_lost() -> None:
    async def scenario() -> None:
        service = FakeClient()
        roster = Roster(cast(Client, service), "/members")
        [event] = await roster.read()
        assert event.change is MembershipChange.JOINED
        service.payload, service.version, service.losses = b"second", 1, 2
        roster(Event(SessionState.CONNECTED, EventType.CHANGED, "/members/one"))
        await roster.wait()
        [event] = await roster.read()
        assert (event.change, event.member.payload) == (MembershipChange.UPDATED, b"second")
        assert await roster.read() == []

    asyncio.run(scenario())
