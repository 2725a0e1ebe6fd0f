"""What a connection may not do although it has a session.

A read-only session may only read, while the log does not work. A session of an unknown client must
authenticate first, if the server enforces that. Requests under a policy go a way of their own, so
that all others pay nothing for it.
"""

from __future__ import annotations

from paddock.errors import NOT_READ_ONLY, OK, SESSION_CLOSED_REQUIRE_SASL
from paddock.protocol import opcodes, operations
from paddock.state.access import Identities


class SessionPolicy:
    """A restriction on the requests of a connection."""

    def check(self, operation: int) -> tuple[int, bool] | None:
        """Return with which code a request is rejected, and whether the connection then closes.

        None if it is allowed.
        """
        raise NotImplementedError

    def is_lifted(self, identities: Identities) -> bool:
        """Return whether the policy does not apply to a client with these identities."""
        return False


class ReadOnly(SessionPolicy):
    """Nothing is written, not even the end of a session; what another policy wants comes first."""

    def __init__(self, first: SessionPolicy | None = None) -> None:
        self._first = first

    def check(self, operation: int) -> tuple[int, bool] | None:
        if self._first is not None and (rejection := self._first.check(operation)) is not None:
            return rejection
        if operation == opcodes.CLOSE_SESSION:
            return OK, True
        # Our state may not be the latest, so a sync is refused too, as upstream.
        if operation in operations.WRITES or operation == opcodes.SYNC:
            return NOT_READ_ONLY, False
        return None

    def is_lifted(self, identities: Identities) -> bool:
        if self._first is not None and self._first.is_lifted(identities):
            self._first = None
        return False


class AuthenticationRequired(SessionPolicy):
    """Nothing but authentication, until it succeeds in one of some schemes."""

    def __init__(self, schemes: frozenset[str]) -> None:
        self._schemes = schemes

    def check(self, operation: int) -> tuple[int, bool] | None:
        if operation in (opcodes.AUTH, opcodes.SASL):
            return None
        return SESSION_CLOSED_REQUIRE_SASL, True

    def is_lifted(self, identities: Identities) -> bool:
        return any(one.scheme in self._schemes for one in identities.entries)
