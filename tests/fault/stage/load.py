"""Sixteen writers that load a server until it goes away, and check what it is when it is back.

with Load(server.address, seed=7) as load:
    load.run(until=500, then=server.kill)
    server.start()
    load.check(server.address)
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.fault.stage.history import SHARED, History, Kind, Step, Write
from tests.fault.stage.process import DEADLINE_S, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Mode

WRITERS = 16
IN_FLIGHT_MAX = 8
NAMES = ("a", "b", "c", "d", "e", "f")
#: Long enough that no session ends while a slow machine starts the server again.
SESSION_TIMEOUT_MS = 60_000
#: The one with which a test waits until a server has started.
SESSIONS_OF_A_START = 1
#: So many sequential nodes a writer lets live before it prefers to delete.
SEQUENTIAL_MAX = 12


class Progress:
    """Counts answers, and wakes threads that wait for a number of them."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._over = False
        # Whether the writers are to write nothing more, and to wait for what is not answered.
        self.is_stopping = False

    def step(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def end(self) -> None:
        """A writer has stopped: there may be no more steps."""
        with self._condition:
            self._over = True
            self._condition.notify_all()

    def wait(self, count: int) -> None:
        with self._condition:
            arrived = self._condition.wait_for(
                lambda: self._over or self._count >= count, DEADLINE_S
            )
        assert arrived, f"only {self._count} answers in {DEADLINE_S} seconds"


class Writer:
    """One client that keeps several requests on their way."""

    def __init__(self, client: wire.Client, name: str, seed: int, data_bytes_max: int) -> None:
        self.client = client
        self.history = History(name, client.session_id)
        self._random = random.Random(seed)
        self._data_bytes_max = data_bytes_max
        self._number = 0

    def run(self, progress: Progress) -> None:
        """Write until the connection is gone, or it is told to stop."""
        history, client = self.history, self.client
        try:
            while not progress.is_stopping:
                writes = [self._next() for _ in range(self._sent_at_once())]
                history.unanswered += writes
                client.send(*(write.request() for write in writes))
                for _ in range(self._awaited_at_once()):
                    history.answered(client.reply())
                    progress.step()
            while history.unanswered:
                history.answered(client.reply())
                progress.step()
        except (wire.ConnectionClosedError, ConnectionError):
            pass
        else:
            return
        finally:
            progress.end()
        client.disconnect()

    def _sent_at_once(self) -> int:
        return self._random.randint(1, IN_FLIGHT_MAX - len(self.history.unanswered))

    def _awaited_at_once(self) -> int:
        return self._random.randint(1, len(self.history.unanswered))

    def _next(self) -> Write:
        self._number += 1
        if self._random.random() < 0.15:
            steps = tuple(self._step(index) for index in range(self._random.randint(2, 4)))
        elif self._random.random() < 0.12:
            steps = (self._shared_step(),)
        else:
            steps = (self._step(0),)
        return Write(self._number, steps)

    def _step(self, index: int) -> Step:
        chance, history = self._random.random(), self.history
        path = f"{history.realm.base}/{self._random.choice(NAMES)}"
        flags = Mode.EPHEMERAL if self._random.random() < 0.3 else Mode.PERSISTENT
        version = self._random.choice((rq.ANY_VERSION, rq.ANY_VERSION, 0, 1))
        if chance < 0.35:
            return Step(Kind.SET, path, self._data(index), version=version)
        if chance < 0.60:
            return Step(Kind.CREATE, path, self._data(index), flags)
        if chance < 0.75:
            return Step(Kind.DELETE, path, version=version)
        if chance < 0.80 and index > 0:
            return Step(Kind.CHECK, path, version=version)
        sequential = [path for path in list(history.realm.nodes) if path[-10:].isdigit()]
        if sequential and self._random.random() * SEQUENTIAL_MAX < len(sequential):
            return Step(Kind.DELETE, self._random.choice(sequential))
        return Step(
            Kind.CREATE, f"{history.realm.base}/q-", self._data(index), flags | Mode.SEQUENTIAL
        )

    def _shared_step(self) -> Step:
        known = [path for path in self.history.realm.shared.values() if path is not None]
        if known and self._random.random() * SEQUENTIAL_MAX < len(known):
            return Step(Kind.DELETE, self._random.choice(known))
        return Step(Kind.CREATE, f"{SHARED}/n-", self._data(0), Mode.SEQUENTIAL)

    def _data(self, index: int) -> bytes:
        """Return data that no other step has."""
        size = self._random.choice((0, 10, 100, self._data_bytes_max))
        return f"{self.history.name}:{self._number}:{index}:".encode() + bytes(size)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found, for people."""

    nodes: int
    unanswered: int
    survived: int


class Load:
    """All writers, and what must hold between them."""

    def __init__(self, address: wire.Address, seed: int, data_bytes_max: int = 2_000) -> None:
        self._begin([address] * WRITERS, Writer, seed, data_bytes_max)

    def _begin(
        self,
        addresses: Sequence[wire.Address],
        kind: type[Writer],
        seed: int,
        data_bytes_max: int,
    ) -> None:
        """Open a session for each writer, and make the nodes that they write below."""
        self._random = random.Random(seed)
        self.writers = [
            kind(
                wire.connect(address, timeout_ms=SESSION_TIMEOUT_MS),
                f"w{number:02d}",
                self._random.getrandbits(64),
                data_bytes_max,
            )
            for number, address in enumerate(addresses)
        ]
        paths = [SHARED, *(writer.history.realm.base for writer in self.writers)]
        made = self.writers[0].client.calls(*(rq.create(path) for path in paths))
        assert wire.errors(made) == [0] * len(paths)
        # Every zxid up to here belongs to the past, and must not be given again.
        self._zxid_floor = made[-1].zxid
        self._sequence_floor = -1
        self._zxids_counted = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self.writers:
            writer.client.disconnect()

    @property
    def acknowledged(self) -> int:
        return sum(writer.history.acknowledged for writer in self.writers)

    @property
    def refused(self) -> int:
        return sum(writer.history.refused for writer in self.writers)

    def run(self, until: int, then: Callable[[], object]) -> None:
        """Write; after so many answers do `then`, which must make the server go away."""
        progress = Progress()
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [pool.submit(writer.run, progress) for writer in self.writers]
            try:
                progress.wait(until)
            finally:
                then()
        for each in running:
            each.result()

    def check(self, address: wire.Address, sessions: int = SESSIONS_OF_A_START) -> Checked:
        """Compare the server with what its clients know, and take up the sessions again.

        `sessions` have been opened and closed since it came back, besides those of the writers.
        """
        with wire.connect(address) as reader:
            tree = read_tree(reader)
            zxid = reader.call(rq.exists("/")).zxid
            reader.close()
        unanswered = sum(len(writer.history.unanswered) for writer in self.writers)
        survived = sum(writer.history.reconcile(tree) for writer in self.writers)
        known = max(max(writer.history.zxids.values(), default=0) for writer in self.writers)
        # Nobody was told the zxids of those sessions: if they had been given before, only the
        # number of them could show it.
        assert zxid >= known + 2 * sessions + 1, "the server is behind what it has acknowledged"
        self._check_zxids(zxid)
        self._check_sequence()
        for writer in self.writers:
            self._reattach(writer, address, known)
        return Checked(len(tree), unanswered, survived)

    def _check_zxids(self, zxid: int) -> None:
        """No zxid belongs to two transactions, and none from before the last restart came again."""
        recent = [
            each
            for writer in self.writers
            for each in writer.history.zxids.values()
            if each > self._zxid_floor
        ]
        assert len(set(recent)) == len(recent), "a zxid was given twice"
        counted = sum(len(writer.history.zxids) for writer in self.writers)
        assert counted - self._zxids_counted == len(recent), "a zxid of the past was given again"
        self._zxids_counted = counted
        self._zxid_floor = zxid

    def _check_sequence(self) -> None:
        """Check that sequence numbers below SHARED grow with the zxid, also across restarts."""
        created = sorted(each for writer in self.writers for each in writer.history.sequence)
        numbers = [self._sequence_floor, *(number for _, number in created)]
        assert all(low < high for low, high in itertools.pairwise(numbers)), numbers
        self._sequence_floor = numbers[-1]
        for writer in self.writers:
            writer.history.sequence.clear()

    def _reattach(self, writer: Writer, address: wire.Address, last_zxid: int) -> None:
        client = writer.client
        client.disconnect()
        if self._random.random() < 0.1:
            with wire.connect(
                address, session_id=client.session_id, password=bytes(16)
            ) as stranger:
                assert stranger.session_id == 0, "a session was given for a wrong password"
        again = wire.reattach(address, client, last_zxid)
        assert again.session_id == client.session_id, f"{writer.history.name} lost its session"
        assert again.password == client.password
        ephemerals = {p for p, node in writer.history.realm.nodes.items() if node.is_ephemeral}
        assert again.call(rq.get_ephemerals("/")).names == ephemerals
        writer.client = again
