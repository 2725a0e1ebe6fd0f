"""How a command authenticates by SASL: its options, and the credentials that they stand for.

* DIGEST-MD5 has a user and a password. The password is never an argument, which everybody on the
  machine could read: it is in a file or in a variable, or is asked for on the terminal.
* Kerberos has a ticket, that of `kinit`, or a keytab.
* The command line counts more than the environment: `--kerberos` there is meant, even if a
  variable names a user.
* What cannot be used is said before the first connection, in one line. A command that opens no
  session asks for nothing.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import click
from click.core import ParameterSource

from paddock.cli.arguments import PATH
from paddock.cli.output import CannotBeDone, one_line
from paddock.client.session.handshake import SaslCredentials
from paddock.client.session.kerberos import KerberosCredentials, check_installed

T = TypeVar("T")
Sasl: TypeAlias = SaslCredentials | KerberosCredentials

# Names of parameters, behind what stands for another service.
_DIGEST: Final = ("sasl_user", "sasl_password_file")
_KERBEROS: Final = ("kerberos", "kerberos_user", "kerberos_keytab", "kerberos_server")
SASL_PARAMETERS: Final = (*_DIGEST, *_KERBEROS)
# More is no password of anybody, but a file that was not meant.
_PASSWORD_BYTES_MAX: Final = 4096
# As in the principals of Hadoop: the host that a connection string has.
_HOST: Final = "/_HOST"


@dataclass(frozen=True, slots=True)
class SaslOptions:
    """What was given: who asks, and where the proof is."""

    user: str | None = None
    password_file: Path | None = None
    uses_kerberos: bool = False
    principal: str | None = None
    keytab: Path | None = None
    server: str | None = None
    # What the names of the options begin with, behind the hyphens.
    prefix: str = ""

    def credentials(self, hosts: str, *, asks: bool = True) -> Sasl | None:
        """Return the credentials for a service; None if none were given.

        Raises ClickException. The password is asked for if there is somebody to ask.
        """
        with one_line():
            if self.uses_kerberos:
                return self._kerberos()
            if self.user is None:
                return None
            return SaslCredentials(self.user, self._password(self.user, hosts, asks=asks))

    def _kerberos(self) -> KerberosCredentials:
        try:
            check_installed()
        except ImportError as error:
            raise CannotBeDone(str(error)) from None
        if self.server is None or not self.server.endswith(_HOST):
            return KerberosCredentials(self.principal, self.keytab, server=self.server)
        service = self.server.removesuffix(_HOST)
        return KerberosCredentials(self.principal, self.keytab, service, canonicalize=False)

    def _password(self, user: str, hosts: str, *, asks: bool) -> str:
        if self.password_file is not None:
            return _read(self.password_file)
        variable = _variable(f"{self.prefix}sasl-password")
        if found := os.environ.get(variable):
            return _checked(os.fsencode(found), variable)
        if not (asks and sys.stdin.isatty()):
            raise click.UsageError(
                f"no password for {user!r}: --{self.prefix}sasl-password-file names a file with"
                f" it, or {variable} has it"
            )
        said: str = click.prompt(f"Password of {user} at {hosts}", hide_input=True, err=True)
        return said


def sasl_options(prefix: str = "") -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Add the options; the command receives them as `sasl`.

    Those of another service have a prefix, such as "from-", come as `from_sasl`, and have no
    variables but the one of the password.
    """

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(command)
        def wrapped(*arguments: object, **others: object) -> T:
            for name in SASL_PARAMETERS:
                del others[_parameter(name, prefix)]
            others[_parameter("sasl", prefix)] = given_sasl(click.get_current_context(), prefix)
            return command(*arguments, **others)

        for option in reversed(_options(prefix)):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def _options(prefix: str) -> list[Callable[[Callable[..., T]], Callable[..., T]]]:
    def option(
        name: str, metavar: str, says: str, type: click.ParamType[Any] | None = None
    ) -> Callable[[Callable[..., T]], Callable[..., T]]:
        # A server has a setting for its own keytab, whose variable is another one's here.
        has_variable = not prefix and name != "kerberos-keytab"
        return click.option(
            f"--{prefix}{name}",
            metavar=metavar or None,
            type=type,
            is_flag=not metavar,
            envvar=_variable(name) if has_variable else None,
            show_envvar=has_variable,
            help=says,
        )

    there = " there" if prefix else ""
    return [
        option(
            "sasl-user",
            "NAME",
            f"Authenticate{there} by SASL (DIGEST-MD5) as this user. The password is asked for,"
            f" unless {_variable(f'{prefix}sasl-password')} has it.",
        ),
        option("sasl-password-file", "FILE", "A file with that password, one line.", PATH),
        option("kerberos", "", f"Authenticate{there} by Kerberos, with the ticket of kinit."),
        option("kerberos-user", "PRINCIPAL", "By Kerberos, as this principal."),
        option("kerberos-keytab", "FILE", "By Kerberos, with a key of this file.", PATH),
        option(
            "kerberos-server",
            "PRINCIPAL",
            "By Kerberos, to a server with this principal. Without it, that is zookeeper/HOST, with"
            " the host that DNS has for the address; zookeeper/_HOST takes the host as given.",
        ),
    ]


def given_sasl(context: click.Context, prefix: str = "") -> SaslOptions:
    """Return what a command was given. Raises UsageError if it contradicts itself."""

    def of(name: str) -> Any:
        parameter = _parameter(name, prefix)
        source = context.get_parameter_source(parameter)
        if name == "kerberos" and source is ParameterSource.ENVIRONMENT:
            # click 8.2 takes any value of a flag's variable for yes.
            return click.BOOL.convert(os.environ[_variable(name)], None, context)
        return context.params.get(parameter)

    def is_typed(names: list[str]) -> bool:
        sources = [context.get_parameter_source(_parameter(name, prefix)) for name in names]
        return ParameterSource.COMMANDLINE in sources

    digest = [name for name in _DIGEST if of(name) is not None]
    kerberos = [name for name in _KERBEROS if of(name) not in (None, False)]
    if digest and kerberos:
        if is_typed(digest) == is_typed(kerberos):
            raise click.UsageError(f"--{prefix}sasl-user and --{prefix}kerberos: which is meant?")
        digest, kerberos = (digest, []) if is_typed(digest) else ([], kerberos)
    if kerberos:
        return SaslOptions(
            uses_kerberos=True,
            principal=of("kerberos_user"),
            keytab=of("kerberos_keytab"),
            server=of("kerberos_server"),
            prefix=prefix,
        )
    if not digest:
        return SaslOptions()
    if of("sasl_user") is None:
        raise click.UsageError(
            f"--{prefix}sasl-password-file needs --{prefix}sasl-user, whose password it is"
        )
    return SaslOptions(of("sasl_user"), of("sasl_password_file"), prefix=prefix)


def _parameter(name: str, prefix: str) -> str:
    return f"{prefix}{name}".replace("-", "_")


def _variable(option: str) -> str:
    return f"PADDOCK_{option}".replace("-", "_").upper()


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        found = opened.read(_PASSWORD_BYTES_MAX + 1)
    if len(found) > _PASSWORD_BYTES_MAX or b"\n" in found.rstrip(b"\r\n"):
        raise CannotBeDone(f"{file}: expected one line, the password")
    return _checked(found.rstrip(b"\r\n"), str(file))


def _checked(password: bytes, origin: str) -> str:
    try:
        text = password.decode()
    except UnicodeDecodeError:
        raise CannotBeDone(f"{origin}: the password is not UTF-8") from None
    if not text:
        raise CannotBeDone(f"{origin}: there is no password in it")
    return text
