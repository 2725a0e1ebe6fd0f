"""Handlers on threads of their own: what they give, what they raise, what is given up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paddock.sync import timeout
from paddock.sync.bridge import Bridge

DEADLINE_S = 30.0


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.leave()


def handled_by(bridge: Bridge, handler: Callable[..., Any], *arguments: Any) -> Any:
    """Have the loop await a handler."""
    handle = bridge.handlers.relay(handler)

    async def await_it() -> Any:
        return await handle(*arguments)

    return bridge.call(await_it)


def test_a_handler_gives_and_raises_as_if_the_loop_had_called_it(bridge: Bridge) -> None:
    error = KeyError("refused")

    def refuse() -> None:
        raise error

    assert handled_by(bridge, divmod, 7, 2) == (3, 1)
    with pytest.raises(KeyError) as caught:
        handled_by(bridge, refuse)
    assert caught.value is error


@pytest.mark.parametrize(
    "error", [StopIteration(), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_what_would_end_the_loop_comes_as_an_error(bridge: Bridge, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=r"the handler .* ended with") as caught:
        handled_by(bridge, fail)
    assert caught.value.__cause__ is error
    assert handled_by(bridge, int, "3") == 3


def test_what_is_none_stays_as_it_is(bridge: Bridge) -> None:
    assert bridge.handlers.relay(None) is None


def test_a_handler_that_was_given_up_goes_on_and_disturbs_nobody(
    bridge: Bridge, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "paddock.sync")
    may_end, has_ended = threading.Event(), threading.Event()

    def slow() -> str:
        assert may_end.wait(DEADLINE_S)
        has_ended.set()
        return "too late"

    with timeout(0.05), pytest.raises(TimeoutError):
        handled_by(bridge, slow)
    [thread] = [one for one in threading.enumerate() if one.name == "paddock-handler"]
    may_end.set()
    thread.join(DEADLINE_S)
    assert has_ended.is_set()
    assert handled_by(bridge, int, "3") == 3
    assert caplog.text == ""


def test_the_end_waits_for_handlers_but_not_for_the_one_that_ends_it() -> None:
    bridge = Bridge()
    ended = threading.Event()

    def end() -> None:
        bridge.leave()
        ended.set()

    async def begin() -> None:
        bridge.portal.keep(asyncio.ensure_future(bridge.handlers.relay(end)()))

    bridge.portal.post(begin)
    assert ended.wait(DEADLINE_S)
    bridge.portal._thread.join(DEADLINE_S)
    assert not bridge.portal._thread.is_alive()


def test_the_end_waits_for_a_handler_that_is_about_to_end() -> None:
    bridge = Bridge()
    is_begun, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def slow() -> None:
        is_begun.set()
        assert may_end.wait(DEADLINE_S)
        ended.append(True)

    with timeout(5), pytest.raises(TimeoutError):
        bridge.call(lambda: asyncio.wait_for(bridge.handlers.relay(slow)(), 0.01))
    assert is_begun.wait(DEADLINE_S)
    closing = threading.Thread(target=bridge.leave)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    may_end.set()
    closing.join(DEADLINE_S)
    assert ended == [True]
