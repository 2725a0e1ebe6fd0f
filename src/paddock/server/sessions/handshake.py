"""The handshake: what becomes of somebody who asks for a session.

It is decided here and carried out by the connection. Whoever asks for no session in particular
gets a new one. Whoever names one gets it if the password fits; if it does not, or if there is no
such session, the answer is that it has expired, and the session's owner notices nothing. Whoever
has seen a later state than ours is turned away, to find a server that is not behind, unless the
session it names is gone here: then it is told so, since no waiting would bring it back.

While the log does not work nobody gets a session that could write; whoever is content with reading
gets that, if the server is set to allow it.
"""

from __future__ import annotations

import hmac
import logging
from typing import Final

from librt.strings import BytesWriter, write_i32_be

from paddock.protocol import opcodes
from paddock.protocol.records import ConnectRequest, ConnectResponse
from paddock.server.core import Core
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


def decide(request: ConnectRequest, service: Core, address: str) -> Decision:
    """Decide on a request that came from an address."""
    if not service.is_open and not (service.is_read_only and request.read_only):
        return Decision(TURN_AWAY)
    machine = service.machine
    session = machine.sessions.by_id.get(request.session_id)
    if request.session_id != 0 and session is None:
        return Decision(TELL_EXPIRED)
    if request.last_zxid_seen > machine.zxid:
        logger.warning(
            "%s: turned away, it has seen zxid 0x%x and ours is 0x%x",
            address,
            request.last_zxid_seen,
            machine.zxid,
        )
        return Decision(TURN_AWAY)
    if session is not None and not hmac.compare_digest(session.password, request.password or b""):
        logger.warning(
            "%s: wrong password for session 0x%x",
            address,
            session.id,
            extra={"session": session.id, "address": address},
        )
        return Decision(TELL_EXPIRED)
    if not service.is_open:
        return Decision(READ_ONLY)
    timeout_ms = service.negotiate(request.timeout_ms)
    if session is None:
        body = session_body(timeout_ms, service.random_bytes(PASSWORD_BYTES))
        entry = Entry(opcodes.CREATE_SESSION, body, service.new_session_id())
        return Decision(PROPOSE, entry)
    return Decision(PROPOSE, Entry(ATTACH, attach_body(timeout_ms), session.id))


def response(
    request: ConnectRequest,
    timeout_ms: int,
    session: int,
    password: bytes,
    read_only: bool = False,
) -> bytes:
    """Give the frame that answers a handshake."""
    writer = BytesWriter()
    # An old client asks without the read-only byte, and is answered without it.
    said = None if request.read_only is None else read_only
    ConnectResponse(0, timeout_ms, session, password, said).write(writer)
    framed = BytesWriter()
    write_i32_be(framed, len(writer))
    framed.write(writer.getvalue())
    return framed.getvalue()


def expired(request: ConnectRequest) -> bytes:
    """Give the frame that says that the session asked for is over."""
    return response(request, 0, 0, bytes(PASSWORD_BYTES))
