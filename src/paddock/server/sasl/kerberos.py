"""Kerberos on the server's side: SASL's mechanism GSSAPI (RFC 4752), with the package `gssapi`.

    client   a ticket for this server, and proof that it is the client's own
    server   proof that it has the key of the ticket
    client   nothing
    server   the security layers that it offers: none
    client   that it wants none, and as whom it wants to act

The rules:

* The key is in a keytab, which is read for every client: keys may be changed while the server runs,
  as long as the old ones stay in the file until no ticket needs them. The KDC is never asked.
* Steps run in a thread, since they read a file.
* There is no replay cache. Its task is done by the last message: only who has the session's key can
  send it.
* Who wants to act as somebody else is refused. Upstream lets such a client in, as itself.
* What the Kerberos library says goes to the log, shortened and without control characters, as parts
  of it may come from the client.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from paddock.protocol import security_layers as layers
from paddock.server.config.config import ConfigError
from paddock.server.sasl.jaas import LoginModule
from paddock.server.sasl.local_names import LocalNames, NameRefusedError
from paddock.server.sasl.mechanism import SaslError, Step

if TYPE_CHECKING:
    import gssapi

MODULE: Final = "Krb5LoginModule"
_REASON_CHARACTERS_MAX: Final = 200
# Any principal of the keytab, in a JAAS file.
_ANY: Final = "*"


class Kerberos:
    """The mechanism: the key of this server, and the names of its clients."""

    name: Final = "GSSAPI"
    blocks: Final = True

    def __init__(self, credentials: gssapi.Credentials, names: LocalNames) -> None:
        self._credentials = credentials
        self._names = names

    def accepts(self, first: bytes) -> bool:
        return layers.is_kerberos(first)

    def start(self) -> KerberosExchange:
        return KerberosExchange(self._credentials, self._names)


class KerberosExchange:
    """One conversation."""

    def __init__(self, credentials: gssapi.Credentials, names: LocalNames) -> None:
        import gssapi

        self._names = names
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        # Otherwise a step that fails returns an error for the client, and the next one raises it.
        self._context.__DEFER_STEP_ERRORS__ = False
        self._failure: type[Exception] = gssapi.exceptions.GSSError
        self._has_offered = False

    def step(self, token: bytes) -> Step:
        try:
            if self._has_offered:
                return Step(None, self._conclude(token))
            if not self._context.complete:
                reply = self._context.step(token)
                if reply or not self._context.complete:
                    return Step(reply or b"")
            elif token:
                raise SaslError("the client goes on although both sides are proved")
            self._has_offered = True
            return Step(self._context.wrap(layers.offer(), False).message)
        except self._failure as error:
            raise SaslError(explain(error)) from None

    def close(self) -> None:
        """Release nothing: the library does, with the exchange itself."""

    def _conclude(self, token: bytes) -> str:
        """Return the client's identity, as it has chosen no security layer."""
        try:
            wanted = layers.read_choice(self._context.unwrap(token).message)
        except layers.LayerError as error:
            raise SaslError(str(error)) from None
        try:
            principal = str(self._context.initiator_name)
        except UnicodeDecodeError:
            raise SaslError("the principal is not UTF-8") from None
        try:
            identity = self._names.identity(principal)
        except NameRefusedError as error:
            raise SaslError(f"{_shown(principal)}: {error}") from None
        # Some clients say it without the realm.
        own_names = (principal, principal.partition("@")[0], identity)
        if wanted and wanted not in own_names:
            raise SaslError(f"{_shown(principal)} wants to act as {_shown(wanted)}")
        return identity


@dataclass(frozen=True, slots=True)
class ServerKey:
    """Where the key of this server is: a keytab, or that of the system, and a principal, or any."""

    keytab: Path | None
    principal: str | None

    def load(self) -> gssapi.Credentials:
        """Return the key, as the library has it. Raises ConfigError."""
        try:
            import gssapi
        except ImportError as error:
            raise ConfigError(
                "Kerberos needs the package gssapi: pip install 'paddock-zk[kerberos]'"
                f" ({error}; on Debian, it is compiled with libkrb5-dev)"
            ) from None
        keytab, principal = self.keytab, self.principal
        if keytab is not None and not os.access(keytab, os.R_OK):
            why = "may not be read" if keytab.exists() else "does not exist"
            raise ConfigError(f"the keytab {keytab} {why}")
        store = {"rcache": "none:"} | ({} if keytab is None else {"keytab": f"FILE:{keytab}"})
        try:
            name = principal and gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            return gssapi.Credentials(
                name=name or None, usage="accept", mechs=[gssapi.MechType.kerberos], store=store
            )
        except gssapi.exceptions.GSSError as error:
            where = "of the system" if keytab is None else keytab
            what = "no key" if principal is None else f"no key for {principal}"
            raise ConfigError(f"the keytab {where} has {what}: {explain(error)}") from None


def key_of(module: LoginModule) -> ServerKey:
    """Return the key that a login module of a JAAS file names. Raises ConfigError."""
    options = module.options
    if options.get("useKeyTab", "false").lower() != "true":
        raise ConfigError(f"JAAS: {MODULE} needs useKeyTab=true: the key comes from a keytab")
    keytab = options.get("keyTab")
    if keytab is not None and keytab[:5].lower() == "file:":
        keytab = keytab[5:]
    principal = options.get("principal")
    return ServerKey(
        None if keytab is None else Path(keytab), None if principal == _ANY else principal
    )


def own_realm() -> str:
    """Return the default realm of the Kerberos configuration, or ""."""
    import gssapi

    try:
        name = gssapi.Name("anybody", gssapi.NameType.kerberos_principal)
        return str(name.canonicalize(gssapi.MechType.kerberos)).rpartition("@")[2]
    except gssapi.exceptions.GSSError:
        return ""


def explain(error: Exception) -> str:
    """Return what an error of the Kerberos library says, without what it says every time."""
    from gssapi.exceptions import GSSError

    assert isinstance(error, GSSError)
    details = error.get_all_statuses(error.min_code, False) if error.min_code else []
    words = [one for one in details if one != "Success"]
    return _shown("; ".join(words or error.get_all_statuses(error.maj_code, True)))


def _shown(text: str) -> str:
    """Return text from elsewhere as it may stand in a log."""
    printable = "".join(one if one.isprintable() else "?" for one in text)
    return printable[:_REASON_CHARACTERS_MAX]
