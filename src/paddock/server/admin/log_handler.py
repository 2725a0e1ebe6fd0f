"""Rate-limited logging, as text or JSON lines.

    2026-01-31 12:00:00,123 INFO paddock.server.sessions.lifecycle: session 0x1f expired: …
    {"time": "2026-01-31T12:00:00.123Z", "level": "info", "logger": …, "message": …, "session": …}

A value in `extra` becomes a field of the JSON object; sessions and zxids are written as 0x…. The
rules:

* No client can forge a line. Clients choose much of the content, a path for instance. In text,
  characters that do not print are escaped, and the lines of a traceback are indented.
* No client can flood the log. Of the same message, whatever its arguments, a burst is written, and
  then one line every ten seconds with the number of suppressed ones. This holds for all messages,
  whether a client can cause them or not. Only DEBUG has no limit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

TEXT: Final = "text"
JSON: Final = "json"

# Lines of the same message that are written at once, and the seconds between later ones.
BURST: Final = 20
INTERVAL: Final = 10.0
# Messages are constants of our code, so there are few; beyond this the oldest is forgotten.
_MESSAGES_MAX: Final = 1000

# The attributes of every record; the others come from `extra`.
_ORDINARY: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_HEXADECIMAL: Final = frozenset({"session", "zxid"})


def escaped(text: str) -> str:
    """Escape the characters that do not print, line ends above all."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def iso_time(seconds: float) -> str:
    """Return a time in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class TextFormatter(logging.Formatter):
    """Formats a record as one line of text; an exception follows, indented."""

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
    """Formats a record as one JSON object, in one line."""

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
                    # Differences of times have meaningless last digits.
                    value = round(value, 6)
                hexadecimal = name in _HEXADECIMAL and isinstance(value, int)
                line[name] = f"0x{value:x}" if hexadecimal else value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Message:
    """The rate limit of one message: a token bucket."""

    def __init__(self, now: float) -> None:
        # Invariant: at most BURST; grows by one each INTERVAL.
        self.tokens = float(BURST)
        self.updated = now
        # The number of lines suppressed since the last one written, and the last of them.
        self.suppressed = 0
        self.last: logging.LogRecord | None = None

    def take_token(self, now: float) -> bool:
        self.tokens = min(float(BURST), self.tokens + (now - self.updated) / INTERVAL)
        self.updated = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes the log to a stream, within the rate limits.

    Call `flush_suppressed` regularly, so that the end of a flood is logged, too.
    """

    def __init__(self, stream: TextIO, form: str, now: Callable[[], float]) -> None:
        super().__init__(stream)
        self.setFormatter(JsonFormatter() if form == JSON else TextFormatter())
        # A monotonic clock, in seconds.
        self._now = now
        self._messages: dict[tuple[str, str], _Message] = {}

    def handle(self, record: logging.LogRecord) -> bool:
        # The lock protects the counters, too: several threads log.
        self.acquire()
        try:
            allowed = record.levelno <= logging.DEBUG or self._allows(record)
            if allowed:
                self.emit(record)
            return allowed
        finally:
            self.release()

    def flush_suppressed(self, *, everything: bool = False) -> None:
        """Write the last suppressed line of each message, if its rate limit allows it."""
        now = self._now()
        self.acquire()
        try:
            for message in self._messages.values():
                record = message.last
                if record is not None and (everything or message.take_token(now)):
                    record.suppressed = message.suppressed - 1
                    message.suppressed, message.last = 0, None
                    self.emit(record)
        finally:
            self.release()

    def _allows(self, record: logging.LogRecord) -> bool:
        # Only the first line of a message counts.
        key = (record.name, str(record.msg).partition("\n")[0])
        now = self._now()
        message = self._messages.get(key)
        if message is None:
            if len(self._messages) >= _MESSAGES_MAX:
                del self._messages[next(iter(self._messages))]
            message = self._messages[key] = _Message(now)
        if not message.take_token(now):
            message.suppressed += 1
            if record.exc_info:
                # A traceback would keep all objects of its frames.
                record = logging.makeLogRecord({**vars(record), "exc_info": None})
            message.last = record
            return False
        if message.suppressed:
            record.suppressed = message.suppressed
            message.suppressed, message.last = 0, None
        return True
