"""Scopes of the loop, as threads without one use them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from paddock.sync import timeout
from paddock.sync.portal import Portal
from paddock.sync.scopes import Scope

DEADLINE_S = 30.0


class Room:
    """A scope that belongs to the task that entered it, as `asyncio.timeout` does."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_left = threading.Event()
        self.may_open = True

    @asynccontextmanager
    async def scope(self, *, swallows: bool = False) -> AsyncIterator[str]:
        async with asyncio.timeout(DEADLINE_S):
            task = asyncio.current_task()
            if not self.may_open:
                await asyncio.get_running_loop().create_future()
            self.log.append("entered")
            try:
                yield "value"
            except ValueError as error:
                self.log.append(f"saw {error}")
                if not swallows:
                    raise
            finally:
                assert asyncio.current_task() is task
                self.log.append("left")
                self.is_left.set()


def fail(error: Exception) -> None:
    raise error


def test_a_scope_is_entered_and_left_by_one_task(portal: Portal) -> None:
    room = Room()
    with Scope(portal, room.scope()) as value:
        assert value == "value"
        assert room.log == ["entered"]
    assert room.log == ["entered", "left"]


def test_a_scope_sees_what_its_body_raises(portal: Portal) -> None:
    room = Room()
    error = ValueError("wrong")
    with pytest.raises(ValueError, match="wrong") as caught, Scope(portal, room.scope()):
        raise error
    assert caught.value is error
    assert {frame.path.name for frame in caught.traceback if hasattr(frame.path, "name")} == {
        Path(__file__).name
    }
    assert room.log == ["entered", "saw wrong", "left"]


def test_a_scope_may_take_care_of_what_its_body_raises(portal: Portal) -> None:
    room = Room()
    with Scope(portal, room.scope(swallows=True)):
        fail(ValueError("minor"))
    assert room.log == ["entered", "saw minor", "left"]


def test_a_scope_that_cannot_be_entered_in_time_is_not(portal: Portal) -> None:
    room = Room()
    room.may_open = False
    with timeout(0.05), pytest.raises(TimeoutError), Scope(portal, room.scope()):
        room.log.append("the body")
    assert room.log == []


def test_a_scope_that_was_entered_when_control_c_came_is_left(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room()
    call = portal.call

    def interrupted(function: Callable[[], Awaitable[object]]) -> None:
        call(function)
        raise KeyboardInterrupt

    monkeypatch.setattr(portal, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Scope(portal, room.scope()).__enter__()
    assert room.is_left.wait(DEADLINE_S)
    assert room.log == ["entered", "left"]


def test_a_scope_is_left_also_when_the_time_is_up(portal: Portal) -> None:
    room = Room()
    never = asyncio.Event()
    with pytest.raises(TimeoutError), timeout(0.05), Scope(portal, room.scope()):
        portal.call(never.wait)
    assert room.log == ["entered", "left"]
