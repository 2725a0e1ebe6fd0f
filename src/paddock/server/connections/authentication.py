"""The part of a connection by which its client says who it is: AUTH packets and tokens of SASL.

A packet is answered at once (`paddock.server.sessions.authentication`), a token when its step is
done (`paddock.server.sasl.conversation`); while one is under way (`is_busy`), nothing else of the
client is served. A server that offers no SASL answers every token with none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter

from paddock.errors import AUTH_FAILED, OK, SESSION_CLOSED_REQUIRE_SASL
from paddock.protocol import opcodes
from paddock.protocol.acl import Identity
from paddock.protocol.jute import Reader
from paddock.protocol.requests import AuthPacket, SaslToken
from paddock.server.config.config import ServerConfig
from paddock.server.sasl.conversation import Conversation, Offer, Verdict
from paddock.server.sessions.authentication import Authenticator, with_identities
from paddock.server.sessions.policy import AuthenticationRequired, SessionPolicy
from paddock.state.access import Identities

_NO_TOKEN: Final = b"\xff\xff\xff\xff"


class Answer:
    """The reply to a packet or a token, and who the client is from now on."""

    __slots__ = ("body", "error", "failure", "identities", "is_final")

    def __init__(
        self,
        error: int,
        identities: Identities,
        body: bytes = b"",
        failure: str = "",
        is_final: bool = False,
    ) -> None:
        self.error = error
        self.identities = identities
        self.body = body
        # Why nothing was proved, for our log; "" if something was, or if more is to come.
        self.failure = failure
        # Whether the connection closes behind the reply.
        self.is_final = is_final


class Authentication:
    """The authentication of one connection."""

    def __init__(
        self, authenticator: Authenticator, offer: Offer | None, requires_sasl: bool
    ) -> None:
        self._authenticator = authenticator
        self._conversation = None if offer is None else Conversation(offer)
        # What a client is told that fails to authenticate by SASL.
        self._sasl_failure = SESSION_CLOSED_REQUIRE_SASL if requires_sasl else AUTH_FAILED

    def start(self) -> Identities:
        """Return the identities of a new client."""
        return self._authenticator.start()

    @property
    def is_busy(self) -> bool:
        """Whether a token is not answered yet."""
        return self._conversation is not None and self._conversation.is_busy

    def receive(
        self,
        operation: int,
        request: Reader,
        identities: Identities,
        later: Callable[[Answer], None],
    ) -> Answer | None:
        """Take a request, and return its answer; None if `later` will be called with it.

        Raises DecodeError.
        """
        if operation == opcodes.AUTH:
            return self._receive_packet(AuthPacket.read(request), identities)
        token = request.string()
        if self._conversation is None:
            return Answer(OK, identities, _NO_TOKEN)
        verdict = self._conversation.receive(
            token, lambda late: later(self._answer(late, identities))
        )
        return None if verdict is None else self._answer(verdict, identities)

    def close(self) -> None:
        if self._conversation is not None:
            self._conversation.close()

    def _receive_packet(self, packet: AuthPacket, known: Identities) -> Answer:
        error, identities = self._authenticator.receive(packet.scheme, packet.credentials, known)
        if error == OK:
            return Answer(OK, identities)
        # The client may have sent a scheme of any length.
        failure = f"scheme {(packet.scheme or '')[:40]!r}"
        return Answer(error, identities, b"", failure, error == AUTH_FAILED)

    def _answer(self, verdict: Verdict, known: Identities) -> Answer:
        identities, failure = known, verdict.failure
        if verdict.identities:
            error, identities = with_identities(known, *verdict.identities)
            if error != OK:
                failure = "SASL: too many identities"
        if not failure:
            writer = BytesWriter()
            SaslToken(verdict.reply).write(writer)
            return Answer(OK, identities, writer.getvalue())
        if verdict.failure and not verdict.is_final:
            return Answer(OK, known, _NO_TOKEN, failure)
        return Answer(self._sasl_failure, known, _NO_TOKEN, failure, True)


class ClientCredentials:
    """What all clients of a server may authenticate by, and whether they must."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        # Returns a client's identities by its end of TLS.
        self.recognise: Callable[[object], tuple[Identity, ...]] = lambda _: ()
        # The mechanisms of SASL, if there are any.
        self.sasl: Offer | None = None
        # What a client may not do before; None if it need not.
        self.policy: SessionPolicy | None = None
        if config.enforce_authentication:
            self.policy = AuthenticationRequired(config.enforced_schemes)

    def authentication(self, address: str, tls: object, has_sasl: bool) -> Authentication:
        """Return the authentication of a new connection."""
        config = self._config
        certified = () if tls is None else self.recognise(tls)
        return Authentication(
            Authenticator(address, config.super_digest, certified),
            self.sasl if has_sasl else None,
            config.requires_sasl(),
        )
