"""Numbers, sizes and ages on the command line: `10k` bytes, `90m` minutes."""

import math
import re
from typing import Any, Final

import click

_SIZES: Final = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_AGES: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class NumberRange(click.FloatRange):
    """A number within bounds, for the type of an option; `nan` is within none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{str(value)!r} is not a number{_bounds(self)}", param, ctx)
        return number


class WholeNumber(click.IntRange):
    """A whole number within bounds, for the type of an option."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{str(value)!r} is not a whole number{_bounds(self)}", param, ctx)
        return number


def _bounds(within: click.FloatRange | click.IntRange) -> str:
    """Return the bounds of a number, as they follow "a number" in a message."""
    if within.min is None:
        return ""
    if within.max is not None:
        return f" from {within.min} to {within.max}"
    return f" above {within.min}" if within.min_open else f", {within.min} or more"


def parse_size(text: str) -> int:
    """Read a number of bytes: `512`, `10k`, `1.5M`; for the type of an option."""
    found = _parsed(text, _SIZES)
    if found is None:
        raise click.BadParameter(f"{text!r} is no size, such as 512, 10k or 1M")
    return int(found)


def parse_age(text: str) -> float:
    """Read a number of seconds: `30`, `90m`, `12h`, `7d`; for the type of an option."""
    found = _parsed(text, _AGES)
    if found is None:
        raise click.BadParameter(f"{text!r} is no age, such as 30s, 90m, 12h or 7d")
    return found


def size_text(size: int) -> str:
    """Write a size for people: `512 B`, `1.5 kB`."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:.1f} {' kMG'[power]}B"


def duration_text(seconds: float) -> str:
    """Write how long something lasts by its two largest units: `3d 4h`, `12s`."""
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= length or (unit == "s" and not parts):
            parts.append(f"{left // length}{unit}")
            left %= length
    return " ".join(parts[:2])


def _parsed(text: str, units: dict[str, int]) -> float | None:
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]?)", text.strip().lower())
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]
