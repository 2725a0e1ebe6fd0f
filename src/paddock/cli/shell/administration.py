"""Commands about permissions and the ensemble: addauth, getAcl, setAcl, whoami, (re)config."""

import contextlib
import re
from typing import Final

from paddock.cli.shell.parsing import Given, as_long, version_of
from paddock.cli.shell.reading import data_of, print_stat, visit, watched
from paddock.cli.shell.shell import Shell
from paddock.cli.shell.texts import (
    CommandError,
    UsageError,
    acl_lines,
    bytes_of,
    code_line,
    permissions_of,
    text_of,
)
from paddock.client.watches.watches import WatchKind
from paddock.errors import AuthenticationError, ServiceError
from paddock.protocol.acl import ACL, Identity
from paddock.server.config.properties import read_properties

# What is said of an ACL without entries; upstream does not ask a server.
NO_ACL: Final = "Acl is not valid : null"


async def addauth(shell: Shell, given: Given) -> None:
    scheme, *rest = given.arguments
    client = await shell.client()
    # The session is over then, and there was an event that says so.
    with contextlib.suppress(AuthenticationError):
        await client.add_auth(scheme, bytes_of(rest[0]) if rest else None)


async def get_acl(shell: Shell, given: Given) -> None:
    client = await shell.client(given.path)
    acl, stat = await client.get_acl(given.path)
    for line in acl_lines(acl):
        shell.out(line)
    print_stat(shell, stat, given.has("s"))


async def set_acl(shell: Shell, given: Given) -> None:
    path, text, *_ = given.arguments
    acl = acl_of(shell, text)
    version = version_of(given.value("v"))
    client = await shell.client(path)
    if not given.has("R"):
        if not acl:
            raise CommandError(NO_ACL)
        print_stat(shell, await client.set_acl(path, acl, version=version), given.has("s"))
        return
    async for one in visit(shell, path):
        try:
            if acl:
                await client.set_acl(one, acl, version=version)
            else:
                shell.out("KeeperErrorCode = InvalidACL", end="")
        except ServiceError as error:
            # Upstream goes on with the others, and does not end the line.
            shell.out(code_line(error), end="")


async def whoami(shell: Shell, given: Given) -> None:
    client = await shell.client()
    known = await client.who_am_i()
    shell.out("Auth scheme: User")
    for scheme, user in known:
        shell.out(f"{scheme}: {user}")


def acl_of(shell: Shell, text: str) -> list[ACL]:
    """Read `scheme:id:permissions`, several with commas between; complain of what is none."""
    # Nothing behind the last comma is no entry; nothing at all is one, if not a good one.
    entries = text.rstrip(",").split(",") if text.strip(",") or not text else []
    acl = []
    for entry in entries:
        scheme, colon, rest = entry.partition(":")
        name, second, letters = rest.rpartition(":")
        if not colon or not second:
            shell.err(f"{entry} does not have the form scheme:id:perm")
            continue
        permissions, unknown = permissions_of(letters)
        for letter in unknown:
            shell.err(f"Unknown perm type: {letter}")
        acl.append(ACL(permissions, Identity(scheme, name)))
    return acl


_CONFIG: Final = "/zookeeper/config"
# What clients connect to, behind a server's other addresses.
_CLIENT_ADDRESS: Final = re.compile(r";(?:\[?(?P<host>[^;\[\]]*)\]?:)?(?P<port>[0-9]+)$")


async def config(shell: Shell, given: Given) -> None:
    client = await shell.client()
    found = await watched(shell, given, _CONFIG, WatchKind.DATA, client.get_config)
    text = text_of(data_of(found))
    shell.out(for_clients(text) if given.has("c") else text)
    print_stat(shell, found.stat, given.has("s"))


async def reconfig(shell: Shell, given: Given) -> None:
    joining, leaving = given.value("add"), given.value("remove")
    members, file = given.value("members"), given.value("file")
    if not any(given.has(name) for name in ("file", "members", "add", "remove")):
        raise UsageError
    version = -1
    if (text := given.value("v")) is not None:
        number = as_long(text, 16)
        if number is None:
            raise CommandError("-v must be followed by a long (configuration version)")
        version = number
    whole = given.has("file") or given.has("members")
    if whole and (given.has("add") or given.has("remove")):
        raise CommandError(
            "Can't use -file or -members together with -add or -remove (mixing incremental and"
            " non-incremental modes is not allowed)"
        )
    if given.has("file") and given.has("members"):
        raise CommandError(
            "Can't use -file and -members together (conflicting non-incremental modes)"
        )
    if file is not None:
        members = _members_in(file)
    elif members is not None:
        members = members.lower()
    client = await shell.client()
    try:
        data, stat = await client.reconfig(
            joining=None if joining is None else joining.lower(),
            leaving=None if leaving is None else leaving.lower(),
            members=members,
            version=version,
        )
    except ServiceError as error:
        # Upstream names no path here.
        error.path = ""
        raise
    shell.out(f"Committed new configuration:\n{text_of(data)}")
    print_stat(shell, stat, given.has("s"))


def _members_in(file: str) -> str:
    """Read the servers from a file, as a dynamic configuration has them."""
    # Java has a name without slashes that say nothing, and so has its complaint.
    name = re.sub("/+", "/", file)
    if name != "/":
        name = name.removesuffix("/")
    try:
        with open(name, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError as error:
        raise CommandError(f"Error processing {file}{name} ({error.strerror})") from None
    except ValueError:
        # It has a null character.
        raise CommandError(f"Error processing {file}Invalid file path") from None
    found = {entry.key: entry.value for entry in read_properties(text)}
    for key in found:
        if not key.startswith(("server.", "group", "weight")) and key != "version":
            raise CommandError(f"Error processing {file}Unrecognised parameter: {key}")
    return "\n".join(f"{key}={value}" for key, value in found.items())


def for_clients(text: str) -> str:
    """Return the version of a configuration, and the connection string for clients."""
    found = {entry.key: entry.value for entry in read_properties(text)}
    addresses = []
    # By their numbers; upstream has the order of a hash table.
    for key in sorted(found, key=lambda key: (len(key), key)):
        if key.startswith("server."):
            match = _CLIENT_ADDRESS.search(found[key])
            addresses.append(
                "" if match is None else f"{match['host'] or '0.0.0.0'}:{match['port']}"
            )
    return f"{found.get('version', '')} {','.join(addresses)}"
