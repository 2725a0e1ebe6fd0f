"""Kerberos: a KDC of MIT on this machine, from Debian's packages, without any right of its own.

    with Kdc() as kdc:
        keytab = kdc.keytab("zookeeper/localhost")
        tickets = kdc.kinit("alice")
        subprocess.run(command, env={**os.environ, **kdc.environment(tickets)})

It serves two realms on one port of the loopback address. Its databases, keytabs and ticket caches
are in its folder. Programs find it by `KRB5_CONFIG`, so nothing of the machine's own configuration
is read or changed. Users of `OTHER` are trusted in `REALM`, not the other way round; `STRANGE` is a
realm that no KDC is known for.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.apache import ApacheServer
from tests.support.apache39 import ApacheServer39
from tests.support.paddock_server import PaddockServer
from tests.support.server import (
    PROBE_DEADLINE_S,
    Options,
    Server,
    ServerFailedError,
    ServerMissingError,
)

REALM: Final = "PADDOCK.TEST"
OTHER: Final = "OTHER.TEST"
STRANGE: Final = "STRANGE.TEST"
#: What servers are called at 127.0.0.1.
SERVICE: Final = "zookeeper/localhost"

_TRUST: Final = f"krbtgt/{REALM}@{OTHER}"
_FAKETIME: Final = "/usr/lib/*/faketime/libfaketime.so.1"

_KRB5_CONF: Final = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    clockskew = {clockskew}
    # Java's alone: it waits for half a minute otherwise.
    kdc_timeout = 3s
    max_retries = 1
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
    {other} = {{
        kdc = 127.0.0.1:{port}
    }}
[domain_realm]
    localhost = {realm}
"""

_KDC_CONF: Final = """\
[kdcdefaults]
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {realm} = {{
        database_name = {data}/{realm}
        key_stash_file = {data}/{realm}.stash
    }}
    {other} = {{
        database_name = {data}/{other}
        key_stash_file = {data}/{other}.stash
    }}
[logging]
    kdc = STDERR
"""

_SERVER_JAAS: Final = """\
Server {{
    com.sun.security.auth.module.Krb5LoginModule required
    useKeyTab=true
    keyTab="{keytab}"
    storeKey=true
    useTicketCache=false
    principal="{service}";
}};
"""


def find(program: str, package: str) -> str:
    """Return a program's path, or say what to install."""
    # An ordinary user may not have the folders of the administrator in the path.
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise ServerMissingError(f"{program} is missing (Debian: apt-get install {package})")
    return found


class Kdc(Server):
    """A KDC with the realms `REALM` and `OTHER`."""

    name = "kdc"

    def __init__(self, folder: Path | None = None, *, clockskew_s: int = 300) -> None:
        super().__init__(folder=folder)
        self.configuration = self.folder / "krb5.conf"
        self._profile = self.folder / "kdc.conf"
        self._clockskew_s = clockskew_s
        self._known: set[str] = set()
        self._caches = 0

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        program = find("krb5kdc", "krb5-kdc")
        find("kinit", "krb5-user")
        # Ours, and what kazoo needs.
        for module in ("gssapi", "kerberos"):
            if importlib.util.find_spec(module) is None:
                raise ServerMissingError(f"the package {module} is missing (make judges)")
        if not self._profile.exists():
            self._create()
        return [program, "-n", "-r", REALM, "-r", OTHER], self.environment()

    def is_serving(self) -> bool:
        try:
            socket.create_connection(self.address, PROBE_DEADLINE_S).close()
        except OSError:
            return False
        return True

    def environment(self, tickets: Path | None = None) -> dict[str, str]:
        """Return what leads a program to this KDC, with a user's tickets or with none."""
        return {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(self._profile),
            # Not those of the user who runs the tests.
            "KRB5CCNAME": f"FILE:{tickets or self.folder / 'no-tickets'}",
            "KRB5_KTNAME": f"FILE:{self.folder / 'no-keytab'}",
            "KRB5_CLIENT_KTNAME": f"FILE:{self.folder / 'no-client-keytab'}",
            "KRB5RCACHEDIR": str(self.folder),
        }

    def java(self) -> dict[str, str]:
        """Return the system property that leads a Java program to this KDC."""
        return {"java.security.krb5.conf": str(self.configuration)}

    def add(self, *principals: str, lifetime: str = "10 hours") -> None:
        """Add users or services that are new, each with keys that are random."""
        options = f'-randkey -maxlife "{lifetime}"'
        new = [one for one in principals if one not in self._known]
        self._administer(*(f"addprinc {options} {principal}" for principal in new))
        self._known.update(principals)

    def keytab(self, *principals: str) -> Path:
        """Return a file with the keys of principals, which are added where they are new."""
        file = self._keytab_of(principals)
        if not file.exists():
            self.add(*principals)
            self.export(*principals)
        return file

    def export(self, *principals: str) -> None:
        """Add the present keys of principals to their keytab, behind those that it has."""
        file = self._keytab_of(principals)
        self._administer(*(f"ktadd -norandkey -k {file} {one}" for one in principals))

    def change_keys(self, principal: str) -> None:
        """Give a principal new keys, so that its keytabs are out of date."""
        self._administer(f"cpw -randkey {principal}")

    def kinit(self, principal: str, *, lifetime: str = "1h") -> Path:
        """Log a user in; return the file with the ticket."""
        self._caches += 1
        tickets = self.folder / f"tickets-{self._caches}"
        self.renew(tickets, principal, lifetime=lifetime)
        return tickets

    def renew(self, tickets: Path, principal: str, *, lifetime: str = "1h") -> None:
        """Log a user in once more, with the same file."""
        keytab = self.keytab(principal)
        command = [find("kinit", "krb5-user"), "-k", "-t", str(keytab), "-l", lifetime, principal]
        self._run(command, self.environment(tickets))

    def are_valid(self, tickets: Path) -> bool:
        """Return whether tickets are there and have not expired."""
        command = [find("klist", "krb5-user"), "-s"]
        environment = {**os.environ, **self.environment(tickets)}
        return subprocess.run(command, env=environment).returncode == 0

    def _keytab_of(self, principals: Sequence[str]) -> Path:
        name = "+".join(principals).replace("/", "_")
        return self.folder / f"{name}.keytab"

    def _create(self) -> None:
        names = {"realm": REALM, "other": OTHER, "port": self.port, "data": self.data}
        krb5 = _KRB5_CONF.format(**names, clockskew=self._clockskew_s)
        self.configuration.write_text(krb5)
        self._profile.write_text(_KDC_CONF.format(**names))
        create = find("kdb5_util", "krb5-kdc")
        for realm in (REALM, OTHER):
            self._run([create, "-r", realm, "create", "-s", "-P", "master"], self.environment())
            # Both sides know the same key.
            self._administer(f"addprinc -pw trust {_TRUST}", realm=realm)

    def _administer(self, *commands: str, realm: str | None = None) -> None:
        """Run commands on the databases; a principal says in which."""
        program = find("kadmin.local", "krb5-admin-server")
        for command in commands:
            where = realm or (command.rpartition("@")[2] if "@" in command else REALM)
            self._run([program, "-r", where, "-q", command], self.environment())

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )
        # kadmin.local ends with success whatever became of a query.
        failed = [line for line in done.stdout.splitlines() if "while " in line]
        if done.returncode or failed:
            raise ServerFailedError(f"{' '.join(command)}: {done.stdout}")


