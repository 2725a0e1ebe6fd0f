"""Commands that write: create, set, delete, deleteall."""

import asyncio
from base64 import b64decode
from typing import Final

from paddock.cli.shell.administration import NO_ACL, acl_of
from paddock.cli.shell.parsing import Given, as_int, as_long, version_of
from paddock.cli.shell.reading import print_stat
from paddock.cli.shell.shell import Shell
from paddock.cli.shell.texts import CommandError, bytes_of, check_path, code_line
from paddock.client.client import Client
from paddock.errors import (
    EphemeralOnLocalSessionError,
    InvalidACLError,
    ServiceError,
    TransactionFailedError,
)
from paddock.protocol.acl import OPEN

_TTL_MS_MAX: Final = 2**40 - 1
_BATCH: Final = 1000
_BATCHES: Final = 10


async def create(shell: Shell, given: Given) -> None:
    ttl_ms = _ttl_of(given)
    path, *rest = given.arguments
    data = bytes_of(rest[0]) if rest else None
    acl = acl_of(shell, rest[1]) if len(rest) > 1 else list(OPEN)
    check_path(path, sequential=given.has("s"))
    client = await shell.client()
    if not acl:
        shell.err("KeeperErrorCode = InvalidACL")
        raise CommandError(NO_ACL)
    try:
        created = await client.create(
            path,
            data,
            acl=acl,
            ephemeral=given.has("e"),
            sequential=given.has("s"),
            container=given.has("c"),
            ttl=None if ttl_ms is None else ttl_ms / 1000,
        )
    except EphemeralOnLocalSessionError:
        shell.err("Unable to create ephemeral node on a local session")
        raise
    except InvalidACLError as error:
        shell.err(code_line(error))
        raise
    shell.err(f"Created {created}")


async def set_data(shell: Shell, given: Given) -> None:
    path, text, *_ = given.arguments
    try:
        data = b64decode(text, validate=True) if given.has("b") else bytes_of(text)
    except ValueError as error:
        raise CommandError(f"data is not in base64: {error}") from None
    version = version_of(given.value("v"))
    client = await shell.client(path)
    print_stat(shell, await client.set(path, data, version=version), given.has("s"))


async def delete(shell: Shell, given: Given) -> None:
    version = version_of(given.value("v"))
    client = await shell.client(given.path)
    await client.delete(given.path, version=version)


async def deleteall(shell: Shell, given: Given) -> None:
    text = given.value("b")
    batch = _BATCH if text is None else as_int(text)
    if batch is None:
        raise CommandError("-b argument must be an int value")
    client = await shell.client(given.path)
    found = [given.path]
    for above in found:
        found.extend(f"{above.rstrip('/')}/{name}" for name in await client.children(above))
    # The deepest first. A batch is a transaction: it goes as a whole, or not at all.
    found.reverse()
    size = batch if batch > 0 else len(found)
    batches = [found[start : start + size] for start in range(0, len(found), size)]
    for start in range(0, len(batches), _BATCHES):
        results = await asyncio.gather(
            *(_delete(client, one) for one in batches[start : start + _BATCHES])
        )
        if not all(results):
            shell.err("Failed to delete some node(s) in the subtree!")
            return


def _ttl_of(given: Given) -> int | None:
    """Return the TTL in milliseconds, if any, and check that the kind of node exists."""
    if given.has("c") and (given.has("e") or given.has("s")):
        raise CommandError(
            "-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential."
        )
    text = given.value("t")
    if text is None:
        return None
    ttl_ms = as_long(text)
    if ttl_ms is None:
        raise CommandError("-t argument must be a long value")
    if given.has("e"):
        raise CommandError("TTLs cannot be used with Ephemeral znodes")
    if given.has("c"):
        raise CommandError("TTLs cannot be used with Container znodes")
    if not 0 < ttl_ms <= _TTL_MS_MAX:
        raise CommandError(f"ttl must be positive and cannot be larger than: {_TTL_MS_MAX}")
    return ttl_ms


async def _delete(client: Client, batch: list[str]) -> bool:
    transaction = client.transaction()
    for path in batch:
        transaction.delete(path)
    try:
        await transaction.commit()
    except (TransactionFailedError, ServiceError):
        return False
    return True
