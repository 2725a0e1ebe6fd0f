"""Commands about the ensemble: config and reconfig."""

import re
from typing import Final

from paddock.cli.shell.errors import CommandError, UsageError
from paddock.cli.shell.formats import text_of
from paddock.cli.shell.numbers import as_long
from paddock.cli.shell.options import Given
from paddock.cli.shell.reading import data_of, print_stat
from paddock.cli.shell.shell import Shell
from paddock.errors import ServiceError
from paddock.server.config.properties import read_properties

_CONFIG: Final = "/zookeeper/config"
# What clients connect to, behind a server's other addresses.
_CLIENT_ADDRESS: Final = re.compile(r";(?:\[?(?P<host>[^;\[\]]*)\]?:)?(?P<port>[0-9]+)$")


async def config(shell: Shell, given: Given) -> None:
    client = await shell.client()
    watch = True if given.has("w") else None
    found = await client.get_config(watch=watch)
    if watch:
        shell.watches.add_data(_CONFIG)
    text = text_of(data_of(found))
    shell.out(for_clients(text) if given.has("c") else text)
    if given.has("s"):
        print_stat(shell, found.stat)


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
    _check_no_conflict(given)
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
    if given.has("s"):
        print_stat(shell, stat)


def _check_no_conflict(given: Given) -> None:
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
