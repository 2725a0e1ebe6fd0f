"""Kerberos on the client's side: SASL's mechanism GSSAPI (RFC 4752), with the package `gssapi`.

`paddock.protocol.security_layers` has the end of the conversation. The rules:

* Who we are comes from a ticket cache, that of `kinit`, or from a keytab; then the library gets
  tickets itself, and new ones before they expire.
* The ticket is for the server by its name, as Apache's Java client chooses it: `zookeeper/` and the
  canonical name of the address that we have reached.
* The KDC may be asked, and may not answer. So this runs in a thread, one at a time for a client. A
  thread that nobody waits for any more is not waited for at the end of the program, either.
* A KDC that cannot be reached is like a server that cannot: the client tries again, as long as its
  session may live. What a user has to change, such as a ticket that has expired, ends the session.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from paddock.errors import AuthenticationError, InvalidArgumentError
from paddock.protocol import security_layers as layers

if TYPE_CHECKING:
    import gssapi

# Codes of the Kerberos library, as GSSAPI gives them: its first one, and what we tell apart.
_FIRST_CODE: Final = 2529638912
_UNKNOWN_SERVER: Final = 7
_EXPIRED: Final = 32
_CLOCKS_APART: Final = 37
# The KDC is out of service; none is known for the realm; none answers; none has an address.
_NO_KDC: Final = frozenset({29, 154, 156, 220})
_KEYTAB_STARTS: Final = (b"\x05\x01", b"\x05\x02")
_NO_ANSWER: Final = "the KDC has not answered in time: is it running, and does krb5.conf name it?"


@dataclass(frozen=True, slots=True)
class KerberosCredentials:
    """A principal of Kerberos: that of the user's ticket (`kinit`), or one with a keytab.

    `principal` chooses among several tickets, or keys of the `keytab`. The server's own principal
    has the service's name, its host and the realm of the host. The host is the canonical name of
    its address, which DNS says, as Apache's Java client does it; with `canonicalize=False` it is
    the one of the connection string. `server` is another host, or the whole principal.
    """

    principal: str | None = None
    keytab: str | os.PathLike[str] | None = None
    service: str = "zookeeper"
    server: str | None = None
    canonicalize: bool = True

    def __post_init__(self) -> None:
        for name in ("principal", "service", "server"):
            value = getattr(self, name)
            if value is None and name != "service":
                continue
            if not isinstance(value, str) or not value:
                raise InvalidArgumentError(
                    f"{name}: expected text that is not empty, not {value!r}"
                )
        if not isinstance(self.keytab, str | os.PathLike | None):
            raise InvalidArgumentError(f"keytab: expected a path, not {self.keytab!r}")
        if not isinstance(self.canonicalize, bool):
            raise InvalidArgumentError(f"canonicalize: expected a bool, not {self.canonicalize!r}")


def check_installed() -> None:
    """Raise ImportError, saying what to install, if Kerberos cannot be had."""
    try:
        import gssapi  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Kerberos needs the package gssapi: pip install 'paddock-zk[kerberos]'"
            " (on Debian, it is compiled with libkrb5-dev)"
        ) from error


class KerberosLogin:
    """The conversations of one client, which have at most one thread."""

    def __init__(self, credentials: KerberosCredentials) -> None:
        check_installed()
        self.credentials = credentials
        # What the thread works on.
        self._running: asyncio.Future[bytes] | None = None

    def start(self, host: str, address: str) -> KerberosConversation:
        """Begin a conversation with the server at an address that was found for a host."""
        return KerberosConversation(self, host, address)

    async def run(self, function: Callable[[], bytes]) -> bytes:
        """Run a function in a thread, after the one before; it goes on if we are cancelled."""
        try:
            while self._running is not None:
                await asyncio.wait((self._running,))
            return await asyncio.shield(self._start(function))
        except asyncio.CancelledError as cancelled:
            # For a deadline that has passed.
            cancelled.add_note(_NO_ANSWER)
            raise

    def _start(self, function: Callable[[], bytes]) -> asyncio.Future[bytes]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()
        self._running = done

        def finish(result: bytes, error: Exception | None) -> None:
            self._running = None
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)
                # Mark the error as seen: nobody may wait for it any more.
                done.exception()

        def work() -> None:
            result, failure = b"", None
            try:
                result = function()
            except Exception as error:
                failure = error
            # The loop may be closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, result, failure)

        threading.Thread(target=work, name="paddock-kerberos", daemon=True).start()
        return done


class KerberosConversation:
    """One conversation with one server."""

    refusal: Final = (
        "the server did not accept the ticket; its log says why: its keytab may be out of date, or"
        " its clock apart from ours"
    )

    def __init__(self, login: KerberosLogin, host: str, address: str) -> None:
        self._login = login
        self._host = host
        self._address = address
        self._context: gssapi.SecurityContext | None = None
        # Whether we have sent all that we have to.
        self.is_complete = False

    @property
    def who(self) -> str:
        """Return what the errors of this conversation begin with."""
        principal = self._login.credentials.principal
        return "Kerberos" if principal is None else f"Kerberos as {principal!r}"

    async def start(self) -> bytes:
        """Return the first token. Raises AuthenticationError, or OSError without a KDC."""
        return await self._login.run(self._begin)

    async def respond(self, challenge: bytes) -> bytes:
        """Return what to send next. Raises AuthenticationError, or OSError to try again."""
        import gssapi

        context = self._context
        assert context is not None
        try:
            if not context.complete:
                return context.step(challenge) or b""
            layers.read_offer(context.unwrap(challenge).message)
            choice = layers.choice(str(context.initiator_name))
            token: bytes = context.wrap(choice, False).message
        except layers.LayerError as error:
            raise self._refused(str(error)) from None
        except gssapi.exceptions.ExpiredContextError:
            raise self._expired() from None
        except gssapi.exceptions.GSSError as error:
            raise self._refused(f"the server's proof is not right: {_details(error)}") from None
        self.is_complete = True
        return token

    def _begin(self) -> bytes:
        """Get a ticket for the server, and return the first token. Runs in a thread."""
        import gssapi

        given = self._login.credentials
        server = ""
        try:
            name = given.principal and _principal(given.principal)
            credentials = gssapi.Credentials(
                name=name or None,
                usage="initiate",
                mechs=[gssapi.MechType.kerberos],
                store=self._store(),
            )
            server = given.server or self._server_host()
            flags = gssapi.RequirementFlag
            self._context = gssapi.SecurityContext(
                name=_principal(server) if "/" in server else _service(given.service, server),
                creds=credentials,
                usage="initiate",
                mech=gssapi.MechType.kerberos,
                flags=flags.mutual_authentication | flags.integrity,
            )
            # Raise an error at once: no server expects what could be sent of it.
            self._context.__DEFER_STEP_ERRORS__ = False
            return self._context.step() or b""
        except gssapi.exceptions.GSSError as error:
            raise self._explained(error, server) from None

    def _store(self) -> dict[str, str] | None:
        """Return where keys and tickets are; None for the places of the library."""
        given = self._login.credentials
        if given.keytab is None:
            return None
        keytab = Path(given.keytab)
        try:
            with keytab.open("rb") as file:
                is_keytab = file.read(2) in _KEYTAB_STARTS
        except OSError as error:
            raise self._refused(f"the keytab {keytab} cannot be read: {error.strerror}") from None
        if not is_keytab:
            raise self._refused(f"{keytab} is not a keytab")
        # Clients with the same key share its tickets.
        cache = f"MEMORY:paddock:{keytab.absolute()}:{given.principal or ''}"
        return {"client_keytab": f"FILE:{keytab}", "ccache": cache}

    def _server_host(self) -> str:
        """Return the name of the host as its principal has it."""
        if not self._login.credentials.canonicalize:
            return self._host
        try:
            name, _ = socket.getnameinfo((self._address, 0), socket.NI_NAMEREQD)
            found = socket.getaddrinfo(name, None)
        except OSError:
            return self._host
        # The name has to lead back to the address, as in Java.
        return name if self._address in {str(one[4][0]) for one in found} else self._host

    def _explained(self, error: gssapi.exceptions.GSSError, server: str) -> Exception:
        """Return what an error of the library means to the user."""
        import gssapi

        given, details = self._login.credentials, _details(error)
        code = error.min_code - _FIRST_CODE
        if code in _NO_KDC:
            return OSError(f"{self.who}: {details}: is it running, and does krb5.conf name it?")
        if code == _CLOCKS_APART:
            return self._refused(f"the clock of this machine and the KDC's differ: {details}")
        if code == _UNKNOWN_SERVER:
            principal = server if "/" in server else f"{given.service}/{server}"
            return self._refused(f"the KDC does not know the server as {principal!r}: {details}")
        if code == _EXPIRED or isinstance(error, gssapi.exceptions.ExpiredCredentialsError):
            return self._expired()
        if given.keytab is not None:
            return self._refused(f"the keytab {os.fspath(given.keytab)} is of no use: {details}")
        if isinstance(error, gssapi.exceptions.MissingCredentialsError):
            return self._refused(f"there is no ticket: run kinit ({details})")
        return self._refused(details)

    def _expired(self) -> Exception:
        if self._login.credentials.keytab is not None:
            # The library gets another one.
            return OSError(f"{self.who}: the ticket has expired just now")
        return self._refused("the ticket has expired: run kinit")

    def _refused(self, reason: str) -> AuthenticationError:
        return AuthenticationError("connect", None, f"{self.who}: {reason}")


def _principal(name: str) -> gssapi.Name:
    import gssapi

    return gssapi.Name(name, gssapi.NameType.kerberos_principal)


def _service(service: str, host: str) -> gssapi.Name:
    import gssapi

    return gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)


def _details(error: gssapi.exceptions.GSSError) -> str:
    """Return what an error says, without what it says every time."""
    texts = error.get_all_statuses(error.min_code, False) if error.min_code else []
    words = [one for one in texts if one != "Success"]
    return "; ".join(words or error.get_all_statuses(error.maj_code, True))
