"""Connection strings, `one:2181,two:2181,three:2181/app`, and the order of connection attempts.

A connection string has hosts, with or without a port, and may end with the chroot: the path above
all paths of the client. Hosts are shuffled once, so that clients spread over them, then tried in
turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

from paddock.errors import InvalidArgumentError
from paddock.protocol import paths

DEFAULT_PORT: Final = 2181

_HOST: Final = re.compile(
    r"(?:\[(?P<bracketed>[0-9a-fA-F:.%\w]+)\]|(?P<name>[^\s\[\]:/,]+))(?::(?P<port>[0-9]{1,5}))?"
)


_T = TypeVar("_T")


@runtime_checkable
class Randomness(Protocol):
    """A source of randomness, such as `random.Random`."""

    def uniform(self, a: float, b: float) -> float:
        """Return a number between two others."""
        ...

    def sample(self, population: Sequence[_T], k: int) -> list[_T]:
        """Return some of a population, in random order."""
        ...

    def randbytes(self, n: int) -> bytes:
        """Return so many bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """A name or an address, and a port."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


def parse_hosts(text: str) -> tuple[tuple[Host, ...], str]:
    """Return the hosts and the chroot, or "", of a connection string.

    Raises InvalidArgumentError.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"hosts: expected text, not {type(text).__name__}")
    if "://" in text:
        raise InvalidArgumentError(f"hosts {text!r}: expected host:port, not a URL")
    listed, slash, below = text.partition("/")
    chroot = (slash + below).rstrip("/")
    if chroot and not paths.is_valid(chroot.encode("utf-8", "surrogatepass")):
        raise InvalidArgumentError(f"hosts {text!r}: {chroot!r} is no valid path")
    return tuple(_parse_host(part.strip(), text) for part in listed.split(",")), chroot


def _parse_host(part: str, whole: str) -> Host:
    match = _HOST.fullmatch(part)
    if match is None:
        what = "an empty host" if not part else f"{part!r} is no host:port"
        if part.count(":") > 1 and "[" not in part:
            what += "; an address of IPv6 stands in brackets, as [::1]:2181"
        raise InvalidArgumentError(f"hosts {whole!r}: {what}")
    port = DEFAULT_PORT if match["port"] is None else int(match["port"])
    if not 0 < port < 65536:
        raise InvalidArgumentError(f"hosts {whole!r}: {port} is no port")
    return Host(match["bracketed"] or match["name"], port)


class HostRing(list[Host]):
    """The hosts, in the order in which they are tried."""

    def __init__(self, hosts: Sequence[Host], random: Randomness) -> None:
        assert hosts
        super().__init__(random.sample(list(hosts), len(hosts)))
        self._next = 0

    def __str__(self) -> str:
        return ",".join(sorted(map(str, self)))

    def take(self) -> Host:
        """Return the next one to try."""
        host = self[self._next]
        self._next = (self._next + 1) % len(self)
        return host

    def prefer(self, host: Host) -> None:
        """Try one of them next."""
        self._next = self.index(host)

    def is_round_over(self) -> bool:
        """Return whether all of them have been tried since the first."""
        return self._next == 0


class Backoff:
    """Delays between rounds: exponential up to a limit, with full jitter."""

    def __init__(self, random: Randomness, first: float = 0.1, longest: float = 5.0) -> None:
        self._random = random
        self._first = first
        self._longest = longest
        self._limit = first

    def next(self) -> float:
        delay = self._random.uniform(0, self._limit)
        self._limit = min(2 * self._limit, self._longest)
        return delay

    def reset(self) -> None:
        self._limit = self._first
