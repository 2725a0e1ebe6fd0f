"""A receipt: an ephemeral node by which a transaction is recognised after a lost reply.

The transaction creates it, so it exists if and only if the transaction has succeeded, also if what
else it has done is undone by others before we look. It is deleted later.

In an exact session there is no receipt, and no request to delete one: the client itself learns what
became of the transaction, and waits for that as long as the session lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from paddock.client.client import Client
from paddock.client.transaction import Transaction
from paddock.errors import (
    ConnectionLostError,
    ReplyLostError,
    ServiceError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.recipes.common.departure import Sweeper
from paddock.recipes.common.retry import delete_if_exists, newest_stat, retry


class Receipt:
    """The receipt of one transaction, which may be sent several times."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        self._client = client
        self._path = path
        self._acl = acl
        # Decided once, for all attempts.
        self._is_needed = not client.is_exact

    async def commit(self, transaction: Transaction) -> None:
        """Commit the transaction; the receipt is its last operation."""
        if self._is_needed:
            transaction.create(self._path, acl=self._acl, ephemeral=True)
        # That it has happened is all that is asked for.
        with suppress(ReplyLostError):
            await transaction.commit(patient=True)

    async def exists(self, lost: ConnectionLostError) -> bool:
        """Return whether a transaction has succeeded whose reply was lost.

        Raises `lost` if nobody can tell.
        """
        if not self._is_needed:
            raise lost
        return await retry(self._client, self._is_found)

    def refusal(self, failed: TransactionFailedError) -> ServiceError | None:
        """Return why the receipt could not be created; None if it is not the reason."""
        return failed.results[-1] if self._is_needed else None

    def delete(self) -> None:
        """Delete it in the background, if it exists."""
        if self._is_needed:
            self._client.start_task(self._delete())

    def delete_later(self, sweeper: Sweeper) -> None:
        """Delete it together with others, if it exists."""
        if self._is_needed:
            sweeper.add(self._path)

    async def _is_found(self) -> bool:
        return await newest_stat(self._client, self._path) is not None

    async def _delete(self) -> None:
        # It goes with an expired session.
        with suppress(SessionExpiredError):
            await retry(self._client, lambda: delete_if_exists(self._client, self._path))
