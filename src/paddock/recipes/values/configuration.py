"""Configuration: a shared value of a type, pushed to its readers when it changes.

    from dataclasses import dataclass


    @dataclass
    class Limits:
        size: int
        color: str = "blue"


    async with Configuration(client, "/app/limits", Limits, default=Limits(10)) as limits:
        print(limits.value)  # Limits(size=10, color='blue')
        await limits.set(Limits(20))

The value is JSON in one node, which people can read and edit; `parse` and `serialize` are for other
formats. Guaranteed is that `value` is always valid: it could be parsed, and `validate` accepted it.
An update that is not valid is dropped: the last valid value stays, `error` says why, error
listeners are called, and the log has a warning. Intermediate changes may be left out, the last one
never. Updates are exact, as those of `paddock.recipes.values.value`.

* Suspension (the connection is lost): the value stays, and is read again with the next connection.
* Expiry: the value stays, `error` is a SessionExpiredError, and the stream raises it.
* Cancellation: an update in flight has happened once, or not at all.
* Never promised: that all clients have the same value at the same moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Final, Generic, TypeVar

from paddock.client.client import Client
from paddock.client.requests.arguments import check_watcher
from paddock.errors import (
    InvalidValueError,
    NoNodeError,
    PaddockError,
    ServiceError,
    SessionExpiredError,
    UsageError,
)
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.common.background import Background
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.values.typed import from_json, to_json
from paddock.recipes.values.versioned_node import VersionedNode

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")


class Configuration(Background, Generic[T]):
    """A shared value of a type: the last valid one.

    The type is a dataclass, or anything that JSON has; every field is checked. With `parse` and
    `serialize` it may be any type. `validate` returns the problem of a value as text, or None.
    Without a default, starting raises NoNodeError if there is no such node.

    These functions must be quick and make no calls. If they raise, the value is not valid.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        kind: type[T],
        *,
        default: T | None = None,
        parse: Callable[[bytes], T] | None = None,
        serialize: Callable[[T], bytes] | None = None,
        validate: Callable[[T], str | None] | None = None,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        given = {"parse": parse, "serialize": serialize, "validate": validate}
        for name, function in given.items():
            if function is not None:
                check_watcher(name, function)
        self._node = VersionedNode(client, path, acl)
        super().__init__(path)
        # The node that holds it.
        self.path: str = path
        self._client = client
        self._default = default
        self._parse = parse or partial(from_json, kind)
        self._serialize = serialize or to_json
        self._validate = validate
        self._value: T | None = None
        self._has_value = False
        # Why the update that the service has was dropped; None if it is our value.
        self.error: PaddockError | None = None
        # Whether `value` is the default: there is no node, or it was not valid at the start.
        self.is_default: bool = False
        self._has_begun = asyncio.Event()
        self._listeners = Listeners[T]()
        self._error_listeners = Listeners[PaddockError]()

    def __repr__(self) -> str:
        return f"<Configuration {self.path} {self._value!r}>"

    @property
    def value(self) -> T:
        """The last valid value; raises UsageError before the start."""
        if not self._has_value:
            raise UsageError(f"{self.path}: start the configuration first")
        return self._value  # type: ignore[return-value]

    async def start(self) -> None:
        """Read it, and follow it until it is closed.

        Raises InvalidValueError or NoNodeError if there is neither a valid value nor a default, and
        UsageError if it was started before.
        """
        if self._task is not None or self._is_over:
            raise UsageError(f"{self.path}: a configuration is started once")
        self._task = self._client.start_task(self._follow())
        self._task.add_done_callback(self._on_end)
        try:
            await self._has_begun.wait()
            if not self._has_value:
                assert self.error is not None
                raise self.error
        except BaseException:
            self._stop()
            raise

    async def _open(self) -> None:
        await self.start()

    async def set(self, value: T) -> None:
        """Replace the value; raises InvalidValueError, and changes nothing, if it is not valid."""
        data = self._written(value)
        await self._node.update(lambda _: data)

    async def update(self, function: Callable[[T], T]) -> T:
        """Replace the value by the result of a function of it; return that.

        The function is called again, with the newer value, if another client was faster: no update
        is lost. It must be quick and make no calls. Raises InvalidValueError, and changes nothing,
        if the present or the new value is not valid. Our own `value` follows.
        """
        made: list[T] = []

        def write(data: bytes | None) -> bytes:
            made[:] = [function(self._read(data))]
            return self._written(made[0])

        await self._node.update(write)
        return made[0]

    async def changes(self) -> AsyncIterator[T]:
        """Yield the present value, then every newer one that is valid.

        Raises SessionExpiredError when the session is over, and RecipeClosedError when it is
        closed.
        """
        while not self._is_over:
            changed = self._changed
            yield self.value
            await changed.wait()
        self._check()

    def add_listener(self, listener: Callable[[T], None]) -> None:
        """Call a function with every later value.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: Callable[[T], None]) -> None:
        """Remove a listener, if it is there."""
        self._listeners.remove(listener)

    def add_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Call a function with the error of every later update that is dropped.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._error_listeners.add(listener)

    def remove_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Remove a listener, if it is there."""
        self._error_listeners.remove(listener)

    async def _follow(self) -> None:
        try:
            async with aclosing(self._node.changes()) as stream:
                async for data in stream:
                    self._take(data)
                    self._has_begun.set()
        except ServiceError as error:
            # The session is over, or the ACL does not permit it.
            self._give_up(error)

    def _on_end(self, following: asyncio.Task[None]) -> None:
        # Without another reason, the client was closed, and has cancelled its tasks.
        self._give_up(SessionExpiredError("configuration", self.path))
        self._has_begun.set()

    def _take(self, data: bytes | None) -> None:
        try:
            value = self._read(data)
        except (InvalidValueError, NoNodeError) as error:
            # The error itself may show the node's data.
            if self._has_value:
                logger.warning("%s: update dropped, not valid; the last value stays", self.path)
            elif self._default is not None:
                logger.warning("%s: not valid; the default is used", self.path)
                self._become(self._default, is_default=True)
            self._fail(error)
        else:
            if data is None and not self.is_default:
                # Not set yet is no trouble; deleted is.
                level = logging.WARNING if self._has_value else logging.INFO
                logger.log(level, "%s: no such node; the default is used", self.path)
            self.error = None
            self._become(value, is_default=data is None)

    def _become(self, value: T, *, is_default: bool) -> None:
        self.is_default = is_default
        is_newer = self._has_value and value != self._value
        self._value, self._has_value = value, True
        if is_newer:
            self._listeners.notify(value)
            self._wake()

    def _fail(self, error: PaddockError) -> None:
        self.error = error
        self._error_listeners.notify(error)

    def _give_up(self, error: PaddockError) -> None:
        if not self._is_over:
            self._fail(error)
            self._failure = error
            self._wake()

    def _read(self, data: bytes | None) -> T:
        if data is None:
            if self._default is None:
                raise NoNodeError("configuration", self.path)
            return self._default
        with self._refusing():
            value = self._parse(data)
            self._check_value(value)
        return value

    def _written(self, value: T) -> bytes:
        with self._refusing():
            self._check_value(value)
            data = self._serialize(value)
            # All clients have to be able to read it.
            self._parse(data)
        return data

    def _check_value(self, value: T) -> None:
        problem = None if self._validate is None else self._validate(value)
        if problem is not None:
            raise ValueError(problem)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """A scope whose errors say that a value is not valid."""
        try:
            yield
        except Exception as error:
            raise InvalidValueError(f"{self.path}: {error}") from error
