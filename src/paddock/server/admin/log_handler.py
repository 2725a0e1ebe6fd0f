"""What the server says to its operator: as text or as JSON, one line each, and never too often.

A line is text for people, or one JSON object:

    2026-01-31 12:00:00,123 INFO paddock.server.core: session 0x1f expired: …
    {"time": "2026-01-31T12:00:00.123Z", "level": "info", "logger": …, "message": …, "session": …}

What a call of the logger names in `extra` stands in the object as a field of its own; sessions and
zxids are written as 0x…. The rules:

* Nobody can forge a line. Much of what is said was chosen by a client: a path, a scheme. In text
  whatever does not print is escaped, and the lines of a traceback are indented.
* Nobody can flood the log. Of the same sentence, whatever stands in its gaps, a burst is written,
  and then one every ten seconds that says how many more like it there were. That holds for every
  sentence, so nobody has to know which ones a client can cause. DEBUG alone is written in full.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

TEXT: Final = "text"
JSON: Final = "json"

# How many lines of a kind are written at once, and how many seconds are between those after them.
BURST: Final = 20
INTERVAL: Final = 10.0
# Kinds are sentences of our code, so there are few; should there be more, the oldest is forgotten.
_KINDS_MAX: Final = 1000

# What every record has; the rest came from `extra`.
_ORDINARY: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_HEXADECIMAL: Final = frozenset({"session", "zxid"})


def escaped(text: str) -> str:
    """Give the text with everything escaped that does not print, line ends above all."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def iso_time(seconds: float) -> str:
    """Give a time of day in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


class TextFormatter(logging.Formatter):
    """One line for people; an exception follows it, indented."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        more = getattr(record, "suppressed", 0)
        if more:
            message += f" (and {more:,} more like it)"
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {escaped(message)}"
        if record.exc_info:
            trace = self.formatException(record.exc_info).split("\n")
            line += "".join(f"\n  {escaped(one)}" for one in trace)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object, in one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": iso_time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in vars(record).items():
            if name not in _ORDINARY:
                if isinstance(value, float):
                    # Differences of times end with digits that mean nothing.
                    value = round(value, 6)
                hexadecimal = name in _HEXADECIMAL and isinstance(value, int)
                line[name] = f"0x{value:x}" if hexadecimal else value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Kind:
    """How often one sentence has been said."""

    __slots__ = ("allowance", "last", "suppressed", "updated")

    def __init__(self, now: float) -> None:
        # Lines that may be written now. Invariant: at most BURST; it grows by one each INTERVAL.
        self.allowance = float(BURST)
        self.updated = now
        # What was not written since the last line, and the last of it.
        self.suppressed = 0
        self.last: logging.LogRecord | None = None

    def may_speak(self, now: float) -> bool:
        grown = self.allowance + (now - self.updated) / INTERVAL
        self.allowance = min(float(BURST), grown)
        self.updated = now
        if self.allowance < 1:
            return False
        self.allowance -= 1
        return True


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes the log to a stream, within the limits.

    Call `flush_suppressed` now and then, so that the end of a flood does not go unsaid.
    """

    def __init__(self, stream: TextIO, form: str, now: Callable[[], float]) -> None:
        super().__init__(stream)
        self.setFormatter(JsonFormatter() if form == JSON else TextFormatter())
        # Seconds that never go back.
        self._now = now
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def handle(self, record: logging.LogRecord) -> bool:
        # Several threads may meet in the counting; the lock is held for it and for the writing.
        self.acquire()
        try:
            allowed = record.levelno <= logging.DEBUG or self._allows(record)
            if allowed:
                self.emit(record)
            return allowed
        finally:
            self.release()

    def flush_suppressed(self, *, everything: bool = False) -> None:
        """Write the last line of each kind of which some were left out, if it is its time."""
        now = self._now()
        self.acquire()
        try:
            for kind in self._kinds.values():
                record = kind.last
                if record is not None and (everything or kind.may_speak(now)):
                    record.suppressed = kind.suppressed - 1
                    kind.suppressed, kind.last = 0, None
                    self.emit(record)
        finally:
            self.release()

    def _allows(self, record: logging.LogRecord) -> bool:
        # Of what others put together from several lines the first one is the sentence.
        name = (record.name, str(record.msg).partition("\n")[0])
        now = self._now()
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) >= _KINDS_MAX:
                del self._kinds[next(iter(self._kinds))]
            kind = self._kinds[name] = _Kind(now)
        if not kind.may_speak(now):
            kind.suppressed += 1
            if record.exc_info:
                # A traceback would keep all that its frames hold.
                record = logging.makeLogRecord({**vars(record), "exc_info": None})
            kind.last = record
            return False
        if kind.suppressed:
            record.suppressed = kind.suppressed
            kind.suppressed, kind.last = 0, None
        return True
