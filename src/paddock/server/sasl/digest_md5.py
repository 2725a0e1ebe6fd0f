"""DIGEST-MD5 on the server's side, as Java's does it for Apache ZooKeeper.

`paddock.protocol.digest_md5` has the messages. The rules:

* The server begins, whatever the client's first token is; clients send an empty one.
* The client may authorize itself as somebody else (`authzid`): that is part of the proof, and
  grants nothing. It is who it has authenticated as.
* A wrong password and an unknown user take the same steps, in the same time.
* Only `qop=auth` is offered: nothing is signed or encrypted later. A nonce serves once.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from typing import Final

from paddock.protocol.digest_md5 import (
    REALM,
    SERVICE,
    DirectiveError,
    Proof,
    quoted,
    read_directives,
)
from paddock.server.sasl.mechanism import SaslError, Step
from paddock.server.sasl.users import Users

_NONCE_BYTES: Final = 30
_SECRET_BYTES: Final = 16
_REQUIRED: Final = ("username", "nonce", "cnonce", "digest-uri", "response")


class DigestMd5:
    """The mechanism: users, and nonces."""

    name: Final = "DIGEST-MD5"
    blocks: Final = False

    def __init__(self, users: Users, random_bytes: Callable[[int], bytes]) -> None:
        self._users = users
        self._random_bytes = random_bytes
        # In place of the secret of somebody who is not there.
        self._nobody = random_bytes(_SECRET_BYTES)

    def accepts(self, first: bytes) -> bool:
        return True

    def start(self) -> DigestExchange:
        return DigestExchange(self, base64.b64encode(self._random_bytes(_NONCE_BYTES)))

    def secret_of(self, user: str) -> tuple[bytes, bool]:
        """Return the secret of a user, and whether there is such a user."""
        secret = self._users.get(user)
        return (self._nobody, False) if secret is None else (secret, True)


class DigestExchange:
    """One conversation."""

    def __init__(self, mechanism: DigestMd5, nonce: bytes) -> None:
        self._mechanism = mechanism
        self._nonce = nonce
        self._has_begun = False

    def step(self, token: bytes) -> Step:
        if not self._has_begun:
            self._has_begun = True
            return Step(
                b"realm=%b,nonce=%b,charset=utf-8,algorithm=md5-sess"
                % (quoted(REALM.encode()), quoted(self._nonce))
            )
        try:
            given = read_directives(token)
        except DirectiveError as error:
            raise SaslError(str(error)) from None
        user = self._check(given)
        secret, is_known = self._mechanism.secret_of(user)
        authorization = given.get("authzid")
        proof = Proof(
            secret, self._nonce, given["cnonce"], given["digest-uri"], authorization or None
        )
        is_proved = hmac.compare_digest(proof.of_client(), given["response"])
        if not (is_proved and is_known):
            # Both are said, so that nobody reads out of a log which names there are.
            raise SaslError(f"{user[:40]!r}: unknown user or wrong password")
        return Step(b"rspauth=" + proof.of_server(), user)

    def close(self) -> None:
        """Release nothing: there is nothing to release."""

    def _check(self, given: dict[str, bytes]) -> str:
        """Check all but the proof, and return the user."""
        for name in _REQUIRED:
            if name not in given:
                raise SaslError(f"the directive {name} is missing")
        if given.get("charset", b"utf-8").lower() != b"utf-8":
            raise SaslError("the directive charset is not utf-8")
        try:
            user = given["username"].decode("utf-8" if "charset" in given else "latin-1")
        except UnicodeDecodeError:
            raise SaslError("the directive username is not in UTF-8") from None
        if given.get("realm", b"") != REALM.encode():
            raise SaslError("the directive realm is not one of this server")
        if not hmac.compare_digest(given["nonce"], self._nonce):
            raise SaslError("the directive nonce is not the one of this conversation")
        if given.get("nc", b"00000001") != b"00000001":
            raise SaslError("the directive nc is not 1")
        if given.get("qop", b"auth") != b"auth":
            raise SaslError("the directive qop is not auth")
        if given["digest-uri"].lower() != f"{SERVICE}/{REALM}".encode():
            raise SaslError("the directive digest-uri is not of this service")
        return user
