"""Quotas as nodes hold them: limits, statistics, and the quota that governs a path.

A quota on `/app` is two nodes below `/zookeeper/quota/app`. Both hold numbers by name:

    zookeeper_limits    count=-1,bytes=1000=;byteHardLimit=-1;countHardLimit=10
    zookeeper_stats     count=3,bytes=120

`count` and `bytes` of the limits are the soft ones, -1 is no limit. The odd `=` before the first
`;` lets clients of 3.4 read the line, who know the two names in front only.

The data of a node is parsed once, and again when the node has another bytes object. What it says
must not depend on that: a server that starts from a snapshot has parsed nothing yet. So statistics
are of no use whose next text would be too long to be parsed. Nor may it depend on the version of
Python, so digits are those of ASCII.

Under former rules (`LOOSE_QUOTAS`) such statistics were written all the same, and counted on for as
long as the server lived, and digits were those of Unicode. A log may hold such entries, with the
digests of that state beside them. They are replayed as they were applied, or a server would refuse
a log today that it has served yesterday.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from paddock.state.table import Table

QUOTA: Final = b"/zookeeper/quota"
LIMITS: Final = b"/zookeeper_limits"
STATISTICS: Final = b"/zookeeper_stats"

NO_LIMIT: Final = -1

_INT64_MAX: Final = (1 << 63) - 1
# More is not parsed, so that long data cannot make every write slow.
_TEXT_BYTES_MAX: Final = 1000
# How long what a client has written beside the counts may be, so that any two counts have room.
_REST_BYTES_MAX: Final = _TEXT_BYTES_MAX - len("count=,bytes=") - 2 * len(str(-_INT64_MAX))

_SEPARATORS: Final = re.compile("[,;]+")
_NUMBER: Final = re.compile("([+-]?)0*([0-9]{1,19})")
# Under former rules. Which characters are digits depends on the version of Python.
_LOOSE_NUMBER: Final = re.compile(r"([+-]?)0*(\d{1,19})")


class Quota:
    """The quota of one node, with the parsed data of its two nodes."""

    def __init__(self, governed: bytes) -> None:
        # The node that has the quota.
        self.governed = governed
        self.limits_path = QUOTA + governed + LIMITS
        self.statistics_path = QUOTA + governed + STATISTICS
        # Whether the limits could be read, and what they are, each of them -1 or more.
        self.has_limits = False
        self.count_soft = NO_LIMIT
        self.count_hard = NO_LIMIT
        self.bytes_soft = NO_LIMIT
        self.bytes_hard = NO_LIMIT
        # Whether the statistics could be read, and how much there is.
        self.has_statistics = False
        self.nodes = 0
        self.size = 0
        # Whether the statistics are as `add` writes them: to add nothing would change nothing.
        self.is_written_here = False
        # What a statistics node says beyond that, as it is written behind it.
        self._rest = b""
        # The bytes that were read. Invariant: the fields above are what they say.
        self._limits_read: bytes | None = None
        self._statistics_read: bytes | None = None
        # Whether they were read under the rules of LOOSE_QUOTAS or before.
        self._is_loose = False

    def read_loosely(self, is_loose: bool) -> None:
        """Say whether the data is to be read under former rules."""
        if is_loose != self._is_loose:
            self._is_loose = is_loose
            self._limits_read = self._statistics_read = None
            self.has_limits = self.has_statistics = False

    def read_limits(self, data: bytes | None) -> bool:
        """Parse the data of the limits node; return whether it is valid."""
        if data is not self._limits_read:
            numbers = read_numbers(data, self._is_loose)
            self._limits_read = data
            self.has_limits = numbers is not None
            if numbers is not None:
                self.count_soft = max(NO_LIMIT, numbers.get("count", NO_LIMIT))
                self.count_hard = max(NO_LIMIT, numbers.get("countHardLimit", NO_LIMIT))
                self.bytes_soft = max(NO_LIMIT, numbers.get("bytes", NO_LIMIT))
                self.bytes_hard = max(NO_LIMIT, numbers.get("byteHardLimit", NO_LIMIT))
        return self.has_limits

    def read_statistics(self, data: bytes | None) -> bool:
        """Parse the data of the statistics node; return whether it can be added to."""
        if data is not self._statistics_read:
            numbers = read_numbers(data, self._is_loose)
            self._statistics_read = data
            self.is_written_here = False
            self.has_statistics = False
            if numbers is not None:
                self.nodes = numbers.pop("count", -1)
                self.size = numbers.pop("bytes", -1)
                rest = [f";{name}={numbers[name]}" for name in sorted(numbers)]
                self._rest = ("=" + "".join(rest)).encode() if rest else b""
                self.has_statistics = self._is_loose or len(self._rest) <= _REST_BYTES_MAX
        return self.has_statistics

    def add(self, nodes: int, size: int) -> bytes:
        """Add to the counts; return the new data of the statistics node."""
        self.nodes = _to_int64(self.nodes + nodes)
        self.size = _to_int64(self.size + size)
        text = statistics_text(self.nodes, self.size) + self._rest
        self._statistics_read = text
        self.is_written_here = True
        return text


class _Point:
    """A name on the path of nodes that have a quota."""

    def __init__(self) -> None:
        self.children = Table[_Point]()
        self.quota: Quota | None = None


class Quotas:
    """All quotas, in a tree of the names of their paths."""

    def __init__(self) -> None:
        # How many there are; usually none, and then quotas cost nothing.
        self.size = 0
        self._root = _Point()

    def add(self, governed: bytes) -> None:
        """Add the quota of a node; the root cannot have one."""
        if not governed:
            return
        point = self._root
        for name in governed[1:].split(b"/"):
            below = point.children.get(name)
            if below is None:
                below = _Point()
                point.children[name] = below
            point = below
        if point.quota is None:
            point.quota = Quota(governed)
            self.size += 1

    def remove(self, governed: bytes) -> None:
        """Remove the quota of a node, and the points that only it needs."""
        if not governed:
            return
        names = governed[1:].split(b"/")
        points = [self._root]
        for name in names:
            points.append(points[-1].children[name])
        points[-1].quota = None
        self.size -= 1
        while names:
            point = points.pop()
            if point.quota is not None or point.children:
                break
            del points[-1].children[names.pop()]

    def governor(self, path: bytes, is_loose: bool = False) -> Quota | None:
        """Return the quota of the nearest node, from a path upwards.

        `is_loose` says whether its data is to be read under former rules.
        """
        found = None
        point: _Point | None = self._root
        start = 1
        while start > 0:
            assert point is not None
            end = path.find(b"/", start)
            point = point.children.get(path[start:] if end < 0 else path[start:end])
            if point is None:
                break
            if point.quota is not None:
                found = point.quota
            start = end + 1
        if found is not None:
            found.read_loosely(is_loose)
        return found

    def __iter__(self) -> Iterator[Quota]:
        """Iterate over all quotas, in no particular order."""
        waiting = [self._root]
        while waiting:
            point = waiting.pop()
            if point.quota is not None:
                yield point.quota
            waiting.extend(point.children.values())


def governed_by(name: bytes, path: bytes) -> bytes | None:
    """Return the node whose LIMITS or STATISTICS are at a path, `b""` for the root; or None."""
    if not path.endswith(name) or not path.startswith(QUOTA):
        return None
    governed = path[len(QUOTA) : -len(name)]
    # Not what is below another node whose name only begins like this.
    return governed if not governed or governed.startswith(b"/") else None


def statistics_text(nodes: int, size: int) -> bytes:
    """Return the data of a new statistics node."""
    return b"count=%d,bytes=%d" % (nodes, size)


def read_numbers(data: bytes | None, is_loose: bool = False) -> dict[str, int] | None:
    """Parse numbers by their names, as upstream; None if they are malformed.

    Of a name that comes twice the last counts. `count==` is -1; `count=` is malformed. Unlike
    upstream, it takes no other digits than 0 to 9.
    """
    if data is None or len(data) > _TEXT_BYTES_MAX:
        return None
    pairs = _without_empty_tail(_SEPARATORS.split(data.decode("utf-8", "replace")))
    pattern = _LOOSE_NUMBER if is_loose else _NUMBER
    numbers: dict[str, int] = {}
    for pair in pairs:
        parts = _without_empty_tail(pair.split("="))
        if len(parts) < 2:
            return None
        match = pattern.fullmatch(parts[1] or "-1")
        if match is None:
            return None
        number = int(match[1] + match[2])
        if number != _to_int64(number):
            return None
        numbers[parts[0]] = number
    return numbers


def _without_empty_tail(parts: list[str]) -> list[str]:
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _to_int64(number: int) -> int:
    if -_INT64_MAX <= number <= _INT64_MAX:
        return number
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
