"""What was waited for when the time was up.

    async with asyncio.timeout(seconds):
        await lock.acquire()

Who is cancelled while it waits adds to the CancelledError, as a note, what it waits for. Then
`asyncio.timeout` makes a TimeoutError of it, which has the CancelledError as its cause; before
Python 3.11.3 only as its context, until it passes a handler of another error.
"""

from __future__ import annotations


def waited_for(error: TimeoutError) -> list[str]:
    """Return what was waited for, as who was cancelled by `asyncio.timeout` has noted it.

    To be asked by who has the scope, as soon as it has ended.
    """
    return list(getattr(error.__cause__ or error.__context__, "__notes__", ()))
