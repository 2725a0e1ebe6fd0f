"""Programs that outlive their sessions: when one is over, the program begins again in the next.

    async def work(client: paddock.Client) -> None:
        async with Lock(client, "/locks/report"):
            ...


    await run_in_sessions(lambda: paddock.connect("127.0.0.1:2181"), work)

`work` is called with an open client, and sets up all that belongs to its session. The rules:

* When the service says that the session has expired, the body is cancelled, and the CancelledError
  says so. Scopes in it, as those of locks, end first. Then the client is closed, and `work` is
  called with another client, in a new session. A body that has not ended after a session timeout is
  cancelled again.
* A session that is overdue may go on, so the body is not cancelled. But a body that ends with an
  error whose `session_may_be_over` is True, as that of a lock which is lost when nothing was heard
  for a session timeout, ends the session: it is closed, and the program begins again. So does an
  exception group of nothing but such errors.
* What else the body raises or returns is the end of the program, also if the session has expired
  meanwhile. An error of another client's session is no expiry of this one. A client that the body
  has closed is not replaced. If the service refuses our credentials, the body is cancelled, and
  AuthenticationError is raised.
* Cancellation by the caller wins, and so does its deadline: after it no session is opened. The body
  is a task of its own, so that the two are told apart whatever the body does; it is awaited in any
  case.
* The first session is opened as `connect` says. For all others servers are tried until one grants
  a session. Before each there is a random pause, so that clients do not come all at once. It grows
  up to five seconds while sessions do not outlive their timeout.
* Programs nest: each has its own client, and ends with the one around it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError, InvalidArgumentError, PaddockError

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0


async def run_in_sessions(
    connect: Callable[[], Client], work: Callable[[Client], Awaitable[T]]
) -> T:
    """Run a program in one session after the other, until it returns; return its result.

        async def work(client: paddock.Client) -> int:
            await client.create("/worker", ephemeral=True)
            return (await client.get("/config")).stat.version


        version = await paddock.run_in_sessions(lambda: paddock.connect("127.0.0.1:2181"), work)
        print(version)  # 0

    `connect` returns a client for each session, and `work` is called with it once it is open. When
    the session expires, `work` is cancelled, and begins again with the next client. It also begins
    again if it ends with an error whose `session_may_be_over` is True while the session has
    expired, or may have. All other errors are raised.

    The first session is opened as `connect` says; later ones as soon as a server grants one, after
    a random pause. Use `asyncio.timeout` around it for a deadline.
    """
    loop = asyncio.get_running_loop()
    pauses = Pauses()
    client = checked_client(connect())
    await client.start()
    while True:
        began_at = loop.time()
        run = _Run(client, work)
        try:
            if not await run.is_ended_by_session():
                return run.task.result()
        finally:
            await client.close()
        logger.info("session 0x%x is over; the program begins again", client.session_id)
        pauses.note(loop.time() - began_at, client.session_timeout)
        client = await _open_next(connect, client, pauses)


async def _open_next(connect: Callable[[], Client], last: Client, pauses: Pauses) -> Client:
    while True:
        await asyncio.sleep(pauses.next(last))
        client = checked_client(connect())
        try:
            await client.start()
        except ConnectionLostError as error:
            logger.info("no new session yet: %s", error)
        else:
            return client


def checked_client(client: object) -> Client:
    if not isinstance(client, Client):
        raise InvalidArgumentError(f"connect: expected that it returns a client, not {client!r}")
    return client


class Pauses:
    """How long to wait before the next session: random, and longer after short sessions."""

    def __init__(self) -> None:
        self._limit = _FIRST_PAUSE

    def note(self, lived: float, timeout: float) -> None:
        """Begin anew with short pauses after a session that has outlived its timeout."""
        if lived > timeout:
            self._limit = _FIRST_PAUSE

    def next(self, last: Client) -> float:
        """Return the next one, in seconds; the randomness is that of a client."""
        pause = self._limit * (int(last.new_mark()[:8], 16) / 2**32)
        self._limit = min(2 * self._limit, _LONGEST_PAUSE)
        return pause


class Doubt:
    """Whether the session of a client has expired, or may have, at any time since this was made."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._has_come = False
        client.add_listener(self.on_state)
        self.on_state(client.state)

    def on_state(self, state: SessionState) -> None:
        # A server in read-only mode does not vouch for the session.
        if state in (
            SessionState.EXPIRED,
            SessionState.OVERDUE,
            SessionState.CONNECTED_READ_ONLY,
        ):
            self._has_come = True

    def end(self) -> None:
        self._client.remove_listener(self.on_state)

    def explains(self, error: BaseException | None) -> bool:
        """Return whether an error is due to the session."""
        is_closed = self._client.state is SessionState.CLOSED
        return self._may_be_over() and not is_closed and _is_by_session(error)

    def _may_be_over(self) -> bool:
        # A lock may notice it a moment before OVERDUE is published.
        return self._has_come or self._loop.time() >= self._client.session_valid_until


def _is_by_session(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_by_session, error.exceptions))
    return isinstance(error, PaddockError) and error.session_may_be_over


class _Run(Generic[T]):
    """One call of `work`, in a task of its own: who cancels us is our caller, and nobody else."""

    def __init__(self, client: Client, work: Callable[[Client], Awaitable[T]]) -> None:
        self._client = client
        self._doubt = Doubt(client)
        self._loop = asyncio.get_running_loop()
        self.task: asyncio.Task[T] = self._loop.create_task(_call(work, client))
        # The next cancellation for the session's sake, once the session is over.
        self._next: asyncio.TimerHandle | None = None
        client.add_listener(self._on_state)
        self._on_state(client.state)

    async def is_ended_by_session(self) -> bool:
        """Wait for its end; return whether the session is the reason.

        Raises CancelledError if our caller is, and AuthenticationError if our credentials are.
        """
        by_caller: asyncio.CancelledError | None = None
        while not self.task.done():
            try:
                await asyncio.wait([self.task])
            except asyncio.CancelledError as error:
                by_caller = error
                self.task.cancel(*error.args)
        self._client.remove_listener(self._on_state)
        self._doubt.end()
        if self._next is not None:
            self._next.cancel()
        is_cancelled = self.task.cancelled()
        is_by_session = (
            self._next is not None if is_cancelled else self._doubt.explains(self.task.exception())
        )
        if by_caller is not None and (is_cancelled or is_by_session):
            raise by_caller
        if is_by_session and self._client.state is SessionState.AUTH_FAILED:
            # Raises what was wrong.
            await self._client.wait_connected()
        return is_by_session

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED or state is SessionState.AUTH_FAILED:
            why = (
                "has expired" if state is SessionState.EXPIRED else "is over: who we are is refused"
            )
            self._cancel(f"session 0x{self._client.session_id:x} {why}")

    def _cancel(self, reason: str) -> None:
        self.task.cancel(reason)
        # The body may swallow it; and it has some time for its way out.
        self._next = self._loop.call_later(self._client.session_timeout, self._cancel, reason)


async def _call(work: Callable[[Client], Awaitable[T]], client: Client) -> T:
    return await work(client)
