"""What the machine below this one does to measurements: it may take the processors away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

_STAT = Path("/proc/stat")
#: The part of the time that the host may take while something is measured.
STOLEN_MAX = 0.05

# The place of this figure in the line of all processors.
_STOLEN = 7


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """The time of all processors since the start, in ticks."""

    total: int
    stolen: int

    @classmethod
    def now(cls) -> Self:
        """Read it; nothing is ever stolen where the system does not tell."""
        if not _STAT.exists():
            return cls(0, 0)
        ticks = [int(word) for word in _STAT.read_text().splitlines()[0].split()[1:9]]
        return cls(sum(ticks), ticks[_STOLEN])

    def stolen_since(self) -> float:
        """Return the part of all time since this was read that another machine had."""
        now = self.now()
        return (now.stolen - self.stolen) / max(1, now.total - self.total)
