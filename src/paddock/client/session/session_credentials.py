"""What a session shows to a server: who it is, and what it wants."""

from __future__ import annotations

from typing import Final

from paddock.errors import RemoteProtocolError
from paddock.protocol.records import ConnectRequest, ConnectResponse

_NO_PASSWORD: Final = bytes(16)


class SessionCredentials:
    """The identity of a session.

    A server in read-only mode gives sessions that it alone knows. By such an id no other server
    would take us, so we ask that one for a new session.
    """

    def __init__(self, timeout: float, *, read_only: bool) -> None:
        self.id = 0
        self.password = _NO_PASSWORD
        self._timeout_ms = round(timeout * 1000)
        # Whether a server will do that can only be read from.
        self._read_only = read_only
        # Whether the service as a whole knows us.
        self._is_global = False

    def request(self, last_zxid: int) -> ConnectRequest:
        """Return what asks for our session, or for a new one."""
        known = self._is_global
        return ConnectRequest(
            0,
            last_zxid,
            self._timeout_ms,
            self.id if known else 0,
            self.password if known else _NO_PASSWORD,
            self._read_only,
        )

    def check(self, reply: ConnectResponse) -> None:
        """Raise RemoteProtocolError if this server is not for us."""
        if reply.read_only and not self._read_only and reply.timeout_ms > 0:
            raise RemoteProtocolError("it is in read-only mode, and we may want to write")

    def is_refused(self, reply: ConnectResponse) -> bool:
        """Return whether our session is over: another one is none of ours."""
        return reply.timeout_ms <= 0 or (self._is_global and reply.session_id != self.id)

    def stamp(self, reply: ConnectResponse) -> None:
        """Be who the server says we are."""
        self.id = reply.session_id
        self.password = reply.password or _NO_PASSWORD
        self._is_global = self._is_global or not reply.read_only
