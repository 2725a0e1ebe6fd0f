"""A mechanism of SASL, as the server sees it.

ZooKeeper's protocol names no mechanism: the first token of a client tells which one it speaks. The
rules:

* A server has one `Mechanism` of each kind, which lives as long as the server. It reads its files
  in its constructor, which raises ConfigError.
* A connection has at most one `Exchange`, made by the mechanism that accepts its first token, and
  used by one thread at a time. It gets every token, the first one included.
* A step returns what to send, and on the last one the identity that was proved. It raises
  `SaslError` if nothing is proved; then the exchange is over, whatever comes.
* The message of a `SaslError` is for the server's log: it has no secret and nothing from the client
  that is not bounded. The client is told no reason.
* If `blocks` is set, steps run in a thread: they may read files, or take longer than a
  millisecond. Otherwise they run on the event loop.
* How many steps an exchange has, and how long a token may be, is bounded outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class SaslError(Exception):
    """The peer has proved nothing, or what it sent is not understood."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a token has led to."""

    # What to send; None is no token at all, which is not the same as an empty one.
    reply: bytes | None
    # Who the client is, as it stands in ACLs behind `sasl:`; None as long as more is to come.
    identity: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the exchange is over, and has proved an identity."""
        return self.identity is not None


class Exchange(Protocol):
    """The server's side of one conversation."""

    def step(self, token: bytes) -> Step:
        """Take the client's next token. Raises SaslError."""
        ...

    def close(self) -> None:
        """Release what the exchange holds: it is over, or its connection is."""
        ...


class Mechanism(Protocol):
    """What all conversations of one kind share: users, or keys."""

    # Its name among SASL's, for the log.
    @property
    def name(self) -> str: ...

    # Whether steps run in a thread.
    @property
    def blocks(self) -> bool: ...

    def accepts(self, first: bytes) -> bool:
        """Return whether a conversation that begins with this token is one of this mechanism."""
        ...

    def start(self) -> Exchange:
        """Begin a conversation."""
        ...
