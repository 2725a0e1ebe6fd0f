"""Moments of the past, as people write them.

0x1a3, 419                            after the write with this zxid
2026-11-17 03:12[:30], with T or Z    a time of day here; with an offset, there
03:12[:30]                            the last time that a clock here showed this
90s, 15m, 2h, 3d                      so long ago
now                                   the end
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

_ZXID: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}")
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
_AGO: Final = re.compile(r"(\d{1,9})(s|m|h|d|w)(?: ago)?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_ZXID_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Moment:
    """After a zxid, or at a time; one of the two is given. Neither stands for the end."""

    zxid: int | None = None
    time_ms: int | None = None

    def is_reached(self, zxid: int, next_time_ms: int) -> bool:
        """Return whether a state with this zxid has come here, if its next entry has this time."""
        if self.zxid is not None:
            return zxid >= self.zxid
        return self.time_ms is not None and next_time_ms > self.time_ms

    def is_at(self, zxid: int, time_ms: int) -> bool:
        """Return whether a state with this zxid and time is here, whatever comes next."""
        if self.zxid is not None:
            return zxid >= self.zxid
        return self.time_ms is not None and time_ms >= self.time_ms

    def has(self, zxid: int, time_ms: int | None) -> bool:
        """Return whether a state with this zxid and time is not later; False if that is unknown."""
        if self.zxid is not None:
            return zxid <= self.zxid
        return self.time_ms is None or (time_ms is not None and time_ms <= self.time_ms)

    def written(self) -> str:
        """Return it as `parse_moment` reads it, wherever and whenever that is."""
        if self.zxid is not None:
            return f"0x{self.zxid:x}"
        if self.time_ms is None:
            return "now"
        return datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat()

    def __str__(self) -> str:
        if self.zxid is not None:
            return f"zxid 0x{self.zxid:x}"
        return "the end" if self.time_ms is None else shown_time(self.time_ms)


NOW: Final = Moment()
# Before all of a history, wherever that begins.
BEGINNING: Final = Moment(zxid=-1)


def parse_moment(text: str, now: datetime) -> Moment:
    """Return the moment that a text names, where it is `now`. Raises ValueError, with the way on.

    A number is a zxid. Without a zone in `now` it is the one here, with its summers and winters.
    """
    if text == "now":
        return NOW
    if _ZXID.fullmatch(text):
        zxid = int(text, 0) if text[:2].lower() == "0x" else int(text)
        if zxid > _ZXID_MAX:
            raise ValueError(f"{text!r} is no zxid: they have 63 bits")
        return Moment(zxid=zxid)
    try:
        if match := _AGO.fullmatch(text):
            return _at(now.astimezone(UTC) - timedelta(seconds=int(match[1]) * _SECONDS[match[2]]))
        if _CLOCK.fullmatch(text):
            clock = time.fromisoformat(text.zfill(5 if text.count(":") == 1 else 8))
            found = datetime.combine(now.date(), clock, now.tzinfo)
            return _at(found if found <= now else found - timedelta(days=1))
        found = datetime.fromisoformat(text)
        return _at(found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is neither a time, such as 03:12, 2026-11-17 03:12 or 15m (ago), nor a"
            " zxid, such as 0x1a3"
        ) from None


def shown_time(time_ms: int) -> str:
    """Return a time as people here read it."""
    try:
        here = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone()
        return here.replace(tzinfo=None).isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"


def shown_span(time_ms: int, time_ms_max: int | None) -> str:
    """Return a time that is not known exactly: it is not before one, and not behind the other."""
    if time_ms_max is None:
        return f"{shown_time(time_ms)} or later"
    if time_ms_max == time_ms:
        return shown_time(time_ms)
    return f"some time between {shown_time(time_ms)} and {shown_time(time_ms_max)}"


def _at(found: datetime) -> Moment:
    return Moment(time_ms=int(found.timestamp() * 1000))
