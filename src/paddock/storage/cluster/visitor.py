"""A visitor: a member of a service for a moment, which serves nobody and changes the roster.

    async with Visitor(store, keys, state, caller) as visitor, visitor.membership():
        await visitor.propose(FORGET, forget_body("host:2181"))

It follows the log, joins, proposes one entry after the other, and leaves. It never owns a session,
and is never on duty beside servers that joined before it. One that is killed is deposed by them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from paddock.errors import OK
from paddock.log.etcd.etcd_log import EtcdLog
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Store
from paddock.log.interface import LogError, Position, Record, SharedListener
from paddock.state.entry import JOIN, LEAVE, RULES, Batch, Entry
from paddock.state.machine import Outcome
from paddock.state.roster import Member
from paddock.state.roster_bodies import JoinRequest
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.cluster.shared_state import SharedState

# An election of etcd's takes two seconds; this is more than several of them.
PROPOSAL_SECONDS: Final = 30.0


class NotAllowedError(LogError):
    """The service has refused an entry, and says why."""


class SkippedError(LogError):
    """An operator has decided that a batch of the visitor's is skipped: it has no effect."""


class DeposedError(LogError):
    """The servers took the visitor for dead, since it was silent for too long.

    What it has proposed and was not told the outcome of has no effect.
    """


@dataclass(frozen=True, slots=True)
class Caller:
    """Who visits: eight random bytes, and what others are told."""

    boot: bytes
    version: str


class Visitor(SharedListener):
    """Follows the log behind a state, and proposes to it."""

    def __init__(self, store: Store, keys: Keys, state: SharedState, caller: Caller) -> None:
        self.machine = state.machine
        self._replay = SharedReplay(state.machine, state.head.skipped)
        self.roster = self._replay.roster
        self._log = EtcdLog(store, keys)
        self._caller = caller
        # The number of the next proposal, and who waits for the one before it.
        self._number = 0
        self._waiting: asyncio.Future[Outcome] | None = None
        # Who waits for a record of a member.
        self._speaker: asyncio.Future[Member] | None = None
        # Why the log is followed no more.
        self._failure: LogError | None = None

    async def __aenter__(self) -> Self:
        roster = self.roster
        position = Position(roster.index, roster.revision, roster.last_boot, roster.last_number)
        try:
            await self._log.follow(self, position)
        except BaseException:
            await self._log.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._log.close()

    async def speaker(self, seconds: float) -> Member | None:
        """Return the first member that proposes something within so many seconds, if one does."""
        self._check()
        self._speaker = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                return await self._speaker
        except TimeoutError:
            return None
        finally:
            self._speaker = None

    @contextlib.asynccontextmanager
    async def membership(self) -> AsyncIterator[None]:
        """Join, and leave at the end of the scope.

        Raises NotAllowedError, SkippedError, LogError.
        """
        roster, caller = self.roster, self._caller
        duty = roster.duty()
        # Members warn of settings that differ from theirs, and of clocks; ours do not matter.
        settings = "" if duty is None else duty.settings
        request = JoinRequest(roster.index, RULES, "", settings, caller.version, b"", 0)
        self._log.begin(caller.boot)
        await self.propose(JOIN, request.encode())
        try:
            yield
        except (NotAllowedError, SkippedError):
            await self._leave()
            raise
        await self._leave()

    async def propose(self, operation: int, body: bytes) -> Outcome:
        """Have an entry applied.

        Raises NotAllowedError if it is refused, SkippedError, LogError.
        """
        self._check()
        rules = min(RULES, self.roster.rules or RULES)
        # Not by our clock: the service need not trust it.
        entry = Entry(operation, body, time_ms=self.machine.time_ms, rules=rules)
        batch = Batch([entry], self.roster.index, self.machine.shared_digest())
        self._waiting = asyncio.get_running_loop().create_future()
        self._log.propose(self._number, batch.encode())
        self._number += 1
        try:
            async with asyncio.timeout(PROPOSAL_SECONDS):
                outcome = await self._waiting
        except TimeoutError:
            raise LogError(
                f"etcd has not carried it out within {PROPOSAL_SECONDS:.0f} s; it may do so later"
            ) from None
        if outcome.error != OK:
            raise NotAllowedError(outcome.body.decode(errors="replace") or f"code {outcome.error}")
        return outcome

    async def _leave(self) -> None:
        # One that is skipped undoes nothing: the servers depose us, as if we had been killed.
        with contextlib.suppress(SkippedError):
            await self.propose(LEAVE, b"")

    # What the log calls.

    def committed(self, record: Record) -> None:
        assert record.server is not None
        member = self.roster.members.get(record.server)
        if self._failure is not None:
            return
        try:
            released = self._replay.apply(record)
        except LogError as error:
            self.failed(error)
            return
        boot = self._caller.boot
        if record.server == boot:
            if not record.payload:
                self._skipped(record)
                return
            for number, outcomes in released:
                if number == self._number - 1 and self._waiting is not None:
                    _settle(self._waiting, outcomes[0])
        elif boot in self.roster.ended:
            self.failed(DeposedError("the servers took this command for dead: run it again"))
        elif member is not None and self._speaker is not None:
            _settle(self._speaker, member)

    def room(self) -> None:
        pass

    def failed(self, error: LogError) -> None:
        self._failure = error
        for one in (self._waiting, self._speaker):
            if one is not None and not one.done():
                one.set_exception(error)

    def _skipped(self, record: Record) -> None:
        waiting = self._waiting
        if record.number == self._number - 1 and waiting is not None and not waiting.done():
            waiting.set_exception(
                SkippedError(
                    f"batch {record.index}, which is of this command, was skipped, as paddock"
                    " cluster skip has decided: it has no effect. Run the command again"
                )
            )

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


_T = TypeVar("_T")


def _settle(future: asyncio.Future[_T], result: _T) -> None:
    # Who waited may have given up.
    if not future.done():
        future.set_result(result)
