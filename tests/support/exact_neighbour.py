"""Our client with exact sessions, beside foreign clients on the same service.

One session writes as long as the neighbour is there, and is never in doubt about a write. Others
are handed over to a foreign client, by id and password, while a reply is lost; when that client is
away, the neighbour takes them back and looks at what it is told.

On a service without exact sessions all of them are ordinary ones.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import paddock.sync
from paddock import Stat
from paddock.errors import ConnectionLostError
from paddock.protocol import opcodes
from paddock.testing import FaultProxy

#: What follows the length of every answer to a handshake, with the read-only byte.
ANSWER_BYTES: Final = 37
#: What a foreign client writes last into a node that was handed over.
THEIRS: Final = b"theirs"

_DEADLINE_S: Final = 30.0
_SESSION_S: Final = 60.0
_PAUSE_S: Final = 0.05

_numbers = itertools.count()


def answers(*ways: FaultProxy) -> list[bytes]:
    """Return the answers to all handshakes that went this way, without their lengths."""
    return [
        seen.payload
        for way in ways
        for seen in way.replies
        if seen.request.operation == opcodes.CREATE_SESSION
    ]


@dataclass(slots=True)
class Handed:
    """A session that was handed over, with an ephemeral node whose version is 1."""

    client: paddock.sync.Client
    path: str
    way: FaultProxy
    # The write that made it 1, and whose reply was lost.
    writing: Future[Stat]

    def __str__(self) -> str:
        return f"{self.client.session_id:x} {self.client.session_password.hex()} {self.path}"


class ExactNeighbour:
    """Writes from the beginning of its `with` to the end."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._stack = contextlib.ExitStack()
        self._has_ended = threading.Event()
        self._handed: Handed | None = None
        self.is_exact = False

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._threads = stack.enter_context(ThreadPoolExecutor())
            client = stack.enter_context(_connected(f"{self._address[0]}:{self._address[1]}"))
            self.is_exact = client.is_exact
            path = client.create(f"/neighbour{next(_numbers)}")
            writing = self._threads.submit(self._write, client, path)
            stack.callback(lambda: writing.result(_DEADLINE_S))
            stack.callback(self._has_ended.set)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _write(self, client: paddock.sync.Client, path: str) -> None:
        version = 0
        while not self._has_ended.wait(_PAUSE_S):
            try:
                version = client.set(path, b"", version=version).version
            except ConnectionLostError:
                assert not self.is_exact
                found = client.exists(path)
                assert found is not None
                version = found.version

    def hand_over(self) -> str:
        """Open a session, and stay away from it; return its id, its password and the node."""
        way = self._stack.enter_context(FaultProxy(self._address))
        client = self._stack.enter_context(_connected(way.hosts))
        path = client.create(f"/handed{next(_numbers)}", ephemeral=True)
        fault = way.when(operation="set").cut_after(stay_away=True)
        self._handed = Handed(client, path, way, self._threads.submit(client.set, path, b"ours"))
        fault.wait()
        return str(self._handed)

    def take_back(self) -> str:
        """Go on with the session that was handed over, and end it; return what was wrong."""
        assert self._handed is not None
        handed, self._handed = self._handed, None
        client, path = handed.client, handed.path
        session = client.session_id
        handed.way.heal()
        lost = handed.writing.exception(_DEADLINE_S)
        if not isinstance(lost, ConnectionLostError):
            return f"the outcome of a write is known, and others have written since: {lost}"
        data, stat = client.get(path)
        if (data, client.session_id, stat.ephemeral_owner) != (THEIRS, session, session):
            return f"{path} of session 0x{session:x} has {data!r} and {stat}"
        if client.is_exact != self.is_exact:
            return "the session is of another kind than before"
        if self.is_exact:
            handed.way.when(operation="set").cut_after()
            if client.set(path, b"ours again").version != stat.version + 1:
                return "the session is not exact any more"
        client.close()
        return "done"


def _connected(hosts: str) -> paddock.sync.Client:
    return paddock.sync.connect(hosts, exact=True, session_timeout=_SESSION_S)
