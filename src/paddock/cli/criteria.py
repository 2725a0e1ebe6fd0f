"""The conditions of `paddock find`; a node has to meet all that are given."""

import fnmatch
import re
from dataclasses import dataclass

from paddock.protocol.records import Stat


@dataclass(frozen=True, slots=True)
class Criteria:
    """Conditions on a node; None or empty: no condition. Of several globs one has to match."""

    # Of the last part of the path, and of the whole of it, in which * goes over slashes.
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None
    ephemeral: bool = False
    owner: int | None = None
    childless: bool = False
    larger: int | None = None
    smaller: int | None = None
    # Times in milliseconds since 1970, of the last write.
    written_before_ms: float | None = None
    written_after_ms: float | None = None
    data: bytes | None = None
    data_regex: re.Pattern[bytes] | None = None

    @property
    def needs_data(self) -> bool:
        return self.data is not None or self.data_regex is not None

    def fits(self, path: str, stat: Stat) -> bool:
        """Return whether path and stat match."""
        return self._fits_path(path) and self._fits_stat(stat)

    def fits_data(self, data: bytes) -> bool:
        """Return whether the data match."""
        if self.data is not None and self.data not in data:
            return False
        return self.data_regex is None or self.data_regex.search(data) is not None

    def _fits_path(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if self.names and not any(fnmatch.fnmatchcase(name, one) for one in self.names):
            return False
        if self.paths and not any(fnmatch.fnmatchcase(path, one) for one in self.paths):
            return False
        return self.regex is None or self.regex.search(path) is not None

    def _fits_stat(self, stat: Stat) -> bool:
        return not (
            (self.ephemeral and not stat.ephemeral_owner)
            or (self.owner is not None and stat.ephemeral_owner != self.owner)
            or (self.childless and stat.num_children)
            or (self.larger is not None and stat.data_length <= self.larger)
            or (self.smaller is not None and stat.data_length >= self.smaller)
            or (self.written_before_ms is not None and stat.mtime >= self.written_before_ms)
            or (self.written_after_ms is not None and stat.mtime <= self.written_after_ms)
        )
