"""What a connection may not do although it has a session.

A read-only one may read, while the log does not work. A stranger's must authenticate before
anything else, if the server wants everybody to. Restricted requests go a way of their own, so that
everybody else's pay nothing for it.
"""

from __future__ import annotations

from paddock.errors import NOT_READ_ONLY, OK, SESSION_CLOSED_REQUIRE_SASL
from paddock.protocol import opcodes, operations
from paddock.state.access import Identities


class Verdict:
    """How a request is answered that is not carried out, and whether that is the end."""

    __slots__ = ("code", "is_final")

    def __init__(self, code: int, is_final: bool) -> None:
        self.code = code
        self.is_final = is_final


class Restriction:
    """A rule that a connection is under."""

    def judge(self, operation: int) -> Verdict | None:
        """Tell how a request is answered; None if it is simply carried out."""
        raise NotImplementedError

    def is_lifted(self, identities: Identities) -> bool:
        """Tell whether the rule does not hold any more for somebody who is this."""
        raise NotImplementedError


class ReadOnly(Restriction):
    """Nothing is written, not even the end of a session."""

    def judge(self, operation: int) -> Verdict | None:
        if operation == opcodes.CLOSE_SESSION:
            return Verdict(OK, True)
        # Nobody knows whether what we have is the latest, so a sync is refused too, as upstream.
        if operation in operations.WRITES or operation == opcodes.SYNC:
            return Verdict(NOT_READ_ONLY, False)
        return None

    def is_lifted(self, identities: Identities) -> bool:
        return False


class MustAuthenticate(Restriction):
    """Nothing but authentication, in one of some schemes."""

    def __init__(self, schemes: frozenset[str]) -> None:
        self._schemes = schemes

    def judge(self, operation: int) -> Verdict | None:
        if operation in (opcodes.AUTH, opcodes.SASL):
            return None
        return Verdict(SESSION_CLOSED_REQUIRE_SASL, True)

    def is_lifted(self, identities: Identities) -> bool:
        return any(one.scheme in self._schemes for one in identities.entries)
