"""Several servers on one log in memory: the test says what is committed, and who hears of it when.

A proposal is in flight until it is committed or refused, or its outcome is unknown. A committed
record is in the log for good, but each server is told of it only when the test says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddock.log.interface import Listener, Record
from tests.unit.server.harness import Assembly, FakeClient, turn

IN_FLIGHT_MAX = 4


class SharedLog:
    """The records, in their order."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, payload: bytes, server: bytes, number: int) -> None:
        self.records.append(Record(len(self.records) + 1, payload, server, number))


class Port:
    """One server's access to the log."""

    in_flight_max = IN_FLIGHT_MAX
    is_shared = True
    torn = None

    def __init__(self, log: SharedLog, server: bytes) -> None:
        self.server = server
        # What was proposed and is neither committed nor refused, in order.
        self.in_flight: list[tuple[int, bytes]] = []
        # The last record that this server was told of.
        self.told = 0
        self._log = log
        self._listener: Listener | None = None
        self._is_in_doubt = False

    @property
    def last_index(self) -> int:
        return len(self._log.records)

    def start(self, listener: Listener, after: int = 0) -> None:
        for record in self.records(after):
            listener.committed(record)
        self._listener = listener
        self.told = self.last_index

    def propose(self, number: int, payload: bytes) -> None:
        assert len(self.in_flight) < self.in_flight_max
        assert not self._is_in_doubt
        self.in_flight.append((number, payload))

    def records(self, after: int) -> Iterator[Record]:
        return iter(self._log.records[after:])

    def commit(self) -> None:
        """Write the oldest proposal in flight to the log; nobody is told yet."""
        number, payload = self.in_flight.pop(0)
        self._log.append(payload, self.server, number)

    def deliver(self) -> bool:
        """Tell the next record; return whether there was one."""
        assert self._listener is not None
        if self._is_in_doubt or self.told >= self.last_index:
            return False
        self.told += 1
        self._listener.committed(self._log.records[self.told - 1])
        return True

    def refuse(self) -> None:
        """Say that the oldest proposal in flight was surely not written."""
        assert self._listener is not None
        self._listener.refused(self.in_flight.pop(0)[0], "as the test wants it")

    def fail(self, survivors: int) -> None:
        """Let the outcome of all in flight be unknown; the first of them were written."""
        assert self._listener is not None
        for _ in range(survivors):
            self.commit()
        self.in_flight.clear()
        self._is_in_doubt = True
        self._listener.unknown("as the test wants it")

    def recover(self) -> None:
        self._is_in_doubt = False
        while self.deliver():
            pass

    def purge(self, below: int) -> None:
        pass

    def leave_loop(self) -> None:
        pass

    def close(self) -> None:
        pass


class Member(Assembly):
    """One server of several."""

    def __init__(self, world: SharedWorld, server: bytes, **settings: Any) -> None:
        self.port = Port(world.log, server)
        self._world = world
        # What the state was after each record: its digest, its zxid and its sessions.
        self.states: dict[int, tuple[Any, ...]] = {}
        # Records that were decoded, and not found in flight.
        self.decoded: list[int] = []
        super().__init__(self.port, None, settings)
        self.replica.on_applied = self._take_down
        self.fatal: list[str] = []
        self.replica.on_fatal = self.fatal.append
        opened = self.replica.replay.open

        def open_counted(record: Record) -> Any:
            self.decoded.append(record.index)
            return opened(record)

        self.replica.replay.open = open_counted  # type: ignore[method-assign]

    async def settle(self) -> None:
        await self._world.settle()

    def new_client(self) -> FakeClient:
        """Return a client without a session."""
        return FakeClient(self)

    def tracks(self, client: FakeClient) -> bool:
        return self.service.tracker.get(client.session) is not None

    def _take_down(self) -> None:
        machine = self.machine
        sessions = {
            one.id: (one.generation, one.timeout_ms, one.password)
            for one in machine.sessions.by_id.values()
        }
        self.states[self.replica.applied] = (machine.digest(), machine.zxid, sessions)


class SharedWorld:
    """Two servers on one log."""

    def __init__(self, **settings: Any) -> None:
        self.log = SharedLog()
        self.members = [Member(self, name, **settings) for name in (b"first", b"second")]

    async def settle(self) -> None:
        """Commit and tell everything, until nothing is under way; then compare."""
        await turn()
        while self._advance():
            await turn()
            await turn()
        self.check()
        for member in self.members:
            assert member.proposer.outstanding() == 0
            assert member.replica.applied == len(self.log.records)

    def check(self) -> None:
        """Compare the states of both after every record that both have applied."""
        first, second = self.members
        for index in first.states.keys() & second.states.keys():
            assert first.states[index] == second.states[index], index
        assert not first.fatal
        assert not second.fatal

    def _advance(self) -> bool:
        advanced = False
        for member in self.members:
            while member.port.in_flight:
                member.port.commit()
                advanced = True
        for member in self.members:
            while member.port.deliver():
                advanced = True
            advanced = advanced or member.proposer.outstanding() > 0
        return advanced
