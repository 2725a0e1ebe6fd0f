"""The events of a server: what it knew and its log does not say, as JSON lines in files.

    {"time_ms": 1767225600123, "event": "connection_ended", "zxid": "0x1f", "session": "0x12", …}

Addresses, silence, why a connection or a session ended, pauses. None of it is in the state. A
running server writes it (`paddock.server.journal`), beside its log. The rules:

* A file is named by the time of its first event. Times never go back, within a file and from one
  to the next, unless the clock did while no server ran.
* A line that cannot be read is passed over: the last one may be torn, or half written just now.
  Whatever else is in the folder is passed over, too. A file that cannot be read is told.
* What has its ordinary value (no session, no address) is left out of a line.
* No line has a secret: of a digest identity it has the name only.

Kinds and reasons are part of the format. `docs/reference/events.md` describes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = "events"
"""The folder of the files, in the data folder."""

# Kinds: sessions and connections.
SESSION_OPENED: Final = "session_opened"
SESSION_ATTACHED: Final = "session_attached"
AUTHENTICATED: Final = "authenticated"
CONNECTION_ENDED: Final = "connection_ended"
HANDSHAKE_FAILED: Final = "handshake_failed"
SESSION_ENDED: Final = "session_ended"
SESSIONS_ADOPTED: Final = "sessions_adopted"
# The server itself.
SERVER_STARTED: Final = "server_started"
SERVER_STOPPING: Final = "server_stopping"
SERVER_STOPPED: Final = "server_stopped"
SERVER_FAILED: Final = "server_failed"
STALLED: Final = "stalled"
CLOCK_JUMPED: Final = "clock_jumped"
SLOW_SYNC: Final = "slow_sync"
WRITES_REFUSED: Final = "writes_refused"
WRITES_ACCEPTED: Final = "writes_accepted"
LOG_FAILED: Final = "log_failed"
LOG_RECOVERED: Final = "log_recovered"
SNAPSHOT_TAKEN: Final = "snapshot_taken"
LOST: Final = "lost"
# The cluster.
OUT_OF_SERVICE: Final = "out_of_service"
IN_SERVICE: Final = "in_service"
MEMBER_SILENT: Final = "member_silent"
MEMBER_JOINED: Final = "member_joined"
MEMBER_LEFT: Final = "member_left"
MEMBER_DEPOSED: Final = "member_deposed"

# Reasons of the client: it asked for it, shut down its side, or its connection was reset or broke.
CLOSED: Final = "closed"
EOF: Final = "eof"
RESET: Final = "reset"
BROKEN: Final = "broken"
# It was connected and sent nothing, did not come back, or took nothing of what was sent.
SILENT: Final = "silent"
GONE: Final = "gone"
NOT_READING: Final = "not_reading"
# The session went on elsewhere: on a newer connection, or on another server. Or it ended: here, or
# by the word of another server.
REPLACED: Final = "replaced"
MOVED: Final = "moved"
EXPIRED: Final = "expired"
EXPIRED_ELSEWHERE: Final = "expired_elsewhere"
# What the client sent.
PROTOCOL_ERROR: Final = "protocol_error"
TOO_LARGE: Final = "too_large"
AUTHENTICATION: Final = "authentication"
WRONG_PASSWORD: Final = "wrong_password"
AHEAD: Final = "ahead"
# The server's own: it stops, it serves nobody now, or only serves again, has too much to do, waited
# too long for a handshake, or has a defect.
STOPPING: Final = "stopping"
NOT_SERVING: Final = "not_serving"
SERVING_AGAIN: Final = "serving_again"
OVERLOAD: Final = "overload"
TOO_MANY: Final = "too_many"
TIMEOUT: Final = "timeout"
FAULT: Final = "fault"

_NAME: Final = re.compile(r"([0-9]{15})\.jsonl")
# No event has so long a line.
_LINE_BYTES_MAX: Final = 16 << 20

STALL_LOOK_SECONDS: Final = 0.25
"""How often a server looks whether it stood still. A stall may have lasted so much longer than its
event says: nobody knows when since the last look it began."""


class Event(NamedTuple):
    """One event of one server."""

    time_ms: int
    kind: str
    # The last zxid of the server's state at that moment; -1 if it had none.
    zxid: int = -1
    # The server's number in its cluster; 0 for a server of its own.
    server: int = 0
    # 0 if it is about none.
    session: int = 0
    # Of the client, with its port.
    address: str = ""
    # Of the client, as scheme:name.
    identities: tuple[str, ...] = ()
    reason: str = ""
    # What else there is to say of this kind.
    details: Mapping[str, Any] = {}

    def line(self) -> str:
        """Return the event as one line, with its end."""
        fields: dict[str, object] = {"time_ms": self.time_ms, "event": self.kind}
        if self.zxid >= 0:
            fields["zxid"] = f"0x{self.zxid:x}"
        if self.server:
            fields["server"] = self.server
        if self.session:
            fields["session"] = f"0x{self.session:x}"
        if self.address:
            fields["address"] = self.address
        if self.identities:
            fields["identities"] = self.identities
        if self.reason:
            fields["reason"] = self.reason
        for name, value in self.details.items():
            if value is not None and value != "":
                # Differences of times have meaningless last digits.
                fields[name] = round(value, 3) if isinstance(value, float) else value
        return json.dumps(fields, separators=(",", ":")) + "\n"

    @classmethod
    def parse(cls, line: bytes) -> Event | None:
        """Return the event of a line; None if it is not one."""
        try:
            fields = json.loads(line)
            return cls(
                int(fields.pop("time_ms")),
                str(fields.pop("event")),
                int(fields.pop("zxid", "-1"), 0),
                int(fields.pop("server", 0)),
                int(fields.pop("session", "0"), 0),
                str(fields.pop("address", "")),
                tuple(map(str, fields.pop("identities", ()))),
                str(fields.pop("reason", "")),
                fields,
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def file_name(time_ms: int) -> str:
    """Return the name of the file whose first event has this time."""
    return f"{time_ms:015d}.jsonl"


def event_files(folder: Path) -> list[tuple[int, Path]]:
    """Return the files of a folder with the times of their first events, the oldest first.

    Raises OSError if the folder cannot be read.
    """
    if not folder.is_dir():
        return []
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    # A folder may have such a name, or a pipe, which would be waited for.
    return sorted(
        (int(match[1]), path) for match, path in found if match is not None and path.is_file()
    )


def read_events(
    folder: Path,
    since_ms: int = 0,
    until_ms: int | None = None,
    on_unreadable: Callable[[OSError], None] = lambda error: None,
) -> Iterator[Event]:
    """Yield the events of a folder, from one time to another, both included, in time order.

    A server may write there meanwhile: what it purges is passed over. What cannot be read is told
    to `on_unreadable`, and passed over.
    """
    try:
        files = event_files(folder)
    except OSError as error:
        on_unreadable(error)
        return
    for i, (begin_ms, path) in enumerate(files):
        # A file ends where the next one begins.
        is_over = i + 1 < len(files) and files[i + 1][0] < since_ms
        if is_over or (until_ms is not None and begin_ms > until_ms):
            continue
        for event in _read(path, on_unreadable):
            if until_ms is not None and event.time_ms > until_ms:
                break
            if event.time_ms >= since_ms:
                yield event


def _read(path: Path, on_unreadable: Callable[[OSError], None]) -> Iterator[Event]:
    try:
        with path.open("rb") as file:
            # A longer line is read in pieces, of which none is an event.
            while line := file.readline(_LINE_BYTES_MAX):
                event = Event.parse(line)
                if event is not None:
                    yield event
    except FileNotFoundError:
        pass
    except OSError as error:
        on_unreadable(error)
