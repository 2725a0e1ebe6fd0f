"""The story of a session: who opened it, what it owned, when and why it ended.

The log says that it ended, and whether its client closed it or a server found it silent. Why it was
silent, the events say, as far as they are there:

* The client was connected and sent nothing: it was stopped, or cut off without a word.
* The connection had ended before, by the client, its system or the network: the client is gone, or
  could not come back.
* The client came back again and again, and never said more than who it is: it did not hear us.
* The client waited for an answer when it closed the connection, and a sync took long; or it came
  back, and each time a sync took longer than it waits.
* The server that had it stood still, stopped, was killed, lost its lease or was deposed, and the
  client did not come back, or find another one, in time. A server that was killed says so by its
  next start. One that stood still finds connections closed at its end: who would wait for it?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from paddock.history.moment import shown_time
from paddock.history.past import ATTACHED, ENDED, OPENED, Gap, Step
from paddock.storage import events as e
from paddock.storage.events import Event

# Causes of an end.
CLOSED: Final = "closed"
CLIENT_SILENT: Final = "client silent"
CLIENT_GONE: Final = "client gone"
CLIENT_NOT_READING: Final = "client not reading"
CLIENT_CUT_OFF: Final = "client cut off"
SERVER_GONE: Final = "server gone"
SERVER_SLOW: Final = "server slow"
NOT_KNOWN: Final = "not known"

_BY_CLIENT: Final = {e.EOF, e.RESET, e.BROKEN, e.PROTOCOL_ERROR, e.TOO_LARGE}
_BY_SERVER: Final = {e.STOPPING, e.NOT_SERVING, e.OVERLOAD, e.FAULT, e.TIMEOUT}
# What a server says of itself when it does not serve.
_TROUBLES: Final = {
    e.STALLED: "stood still",
    e.OUT_OF_SERVICE: "was out of service",
    e.SERVER_STOPPING: "was stopped",
    e.SERVER_FAILED: "failed",
    # Only one that did not follow the end of the last one.
    e.SERVER_STARTED: "was killed and started again",
    e.LOG_FAILED: "lost its log",
    e.MEMBER_DEPOSED: "was deposed",
    e.MEMBER_LEFT: "left the cluster",
}
# How long before a silence its cause may have begun, beyond the timeout.
_MARGIN_MS: Final = 5_000
# How far from the end of a stall a connection is found closed that was closed meanwhile.
_AFTER_STALL_MS: Final = 300
# No client gives up a silent server before this share of its timeout; and one whose ping is not
# answered, no server that stands still for less than this share.
_GIVING_UP: Final = 0.4
_STANDING_STILL: Final = 0.2
# A client that waits for an answer for so long may have had enough.
_SLOW_SECONDS: Final = 1.0
# How many writes of others are told that followed its end.
_FOLLOWERS_MAX: Final = 5


class Cause(NamedTuple):
    """Why a session ended; all empty while it lives."""

    kind: str = ""
    # In words.
    text: str = ""
    # The event of a server that it is put down to, by its kind.
    trouble: str = ""


@dataclass
class SessionStory:
    """What is known of one session."""

    session: int
    timeout_ms: int = 0
    identities: tuple[str, ...] = ()
    opened: Step | None = None
    attached: list[Step] = field(default_factory=list)
    ended: Step | None = None
    # The nodes that went with it.
    owned: tuple[bytes, ...] = ()
    # What others wrote first afterwards to these nodes or beside them.
    followers: list[tuple[bytes, Step]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    # What servers said of themselves about when it was silent.
    troubles: list[Event] = field(default_factory=list)
    # Syncs of the log meanwhile for which a client that comes back had to wait too long.
    slow_syncs: list[Event] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        """Whether anything at all is told of it."""
        return self.opened is not None or self.ended is not None or bool(self.events)

    @property
    def ending(self) -> Event | None:
        """What a server wrote about its end."""
        found = [one for one in self.events if one.kind == e.SESSION_ENDED]
        return found[-1] if found else None

    def cause(self) -> Cause:
        """Return why it ended."""
        if self.ended is None:
            return Cause()
        ending = self.ending
        if self.ended.operation == "close_session":
            where = f", from {ending.address}" if ending is not None and ending.address else ""
            return Cause(CLOSED, f"its client closed it{where}")
        silence = self._silence(ending)
        if ending is not None and ending.reason == e.NOT_READING:
            return Cause(CLIENT_NOT_READING, f"its client took nothing of what was sent{silence}")
        if ending is not None and ending.reason == e.SILENT:
            return Cause(
                CLIENT_SILENT,
                f"its client was connected and sent nothing{silence}: it was stopped, or cut off",
            )
        lost = self._last_connection()
        if lost is not None and lost.reason in _BY_CLIENT:
            return self._left(lost, silence)
        trouble = self._trouble()
        if trouble is not None:
            text = f"{self._told(trouble)}, and its client found no other one{silence}"
            return Cause(SERVER_GONE, text, trouble.kind)
        if lost is not None and lost.reason in _BY_SERVER:
            text = f"its server ended the connection ({lost.reason}){silence}"
            return Cause(SERVER_GONE, text, e.CONNECTION_ENDED)
        if ending is not None and ending.reason == e.GONE:
            return Cause(CLIENT_GONE, f"its client did not come back{silence}")
        return Cause(NOT_KNOWN, "a server found it silent; no event says more")

    def _left(self, lost: Event, silence: str) -> Cause:
        """Return why its client has left, who closed its last connection, or whose system did."""
        how = {e.EOF: "closed", e.RESET: "reset"}.get(lost.reason, "lost")
        text = f"its connection was {how} at {shown_time(lost.time_ms)} from its client's side"
        stall = next((one for one in self._own_troubles() if _is_end_of(one, lost)), None)
        if stall is not None:
            text = f"{self._told(stall)}, {text} meanwhile, and it did not come back{silence}"
            return Cause(SERVER_GONE, text, stall.kind)
        times = self._unheard()
        if times and self.slow_syncs:
            text = f"its client came back {times} times, and each answer waited for a slow sync"
            return Cause(SERVER_SLOW, text + silence, e.SLOW_SYNC)
        if times:
            text = f"its client came back {times} times and heard no answer: it was cut off"
            return Cause(CLIENT_CUT_OFF, text + silence)
        busy = _seconds(lost, "log_seconds") or 0.0
        if busy >= _SLOW_SECONDS:
            text = f"{text}, which waited for an answer while a sync took {busy:.1f} s and longer"
            return Cause(SERVER_SLOW, f"{text}, and it did not come back{silence}", e.SLOW_SYNC)
        return Cause(CLIENT_GONE, f"{text}, and it did not come back{silence}")

    def _unheard(self) -> int:
        """Return with how many last connections its client said no more than who it is; or 0.

        One may have been broken off early. A client that has its answer sends a ping soon.
        """
        assert self.ended is not None
        times, is_long = 0, False
        for one in reversed(self.events):
            if one.kind != e.CONNECTION_ENDED or one.time_ms > self.ended.time_ms:
                continue
            if one.details.get("last") != "handshake" or one.reason not in _BY_CLIENT:
                break
            times += 1
            is_long |= (_seconds(one, "silent_seconds") or 0.0) * 1000 > 0.6 * self.timeout_ms
        return times if times > 1 or is_long else 0

    def _silence(self, ending: Event | None) -> str:
        seconds = None if ending is None else _seconds(ending, "silent_seconds")
        return "" if seconds is None else f" for {seconds:.1f} s"

    def _last_connection(self) -> Event | None:
        """Return how its last connection ended, before it did; None if that is not known."""
        assert self.ended is not None
        begun_ms = self._begun_ms()
        found = [
            one
            for one in self.events
            if one.kind == e.CONNECTION_ENDED
            and begun_ms <= one.time_ms <= self.ended.time_ms
            and one.reason not in (e.EXPIRED, e.EXPIRED_ELSEWHERE)
        ]
        return found[-1] if found else None

    def _begun_ms(self) -> int:
        """Return when its last connection began: it was attached then, here or elsewhere."""
        return self.attached[-1].time_ms if self.attached else 0

    def _home(self) -> int:
        """Return the number of the server that had its client last; 0 if it is not known."""
        # Where the log is shared it says so, whoever's events these are.
        last = self.attached[-1] if self.attached else self.opened
        if last is not None and last.server:
            return last.server
        kinds = (e.SESSION_OPENED, e.SESSION_ATTACHED)
        return next((one.server for one in reversed(self.events) if one.kind in kinds), 0)

    def _own_troubles(self) -> Iterator[Event]:
        """Yield what the server that had it said of itself since it had it, the last first."""
        home, begun_ms = self._home(), self._begun_ms()
        for one in reversed(self.troubles):
            # That was another server, or may have been; or its client has come back since.
            if (one.details.get("member") or one.server) != home or one.time_ms < begun_ms:
                continue
            if one.kind == e.STALLED:
                # At most: it may have begun right after the server had looked.
                seconds = (_seconds(one, "seconds") or 0.0) + e.STALL_LOOK_SECONDS
                if seconds * 1000 < _STANDING_STILL * self.timeout_ms:
                    continue
            yield one

    def _trouble(self) -> Event | None:
        return next(self._own_troubles(), None)

    def _told(self, trouble: Event) -> str:
        seconds = _seconds(trouble, "seconds")
        lasted = "" if seconds is None else f" for {seconds:.1f} s"
        number = trouble.details.get("member") or trouble.server
        who = f"server {number}" if number else "the server"
        return f"{who} {_TROUBLES[trouble.kind]}{lasted} at {shown_time(trouble.time_ms)}"

    def lines(self) -> Iterator[str]:
        """Yield the story, for people."""
        name = f"session 0x{self.session & (1 << 64) - 1:x}"
        if self.ended is None:
            yield f"{name}: not over" if self.opened else f"{name}: nothing is known of its end"
        else:
            text = self.cause().text
            when = f"{shown_time(self.ended.time_ms)} (zxid 0x{self.ended.zxid:x})"
            word = "closed" if self.ended.operation == "close_session" else "expired"
            yield f"{name}: {word} at {when}: {text}"
        for gap in self.gaps:
            yield f"  {gap}"
        for time_ms, text in sorted(self._moments()):
            yield f"  {shown_time(time_ms)}  {text}"
        for path in self.owned:
            yield f"  went with it: {_shown(path)}"
        for path, step in self.followers:
            who = f"session 0x{step.session & (1 << 64) - 1:x}"
            yield f"  {shown_time(step.time_ms)}  then {who}: {_shown(path)}"

    def _moments(self) -> Iterator[tuple[int, str]]:
        who = ", ".join(self.identities)
        addresses = {one.zxid: one.address for one in self.events if one.address}
        if self.opened is not None:
            place = addresses.get(self.opened.zxid) or who or "an unknown client"
            yield self.opened.time_ms, f"opened by {place}, timeout {self.timeout_ms / 1000:g} s"
        for step in self.attached:
            yield step.time_ms, f"attached again, by {', '.join(step.identities) or who}"
        for one in self.events:
            if one.kind == e.HANDSHAKE_FAILED and one.reason == e.EXPIRED:
                yield one.time_ms, f"asked for by {one.address or 'its client'}: too late"
            if one.kind == e.CONNECTION_ENDED:
                yield one.time_ms, f"connection from {one.address or '?'} ended: {one.reason}"
        for one in self.troubles:
            yield one.time_ms, f"server {one.server or ''}: {one.kind} {one.reason}".rstrip()

    def fields(self) -> dict[str, Any]:
        """Return the story, for programs."""
        cause = self.cause()
        return {
            "session": f"0x{self.session & (1 << 64) - 1:x}",
            "timeout_ms": self.timeout_ms,
            "identities": list(self.identities),
            "opened": _moment_fields(self.opened),
            "attached": [_moment_fields(one) for one in self.attached],
            "ended": _moment_fields(self.ended),
            "cause": cause.kind or None,
            "text": cause.text or None,
            "trouble": cause.trouble or None,
            "owned": [_shown(path) for path in self.owned],
            "followers": [
                {
                    "path": _shown(path),
                    "session": f"0x{step.session & (1 << 64) - 1:x}",
                    "zxid": step.zxid,
                }
                for path, step in self.followers
            ],
            "gaps": [str(gap) for gap in self.gaps],
            "events": [one.line().strip() for one in (*self.events, *self.troubles)],
        }


def tell_session(
    session: int, steps: Iterable[Step | Gap], events: Iterable[Event]
) -> SessionStory:
    """Tell the story of a session from a history, and from the events of its servers."""
    story = SessionStory(session)
    touched: set[bytes] = set()
    for step in steps:
        if isinstance(step, Gap):
            story.gaps.append(step)
            continue
        _take(story, step, touched)
    of_servers: list[Event] = []
    is_running, server = False, 0
    for one in events:
        if one.session == session:
            story.events.append(one)
        elif one.kind == e.SERVER_STARTED:
            if is_running:
                # The last one ended without a word. Its number was its own.
                of_servers.append(one._replace(server=server))
            is_running = True
        elif one.kind in _TROUBLES or one.kind == e.SLOW_SYNC:
            of_servers.append(one)
        if one.kind == e.SERVER_STOPPED:
            is_running = False
        server = one.server or server
    if story.ended is not None:
        begin = story.ended.time_ms - story.timeout_ms
        lost = story._last_connection()
        if lost is not None:
            # A server that stopped then may have been away for long.
            begin = min(begin, lost.time_ms)
        begin -= _MARGIN_MS
        lasting = {e.STALLED: 1000.0}
        meanwhile = [
            one
            for one in of_servers
            if begin - lasting.get(one.kind, 0.0) * (_seconds(one, "seconds") or 0.0)
            <= one.time_ms
            <= story.ended.time_ms
        ]
        story.troubles = [one for one in meanwhile if one.kind != e.SLOW_SYNC]
        story.slow_syncs = [
            one
            for one in meanwhile
            if one.kind == e.SLOW_SYNC
            and (_seconds(one, "seconds") or 0.0) * 1000 >= _GIVING_UP * story.timeout_ms
        ]
    return story


def _take(story: SessionStory, step: Step, beside: set[bytes]) -> None:
    change = step.session_change
    if change is not None and change[0] == story.session:
        _, kind, timeout_ms = change
        story.timeout_ms = timeout_ms or story.timeout_ms
        if kind == OPENED:
            story.opened = step
        elif kind == ATTACHED:
            story.attached.append(step)
        elif kind == ENDED:
            story.ended, story.owned = step, step.paths
            beside.update(path[: path.rfind(b"/")] for path in step.paths)
    elif (
        story.ended is not None
        and step.session
        # The end of another session takes nothing over.
        and change is None
        and len(story.followers) < _FOLLOWERS_MAX
    ):
        story.followers += [
            (path, step) for path in step.paths if path[: path.rfind(b"/")] in beside
        ][: _FOLLOWERS_MAX - len(story.followers)]
    if not story.identities and (step.session == story.session or step is story.opened):
        story.identities = step.identities


def _is_end_of(stall: Event, lost: Event) -> bool:
    """Return whether a connection was found closed when a server went on that had stood still."""
    return stall.kind == e.STALLED and abs(lost.time_ms - stall.time_ms) <= _AFTER_STALL_MS


def _seconds(event: Event, name: str) -> float | None:
    """Return how long an event says that something took."""
    found = event.details.get(name)
    try:
        return float(found) if isinstance(found, float | int) else None
    except OverflowError:
        # No server has written that.
        return None


def _moment_fields(step: Step | None) -> dict[str, Any] | None:
    return None if step is None else {"zxid": step.zxid, "time_ms": step.time_ms}


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")
