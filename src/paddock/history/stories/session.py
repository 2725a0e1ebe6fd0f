"""The story of a session: who opened it, what it owned, when and why it ended.

The log says that it ended, and whether its client closed it or a server found it silent. Why it was
silent, the events say, as far as they are there:

* The client was connected and sent nothing: it was stopped, or cut off without a word.
* The connection had ended before, by the client or its system: it is gone, or could not come back.
* The server that had it stood still, stopped, lost its lease or was deposed, and the client did not
  find another one in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from paddock.history.moment import shown_time
from paddock.history.past import ATTACHED, ENDED, OPENED, Gap, Step
from paddock.storage import events as e
from paddock.storage.events import Event

# Causes of an end.
CLOSED: Final = "closed"
CLIENT_SILENT: Final = "client silent"
CLIENT_GONE: Final = "client gone"
CLIENT_NOT_READING: Final = "client not reading"
SERVER_GONE: Final = "server gone"
NOT_KNOWN: Final = "not known"

_BY_CLIENT: Final = {e.EOF, e.RESET, e.BROKEN, e.PROTOCOL_ERROR, e.TOO_LARGE}
_BY_SERVER: Final = {e.STOPPING, e.NOT_SERVING, e.OVERLOAD, e.FAULT, e.TIMEOUT}
# What a server says of itself when it does not serve.
_TROUBLES: Final = {
    e.STALLED: "stood still",
    e.OUT_OF_SERVICE: "was out of service",
    e.SERVER_STOPPING: "was stopped",
    e.SERVER_FAILED: "failed",
    e.LOG_FAILED: "lost its log",
    e.MEMBER_DEPOSED: "was deposed",
}
# How long before a silence its cause may have begun, beyond the timeout.
_MARGIN_MS: Final = 5_000
# How many writes of others are told that followed its end.
_FOLLOWERS_MAX: Final = 5


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

    @property
    def is_known(self) -> bool:
        """Whether anything at all is told of it."""
        return self.opened is not None or self.ended is not None or bool(self.events)

    @property
    def ending(self) -> Event | None:
        """What a server wrote about its end."""
        found = [one for one in self.events if one.kind == e.SESSION_ENDED]
        return found[-1] if found else None

    def cause(self) -> tuple[str, str]:
        """Return why it ended, and that in words; both empty while it lives."""
        if self.ended is None:
            return "", ""
        if self.ended.operation == "close_session":
            return CLOSED, "its client closed it"
        ending = self.ending
        silence = self._silence(ending)
        if ending is not None and ending.reason == e.NOT_READING:
            return CLIENT_NOT_READING, f"its client took nothing of what was sent{silence}"
        if ending is not None and ending.reason == e.SILENT:
            return (
                CLIENT_SILENT,
                f"its client was connected and sent nothing{silence}: it was stopped, or cut off",
            )
        lost = self._last_connection()
        trouble = self._trouble()
        if lost is not None and lost.reason in _BY_CLIENT:
            how = {e.EOF: "closed", e.RESET: "reset"}.get(lost.reason, "lost")
            text = f"its connection was {how} at {shown_time(lost.time_ms)} by its client"
            return CLIENT_GONE, f"{text}, which did not come back{silence}"
        if trouble:
            return SERVER_GONE, f"{trouble}, and its client found no other one{silence}"
        if lost is not None and lost.reason in _BY_SERVER:
            return SERVER_GONE, f"its server ended the connection ({lost.reason}){silence}"
        if ending is not None and ending.reason == e.GONE:
            return CLIENT_GONE, f"its client did not come back{silence}"
        return NOT_KNOWN, "a server found it silent; no event says more"

    def _silence(self, ending: Event | None) -> str:
        seconds = None if ending is None else _seconds(ending, "silent_seconds")
        return "" if seconds is None else f" for {seconds:.1f} s"

    def _last_connection(self) -> Event | None:
        """Return how its last connection ended, before it did; None if that is not known."""
        assert self.ended is not None
        # With each connection it was attached again, here or by another server.
        begun_ms = self.attached[-1].time_ms if self.attached else 0
        found = [
            one
            for one in self.events
            if one.kind == e.CONNECTION_ENDED
            and begun_ms <= one.time_ms <= self.ended.time_ms
            and one.reason not in (e.EXPIRED, e.EXPIRED_ELSEWHERE)
        ]
        return found[-1] if found else None

    def _home(self) -> int:
        """Return the number of the server that had it last; 0 if it is not known."""
        kinds = (e.SESSION_OPENED, e.SESSION_ATTACHED)
        return next((one.server for one in reversed(self.events) if one.kind in kinds), 0)

    def _trouble(self) -> str:
        home = self._home()
        for one in reversed(self.troubles):
            seconds = _seconds(one, "seconds")
            if (one.details.get("member") or one.server) != home:
                # That was another server, or may have been.
                continue
            if one.kind == e.STALLED and (seconds or 0) * 2000 < self.timeout_ms:
                # No client gives up a connection so soon.
                continue
            lasted = "" if seconds is None else f" for {seconds:.1f} s"
            number = one.details.get("member") or one.server
            who = f"server {number}" if number else "the server"
            return f"{who} {_TROUBLES[one.kind]}{lasted} at {shown_time(one.time_ms)}"
        return ""

    def lines(self) -> Iterator[str]:
        """Yield the story, for people."""
        name = f"session 0x{self.session & (1 << 64) - 1:x}"
        if self.ended is None:
            yield f"{name}: not over" if self.opened else f"{name}: nothing is known of its end"
        else:
            _, text = self.cause()
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
            if one.kind == e.CONNECTION_ENDED:
                yield one.time_ms, f"connection from {one.address or '?'} ended: {one.reason}"
        for one in self.troubles:
            yield one.time_ms, f"server {one.server or ''}: {one.kind} {one.reason}".rstrip()

    def fields(self) -> dict[str, Any]:
        """Return the story, for programs."""
        cause, text = self.cause()
        return {
            "session": f"0x{self.session & (1 << 64) - 1:x}",
            "timeout_ms": self.timeout_ms,
            "identities": list(self.identities),
            "opened": _moment_fields(self.opened),
            "attached": [_moment_fields(one) for one in self.attached],
            "ended": _moment_fields(self.ended),
            "cause": cause or None,
            "text": text or None,
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
    for one in events:
        if one.session == session:
            story.events.append(one)
        elif one.kind in _TROUBLES:
            of_servers.append(one)
    if story.ended is not None:
        begin = story.ended.time_ms - story.timeout_ms - _MARGIN_MS
        lasting = {e.STALLED: 1000.0}
        story.troubles = [
            one
            for one in of_servers
            if begin - lasting.get(one.kind, 0.0) * (_seconds(one, "seconds") or 0.0)
            <= one.time_ms
            <= story.ended.time_ms
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
