"""Several writes as one: all of them happen, or none.

    async with client.transaction() as transaction:
        transaction.check("/config", version=0)
        transaction.create("/color", b"blue")
    print(transaction.results)  # [None, '/color']

At the end of its scope the transaction is committed; a scope that is left with an exception commits
nothing. A plain builder does the same: `await client.transaction().create("/a").commit()`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from librt.strings import BytesWriter

from paddock.client.operations.request_sender import RequestSender
from paddock.client.requests.arguments import check_flag
from paddock.client.requests.encoder import ANY_VERSION, Encoder
from paddock.client.requests.pending_request import name_of, refusal
from paddock.errors import (
    OK,
    RUNTIME_INCONSISTENCY,
    ServiceError,
    TransactionFailedError,
    UsageError,
)
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import MultiHeader, Stat

# The operation in the header after the last one.
_DONE: Final = -1


@dataclass(frozen=True, slots=True)
class Step:
    """One of the operations, encoded."""

    operation: int
    body: bytes
    # What errors name; as the caller wrote it.
    path: str

    @property
    def name(self) -> str:
        return name_of(self.operation)

    def error(self, code: int) -> ServiceError:
        """Return the error for a result code of this step alone."""
        return refusal(code, self.operation, self.path, is_single=False)


def encoded_steps(steps: Iterable[Step]) -> bytes:
    """Return the body of a request that has all of them."""
    writer = BytesWriter()
    for step in steps:
        MultiHeader(step.operation, False, -1).write(writer)
        writer.write(step.body)
    MultiHeader(_DONE, True, -1).write(writer)
    return writer.getvalue()


class Transaction:
    """Operations that are gathered, to be carried out together."""

    def __init__(self, encode: Encoder, sender: RequestSender) -> None:
        self._encode = encode
        self._sender = sender
        self._steps: list[Step] = []
        # Whether it was sent, whatever has become of it.
        self._is_committed = False
        # What came of each operation, once it is committed: the path of a create, the stat of a
        # set, None for the rest.
        self.results: list[Any] = []

    def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        acl: Sequence[ACL] = OPEN_TO_ALL,
        ephemeral: bool = False,
        sequential: bool = False,
        container: bool = False,
        ttl: float | None = None,
    ) -> Self:
        """Create a node, as `Client.create` does; its result is the path."""
        operation, body = self._encode.create(
            opcodes.CREATE, path, data, acl, ephemeral, sequential, container, ttl
        )
        return self._add(operation, body, path)

    def set(self, path: str, data: bytes | None, *, version: int = ANY_VERSION) -> Self:
        """Replace the data of a node, if it has this version; its result is the stat."""
        return self._add(opcodes.SET_DATA, self._encode.set(path, data, version), path)

    def delete(self, path: str, *, version: int = ANY_VERSION) -> Self:
        """Delete a node that has no children, if it has this version."""
        return self._add(opcodes.DELETE, self._encode.version(path, version), path)

    def check(self, path: str, *, version: int = ANY_VERSION) -> Self:
        """Have all of it fail unless the node is there and has this version."""
        return self._add(opcodes.CHECK, self._encode.version(path, version), path)

    def commit(self, *, patient: bool = False) -> asyncio.Future[list[Any]]:
        """Carry it out, once; return the result of each operation.

        Raises TransactionFailedError if it was refused.

        In an exact session a `patient` one does not fail when the session may be over: it waits
        until its outcome is known, or the session has ended.
        """
        self._check_open()
        check_flag("patient", patient)
        if self._steps:
            committed = self._sender.send(
                opcodes.MULTI, encoded_steps(self._steps), None, self._decode, is_patient=patient
            )
        else:
            committed = self._sender.answered(self.results)
        self._is_committed = True
        return committed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None and not self._is_committed:
            await self.commit()

    def _check_open(self) -> None:
        # Twice would be a second transaction, and what is added now would be in none.
        if self._is_committed:
            raise UsageError("a transaction is committed once; begin another one")

    def _add(self, operation: int, body: bytes, path: str) -> Self:
        self._check_open()
        self._steps.append(Step(operation, body, path))
        return self

    def _decode(self, reader: Reader) -> list[Any]:
        results: list[Any] = []
        errors: list[ServiceError | None] = []
        for number, step in enumerate(self._steps):
            header = MultiHeader.read(reader)
            if header.done and not any(errors):
                raise DecodeError(f"the answer to {len(self._steps)} operations ends early")
            if header.done:
                # It may end with the one that failed: those after it were not tried.
                errors += [rest.error(RUNTIME_INCONSISTENCY) for rest in self._steps[number:]]
                break
            code = reader.int32() if header.operation == opcodes.ERROR else OK
            if header.operation != opcodes.ERROR:
                results.append(self._result(header.operation, reader))
            errors.append(None if code == OK else step.error(code))
        if any(errors):
            raise TransactionFailedError(errors)
        self.results = results
        return results

    def _result(self, operation: int, reader: Reader) -> Any:
        if operation == opcodes.CREATE:
            return self._encode.own(reader.string())
        if operation in (opcodes.CREATE2, opcodes.CREATE_CONTAINER, opcodes.CREATE_TTL):
            path = self._encode.own(reader.string())
            Stat.read(reader)
            return path
        return Stat.read(reader) if operation == opcodes.SET_DATA else None
