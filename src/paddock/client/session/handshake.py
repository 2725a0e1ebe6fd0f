"""The handshake of a session: the first frame each way, and authentication by SASL.

SASL has two mechanisms, `paddock.client.session.digest_md5` and `paddock.client.session.kerberos`.
Later requests are neither signed nor encrypted: use TLS.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

from paddock.client.requests.encoder import encoded, framed, framed_request
from paddock.client.session.transport import Transport
from paddock.errors import (
    OK,
    AuthenticationError,
    InvalidArgumentError,
    RemoteProtocolError,
    error_from_code,
)
from paddock.protocol import opcodes
from paddock.protocol.exact import ASKS_EXACT, CHANGES, EXACT, TERMS_VERSION, ExactTerms
from paddock.protocol.framing import copied
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse, ReplyHeader
from paddock.protocol.requests import SaslToken

_HEADER_BYTES: Final = 16
_NO_PASSWORD: Final = bytes(16)
# Kerberos has three; a server that wants more does not speak our mechanism.
_SASL_STEPS_MAX: Final = 4


class SessionCredentials:
    """The identity of a session.

    A server in read-only mode gives sessions that it alone knows. By such an id no other server
    would take us, so we ask that one for a new session.

    We may ask for an exact session (`paddock.protocol.exact`). Whether it becomes one depends on
    the service.
    """

    def __init__(self, timeout: float, *, read_only: bool, asks_exact: bool = False) -> None:
        self.id = 0
        self.password = _NO_PASSWORD
        self._timeout_ms = round(timeout * 1000)
        # Whether a server will do that can only be read from.
        self._read_only = read_only
        # Whether the service as a whole knows us, and whether the session is exact.
        self._is_global = False
        self.is_exact = False
        self._asks_exact = asks_exact
        # Whether the server has change feeds.
        self.has_changes = False

    @property
    def asks_exact(self) -> bool:
        """Whether a new session is asked for, an exact one."""
        return self._asks_exact and not self._is_global

    @property
    def has_asked(self) -> bool:
        """Whether servers are asked what they can that upstream's cannot."""
        return self._asks_exact

    def request(self, last_zxid: int, *, plainly: bool = False) -> ConnectRequest:
        """Return what asks for our session, or for a new one; `plainly`, for an ordinary one."""
        timeout_ms, read_only = self._timeout_ms, self._read_only
        if self._is_global:
            version = TERMS_VERSION if self.is_exact else 0
            return ConnectRequest(version, last_zxid, timeout_ms, self.id, self.password, read_only)
        password = ASKS_EXACT if self._asks_exact and not plainly else _NO_PASSWORD
        return ConnectRequest(0, last_zxid, timeout_ms, 0, password, read_only)

    def check(self, reply: ConnectResponse) -> None:
        """Raise RemoteProtocolError if this server is not for us."""
        if reply.read_only and not self._read_only and reply.timeout_ms > 0:
            raise RemoteProtocolError("it is in read-only mode, and we may want to write")

    def is_refused(self, reply: ConnectResponse) -> bool:
        """Return whether our session is over: another one is none of ours."""
        return reply.timeout_ms <= 0 or (self._is_global and reply.session_id != self.id)

    def stamp(self, reply: ConnectResponse, terms: ExactTerms | None) -> None:
        """Be who the server says we are."""
        self.id = reply.session_id
        self.password = reply.password or _NO_PASSWORD
        self.has_changes = terms is not None and terms.flags & CHANGES != 0
        if not self._is_global and not reply.read_only:
            self._is_global = True
            self.is_exact = terms is not None and terms.flags & EXACT != 0


async def perform_handshake(
    transport: Transport, request: ConnectRequest
) -> tuple[ConnectResponse, ExactTerms | None]:
    """Ask for a session, a new one or our own; raises OSError or RemoteProtocolError.

    The terms are those of an exact session, or flags alone. Frames are dropped afterwards, until
    `on_frames` is set.
    """
    transport.write(framed(encoded(request)))
    frame = await next_frame(transport)
    try:
        if len(frame) == _HEADER_BYTES:
            # Not what it should be, but some servers answer it as if it were any request.
            code = ReplyHeader.read(Reader(frame)).error
            raise RemoteProtocolError(f"it refused: {error_from_code(code).reason} (code {code})")
        reader = Reader(frame)
        reply = ConnectResponse.read(reader)
        asks = request.password == ASKS_EXACT or request.protocol_version == TERMS_VERSION
        if not asks or reply.timeout_ms <= 0 or reader.position == len(frame):
            return reply, None
        terms = ExactTerms.read(reader)
        # What is malformed shows now.
        terms.replies()
        return reply, terms
    except DecodeError as error:
        raise RemoteProtocolError(f"handshake not understood: {error}") from error


async def next_frame(transport: Transport) -> bytes:
    """Wait for what the server says next; raises OSError if it says nothing any more."""
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def take(frames: bytes, count: int) -> None:
        # Nothing is sent before we have asked for more, so there is one at most.
        if count and not answer.done():
            answer.set_result(copied(frames, 1)[0])

    transport.on_frames = take
    try:
        await asyncio.wait((answer, transport.lost), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        reason = transport.lost.result()
        if isinstance(reason, RemoteProtocolError):
            raise RemoteProtocolError(f"it does not speak ZooKeeper's protocol: {reason}")
        raise reason or ConnectionResetError("the server closed the connection")
    finally:
        answer.cancel()


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


class SaslConversation(Protocol):
    """The client's side of one conversation, whatever its mechanism."""

    @property
    def who(self) -> str:
        """What errors begin with: the mechanism, and who we are."""

    @property
    def refusal(self) -> str:
        """What it means that the server does not accept a token."""

    @property
    def is_complete(self) -> bool:
        """Whether the server has nothing more to prove, and need not send a token."""

    async def start(self) -> bytes:
        """Return the first token. Raises AuthenticationError or OSError."""

    async def respond(self, challenge: bytes) -> bytes | None:
        """Return what to send next; None if all is proved. Raises AuthenticationError."""


async def authenticate(transport: Transport, conversation: SaslConversation) -> None:
    """Authenticate a connection; raises AuthenticationError if the server does not accept it.

    OSError and RemoteProtocolError say that it did not come to that.
    """
    token = await conversation.start()
    for step in range(1, _SASL_STEPS_MAX + 1):
        challenge = await _send_token(transport, step, token, conversation)
        if conversation.is_complete:
            return
        if challenge is None:
            raise _refused(conversation, "the server does not offer SASL")
        answer = await conversation.respond(challenge)
        if answer is None:
            return
        token = answer
    raise _refused(conversation, "the server asks for more and more")


async def _send_token(
    transport: Transport, xid: int, token: bytes, conversation: SaslConversation
) -> bytes | None:
    transport.write(framed_request(xid, opcodes.SASL, encoded(SaslToken(token))))
    reader = Reader(await next_frame(transport))
    try:
        header = ReplyHeader.read(reader)
        if header.xid != xid:
            raise RemoteProtocolError(f"a reply to request {header.xid}, which was not made")
        if header.error != OK:
            raise _refused(conversation, conversation.refusal)
        return SaslToken.read(reader).token
    except DecodeError as error:
        raise RemoteProtocolError(f"SASL: an answer not understood: {error}") from error


def _refused(conversation: SaslConversation, reason: str) -> AuthenticationError:
    return AuthenticationError("connect", None, f"{conversation.who}: {reason}")
