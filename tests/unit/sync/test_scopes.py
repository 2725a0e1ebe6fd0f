"""Scopes of the loop, as threads without one use them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

import pytest

from paddock.errors import SessionExpiredError
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
    with Scope[object](portal, room.scope()) as value:
        assert value == "value"
        assert room.log == ["entered"]
    assert room.log == ["entered", "left"]


def test_a_scope_takes_one_task_and_no_others_beside_it(portal: Portal) -> None:
    counts: list[int] = []

    @asynccontextmanager
    async def counting() -> AsyncIterator[None]:
        counts.append(len(asyncio.all_tasks()))
        yield
        await asyncio.sleep(0)
        counts.append(len(asyncio.all_tasks()))

    before = portal.run(lambda: len(asyncio.all_tasks()))
    with Scope(portal, counting()):
        pass
    assert counts == [before + 1, before + 1]


def test_a_scope_that_is_entered_although_it_was_given_up_is_entered(portal: Portal) -> None:
    room = Room()

    @asynccontextmanager
    async def stubborn() -> AsyncIterator[str]:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            pass
        async with room.scope() as value:
            yield value

    with timeout(0.05):
        scope = Scope[str](portal, stubborn())
        assert scope.__enter__() == "value"
    scope.__exit__(None, None, None)
    assert room.log == ["entered", "left"]


def test_what_a_scope_raises_when_it_is_given_up_does_not_hide_that(portal: Portal) -> None:
    @asynccontextmanager
    async def clumsy() -> AsyncIterator[None]:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            fail(ValueError("wrong on the way out"))
        yield

    with timeout(0.05), pytest.raises(TimeoutError, match="enter: no answer in time"):
        Scope(portal, clumsy()).__enter__()


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


class LostError(Exception):
    """What a scope raises that has ended before its body."""


class Losable:
    """A scope that can be lost: it then cancels the task that entered it, as a lock does."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self._task: asyncio.Task[object] | None = None
        self._is_lost = False

    async def __aenter__(self) -> Losable:
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_over.set()
        if self._is_lost and isinstance(error, asyncio.CancelledError | None):
            raise LostError("lost") from error

    def lose(self) -> None:
        assert self._task is not None
        self._is_lost = True
        self._task.cancel()


def hold_and_lose(
    portal: Portal, *, is_seen: bool = True, body: Callable[[], object] = lambda: None
) -> None:
    """Enter a scope that is lost, wait until it has ended or not, and go on."""
    scope = Losable()
    with Scope(portal, scope):
        portal.run(scope.lose)
        if is_seen:
            assert scope.is_over.wait(DEADLINE_S)
        body()


def test_a_body_hears_when_it_leaves_that_its_scope_was_lost(portal: Portal) -> None:
    done: list[str] = []
    with pytest.raises(LostError):
        hold_and_lose(portal, body=lambda: done.append("the body goes on"))
    assert done == ["the body goes on"]


@pytest.mark.parametrize("is_seen", [True, False])
def test_what_the_body_raises_says_also_that_its_scope_was_lost(
    portal: Portal, is_seen: bool
) -> None:
    error = ValueError("wrong")
    with pytest.raises(ValueError, match="wrong") as caught:
        hold_and_lose(portal, is_seen=is_seen, body=lambda: fail(error))
    assert caught.value is error
    assert isinstance(error.__context__, LostError)


def test_that_a_scope_was_lost_is_added_to_what_an_error_says_already(portal: Portal) -> None:
    def body() -> None:
        try:
            raise KeyError("first")
        except KeyError as first:
            raise ValueError("wrong") from first

    with pytest.raises(ValueError, match="wrong") as caught:
        hold_and_lose(portal, body=body)
    assert isinstance(caught.value.__cause__, KeyError)
    assert isinstance(caught.value.__cause__.__context__, LostError)


def test_a_scope_that_is_lost_in_silence_hides_no_error_that_it_was_not_told_of(
    portal: Portal,
) -> None:
    @asynccontextmanager
    async def careless() -> AsyncIterator[asyncio.Task[object] | None]:
        try:
            yield asyncio.current_task()
        except asyncio.CancelledError:
            pass

    scope = Scope[asyncio.Task[object] | None](portal, careless())
    task = scope.__enter__()

    async def lose_and_leave() -> bool:
        assert task is not None
        task.cancel()
        error = ValueError("wrong")
        await scope._held.leave(error)
        return scope._held.outcome(error)

    assert portal.call(lose_and_leave) is False


def test_a_scope_that_is_left_too_slowly_is_given_up(portal: Portal) -> None:
    is_given_up = threading.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        yield
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            is_given_up.set()

    with timeout(0.5), pytest.raises(TimeoutError, match="leave"):
        with Scope(portal, slow()):
            pass
    assert is_given_up.is_set()


@pytest.mark.parametrize("at_exit", [True, False])
def test_the_end_of_the_loop_leaves_what_is_held(
    at_exit: bool, caplog: pytest.LogCaptureFixture
) -> None:
    portal, holder = Portal(), object()
    assert portal.hold(holder)

    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        try:
            yield
        finally:
            raise LostError("lost in the end")

    scope, room = Losable(), Room()
    lost, held = Scope[object](portal, scope), Scope[object](portal, room.scope())
    failed = Scope[object](portal, failing())
    lost.__enter__()
    held.__enter__()
    failed.__enter__()
    portal.run(scope.lose)
    assert scope.is_over.wait(DEADLINE_S)
    if at_exit:
        portal.exit()
    else:
        portal.release(holder)
    assert not portal._thread.is_alive()
    assert room.log == ["entered", "left"]
    # Those who leave them later are told what has happened.
    with pytest.raises(LostError):
        lost.__exit__(None, None, None)
    with pytest.raises(LostError, match="in the end"):
        failed.__exit__(None, None, None)
    with pytest.raises(SessionExpiredError, match="leave: the client is closed"):
        held.__exit__(None, None, None)
    assert caplog.text == ""


def test_a_scope_that_nobody_leaves_is_held_to_the_end(
    portal: Portal, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[str] = []

    @asynccontextmanager
    async def held() -> AsyncIterator[None]:
        # Nothing outside refers to it.
        try:
            yield
        finally:
            log.append("left")

    Scope(portal, held()).__enter__()
    gc.collect()
    portal.run(gc.collect)
    assert log == []
    assert caplog.text == ""
