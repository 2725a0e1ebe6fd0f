"""Event loops: uvloop's where it is installed, which is faster; otherwise those of asyncio."""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop as running_loop
from collections.abc import Coroutine
from typing import Any, TypeVar

from paddock.errors import UsageError

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, the fastest that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """Run a program as `asyncio.run` does, but on uvloop where that is installed.

        async def main() -> None:
            async with paddock.connect("127.0.0.1:2181") as client:
                print(client.state)  # CONNECTED


        paddock.run(main())

    The client is at home on any event loop; on this one a call costs less. `debug` is asyncio's
    debug mode. Raises UsageError where an event loop already runs: there one awaits.
    """
    if running_loop() is not None:
        main.close()
        raise UsageError(
            "paddock.run is where a program begins, and an event loop runs here: await"
        )
    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        return runner.run(main)
