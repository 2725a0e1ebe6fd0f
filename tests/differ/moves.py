"""What happens in a differential run: requests by name, and the steps that sessions take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support import requests as rq
from tests.support.records import OPEN, Acl, Request


@dataclass(frozen=True, slots=True)
class Move:
    """One request by name and arguments; the lag of setWatches counts back from the last zxid."""

    name: str
    arguments: tuple[Any, ...]

    def request(self, last_zxid: int) -> Request:
        if self.name in ("set_watches", "set_watches2"):
            lag, *lists = self.arguments
            request = getattr(rq, self.name)(max(0, last_zxid - lag), *lists)
        elif self.name == "raw":
            request = Request(*self.arguments)
        elif self.name in ("multi", "multi_read"):
            parts = [part.request(last_zxid) for part in self.arguments]
            request = getattr(rq, self.name)(*parts)
        else:
            request = getattr(rq, self.name)(*self.arguments)
        assert isinstance(request, Request)
        return request

    def __str__(self) -> str:
        return f"{self.name}({', '.join(_show(each) for each in self.arguments)})"


def _show(argument: object) -> str:
    """An argument, short enough to read."""
    match argument:
        case Move() | int():
            return str(argument)
        case bytes() if len(argument) > 20:
            return f"<{len(argument)} bytes>"
        case tuple() if argument == OPEN:
            return "OPEN"
        case tuple() | list():
            return "[" + " ".join(_show(each) for each in argument) + "]"
        case Acl(perms, scheme, id_):
            return f"{perms}:{scheme!s}:{id_!s}"
        case _:
            return repr(argument)


@dataclass(frozen=True, slots=True)
class Burst:
    """Requests of one session, sent in one write."""

    session: int
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        return f"session {self.session}: " + "; ".join(str(move) for move in self.moves)


@dataclass(frozen=True, slots=True)
class Renew:
    """A session ends by its own close, and another takes its place."""

    session: int

    def __str__(self) -> str:
        return f"session {self.session}: close, then a new session"


@dataclass(frozen=True, slots=True)
class Reattach:
    """A connection is lost, or broken by a request, and the session goes on with its watches."""

    session: int
    breaking: Move | None
    watches: Move

    def __str__(self) -> str:
        lost = f"broken by {self.breaking}" if self.breaking else "connection lost"
        return f"session {self.session}: {lost}, reattach, {self.watches}"


Step = Burst | Renew | Reattach
