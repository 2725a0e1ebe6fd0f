"""The state of a session, published to listeners and streams.

Listeners are called at once, in the order of the states: one that comes meanwhile waits until all
of them were called. What a listener raises goes to the event loop's exception handler.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self, TypeAlias

from paddock.client.states import SessionState

# Called with a state.
StateListener: TypeAlias = Callable[[SessionState], None]


class _Told:
    """A state that was published, and the one after it once there is one."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.next: _Told | None = None
        self.has_next = asyncio.Event()


class StateStream:
    """The state of a session when the stream was made, then every newer one, until a final one.

    None is left out, however slowly it is read; a stream without references costs nothing.
    """

    def __init__(self, told: _Told) -> None:
        self._told = told
        # Whether it was yielded.
        self._has_begun = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionState:
        if self._has_begun:
            if self._told.state.is_final:
                raise StopAsyncIteration
            await self._told.has_next.wait()
            assert self._told.next is not None
            self._told = self._told.next
        self._has_begun = True
        return self._told.state


class StatePublisher:
    """Holds a session's state and tells of every new one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.state = SessionState.DISCONNECTED
        # When it became that, by the loop's clock.
        self.since = loop.time()
        self._loop = loop
        self._listeners: dict[StateListener, None] = {}
        self._last = _Told(self.state)
        # Not published yet; while it is not empty, a call of `publish` is at it.
        self._news: deque[SessionState] = deque()

    def add(self, listener: StateListener) -> None:
        """Call a listener with every later state, once, however often it was added."""
        self._listeners[listener] = None

    def remove(self, listener: StateListener) -> None:
        """Remove a listener, if it was added."""
        self._listeners.pop(listener, None)

    def publish(self, state: SessionState) -> None:
        """Set the state, and tell of it unless it is the same."""
        if state is self.state:
            return
        self.state = state
        self.since = self._loop.time()
        told, self._last = self._last, _Told(state)
        told.next = self._last
        told.has_next.set()
        self._news.append(state)
        if len(self._news) > 1:
            return
        while self._news:
            for listener in list(self._listeners):
                if listener in self._listeners:
                    self._tell(listener, self._news[0])
            self._news.popleft()

    def stream(self) -> StateStream:
        """Return a stream of the present state and every later one."""
        return StateStream(self._last)

    async def wait_connected(self) -> bool:
        """Wait for a connection; return False if the session is over."""
        async for _ in self.stream():
            if self.state.is_connected:
                return True
        return False

    def _tell(self, listener: StateListener, state: SessionState) -> None:
        try:
            listener(state)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": f"a listener failed on {state!r}", "exception": error}
            )
