"""Writes that only succeed while something is held: `--guard`, for scripts under `paddock lock`.

    paddock lock /locks/report -- sh -c 'paddock set /report done --guard "$PADDOCK_GUARD"'

The guard is the node of the grant. Its name is never used twice, and the service checks it and
writes in one transaction. A write without a guard may come late: see `paddock.recipes.locks.grant`.
"""

from typing import Any

import click

from paddock.cli.failure import CannotBeDone
from paddock.client.client import Client
from paddock.client.transaction import Transaction
from paddock.errors import NoNodeError, TransactionFailedError

GUARD = click.option(
    "--guard",
    metavar="NODE",
    help="Only while this node is there, as $PADDOCK_GUARD under `paddock lock`; else status 76.",
)


class GuardLost(CannotBeDone):
    """What was held is held no more, and nothing was written."""

    exit_code = 76


def guarded(client: Client, guard: str) -> Transaction:
    """Begin a write that only succeeds while the guard is there; `committed` ends it."""
    return client.transaction().check(guard)


async def committed(transaction: Transaction, guard: str) -> Any:
    """Carry out a guarded write; give its result. Raises GuardLost, or why else it was refused."""
    try:
        return (await transaction.commit())[1]
    except TransactionFailedError as error:
        if isinstance(error.results[0], NoNodeError):
            raise GuardLost(f"{guard}: held no more, so nothing was written") from None
        raise error.cause or error from None
