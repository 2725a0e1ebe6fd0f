"""Configuration: a value of a type that all share, and that is pushed when it changes.

    from dataclasses import dataclass


    @dataclass
    class Limits:
        size: int
        color: str = "blue"


    async with Configuration(client, "/app/limits", Limits, default=Limits(10)) as limits:
        print(limits.value)  # Limits(size=10, color='blue')
        await limits.set(Limits(20))

The value is JSON in one node, which people can read and edit; or whatever `parse` and `serialize`
make of its bytes. Guaranteed is that `value` is always one that could be read and that `validate`
had nothing to say against: after a bad change it is still the last good one, and the change is
reported, by `error` and to those who listen for errors. Changes in quick succession may come as
one; the last one always comes. Updates are exact, as those of `paddock.recipes.values.value`.

* Suspension (the connection is lost): the value stays, and is read again with the next connection.
* Expiry: the value stays as it is, `error` says SessionExpiredError, and the stream raises it.
* Cancellation: an update that was under way may have happened, and then has once.
* Never promised: that all have the same value at the same moment. Each hears of it by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

from paddock.client.client import Client
from paddock.client.requests.arguments import check_watcher
from paddock.errors import (
    InvalidValueError,
    NoNodeError,
    PaddockError,
    RecipeClosedError,
    ServiceError,
    SessionExpiredError,
    UsageError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.values.typed import from_json, to_json
from paddock.recipes.values.versioned_node import Cell

T = TypeVar("T")


class Configuration(Generic[T]):
    """A value of a type, as the service has it and as it was good last.

    The type is a dataclass, or anything that JSON has: then every field is checked. With `parse`
    and `serialize` it may be any type. `validate` gives what is wrong with a value, in words, or
    None. Without a default, starting raises NoNodeError if there is no such node.

    These functions must be quick and make no calls. What they raise says that a value is bad.
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
        # The node that holds it.
        self.path: str = path
        self._client = client
        self._cell = Cell(client, path, acl)
        self._default = default
        self._parse = parse or partial(from_json, kind)
        self._serialize = serialize or to_json
        self._validate = validate
        self._value: T | None = None
        self._has_value = False
        self._error: PaddockError | None = None
        # Why nothing comes any more.
        self._end: PaddockError | None = None
        self._following: asyncio.Task[None] | None = None
        self._has_begun = asyncio.Event()
        self._listeners = Listeners[T]()
        self._error_listeners = Listeners[PaddockError]()
        # Those who wait for news in a stream.
        self._waiting = Listeners[None]()

    def __repr__(self) -> str:
        return f"<Configuration {self.path} {self._value!r}>"

    @property
    def value(self) -> T:
        """The last value that was good; raises UsageError before it was started."""
        if not self._has_value:
            raise UsageError(f"{self.path}: start the configuration first")
        return self._value  # type: ignore[return-value]

    @property
    def error(self) -> PaddockError | None:
        """What is wrong with what the service has now; None if that is our value."""
        return self._error

    async def start(self) -> None:
        """Read it for the first time, and follow it from then on; closing ends that.

        Raises InvalidValueError or NoNodeError if there is neither a good value nor a default, and
        UsageError if it was started before.
        """
        if self._following is not None or self._end is not None:
            raise UsageError(f"{self.path}: a configuration is started once")
        self._following = self._client.start_task(self._follow())
        self._following.add_done_callback(self._on_end)
        try:
            await self._has_begun.wait()
            if not self._has_value:
                assert self._error is not None
                raise self._error
        except BaseException:
            self._following.cancel()
            raise

    async def close(self) -> None:
        """Follow it no more; the last value stays. Closing twice is fine."""
        self._finish(RecipeClosedError(f"{self.path}: the configuration is closed"))
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def set(self, value: T) -> None:
        """Replace it for all; raises InvalidValueError, and changes nothing, if it is not good."""
        data = self._written(value)
        await self._cell.update(lambda _: data)

    async def update(self, function: Callable[[T], T]) -> T:
        """Replace it for all by what the function makes of it; give that.

        It is called again, with the newer value, if somebody else was faster: nobody's update is
        lost. It must be quick and make no calls. Raises InvalidValueError, and changes nothing, if
        what there is or what it gives is not good. Our own `value` follows when we hear of it.
        """
        made: list[T] = []

        def write(data: bytes | None) -> bytes:
            made[:] = [function(self._read(data))]
            return self._written(made[0])

        await self._cell.update(write)
        return made[0]

    async def changes(self) -> AsyncIterator[T]:
        """Give the present value, then every newer one that is good.

        Raises SessionExpiredError when the session is over, and RecipeClosedError when it is
        closed.
        """
        news = asyncio.Event()

        def tell(_: None) -> None:
            news.set()

        self._waiting.add(tell)
        try:
            while self._end is None:
                news.clear()
                yield self.value
                await news.wait()
            raise self._end
        finally:
            self._waiting.remove(tell)

    def add_listener(self, listener: Callable[[T], None]) -> None:
        """Have something called with every value from the next one on.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: Callable[[T], None]) -> None:
        """Call it no more; that it was never called is fine."""
        self._listeners.remove(listener)

    def add_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Have something called with the error of every change that is not good.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._error_listeners.add(listener)

    def remove_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Call it no more; that it was never called is fine."""
        self._error_listeners.remove(listener)

    async def _follow(self) -> None:
        try:
            async with aclosing(self._cell.changes()) as stream:
                async for data in stream:
                    self._take(data)
                    self._has_begun.set()
        except ServiceError as error:
            # The session is over, or we may not read it.
            self._give_up(error)

    def _on_end(self, following: asyncio.Task[None]) -> None:
        # If nobody has said why, the client was closed, and has cancelled what it owns.
        self._give_up(SessionExpiredError("configuration", self.path))
        self._has_begun.set()

    def _take(self, data: bytes | None) -> None:
        try:
            value = self._read(data)
        except (InvalidValueError, NoNodeError) as error:
            if not self._has_value and self._default is not None:
                self._become(self._default)
            self._fail(error)
        else:
            self._error = None
            self._become(value)

    def _become(self, value: T) -> None:
        if self._has_value and value == self._value:
            return
        is_first = not self._has_value
        self._value, self._has_value = value, True
        if not is_first:
            self._listeners.tell(value)
            self._waiting.tell(None)

    def _fail(self, error: PaddockError) -> None:
        self._error = error
        self._error_listeners.tell(error)

    def _give_up(self, error: PaddockError) -> None:
        if self._end is None:
            self._fail(error)
            self._finish(error)

    def _finish(self, why: PaddockError) -> None:
        if self._end is None:
            self._end = why
            self._waiting.tell(None)

    def _read(self, data: bytes | None) -> T:
        if data is None:
            if self._default is None:
                raise NoNodeError("configuration", self.path)
            return self._default
        try:
            value = self._parse(data)
        except Exception as error:
            raise InvalidValueError(f"{self.path}: {error}") from error
        self._check(value)
        return value

    def _written(self, value: T) -> bytes:
        self._check(value)
        try:
            data = self._serialize(value)
            # What we write all have to read.
            self._parse(data)
        except Exception as error:
            raise InvalidValueError(f"{self.path}: {error}") from error
        return data

    def _check(self, value: T) -> None:
        try:
            problem = None if self._validate is None else self._validate(value)
        except Exception as error:
            raise InvalidValueError(f"{self.path}: {error}") from error
        if problem is not None:
            raise InvalidValueError(f"{self.path}: {problem}")
