"""How long an answer of etcd's is waited for: long enough for a slow one, not for a silent one.

A lease may be as short as 4 s. So a call begins with a short deadline. Each time that this was not
enough it doubles, up to a limit. After an answer it is four times what that took, within the same
limits: an etcd that is merely slow is not left each time.
"""

from __future__ import annotations

from typing import Final

_MARGIN: Final = 4


class Patience:
    """The deadline of one kind of call."""

    def __init__(self, seconds_min: float, seconds_max: float) -> None:
        self.seconds = seconds_min
        self._min = seconds_min
        self._max = seconds_max

    @property
    def is_longest(self) -> bool:
        return self.seconds >= self._max

    def answered(self, took_s: float) -> None:
        """Take note of how long an answer took."""
        self.seconds = min(max(_MARGIN * took_s, self._min), self._max)

    def late(self, waited_s: float) -> None:
        """Take note that there was none in time. Calls that fail together count once."""
        self.seconds = min(2 * waited_s, self._max)
