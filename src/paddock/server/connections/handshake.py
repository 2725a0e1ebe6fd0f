"""The handshake: a client asks for a session, a new one or one that it names.

The rules:

* The log decides. A new session gets its id, and a named one is compared with its password and with
  the last zxid that the client has seen, when the entry is applied: our own state may be behind.
* An unknown session and a wrong password are answered alike, that it has expired. A client that is
  ahead of the log even then is turned away without an answer. The session's owner notices nothing.
* While the log does not work no session is opened or attached. A client that asks for read-only is
  served from our own state, if the settings allow that.
"""

from __future__ import annotations

import logging
from typing import Final

from librt.strings import BytesWriter, write_i32_be

from paddock.protocol import opcodes
from paddock.protocol.records import ConnectRequest, ConnectResponse
from paddock.server.connections.core import Core
from paddock.state.entry import ATTACH, Entry
from paddock.state.machine import PASSWORD_BYTES, attach_body, session_body

logger: Final = logging.getLogger(__name__)

TURN_AWAY: Final = 0
TELL_EXPIRED: Final = 1
PROPOSE: Final = 2
READ_ONLY: Final = 3


class Decision:
    """What to do, and the entry to propose if that is it."""

    __slots__ = ("action", "entry")

    def __init__(self, action: int, entry: Entry | None = None) -> None:
        self.action = action
        self.entry = entry


def decide(request: ConnectRequest, core: Core, address: str) -> Decision:
    """Decide on a request that came from an address."""
    if core.is_open:
        timeout_ms = core.negotiate(request.timeout_ms)
        if request.session_id:
            password = request.password or b""
            body = attach_body(timeout_ms, password, request.last_zxid_seen)
            return Decision(PROPOSE, Entry(ATTACH, body, request.session_id))
        if is_ahead(request, core, address):
            # Before a session is opened that no client would use.
            return Decision(TURN_AWAY)
        body = session_body(timeout_ms, core.random_bytes(PASSWORD_BYTES))
        return Decision(PROPOSE, Entry(opcodes.CREATE_SESSION, body))
    if not core.is_read_only or not request.read_only:
        return Decision(TURN_AWAY)
    if request.session_id and request.session_id not in core.machine.sessions.by_id:
        return Decision(TELL_EXPIRED)
    if is_ahead(request, core, address):
        return Decision(TURN_AWAY)
    if request.session_id and not has_password(request, core):
        log_refused(request, core, address)
        return Decision(TELL_EXPIRED)
    return Decision(READ_ONLY)


def has_password(request: ConnectRequest, core: Core) -> bool:
    """Return whether our own state has the session, with this password."""
    session = core.machine.sessions.by_id.get(request.session_id)
    return session is not None and session.admits(request.password or b"")


def is_ahead(request: ConnectRequest, core: Core, address: str) -> bool:
    """Return whether the client has seen a later state than ours; log it."""
    zxid = core.machine.zxid
    if request.last_zxid_seen <= zxid:
        return False
    logger.warning(
        "%s: turned away, it has seen zxid 0x%x and ours is 0x%x",
        address,
        request.last_zxid_seen,
        zxid,
    )
    return True


def log_refused(request: ConnectRequest, core: Core, address: str) -> None:
    """Log a session that was refused, if it is not merely over."""
    session = request.session_id
    if session in core.machine.sessions.by_id and not is_ahead(request, core, address):
        logger.warning(
            "%s: wrong password for session 0x%x",
            address,
            session,
            extra={"session": session, "address": address},
        )


def response(
    request: ConnectRequest,
    timeout_ms: int,
    session: int,
    password: bytes,
    read_only: bool = False,
) -> bytes:
    """Return the frame that answers a handshake."""
    writer = BytesWriter()
    # An old client asks without the read-only byte, and is answered without it.
    said = None if request.read_only is None else read_only
    ConnectResponse(0, timeout_ms, session, password, said).write(writer)
    framed = BytesWriter()
    write_i32_be(framed, len(writer))
    framed.write(writer.getvalue())
    return framed.getvalue()


def expired(request: ConnectRequest) -> bytes:
    """Return the frame that says that the session asked for is over."""
    return response(request, 0, 0, bytes(PASSWORD_BYTES))
