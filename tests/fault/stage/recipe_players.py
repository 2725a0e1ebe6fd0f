"""Those who play a recipe: each with a client of its own, and with what it tells the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.client.transaction import Transaction
from paddock.errors import ConnectionLostError, SessionExpiredError, TransactionFailedError
from tests.fault.stage.grant_log import GrantLog, Hold, SessionRecord

# Every player's; the server grants it.
SESSION_TIMEOUT_S: Final = 9.0


class Guarded(Protocol):
    """A grant, as far as it matters here."""

    token: int

    def guard(self) -> Transaction: ...


@dataclass(slots=True)
class Fenced:
    """A grant of several things, as the log knows it: by the token of one of them."""

    token: int
    guard: Callable[[], Transaction]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a player has seen or done."""

    who: str
    what: str
    value: Any
    at: float
    # Of what was played then.
    log: GrantLog


class Player:
    """One who takes part."""

    def __init__(
        self,
        name: str,
        hosts: str,
        random: Random,
        log: GrantLog,
        notes: list[Note],
        *,
        exact: bool = False,
    ) -> None:
        self.name = name
        # Whether its sessions are exact.
        self.is_exact = exact
        # The client that it has now, and what is known of its session; set by `connect`.
        self.client: Client
        self.session: SessionRecord
        # Of what it plays.
        self.log = log
        self._hosts = hosts
        self._random = random
        self._notes = notes
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        """Begin a new session: before the play, and when one goes on after its session's end."""
        record = SessionRecord(self.name)
        client = connect(
            self._hosts,
            session_timeout=SESSION_TIMEOUT_S,
            random=self._random,
            exact=self.is_exact,
        )
        loop = asyncio.get_running_loop()

        def listen(state: SessionState) -> None:
            if state.is_final or state is SessionState.OVERDUE:
                record.learnt_at.append(loop.time())

        client.add_listener(listen)
        self._clients.append(client)
        await client.start()
        self.client, self.session = client, record
        return client

    def holds(self, token: int, share: int | None = None) -> AbstractContextManager[Hold]:
        """Take down that something is held in a scope; without a share, all that there is."""
        return self.log.hold(self.session, token, share)

    async def write(self, grant: Guarded) -> bool:
        """Write something under a grant; tell whether it was surely written.

        A refusal is a problem, unless the session is over: then it is what a guard is for.
        """
        session = self.session
        guard = grant.guard()
        guard.create(f"{self.log.writes}/write-", b"%d" % grant.token, sequential=True)
        try:
            await guard.commit()
        except TransactionFailedError as error:
            if not session.is_expired and not session.learnt_at:
                self.log.problems.append(f"{self.name} could not write as a holder: {error}")
            return False
        except (ConnectionLostError, SessionExpiredError):
            # Nobody knows: it is found among what was written, or not.
            self.check_doubt()
            return False
        return True

    def check_doubt(self) -> None:
        """Tell the judge of an outcome that is unknown, in an exact session that lives."""
        is_sure = self.is_exact and not self.session.is_expired and not self.session.learnt_at
        self.expect(not is_sure, "something is unknown in an exact session")

    def note(self, what: str, value: Any = None) -> None:
        """Tell the judge of something."""
        now = asyncio.get_running_loop().time()
        self._notes.append(Note(self.name, what, value, now, self.log))

    def expect(self, is_so: bool, problem: str) -> None:
        """Tell the judge of something that must not be, whatever becomes of the play."""
        if not is_so:
            self.log.problems.append(f"{self.name}: {problem}")

    async def close(self) -> None:
        """End all its sessions."""
        for client in self._clients:
            await client.close()

    def check_watches(self) -> None:
        """See that nobody waits for anything to change any more, on any of its clients."""
        for client in self._clients:
            watchers = client._session.watches.everybody()
            if watchers:
                self.log.problems.append(f"{self.name} has left watches behind: {watchers}")
