"""A request in flight: its encoded body, how its reply is decoded, and the future that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from paddock.errors import (
    NO_NODE,
    NOT_EMPTY,
    OK,
    NoNodeError,
    NotEmptyError,
    ProtocolError,
    RemoteProtocolError,
    ServiceError,
    error_from_code,
)
from paddock.protocol import operations
from paddock.protocol.jute import DecodeError, Reader

T = TypeVar("T")

# What errors call an operation: the client's method.
_NAMES: Final = {row.number: row.method or row.name for row in operations.TABLE}


def refusal(code: int, operation: int, path: str | None, *, is_single: bool = True) -> ServiceError:
    """Return the error for a result code other than OK; a single request may have a hint."""
    name = name_of(operation)
    if code == NO_NODE and name == "create":
        # The node that is missing is not the one that the error names.
        hint = "make_parents=True creates it" if is_single else None
        return NoNodeError(name, path, "its parent does not exist", hint=hint)
    if code == NOT_EMPTY and is_single:
        return NotEmptyError(name, path, hint="delete_tree deletes them, too")
    return error_from_code(code, name, path)


def name_of(operation: int) -> str:
    """Return the name by which users know an operation."""
    return _NAMES[operation]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer: the kind of the error, and what is known beyond its meaning."""

    kind: type[ServiceError]
    reason: str | None = None
    # Whether the request may have had an effect, or may still have one.
    may_be_applied: bool = True
    # Whether the session is the reason, for a kind that leaves it open.
    session_may_be_over: bool = False

    def of(self, operation: str, path: str | None = None) -> ServiceError:
        """Return the error for one request."""
        error = self.kind(operation, path, self.reason)
        error.may_be_applied = self.may_be_applied
        if self.session_may_be_over:
            error.session_may_be_over = True
        return error

    def unsent(self) -> Failure:
        """Return the same for a request that was not sent."""
        return Failure(self.kind, self.reason, False, self.session_may_be_over)


class PendingRequest(Generic[T]):
    """A request until its future is done."""

    __slots__ = (
        "body",
        "decode",
        "future",
        "is_patient",
        "is_repeatable",
        "losses",
        "missing_is_none",
        "on_connect",
        "on_reply",
        "operation",
        "path",
        "sent_at",
        "xid",
    )

    def __init__(
        self,
        operation: int,
        body: bytes,
        path: str | None,
        decode: Callable[[Reader], T],
        future: asyncio.Future[T],
        is_repeatable: bool,
    ) -> None:
        self.operation = operation
        self.body = body
        # What errors name; as the caller wrote it.
        self.path = path
        self.decode = decode
        self.future = future
        # Whether it may be sent again after a connection was lost with its answer.
        self.is_repeatable = is_repeatable
        # Whether it waits for its outcome also while the session may be over. Only in an exact
        # session, where the next connection tells.
        self.is_patient = False
        # Whether None is the answer if there is no such node, and not an error.
        self.missing_is_none = False
        # Called with the result code, and whether the future is still awaited, before the request
        # completes and before later frames are handled: it sets watches. Returns the effective
        # code, or None if the request was sent again.
        self.on_reply: Callable[[int, bool], int | None] | None = None
        # Called when it is to be sent on another connection than it was made for.
        self.on_connect: Callable[[], None] | None = None
        # How many connections were lost with it.
        self.losses = 0
        # Given when it is sent; another one when it is sent again.
        self.xid = 0
        self.sent_at = 0.0

    def answer(self, code: int, body: Reader) -> None:
        """Take the reply."""
        future = self.future
        if self.on_reply is not None:
            counts = self.on_reply(code, not future.cancelled())
            if counts is None:
                return
            code = counts
        if future.done():
            # It was cancelled.
            return
        if code == OK:
            try:
                result = self.decode(body)
            except ServiceError as error:
                # A transaction's answer may hold that it was refused.
                future.set_exception(error)
                return
            except (ProtocolError, ValueError) as error:
                # A ValueError is text that is no UTF-8.
                future.set_exception(RemoteProtocolError(f"{name_of(self.operation)}: {error}"))
                raise DecodeError(str(error)) from error
            future.set_result(result)
        elif code == NO_NODE and self.missing_is_none:
            future.set_result(None)  # type: ignore[arg-type]
        else:
            future.set_exception(refusal(code, self.operation, self.path))

    def fail(self, failure: Failure) -> None:
        """Fail, unless it is done."""
        if not self.future.done():
            self.future.set_exception(failure.of(name_of(self.operation), self.path))