class KerberosApache(ApacheServer):
    """An Apache ZooKeeper with the key of `SERVICE`."""

    def __init__(self, kdc: Kdc, keys: Mapping[str, str | None] | None = None) -> None:
        super().__init__(Options(extra=tuple((keys or {}).items())))
        self._kdc = kdc

    def keys(self) -> dict[str, str]:
        provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
        return {**super().keys(), "authProvider.sasl": provider}

    def properties(self) -> dict[str, str]:
        file = self.folder / "jaas.conf"
        file.write_text(_SERVER_JAAS.format(keytab=self._kdc.keytab(SERVICE), service=SERVICE))
        jaas = {"java.security.auth.login.config": str(file)}
        return {**super().properties(), **self._kdc.java(), **jaas}


class KerberosApache39(KerberosApache, ApacheServer39):
    """An Apache ZooKeeper 3.9 with this key."""


class KerberosPaddock(PaddockServer):
    """A Paddock with the key of `SERVICE`."""

    def __init__(self, kdc: Kdc, keys: Mapping[str, str | None] | None = None) -> None:
        extra = {"paddock.kerberosKeytab": str(kdc.keytab(SERVICE)), **(keys or {})}
        super().__init__(Options(extra=tuple(extra.items())))
        self._kdc = kdc
        #: What else is in its environment.
        self.environment: dict[str, str] = {}

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        return command, {**environment, **self._kdc.environment(), **self.environment}


@contextlib.contextmanager
def within(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for a while; the Kerberos library reads them each time."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Initiator:
    """The client's side of one conversation, token by token; it may say what no client says."""

    def __init__(self, service: str = "zookeeper@localhost") -> None:
        import gssapi

        flags = gssapi.RequirementFlag
        self._context = gssapi.SecurityContext(
            name=gssapi.Name(service, gssapi.NameType.hostbased_service),
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=flags.mutual_authentication | flags.integrity,
        )
        self.first: bytes = self._context.step()

    def confirm(self, reply: bytes) -> bytes:
        """Check the server's proof; return what to send then: nothing."""
        assert not self._context.step(reply)
        assert self._context.complete
        return b""

    def offer(self, reply: bytes) -> bytes:
        """Return what the server offers."""
        message: bytes = self._context.unwrap(reply).message
        return message

    def choose(self, message: bytes) -> bytes:
        """Return a last token with any content."""
        token: bytes = self._context.wrap(message, False).message
        return token


def another_clock(offset: str) -> dict[str, str]:
    """Return what gives a program a clock that is wrong by an offset, such as `+1h`."""
    library = next(iter(Path("/").glob(_FAKETIME[1:])), None)
    if library is None:
        raise ServerMissingError("libfaketime is missing (Debian: apt-get install libfaketime)")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": offset,
        # Only the time of day is wrong.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
