"""The way from threads to the loop: outcomes, limits, the end, threads that may not use it."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddock.errors import ConnectionLostError, SessionExpiredError, UsageError
from paddock.sync import timeout
from paddock.sync.portal import Portal, open_portal

DEADLINE_S = 30.0


class Never:
    """Something that is never done, and tells when it was begun and when it was cancelled."""

    def __init__(self) -> None:
        self.is_begun = threading.Event()
        self.is_cancelled = threading.Event()

    async def wait(self) -> None:
        self.is_begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.is_cancelled.set()
            raise


def in_thread(function: Callable[[], object]) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(1)
    pool.submit(function)
    return pool


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


def test_a_call_gives_what_was_promised(portal: Portal) -> None:
    def future(value: str, *, is_done: bool) -> asyncio.Future[str]:
        promised: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if is_done:
            promised.set_result(value)
        else:
            asyncio.get_running_loop().call_soon(promised.set_result, value)
        return promised

    assert portal.call(doubled, 21) == 42
    assert portal.call(future, "now", is_done=True) == "now"
    assert portal.call(future, "soon", is_done=False) == "soon"
    assert portal.run(threading.current_thread) is portal._thread
    assert portal.run(asyncio.current_task) is None, "a plain function needs no task"


def test_two_calls_may_wait_for_one_future(portal: Portal) -> None:
    shared = portal.run(lambda: asyncio.get_running_loop().create_future())
    waiting = threading.Semaphore(0)

    def ask() -> asyncio.Future[str]:
        waiting.release()
        return shared

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(portal.call, ask) for _ in range(2)]
        for _ in asked:
            assert waiting.acquire(timeout=DEADLINE_S)
        portal.run(shared.set_result, "both")
        assert [one.result(DEADLINE_S) for one in asked] == ["both", "both"]


@pytest.mark.parametrize("is_installed", [True, False])
def test_uvloop_is_used_if_it_is_there_and_not_needed(
    monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    async def module_of_the_loop() -> str:
        return type(asyncio.get_running_loop()).__module__

    if not is_installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    holder = object()
    portal = open_portal(holder)
    try:
        assert portal.call(module_of_the_loop).startswith("uvloop") is is_installed
    finally:
        portal.release(holder)


def test_many_threads_get_each_their_own_outcome(portal: Portal) -> None:
    with ThreadPoolExecutor(16) as pool:
        numbers = range(2000)
        assert list(pool.map(lambda one: portal.call(doubled, one), numbers)) == [
            one * 2 for one in numbers
        ]


def test_an_error_is_raised_where_it_was_asked_for(portal: Portal) -> None:
    def refused() -> asyncio.Future[None]:
        raise ValueError("refused before anything was queued")

    async def failing() -> None:
        raise KeyError("failed on the way")

    with pytest.raises(ValueError, match="refused before"):
        portal.call(refused)
    with pytest.raises(KeyError, match="failed on the way") as caught:
        portal.call(failing)
    files = {frame.path.name for frame in caught.traceback if hasattr(frame.path, "name")}
    assert files == {"test_portal.py", "portal.py"}, "no frame of the loop is in the way"


def test_a_raised_error_is_freed_without_the_collector(portal: Portal) -> None:
    class FailureError(Exception):
        pass

    async def failing() -> None:
        raise FailureError

    def fail() -> weakref.ref[FailureError]:
        try:
            portal.call(failing)
        except FailureError as failure:
            return weakref.ref(failure)
        raise AssertionError("it did not fail")

    gc.disable()
    try:
        freed = fail()
        # Once the loop has let go of the task.
        portal.run(lambda: None)
        assert freed() is None
    finally:
        gc.enable()


def test_control_c_ends_the_wait_at_once_and_cancels_the_call(portal: Portal) -> None:
    never = Never()
    main = threading.get_ident()

    def interrupt() -> None:
        assert never.is_begun.wait(DEADLINE_S)
        signal.pthread_kill(main, signal.SIGINT)

    # Where the tests run in the background, it is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with in_thread(interrupt), pytest.raises(KeyboardInterrupt):
            portal.call(never.wait)
    finally:
        signal.signal(signal.SIGINT, before)
    assert never.is_cancelled.wait(DEADLINE_S)
    assert portal.call(doubled, 1) == 2


def test_a_limit_ends_the_wait_and_cancels_the_call(portal: Portal) -> None:
    never = Never()
    with timeout(0.01), pytest.raises(TimeoutError, match="wait: no answer in time"):
        portal.call(never.wait)
    assert never.is_cancelled.is_set() or not never.is_begun.is_set()
    assert portal.call(doubled, 1) == 2


def test_the_limit_that_ends_first_counts_and_ends_with_its_scope(portal: Portal) -> None:
    with timeout(60):
        with timeout(0.01), pytest.raises(TimeoutError):
            portal.call(Never().wait)
        assert portal.call(doubled, 1) == 2
    with timeout(0.01), timeout(60), timeout(None), pytest.raises(TimeoutError):
        portal.call(Never().wait)
    with timeout(0), pytest.raises(TimeoutError, match="doubled: the time is up"):
        portal.call(doubled, 1)
    assert portal.call(doubled, 1) == 2


def test_a_limit_is_for_its_own_thread(portal: Portal) -> None:
    with timeout(0), ThreadPoolExecutor(1) as pool:
        assert pool.submit(portal.call, doubled, 1).result(DEADLINE_S) == 2


def test_what_was_done_just_when_time_was_up_is_not_lost(portal: Portal) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "done"
        raise AssertionError("it was not cancelled")

    # Without this pass the call could be given up before it is begun.
    portal.run(lambda: None)
    begun = threading.Event()

    async def begin() -> str:
        begun.set()
        return await stubborn()

    outcomes: list[str] = []

    def ask() -> None:
        with timeout(0.2):
            try:
                outcomes.append(portal.call(begin))
            except TimeoutError:
                outcomes.append("given up" if begun.is_set() else "not begun")

    with in_thread(ask):
        pass
    assert outcomes in (["done"], ["not begun"])


def test_what_concludes_is_done_also_when_the_time_is_up(portal: Portal) -> None:
    with timeout(0):
        assert portal.conclude(doubled, 1) == 2


def test_the_end_fails_what_is_under_way() -> None:
    holder = object()
    other = Portal()
    assert other.hold(holder)
    never = Never()

    def pending() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(other.call, pending), pool.submit(other.call, never.wait)
        assert never.is_begun.wait(DEADLINE_S)
        other.release(holder)
        with pytest.raises(ConnectionLostError, match="wait: "):
            second.result(DEADLINE_S)
        with pytest.raises(ConnectionLostError, match="pending: "):
            first.result(DEADLINE_S)
    assert never.is_cancelled.is_set()
    assert not other._thread.is_alive()
    with pytest.raises(SessionExpiredError, match="doubled: the client is closed"):
        other.call(doubled, 1)
    other.post(doubled, 1)


def test_calls_and_the_end_at_the_same_time_leave_nobody_waiting() -> None:
    for _ in range(50):
        portal, holder = Portal(), object()
        assert portal.hold(holder)

        def ask(portal: Portal = portal) -> None:
            while True:
                portal.call(doubled, 1)

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            portal.release(holder)
            for one in asking:
                error = one.exception(DEADLINE_S)
                assert isinstance(error, ConnectionLostError | SessionExpiredError)


def test_all_share_one_thread_until_the_last_has_gone() -> None:
    first, second = object(), object()
    portal = open_portal(first)
    assert open_portal(second) is portal
    portal.release(first)
    assert portal.call(doubled, 1) == 2
    portal.release(second)
    assert not portal._thread.is_alive()
    later = open_portal(first)
    assert later is not portal
    later.release(first)


def test_a_thread_with_an_event_loop_is_refused(portal: Portal) -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="would block the event loop"):
            portal.call(doubled, 1)
        with pytest.raises(UsageError, match=r"use paddock\.connect here"):
            open_portal(object())

    asyncio.run(main())
    # The loop's own thread is one of these.
    with pytest.raises(UsageError, match="would block the event loop"):
        portal.run(portal.call, doubled, 1)


def test_errors_of_what_nobody_waits_for_are_logged(
    portal: Portal, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing() -> None:
        raise ValueError("heard by nobody")

    caplog.set_level("DEBUG", "paddock.sync")
    portal.post(failing)
    while not caplog.records:
        portal.run(lambda: None)
    assert "it was not waited for" in caplog.text
    assert "heard by nobody" in caplog.text
