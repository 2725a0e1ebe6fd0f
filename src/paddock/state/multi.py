"""Transactions, which are atomic, and multi-reads, which are several reads in one request.

On the wire a list of operations is a header and a body for each, ended by a header that says
`done`. A transaction that fails is answered with a record for each operation all the same: 0 for
those before the one that failed, its code, and RUNTIME_INCONSISTENCY for those after it.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i64

from paddock.errors import OK, RUNTIME_INCONSISTENCY
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader, write_buffer
from paddock.protocol.operations import TABLE
from paddock.protocol.records import MultiHeader
from paddock.protocol.requests import (
    CreateRequest,
    CreateTTLRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
)
from paddock.state.entry import Refused
from paddock.state.operations import (
    CONTAINER_MODE,
    NO_TTL,
    PERSISTENT_SEQUENTIAL_TTL,
    PERSISTENT_TTL,
    Operations,
)

_READS: Final = frozenset([row.number for row in TABLE if row.step_of == opcodes.MULTI_READ])


class Step:
    """One operation of a transaction."""

    def __init__(
        self,
        operation: int,
        request: CreateRequest | CreateTTLRequest | VersionRequest | SetDataRequest,
    ) -> None:
        self.operation = operation
        self.request = request


def read_steps(body: bytes, acl_entries_max: i64 = 1 << 31) -> list[Step]:
    """Read the operations of a transaction. Raises DecodeError."""
    reader = Reader(body, 0, acl_entries_max)
    steps: list[Step] = []
    header = MultiHeader.read(reader)
    while not header.done:
        steps.append(_read_step(header.operation, reader))
        header = MultiHeader.read(reader)
    return steps


def read_reads(body: bytes) -> list[tuple[int, bytes]]:
    """Read the operations of a multi-read: get and get_children. Raises DecodeError."""
    reader = Reader(body)
    reads: list[tuple[int, bytes]] = []
    header = MultiHeader.read(reader)
    while not header.done:
        if header.operation not in _READS:
            raise DecodeError("not an operation of a multi-read")
        reads.append((header.operation, WatchedRequest.read(reader).path))
        header = MultiHeader.read(reader)
    return reads


def run(steps: list[Step], operations: Operations) -> tuple[bytes, int, int]:
    """Run a transaction; return the reply, and the operation that failed with its code, or -1.

    After a failure the caller has to undo what the earlier operations did.
    """
    writer = BytesWriter()
    for number, step in enumerate(steps):
        try:
            _run_step(step, operations, writer)
        except Refused as refusal:
            return _failure(len(steps), number, refusal.code), number, refusal.code
    write_header(writer, -1, True, -1)
    return writer.getvalue(), -1, OK


def write_header(writer: BytesWriter, operation: int, done: bool, error: int) -> None:
    write_i32_be(writer, operation)
    writer.append(1 if done else 0)
    write_i32_be(writer, error)


def write_error(writer: BytesWriter, code: int) -> None:
    write_header(writer, opcodes.ERROR, False, code)
    write_i32_be(writer, code)


def _read_step(operation: int, reader: Reader) -> Step:
    if operation in (opcodes.CREATE, opcodes.CREATE2, opcodes.CREATE_CONTAINER):
        request = CreateRequest.read(reader)
        # The flags alone say what becomes of it, so a container without its flag is a plain node.
        if request.flags == CONTAINER_MODE:
            return Step(opcodes.CREATE_CONTAINER, request)
        return Step(opcodes.CREATE2 if operation == opcodes.CREATE2 else opcodes.CREATE, request)
    if operation == opcodes.CREATE_TTL:
        ttl_request = CreateTTLRequest.read(reader)
        flags = ttl_request.flags
        if flags in (PERSISTENT_TTL, PERSISTENT_SEQUENTIAL_TTL):
            return Step(opcodes.CREATE_TTL, ttl_request)
        plain = CreateRequest(ttl_request.path, ttl_request.data, ttl_request.acls, flags)
        return Step(opcodes.CREATE_CONTAINER if flags == CONTAINER_MODE else opcodes.CREATE, plain)
    if operation in (opcodes.DELETE, opcodes.CHECK):
        expected = VersionRequest.read(reader)
        if expected.path is not None:
            return Step(operation, expected)
    elif operation == opcodes.SET_DATA:
        change = SetDataRequest.read(reader)
        if change.path is not None:
            return Step(operation, change)
    raise DecodeError("not an operation of a transaction")


def _run_step(step: Step, operations: Operations, writer: BytesWriter) -> None:
    operation, request = step.operation, step.request
    if isinstance(request, CreateRequest):
        if request.flags in (PERSISTENT_TTL, PERSISTENT_SEQUENTIAL_TTL):
            # Found out only now, as upstream: after an operation that failed it does not matter.
            raise DecodeError("a TTL mode in an operation without a TTL")
        path, node = operations.create(
            operation, request.path, request.data, request.acls, request.flags, NO_TTL
        )
        plain = operation == opcodes.CREATE
        write_header(writer, opcodes.CREATE if plain else opcodes.CREATE2, False, OK)
        write_buffer(writer, path)
        if not plain:
            node.write_stat(writer)
    elif isinstance(request, CreateTTLRequest):
        path, node = operations.create(
            operation, request.path, request.data, request.acls, request.flags, request.ttl_ms
        )
        write_header(writer, opcodes.CREATE2, False, OK)
        write_buffer(writer, path)
        node.write_stat(writer)
    elif isinstance(request, SetDataRequest):
        node = operations.set_data(request.path, request.data, request.version)
        write_header(writer, opcodes.SET_DATA, False, OK)
        node.write_stat(writer)
    elif operation == opcodes.DELETE:
        operations.delete(request.path, request.version)
        write_header(writer, opcodes.DELETE, False, OK)
    else:
        operations.check(request.path, request.version)
        write_header(writer, opcodes.CHECK, False, OK)


def _failure(count: int, failed: int, code: int) -> bytes:
    writer = BytesWriter()
    for number in range(count):
        if number < failed:
            write_error(writer, OK)
        else:
            write_error(writer, code if number == failed else RUNTIME_INCONSISTENCY)
    write_header(writer, -1, True, -1)
    return writer.getvalue()
