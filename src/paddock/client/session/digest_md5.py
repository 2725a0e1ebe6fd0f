"""DIGEST-MD5 on the client's side, as Java's client does it for ZooKeeper.

`paddock.protocol.digest_md5` has the messages. The password is not sent. The server proves that it
knows it, too; one that does not is refused.
"""

from __future__ import annotations

import hmac
from typing import Final

from paddock.client.session.handshake import SaslCredentials
from paddock.errors import AuthenticationError
from paddock.protocol.digest_md5 import (
    DirectiveError,
    Proof,
    quoted,
    read_directives,
    secret_of,
)


class DigestConversation:
    """The conversation of a user and a password."""

    is_complete: Final = False
    refusal: Final = "the server did not accept user and password"

    def __init__(self, credentials: SaslCredentials, client_nonce: bytes) -> None:
        self.who = f"SASL as {credentials.user!r}"
        self._credentials = credentials
        self._client_nonce = client_nonce
        # What the server has to prove; None before we have proved something.
        self._proof: Proof | None = None

    async def start(self) -> bytes:
        """Let the server begin."""
        return b""

    async def respond(self, challenge: bytes) -> bytes | None:
        try:
            said = read_directives(challenge)
        except DirectiveError as error:
            raise self._wrong(str(error)) from None
        if self._proof is not None:
            if not hmac.compare_digest(said.get("rspauth", b""), self._proof.of_server()):
                raise self._wrong("it does not know the password")
            return None
        return self._answer(said)

    def _answer(self, said: dict[str, bytes]) -> bytes:
        """Return our proof, as the answer to a challenge."""
        credentials = self._credentials
        nonce = said.get("nonce", b"")
        if not nonce or said.get("algorithm") != b"md5-sess":
            raise self._wrong("its challenge is not one of DIGEST-MD5")
        offered = [one.strip() for one in said.get("qop", b"auth").split(b",")]
        if b"auth" not in offered:
            raise self._wrong("it wants requests to be signed")
        realm = said.get("realm", credentials.server.encode())
        is_utf_8 = said.get("charset", b"").lower() == b"utf-8"
        encoding = "utf-8" if is_utf_8 else "latin-1"
        try:
            user = credentials.user.encode(encoding)
            secret = secret_of(credentials.user, credentials.password, realm.decode(encoding))
        except UnicodeError:
            raise self._wrong("it cannot read this user") from None
        uri = f"{credentials.service}/{credentials.server}".encode()
        proof = self._proof = Proof(secret, nonce, self._client_nonce, uri)
        directives = {
            **({b"charset": b"utf-8"} if is_utf_8 else {}),
            b"username": quoted(user),
            b"realm": quoted(realm),
            b"nonce": quoted(nonce),
            b"nc": b"00000001",
            b"cnonce": quoted(self._client_nonce),
            b"digest-uri": quoted(uri),
            b"response": proof.of_client(),
            b"qop": b"auth",
        }
        return b",".join(name + b"=" + value for name, value in directives.items())

    def _wrong(self, reason: str) -> AuthenticationError:
        text = f"{self.who}: the server's side of it is not right: {reason}"
        return AuthenticationError("connect", None, text)
