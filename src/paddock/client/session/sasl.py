"""SASL authentication of a connection, before any request.

The mechanism is DIGEST-MD5, with the package `pure-sasl` (the extra `sasl`). The password is not
sent, and the server proves that it knows it, too. Later requests are neither signed nor encrypted:
use TLS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from paddock.client.requests.encoder import encoded, framed_request
from paddock.client.session.handshake import next_frame
from paddock.client.session.transport import Transport
from paddock.errors import OK, AuthenticationError, InvalidArgumentError, RemoteProtocolError
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ReplyHeader
from paddock.protocol.requests import SaslToken

# A challenge and the server's own proof; a server that wants more does not speak DIGEST-MD5.
_STEPS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class SaslCredentials:
    """A user and a password for DIGEST-MD5.

    The service and the name of the server are part of what is proved; ZooKeeper's are the same on
    every server, unless it is told otherwise.
    """

    user: str
    password: str = field(repr=False)
    service: str = "zookeeper"
    server: str = "zk-sasl-md5"

    def __post_init__(self) -> None:
        for name in ("user", "password", "service", "server"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                # The value itself may be a secret.
                raise InvalidArgumentError(f"{name}: expected text that is not empty")


def check_installed() -> None:
    """Raise ImportError, saying what to install, if SASL is wanted and cannot be had."""
    try:
        import puresasl.client  # noqa: F401
    except ImportError as error:
        raise ImportError("SASL needs the package pure-sasl: pip install pure-sasl") from error


async def authenticate(transport: Transport, credentials: SaslCredentials) -> None:
    """Authenticate a connection; raises AuthenticationError if the server does not accept it.

    OSError and RemoteProtocolError say that it did not come to that.
    """
    from puresasl import QOP
    from puresasl.client import SASLClient

    sasl = SASLClient(
        credentials.server,
        credentials.service,
        mechanism="DIGEST-MD5",
        username=credentials.user,
        password=credentials.password,
        qops=[QOP.AUTH],
    )
    token = b""
    for step in range(1, _STEPS_MAX + 1):
        challenge = await _send_token(transport, step, token, credentials)
        try:
            token = sasl.process(challenge) or b""
        except Exception as error:
            # The package raises what its parser happens to meet.
            raise _refused(credentials, f"the server's side of it is not right: {error}") from error
        if sasl.complete:
            sasl.dispose()
            return
    raise _refused(credentials, "the server asks for more and more")


async def _send_token(
    transport: Transport, xid: int, token: bytes, credentials: SaslCredentials
) -> bytes:
    transport.write(framed_request(xid, opcodes.SASL, encoded(SaslToken(token))))
    reader = Reader(await next_frame(transport))
    try:
        header = ReplyHeader.read(reader)
        if header.xid != xid:
            raise RemoteProtocolError(f"a reply to request {header.xid}, which was not made")
        if header.error != OK:
            raise _refused(credentials, "the server did not accept user and password")
        answer = SaslToken.read(reader).token
    except DecodeError as error:
        raise RemoteProtocolError(f"SASL: an answer not understood: {error}") from error
    if answer is None:
        raise _refused(credentials, "the server does not offer SASL")
    return answer


def _refused(credentials: SaslCredentials, reason: str) -> AuthenticationError:
    return AuthenticationError("connect", None, f"SASL as {credentials.user!r}: {reason}")
