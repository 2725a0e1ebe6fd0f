"""Expiry of a session from outside: its client finds that it has expired.

    await expire_session(server.address, client.session_id, client.session_password)

It works on any server, and at once: another connection attaches to the session and closes it. In
virtual time, a session that is silent for long enough expires by itself.
"""

from __future__ import annotations

import asyncio
from typing import Final

from paddock.client.requests.encoder import encoded, framed, framed_request
from paddock.errors import PaddockError
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse

_TIMEOUT_MS: Final = 30_000
_ATTEMPTS: Final = 100
# Between two of them, so that they outlast a disk that keeps the server waiting.
_PAUSE_SECONDS: Final = 0.01


class SessionLivesError(PaddockError):
    """A session could not be ended: its client took it back each time."""


async def expire_session(address: tuple[str, int], session_id: int, password: bytes) -> None:
    """End a session, and return when it is over; one that is over already is fine.

    Raises OSError if the server cannot be reached, and SessionLivesError.
    """
    for _ in range(_ATTEMPTS):
        if await _close(address, session_id, password):
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise SessionLivesError(f"session 0x{session_id:x} lives on")


def expire_session_blocking(address: tuple[str, int], session_id: int, password: bytes) -> None:
    """Do the same as `expire_session` where no event loop runs."""
    asyncio.run(expire_session(address, session_id, password))


async def _close(address: tuple[str, int], session_id: int, password: bytes) -> bool:
    """Attach to the session and close it; return whether it was over before that."""
    handshake = encoded(ConnectRequest(0, 0, _TIMEOUT_MS, session_id, password, False))
    reader, writer = await asyncio.open_connection(*address)
    try:
        # Both in one piece: between two, the client has its session back.
        writer.write(framed(handshake) + framed_request(1, opcodes.CLOSE_SESSION))
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
    return len(answer) >= 4 and ConnectResponse.read(Reader(answer[4:])).session_id == 0
