"""The sessions of a service, from what its servers tell: who is connected, and who was.

* `cons` and `dump`, or the admin server's `connections` and `dump`, tell who is connected and whose
  ephemeral nodes there are. `wchc` tells how many watches each has.
* The events that a Paddock server writes beside its log (`--data`) tell who a session is, since
  when it is there, and of those that ended, why.
* What nobody tells is None, and `lacking` says how to have it.
* An answer may take a server long, so it is kept for `SHARE` times as long as it took.

The parsers are pure; the formats are Apache ZooKeeper's, which Paddock has as well.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from paddock.client.client import Client
from paddock.client.session.hosts import Host
from paddock.dashboard.figures import whitelist
from paddock.dashboard.tree import LOOKED_MAX, kind_of, session_text
from paddock.dashboard.words import Words
from paddock.storage import events as e
from paddock.storage.events import Event

Fields = dict[str, Any]

EPHEMERALS_SHOWN: Final = 20
ENDED_MAX: Final = 200
SESSIONS_MAX: Final = 5000
# Of the journal, whose files are read each time.
_JOURNAL_MS: Final = 24 * 3600 * 1000
SHARE: Final = 60
_KEPT_SECONDS: Final = 1.0
_KEPT_SECONDS_MAX: Final = 15.0
WATCHERS_SHOWN: Final = 100
_WATCHERS_SECONDS: Final = 5.0

_CONNECTION: Final = re.compile(r"^ /(?P<address>\S+)\[[0-9a-f]+\]\((?P<rest>.*)\)$")
_DATE: Final = re.compile(
    r"^\d+ expire at \w{3} (?P<date>\w{3} \d+ \d+:\d+:\d+) (?P<zone>\S+) (?P<year>\d{4}):$"
)
_TEXTS: Final = {
    e.CLOSED: "Its client closed it.",
    e.SILENT: "Its client was connected and sent nothing{for_}: it was stopped, or cut off.",
    e.GONE: "Its client did not come back{for_}.",
    e.NOT_READING: "Its client took nothing of what was sent{for_}.",
}


@dataclass(slots=True)
class Session:
    """What is known of a session."""

    session: int
    address: str | None = None
    identities: tuple[str, ...] | None = None
    since_ms: int | None = None
    timeout_ms: int | None = None
    last_heard_ms: int | None = None
    ephemerals: list[str] = field(default_factory=list)
    watches: int | None = None
    server: str | None = None

    def fields(self) -> Fields:
        """Return it for JSON."""
        return {
            "session": session_text(self.session),
            "address": self.address,
            "identities": None if self.identities is None else list(self.identities),
            "since_ms": self.since_ms,
            "timeout_ms": self.timeout_ms,
            "last_heard_ms": self.last_heard_ms,
            "ephemerals": self.ephemerals[:EPHEMERALS_SHOWN],
            "ephemeral_count": len(self.ephemerals),
            "watches": self.watches,
            "server": self.server,
        }


class Sessions:
    """Reads the sessions of a service, as often as it may cost."""

    def __init__(self, words: Words, events: Path | None) -> None:
        self._words = words
        self._events = events
        self._reading = asyncio.Lock()
        self._due = self._watchers_due = 0.0
        # When the last answer was asked for.
        self._read_at = 0.0
        self._answer: Fields = {}
        self._watchers: dict[str, list[str]] | None = None

    async def fields(self) -> Fields:
        """Return all sessions, those that ended lately, and what is lacking."""
        async with self._reading:
            if (began := time.monotonic()) >= self._due:
                self._answer, self._read_at = await self._read(), began
                self._due = due(began, time.monotonic(), _KEPT_SECONDS)
        return self._answer

    async def addresses(self) -> dict[str, str | None]:
        """Return where each session is connected from."""
        return {one["session"]: one["address"] for one in (await self.fields())["sessions"]}

    async def watchers(self, path: str) -> list[Fields] | None:
        """Return who watches the data of a node, by its full path; None if no server tells."""
        async with self._reading:
            if (began := time.monotonic()) >= self._watchers_due:
                said = await asyncio.gather(
                    *(self._words.say(host, "wchp") for host in self._words.hosts)
                )
                told = [one for one in said if one is not None]
                self._watchers = wchp_of(told) if told else None
                self._watchers_due = due(began, time.monotonic(), _WATCHERS_SECONDS)
        if self._watchers is None:
            return None
        sessions = self._watchers.get(path, [])[:WATCHERS_SHOWN]
        addresses = await self.addresses() if sessions else {}
        return [{"session": one, "address": addresses.get(one)} for one in sessions]

    async def one(self, session: str) -> tuple[Fields | None, Fields | None, list[Fields]]:
        """Return a session that lives, or that has ended, and what is lacking.

        One that is not known may have begun since the servers were asked. Then it is looked for
        once more, as soon as they may be asked again.
        """
        now = time.monotonic()
        found = _find(await self.fields(), session)
        if found[:2] == (None, None) and self._read_at < now:
            await asyncio.sleep(max(0.0, self._due - time.monotonic()))
            found = _find(await self.fields(), session)
        return found

    async def _read(self) -> Fields:
        found: dict[int, Session] = {}
        lacking: list[Fields] = []
        for host in self._words.hosts:
            lacking += await self._read_server(host, found)
        ended: list[Fields] = []
        if self._events is None:
            lacking.append(
                {
                    "what": "Who the sessions are, and why others ended.",
                    "why": "The events of a server are in its data folder.",
                    "how": "Name the data folder of a Paddock server here with `--data`.",
                }
            )
        else:
            # Files are read: not on the loop.
            since_ms = time.time_ns() // 1_000_000 - _JOURNAL_MS
            folder = self._events
            ended = await asyncio.get_running_loop().run_in_executor(
                None, lambda: take_events(e.read_events(folder, since_ms), found)
            )
        shown = sorted(found.values(), key=lambda one: -(one.since_ms or 0))[:SESSIONS_MAX]
        return {
            "sessions": [one.fields() for one in shown],
            "total": len(found),
            "ended": ended,
            "lacking": lacking,
        }

    async def _read_server(self, host: Host, found: dict[int, Session]) -> list[Fields]:
        """Add what a server tells; return what it does not."""
        told = await self._words.command(host, "connections")
        if told is not None:
            take_connections(told, str(host), found)
            take_ephemerals(await self._words.command(host, "dump") or {}, found)
            return []
        cons, dump, watches = await asyncio.gather(
            *(self._words.say(host, word) for word in ("cons", "dump", "wchc"))
        )
        take_cons(cons or "", str(host), found)
        take_dump(dump or "", found)
        if watches is not None:
            take_wchc(watches, found)
        missing = [word for word, said in (("cons", cons), ("dump", dump)) if said is None]
        if not missing:
            return []
        if len(missing) == 2 and await self._words.say(host, "srvr") is None:
            # No word at all: it is not the whitelist.
            return [{"what": "Sessions.", "why": f"{host} does not answer.", "how": ""}]
        return [
            {
                "what": "Sessions, their addresses and their ephemeral nodes.",
                "why": f"{host} does not answer {' and '.join(missing)}."
                f" {self._words.admin_problem}".rstrip(),
                "how": whitelist("mntr", "cons", "dump"),
            }
        ]


def _find(answer: Fields, session: str) -> tuple[Fields | None, Fields | None, list[Fields]]:
    lives = next((one for one in answer["sessions"] if one["session"] == session), None)
    over = next((one for one in answer["ended"] if one["session"] == session), None)
    return lives, over, answer["lacking"]


def due(began: float, ended: float, least: float) -> float:
    """Return when servers are asked again, after an answer that took from one time to another."""
    return ended + min(max(least, SHARE * (ended - began)), _KEPT_SECONDS_MAX)


async def sessions_of_tree(client: Client) -> Fields:
    """Return the sessions that a tree of the past shows: those that own ephemeral nodes."""
    found: dict[int, Session] = {}
    looked = 0
    is_complete = True
    async with aclosing(client.walk("/")) as nodes:
        async for node in nodes:
            looked += 1
            if looked > LOOKED_MAX:
                is_complete = False
                break
            if node.stat is not None and kind_of(node.stat) == "ephemeral":
                owner = node.stat.ephemeral_owner & (1 << 64) - 1
                found.setdefault(owner, Session(owner)).ephemerals.append(node.path)
    lacking = [
        {
            "what": "Sessions without ephemeral nodes, and where they were connected from.",
            "why": "The past is rebuilt from the log, which has no connections.",
            "how": "The story of a session has what the events say of it.",
        }
    ]
    if not is_complete:
        lacking.append(
            {
                "what": "Some sessions.",
                "why": f"Only {LOOKED_MAX:,} nodes were looked at.",
                "how": "",
            }
        )
    return {
        "sessions": [one.fields() for one in found.values()],
        "total": len(found),
        "ended": [],
        "lacking": lacking,
    }


def take_cons(said: str, server: str, found: dict[int, Session]) -> None:
    """Read what `cons` says: a line for each connection."""
    for line in said.splitlines():
        match = _CONNECTION.match(line)
        if match is None:
            continue
        pairs = dict(pair.split("=", 1) for pair in match["rest"].split(",") if "=" in pair)
        session = _hexadecimal(pairs.get("sid"))
        if not session:
            # It has asked for no session yet, or is a four-letter word.
            continue
        one = found.setdefault(session, Session(session))
        one.address, one.server = match["address"], server
        one.since_ms, one.timeout_ms = _decimal(pairs.get("est")), _decimal(pairs.get("to"))


def take_dump(said: str, found: dict[int, Session]) -> None:
    """Read what `dump` says: when sessions would expire, and their ephemeral nodes."""
    part = owner = ""
    deadline_ms: int | None = None
    for line in said.splitlines():
        if line.startswith("SessionTracker dump"):
            part = "sessions"
        elif line.startswith("ephemeral nodes dump"):
            part = "ephemerals"
        elif line.startswith("Connections dump"):
            return
        elif part == "sessions":
            if (match := _DATE.match(line)) is not None:
                deadline_ms = _java_date(match)
            elif (session := _hexadecimal(line.strip())) is not None:
                one = found.setdefault(session, Session(session))
                if deadline_ms is not None and one.timeout_ms is not None:
                    # It expires at the end of a tick, so it may have been heard of later.
                    one.last_heard_ms = deadline_ms - one.timeout_ms
        elif line.startswith("\t"):
            session = _hexadecimal(owner)
            if session is not None:
                found.setdefault(session, Session(session)).ephemerals.append(line[1:])
        elif line.startswith("0x"):
            owner = line.rstrip(":")


def take_wchc(said: str, found: dict[int, Session]) -> None:
    """Read what `wchc` says: the watches of each session."""
    for one in found.values():
        one.watches = one.watches or 0
    session: Session | None = None
    for line in said.splitlines():
        if line.startswith("\t"):
            if session is not None:
                session.watches = (session.watches or 0) + 1
        else:
            session = found.get(_hexadecimal(line.strip()) or 0)


def wchp_of(said: Iterable[str]) -> dict[str, list[str]]:
    """Read what servers say to `wchp`: the sessions that watch each path."""
    found: dict[str, list[str]] = {}
    for one in said:
        path: str | None = None
        for line in one.splitlines():
            if line.startswith("/"):
                path = line
            elif path is not None and _hexadecimal(line.strip()) is not None:
                found.setdefault(path, []).append(line.strip())
    return found


def take_connections(told: Fields, server: str, found: dict[int, Session]) -> None:
    """Read what the admin server says to `connections`."""
    for one in [*_list(told, "connections"), *_list(told, "secure_connections")]:
        match one:
            case {"session_id": int(session), "remote_socket_address": str(address)} if session:
                row = found.setdefault(session & (1 << 64) - 1, Session(session & (1 << 64) - 1))
                row.address, row.server = address.lstrip("/"), server
                row.since_ms = _whole(one.get("established"))
                row.timeout_ms = _whole(one.get("session_timeout"))


def take_ephemerals(told: Fields, found: dict[int, Session]) -> None:
    """Read what the admin server says to `dump`."""
    by_session = told.get("session_id_to_ephemeral_paths")
    for text, paths in by_session.items() if isinstance(by_session, dict) else ():
        session = (_decimal(text) or 0) & (1 << 64) - 1
        if session and isinstance(paths, list):
            one = found.setdefault(session, Session(session))
            one.ephemerals += [path for path in paths if isinstance(path, str)]
    by_deadline = told.get("expiry_time_to_session_ids")
    for sessions in by_deadline.values() if isinstance(by_deadline, dict) else ():
        for one_id in sessions if isinstance(sessions, list) else ():
            if isinstance(one_id, int):
                found.setdefault(one_id & (1 << 64) - 1, Session(one_id & (1 << 64) - 1))


def take_events(events: Iterable[Event], found: dict[int, Session]) -> list[Fields]:
    """Read what a server has written down; return the sessions that ended, the last one first."""
    ended: dict[int, Fields] = {}
    addresses: dict[int, str] = {}
    for event in events:
        session = event.session & (1 << 64) - 1
        if not session:
            continue
        if event.address:
            addresses[session] = event.address
        one = found.get(session)
        if one is not None:
            if event.kind == e.SESSION_OPENED:
                one.since_ms = event.time_ms
            if event.identities:
                one.identities = event.identities
        if event.kind == e.SESSION_ENDED:
            ended[session] = {
                "session": session_text(session),
                "ended_ms": event.time_ms,
                "cause": event.reason,
                "text": ended_text(event),
                "address": addresses.get(session),
            }
            if len(ended) > ENDED_MAX:
                # They stand in the order of their ends.
                del ended[next(iter(ended))]
    return [*reversed(ended.values())]


def ended_text(event: Event) -> str:
    """Return why a session ended, in words."""
    seconds = event.details.get("silent_seconds")
    for_ = f" for {seconds:.1f} s" if isinstance(seconds, int | float) else ""
    return _TEXTS.get(event.reason, f"It ended: {event.reason}.").format(for_=for_)


def _java_date(match: re.Match[str]) -> int | None:
    """Return a date of Java's in milliseconds; None if its zone is not known here."""
    text = f"{match['date']} {match['year']}"
    try:
        utc = datetime.strptime(text, "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
    if match["zone"] in ("UTC", "GMT"):
        return int(utc.timestamp() * 1000)
    here = utc.replace(tzinfo=None).astimezone()
    return int(here.timestamp() * 1000) if here.tzname() == match["zone"] else None


def _list(told: Fields, name: str) -> list[Any]:
    found = told.get(name)
    return found if isinstance(found, list) else []


def _whole(number: object) -> int | None:
    return number if isinstance(number, int) else None


def _hexadecimal(text: str | None) -> int | None:
    if text is None or not text.startswith("0x"):
        return None
    try:
        return int(text, 16)
    except ValueError:
        return None


def _decimal(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
