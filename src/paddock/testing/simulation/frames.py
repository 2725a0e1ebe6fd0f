"""Frames of the protocol, decoded and encoded as a client does, for histories and raw clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from librt.strings import BytesWriter

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.operations import BY_NUMBER, Record
from paddock.protocol.records import (
    NOTIFICATION_XID,
    MultiHeader,
    ReplyHeader,
    RequestHeader,
    WatcherEvent,
)
from paddock.protocol.replies import IntResponse
from paddock.protocol.requests import (
    CreateRequest,
    CreateTTLRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
)

StepRequest: TypeAlias = (
    CreateRequest | CreateTTLRequest | VersionRequest | SetDataRequest | WatchedRequest
)
Step: TypeAlias = tuple[int, StepRequest]
Result: TypeAlias = tuple[int, int, object]
"""One result of a multi: operation (-1 for an error), code, and the record or None."""

_STEPS = (opcodes.MULTI, opcodes.MULTI_READ)


@dataclass(slots=True)
class Request:
    """A request; its body is a record, a list of steps, or None where it has none."""

    xid: int
    operation: int
    body: Record | list[Step] | None


@dataclass(slots=True)
class Reply:
    """A reply; its body is a record, a list of results, or None."""

    xid: int
    zxid: int
    error: int
    body: object


@dataclass(slots=True)
class Event:
    """An event of a watch; its zxid is -1 where setWatches found the change."""

    zxid: int
    kind: int
    path: bytes


def encode_record(record: Record | None) -> bytes:
    writer = BytesWriter()
    if record is not None:
        record.write(writer)
    return writer.getvalue()


def encode_request(request: Request) -> bytes:
    writer = BytesWriter()
    RequestHeader(request.xid, request.operation).write(writer)
    if isinstance(request.body, list):
        for operation, step in request.body:
            MultiHeader(operation, False, -1).write(writer)
            step.write(writer)
        MultiHeader(-1, True, -1).write(writer)
    elif request.body is not None:
        request.body.write(writer)
    return writer.getvalue()


def decode_request(frame: bytes) -> Request:
    """Raises DecodeError."""
    reader = Reader(frame)
    header = RequestHeader.read(reader)
    if header.operation in _STEPS:
        return Request(header.xid, header.operation, _read_steps(reader))
    row = BY_NUMBER.get(header.operation)
    if row is None or row.request is None:
        return Request(header.xid, header.operation, None)
    return Request(header.xid, header.operation, row.request.read(reader))


def encode_reply(operation: int, reply: Reply) -> bytes:
    """Encode a reply as a server does; for histories that are written by hand."""
    writer = BytesWriter()
    ReplyHeader(reply.xid, reply.zxid, reply.error).write(writer)
    if isinstance(reply.body, list):
        for kind, code, record in reply.body:
            MultiHeader(kind, False, code).write(writer)
            if record is not None:
                record.write(writer)
        MultiHeader(-1, True, -1).write(writer)
    elif reply.error == OK and reply.body is not None:
        writer.write(encode_record(reply.body))  # type: ignore[arg-type]
    return writer.getvalue()


def is_event(frame: bytes) -> bool:
    return frame[:4] == NOTIFICATION_XID.to_bytes(4, "big", signed=True)


def reply_xid(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big", signed=True)


def decode_reply(operation: int, frame: bytes) -> Reply:
    """Decode a reply to this operation. Raises DecodeError."""
    reader = Reader(frame)
    header = ReplyHeader.read(reader)
    body: object = None
    if header.error == OK:
        row = BY_NUMBER.get(operation)
        if operation in _STEPS:
            body = _read_results(reader)
        elif row is not None and row.reply is not None and reader.position < len(frame):
            body = row.reply.read(reader)
    return Reply(header.xid, header.zxid, header.error, body)


def is_refused(results: list[Result]) -> bool:
    """Return whether a transaction has changed nothing, by its results."""
    return any(code != OK for _, code, _ in results)


def read_results(body: bytes) -> list[Result]:
    """Return the results of a multi."""
    return _read_results(Reader(body))


def encode_event(event: Event) -> bytes:
    writer = BytesWriter()
    ReplyHeader(NOTIFICATION_XID, event.zxid, OK).write(writer)
    WatcherEvent(event.kind, 3, event.path).write(writer)
    return writer.getvalue()


def decode_event(frame: bytes) -> Event:
    """Raises DecodeError."""
    reader = Reader(frame)
    header = ReplyHeader.read(reader)
    event = WatcherEvent.read(reader)
    return Event(header.zxid, event.kind, event.path)


def _read_steps(reader: Reader) -> list[Step]:
    steps: list[Step] = []
    while not (header := MultiHeader.read(reader)).done:
        row = BY_NUMBER[header.operation]
        assert row.request is not None
        steps.append((header.operation, row.request.read(reader)))  # type: ignore[arg-type]
    return steps


def _read_results(reader: Reader) -> list[Result]:
    results: list[Result] = []
    while not (header := MultiHeader.read(reader)).done:
        record: object = None
        if header.operation == opcodes.ERROR:
            record = IntResponse.read(reader)
        else:
            row = BY_NUMBER[header.operation]
            if header.operation != opcodes.CHECK and row.reply is not None:
                record = row.reply.read(reader)
        results.append((header.operation, header.error, record))
    return results
