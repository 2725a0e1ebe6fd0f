"""Commands about who may do what: addauth, getAcl, setAcl, whoami."""

from typing import Final

from paddock.cli.shell.errors import CommandError, check_path, code_line
from paddock.cli.shell.formats import acl_lines, bytes_of, permissions_of
from paddock.cli.shell.numbers import version_of
from paddock.cli.shell.options import Given
from paddock.cli.shell.reading import print_stat, visit
from paddock.cli.shell.shell import Shell
from paddock.errors import AuthenticationError, ServiceError
from paddock.protocol.acl import ACL, Identity

# What is said of an ACL without entries; upstream does not ask a server.
NO_ACL: Final = "Acl is not valid : null"


async def addauth(shell: Shell, given: Given) -> None:
    scheme, *rest = given.arguments
    client = await shell.client()
    try:
        await client.add_auth(scheme, bytes_of(rest[0]) if rest else None)
    except AuthenticationError:
        # The session is over, and there was an event that says so.
        return


async def get_acl(shell: Shell, given: Given) -> None:
    path = given.arguments[0]
    check_path(path)
    client = await shell.client()
    acl, stat = await client.get_acl(path)
    for line in acl_lines(acl):
        shell.out(line)
    if given.has("s"):
        print_stat(shell, stat)


async def set_acl(shell: Shell, given: Given) -> None:
    path, text, *_ = given.arguments
    acl = acl_of(shell, text)
    version = version_of(given.value("v"))
    check_path(path)
    client = await shell.client()
    if not given.has("R"):
        if not acl:
            raise CommandError(NO_ACL)
        stat = await client.set_acl(path, acl, version=version)
        if given.has("s"):
            print_stat(shell, stat)
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
