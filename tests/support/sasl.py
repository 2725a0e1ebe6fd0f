"""DIGEST-MD5 as a client speaks it, in a few lines of its own: every part of it can be wrong.

And servers that know two users, alice and bob: Apache's and ours.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from tests.support import requests as rq
from tests.support.apache import ApacheServer
from tests.support.apache39 import ApacheServer39
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server
from tests.support.wire import Client

ALICE: Final = ("alice", 'her "secret" \\ of old')
BOB: Final = ("bob", "bobs-secret")
JAAS: Final = """\
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_alice="her \\"secret\\" \\\\ of old"
    user_super="of-all"
    user_jaasuser="jaas_password"
    user_bob="bobs-secret";
};
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="bob"
    password="bobs-secret";
};
Stranger {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="bob"
    password="a-guess";
};
"""
PROVIDER: Final = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"


class SaslServer(Server):
    """A server that knows the users of a JAAS file."""

    jaas = JAAS

    def write_users(self) -> str:
        """Write the file; return where it is."""
        file = self.folder / "jaas.conf"
        file.write_text(self.jaas)
        file.chmod(0o600)
        return str(file)


class SaslApache(SaslServer, ApacheServer):
    """An Apache ZooKeeper that knows these users."""

    def keys(self) -> dict[str, str]:
        return {**super().keys(), "authProvider.sasl": PROVIDER}

    def properties(self) -> dict[str, str]:
        # Since 3.9.6 there is no DIGEST-MD5 otherwise.
        allowed = {"zookeeper.fips-mode": "false"}
        users = {"java.security.auth.login.config": self.write_users()}
        return {**super().properties(), **allowed, **users}


class SaslApache39(SaslApache, ApacheServer39):
    """The same of 3.9."""


class SaslPaddock(SaslServer, PaddockServer):
    """A Paddock that knows these users."""

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        return [*command, "--jaas-file", self.write_users()], environment


SASL_SERVERS: Final[dict[str, type[SaslServer]]] = {
    "paddock": SaslPaddock,
    "apache": SaslApache,
    "apache-3.9": SaslApache39,
}


def directives(message: bytes) -> dict[str, str]:
    """Return what a challenge says, by name."""
    found = re.findall(r'([a-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))', message.decode())
    return {name: quoted or plain for name, quoted, plain in found}


def answer(
    challenge: bytes,
    user: str = BOB[0],
    password: str = BOB[1],
    *,
    realm: str = "zk-sasl-md5",
    uri: str = "zookeeper/zk-sasl-md5",
    nonce: str | None = None,
    nc: str = "00000001",
    qop: str = "auth",
    authzid: str = "",
    response: str | None = None,
    without: tuple[str, ...] = (),
    behind: str = "",
) -> bytes:
    """Return the client's answer to a challenge, with one thing or another wrong."""
    nonce, cnonce = nonce or directives(challenge)["nonce"], "a client's own"
    secret = hashlib.md5(f"{user}:{realm}:{password}".encode("latin-1")).digest()
    key = secret + f":{nonce}:{cnonce}".encode() + (f":{authzid}".encode() if authzid else b"")
    middle = f":{nonce}:{nc}:{cnonce}:{qop}:".encode()
    proof = _hex(_hex(key) + middle + _hex(f"AUTHENTICATE:{uri}".encode()))
    values = {
        "charset": "utf-8",
        "username": _quoted(user),
        "realm": _quoted(realm),
        "nonce": _quoted(nonce),
        "nc": nc,
        "cnonce": _quoted(cnonce),
        "digest-uri": _quoted(uri),
        "maxbuf": "65536",
        "response": proof.decode() if response is None else response,
        "qop": qop,
    }
    if authzid:
        values["authzid"] = _quoted(authzid)
    shown = [f"{name}={value}" for name, value in values.items() if name not in without]
    return ",".join(shown).encode() + behind.encode()


def rspauth(challenge: bytes, token: bytes, user: str = BOB[0], password: str = BOB[1]) -> bytes:
    """Return what a server that knows the password answers to an `answer`."""
    nonce, cnonce = directives(challenge)["nonce"], "a client's own"
    uri = re.search(rb'digest-uri="([^"]*)"', token)
    assert uri is not None
    secret = hashlib.md5(f"{user}:zk-sasl-md5:{password}".encode("latin-1")).digest()
    key = _hex(secret + f":{nonce}:{cnonce}".encode())
    return b"rspauth=" + _hex(
        key + f":{nonce}:00000001:{cnonce}:auth:".encode() + _hex(b":" + uri[1])
    )


def authenticate(client: Client, user: str = BOB[0], password: str = BOB[1]) -> None:
    """Authenticate a client on the wire, which must succeed."""
    challenge = client.call(rq.sasl(b"")).token
    assert challenge is not None
    token = answer(challenge, user, password)
    assert client.call(rq.sasl(token)).token == rspauth(challenge, token, user, password)


def _hex(data: bytes) -> bytes:
    return hashlib.md5(data).hexdigest().encode()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
