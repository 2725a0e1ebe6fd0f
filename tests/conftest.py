"""What every test gets: event loops in asyncio's debug mode.

Only loops made in this process: a server that a test starts as a process of its own runs as its
users run it, so the environment (PYTHONASYNCIODEBUG) stays as it is.
"""

import asyncio
import asyncio.events

_new_event_loop = asyncio.events.new_event_loop


def _new_debug_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    loop.set_debug(True)
    return loop


asyncio.events.new_event_loop = _new_debug_loop
asyncio.new_event_loop = _new_debug_loop
