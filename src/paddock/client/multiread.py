"""Several reads in one request, each with a result or an error of its own.

    async with client.multi_read() as reads:
        config = reads.get("/config")
        names = reads.children("/config")
        missing = reads.get("/nothing")
    print(config.result().data, names.result())  # b'v1' []
    print(missing.error)  # get /nothing: no such node

At the end of its scope they are carried out; `await reads.commit()` does the same without a scope.
That one of them fails, because there is no such node or we may not read it, leaves the others as
they are. No watches are set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from paddock.client.operations.request_sender import RequestSender
from paddock.client.requests import decoding
from paddock.client.requests.encoder import Encoder, watched
from paddock.client.results import NodeData
from paddock.client.transaction import Step, encoded_steps
from paddock.errors import LocalProtocolError, RemoteProtocolError, ServiceError
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import MultiHeader

T = TypeVar("T")


class Reading(Generic[T]):
    """One of several reads; it has its result when all of them are done."""

    __slots__ = ("_answer", "_decode", "_step", "error", "is_done", "path")

    def __init__(self, step: Step, decode: Callable[[Reader], T]) -> None:
        self._step = step
        self._decode = decode
        self.path = step.path
        self.is_done = False
        # What was wrong with it, once it is done; None if nothing was.
        self.error: ServiceError | None = None
        self._answer: T | None = None

    def result(self) -> T:
        """Return what was read. Raises NoNodeError or NoAuthError if it could not be."""
        if not self.is_done:
            raise LocalProtocolError(f"{self._step.name} {self.path}: not read yet")
        if self.error is not None:
            raise self.error
        # Done without an error, it has a result; None only if T allows it.
        return self._answer  # type: ignore[return-value]

    def _take(self, header: MultiHeader, reader: Reader) -> None:
        """Take the answer."""
        if header.operation == opcodes.ERROR:
            self.error = self._step.error(reader.int32())
        elif header.operation == self._step.operation:
            self._answer = self._decode(reader)
        else:
            raise RemoteProtocolError(f"multi_read: an answer of the type {header.operation}")
        self.is_done = True


class MultiRead:
    """Reads that are gathered, to be carried out with one request."""

    def __init__(self, encode: Encoder, sender: RequestSender) -> None:
        self._encode = encode
        self._sender = sender
        self._readings: list[Reading[Any]] = []

    def get(self, path: str) -> Reading[NodeData]:
        """Read the data and the stat of a node."""
        return self._add(opcodes.GET_DATA, path, decoding.node_data)

    def children(self, path: str) -> Reading[list[str]]:
        """Read the names of a node's children."""
        return self._add(opcodes.GET_CHILDREN, path, decoding.names)

    def commit(self) -> asyncio.Future[None]:
        """Carry them out. Repeated after a lost connection, since reading does no harm.

        Raises ConnectionLostError if no server answers in time; then none of them has a result.
        """
        if not self._readings:
            return self._sender.answered(None)
        # What is added meanwhile is not part of this request, nor of its answer.
        readings = [*self._readings]

        def take_all(reader: Reader) -> None:
            for reading in readings:
                reading._take(MultiHeader.read(reader), reader)

        body = encoded_steps(reading._step for reading in readings)
        return self._sender.send(opcodes.MULTI_READ, body, None, take_all, is_repeatable=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            await self.commit()

    def _add(self, operation: int, path: str, decode: Callable[[Reader], T]) -> Reading[T]:
        reading = Reading(Step(operation, watched(self._encode.full(path), False), path), decode)
        self._readings.append(reading)
        return reading
