"""The changes of the past, in pages, for change feeds: a process of its own, beside a server.

A server asks for a page when a feed wants what its memory does not have any more. Reading it takes
a whole state and much time, so it happens in another process, with a lower priority:

    python -m paddock.history.pages DATA

A request is a line of JSON on stdin. The answer is a line on stdout, and behind it as many bytes of
encoded changes (`paddock.state.feeds.encode_change`) as it says. One is answered after the other.

    {"path": "2f61", "since": 17, "up_to": 99, "limit": 262144, "identities": "…"}
    {"until": 42, "count": 12, "size": 3017}    {"gone": 30}    {"error": "…"}

* A page has whole transactions: up to `limit` bytes, or one that is larger. Changes are those that
  the client may read, by its identities, as they are in the log.
* A page looks at a bounded number of steps, so that a feed of a quiet path does not hold up others.
* `until` is how far was looked. If the files end before `up_to`, it may be `since`: what was
  applied just now may not have been written yet.
* The state at the end of a page is kept: the next page of the same feed begins with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from paddock.errors import PaddockError
from paddock.history.moment import Moment
from paddock.history.own import OwnPast, OwnSource
from paddock.history.past import Gap, MissingPastError, NotYetError, PurgedError, state_at
from paddock.history.source import own_source
from paddock.history.telling import Below
from paddock.protocol.acl import read_identities
from paddock.protocol.jute import Reader
from paddock.state.access import Identities, NodeACL
from paddock.state.feeds import encode_change, may_see

# How many states are kept for the feeds that go on with them. Each may be large.
_KEPT_MAX: Final = 2
_NICENESS: Final = 5
# How many steps a page looks at: some seconds.
STEPS_MAX: Final = 50_000


class PageReader:
    """Reads pages from one data folder."""

    def __init__(self, source: OwnSource, steps_max: int = STEPS_MAX) -> None:
        self._source = source
        self._steps_max = steps_max
        # States at the ends of pages, the one that was used last at the end.
        self._kept: list[OwnPast] = []

    def read(
        self,
        path: bytes,
        since: int,
        up_to: int,
        limit_bytes: int,
        may_read: Callable[[NodeACL], bool],
    ) -> tuple[list[bytes], int]:
        """Return changes, each encoded, and up to which zxid was looked.

        Raises MissingPastError if some behind `since` are missing, LogError.
        """
        try:
            past = self._at(since)
        except NotYetError:
            return [], since
        below = Below(path)
        found: list[bytes] = []
        size, until = 0, since
        for count, step in enumerate(past.steps(Moment(zxid=up_to)), 1):
            if isinstance(step, Gap):
                if until > since:
                    # The next page says what is missing.
                    return found, until
                raise MissingPastError(f"zxid 0x{since:x}: {step}", step.next_zxid)
            until = max(until, step.zxid)
            for change in past.changed:
                if change.path in below and may_read(change.node.acl):
                    found.append(encode_change(change))
                    size += len(found[-1])
            # A page that comes no further than it has begun would be asked for again.
            if size >= limit_bytes or (count >= self._steps_max and until > since):
                break
        self._kept = [*self._kept, past][-_KEPT_MAX:]
        return found, until

    def _at(self, zxid: int) -> OwnPast:
        """Return the state at a zxid, which may be one that was kept."""
        for kept in self._kept:
            if kept.zxid == zxid:
                self._kept.remove(kept)
                return kept
        found = state_at(self._source, Moment(zxid=zxid))
        assert isinstance(found, OwnPast)
        return found


def answer(reader: PageReader, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Answer a request."""
    try:
        try:
            found, until = _read(reader, request)
        except PurgedError:
            # What is missing now is told the second time.
            found, until = _read(reader, request)
    except MissingPastError as error:
        # If nothing can be rebuilt any more, what the server has is all there is.
        return {"gone": request["up_to"] if error.oldest is None else error.oldest}, b""
    except (PaddockError, OSError, MemoryError) as error:
        return {"error": f"{type(error).__name__}: {error}"}, b""
    changes = b"".join(found)
    return {"until": until, "count": len(found), "size": len(changes)}, changes


def _read(reader: PageReader, request: dict[str, Any]) -> tuple[list[bytes], int]:
    identities = Identities(read_identities(Reader(bytes.fromhex(request["identities"]))))
    return reader.read(
        bytes.fromhex(request["path"]),
        request["since"],
        request["up_to"],
        request["limit"],
        lambda acl: may_see(acl, identities),
    )


def serve(reader: PageReader, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        header, changes = answer(reader, json.loads(line))
        answers.write(json.dumps(header).encode() + b"\n" + changes)
        answers.flush()


def main(data: Path) -> None:
    # The server comes first.
    os.nice(_NICENESS)
    # Ctrl-C in a terminal is meant for the server, which ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(PageReader(own_source(data)), sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
