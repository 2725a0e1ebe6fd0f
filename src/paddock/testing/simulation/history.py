"""The history of a run: what clients sent and received, in order, and what the log says.

It is made of moments. Those of clients are frames as they left and reached a client, so nothing
that a client can see is lost, and nothing is there that it cannot see. Time is true time, whatever
clocks the processes had. The moments:

    connect   a client has sent its handshake: `client`, `server`, and the request
    granted   the answer to it; session 0 says that the session is over
    request   a request has left the client
    reply     a reply has reached it
    event     an event of a watch has reached it
    lost      the connection is over for the client: what has no reply has an unknown outcome
    fault     something was done to the world, for the reader
    note      something that a process says of itself, such as that it holds a lock
    log       one zxid, or the end of a server, as the log of the service has it (`Logged`)

Lines of the log resolve what no reply tells: unknown outcomes, expiries, sessions that were opened.
The judge believes none of them further than they agree with what clients saw.

A history is stored as lines of JSON (`dump`, `load`), and shown as text (`tell`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final

CONNECT: Final = "connect"
GRANTED: Final = "granted"
REQUEST: Final = "request"
REPLY: Final = "reply"
EVENT: Final = "event"
LOST: Final = "lost"
FAULT: Final = "fault"
NOTE: Final = "note"
LOG: Final = "log"

KINDS: Final = frozenset({CONNECT, GRANTED, REQUEST, REPLY, EVENT, LOST, FAULT, NOTE, LOG})

# What a line of the log is about.
OPENED: Final = "opened"
EXPIRED: Final = "expired"
REAPED: Final = "reaped"
CALL: Final = "call"
EPOCH: Final = "epoch"
JOINED: Final = "joined"
DEPOSED: Final = "deposed"
ENDED: Final = "ended"


@dataclass(frozen=True, slots=True)
class Logged:
    """One zxid of the log: a session opened or expired, a node reaped, a client's write.

    Without a zxid: a server has joined, under the number `session`, and `path` names it and its
    boot; or it was deposed, `timeout_ms` after its last batch; or it has left, or was replaced.
    `at` is when it was committed, -1 if that is not known. A write is named by its session and xid.
    """

    zxid: int
    about: str
    session: int = 0
    xid: int = 0
    error: int = 0
    path: str = ""
    timeout_ms: int = 0
    at: float = -1.0
    # Whether it is a transaction of which nothing was done.
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened."""

    at: float
    kind: str
    # The connection, counted from 1 over all clients; 0 if it is about none.
    connection: int = 0
    # The frame, without its length.
    frame: bytes = field(default=b"", repr=False)
    # `client server` of a connect, the reason of a loss, what a fault was; a note begins with
    # the name of who made it.
    text: str = ""
    logged: Logged | None = None


class History:
    """The moments of one run, in the order in which they happened."""

    def __init__(self, moments: Iterable[Moment] = ()) -> None:
        self.moments: list[Moment] = list(moments)

    def add(self, moment: Moment) -> None:
        self.moments.append(moment)

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.moments)

    def __len__(self) -> int:
        return len(self.moments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.moments == other.moments

    __hash__ = None  # type: ignore[assignment]

    def dump(self, file: IO[str]) -> None:
        """Write it as lines of JSON."""
        for moment in self.moments:
            file.write(_line(moment) + "\n")

    @classmethod
    def load(cls, file: IO[str]) -> History:
        """Read what `dump` has written. Raises ValueError, with the number of the line."""
        history = cls()
        for number, line in enumerate(file, 1):
            try:
                history.add(_moment(line))
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"line {number}: no moment of a history: {error}") from error
        return history


def _line(moment: Moment) -> str:
    values: dict[str, object] = {"at": moment.at, "kind": moment.kind}
    if moment.connection:
        values["connection"] = moment.connection
    if moment.frame:
        values["frame"] = moment.frame.hex()
    if moment.text:
        values["text"] = moment.text
    if moment.logged is not None:
        values["logged"] = dataclasses.asdict(moment.logged)
    return json.dumps(values)


def _moment(line: str) -> Moment:
    values = json.loads(line)
    if values["kind"] not in KINDS:
        raise ValueError(f"kind {values['kind']!r}")
    logged = values.get("logged")
    return Moment(
        float(values["at"]),
        values["kind"],
        values.get("connection", 0),
        bytes.fromhex(values.get("frame", "")),
        values.get("text", ""),
        None if logged is None else Logged(**logged),
    )
