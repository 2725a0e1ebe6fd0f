"""The base of the generated classes: an asyncio object, and a bridge to its event loop.

Nothing here knows a particular class. A `Twin` is a blocking class whose asyncio object does the
work; all twins that come from one client share its `Bridge`.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Protocol, Self, TypeVar

from paddock.errors import InvalidArgumentError, UsageError
from paddock.sync.callbacks import Callbacks, Handlers
from paddock.sync.portal import Portal, open_portal
from paddock.sync.scopes import Scope

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")
S = TypeVar("S", bound=AbstractAsyncContextManager[Any, bool | None])


class Closable(Protocol):
    """Something that has to be closed."""

    def close(self) -> Awaitable[None]: ...


C = TypeVar("C", bound=Closable)


class Bridge:
    """The calls of one client to the loop, and of the loop to its callbacks and handlers."""

    def __init__(self) -> None:
        self.portal: Final[Portal] = open_portal(self)
        self.callbacks: Final = Callbacks()
        self.handlers: Final = Handlers(self.portal)
        self.is_over = False
        # Nearly every call of a user goes through these, without a step in between.
        self.call = self.portal.call
        self.run = self.portal.run

    def own(self, make: Callable[P, C], *arguments: P.args, **named: P.kwargs) -> C:
        """Make the object that the bridge leads to; it is closed at exit at the latest."""
        try:
            owned = self.run(make, *arguments, **named)
        except BaseException:
            self.leave()
            raise
        self.portal.close_at_exit(self, owned.close)
        return owned

    def leave(self) -> None:
        """Release the loop, after callbacks and handlers have run."""
        self.is_over = True
        self.callbacks.end()
        self.callbacks.wait()
        self.handlers.wait()
        self.portal.release(self)

    async def abandon(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close, on the loop, an object without references."""
        try:
            await close()
        finally:
            self.is_over = True
            self.callbacks.end()
            self.portal.release(self)


class Twin(Generic[T]):
    """A blocking class; its asyncio object does the work."""

    def __init__(self, bridge: Bridge, inner: T, owner: object = None) -> None:
        self._bridge = bridge
        self._inner = inner
        # Kept alive: a client without references is closed.
        self._owner = owner
        # The scopes that each thread has entered and not left.
        self._scopes: dict[int, list[Scope[Any]]] = {}

    def _make(self, name: str, owner: object, make: Callable[[Bridge], T]) -> None:
        """Make the asyncio object, on the loop of the argument `name` that it belongs to."""
        bridge = bridge_of(name, owner)
        make.__name__ = type(self).__name__
        Twin.__init__(self, bridge, bridge.run(make, bridge), owner)

    @classmethod
    def _of(cls, bridge: Bridge, inner: T) -> Self:
        """Return the twin of an asyncio object that exists, whatever the constructor takes."""
        twin = cls.__new__(cls)
        Twin.__init__(twin, bridge, inner)
        return twin

    def __repr__(self) -> str:
        return f"<blocking {repr(self._inner)[1:]}"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._inner == self._inner

    def __hash__(self) -> int:
        return hash(self._inner)

    def _enter_scope(self, manager: AbstractAsyncContextManager[V, bool | None]) -> V:
        scope: Scope[V] = Scope(self._bridge.portal, manager)
        value = scope.__enter__()
        self._scopes.setdefault(threading.get_ident(), []).append(scope)
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        thread = threading.get_ident()
        scope = self._scopes[thread].pop()
        if not self._scopes[thread]:
            del self._scopes[thread]
        return scope.__exit__(kind, error, traceback)


class ScopedTwin(Twin[S]):
    """A twin that is a scope itself."""

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self


def bridge_of(name: str, owner: object) -> Bridge:
    """Return the bridge of an argument that has a twin, or of the first of several.

    Raises InvalidArgumentError for an object of the asyncio API.
    """
    bridge: Bridge | None = None
    for one in reversed(owner) if isinstance(owner, list | tuple) else [owner]:
        if not isinstance(one, Twin):
            raise InvalidArgumentError(
                f"{name}: {one!r} is not of the blocking API; paddock.sync.connect makes blocking"
                " clients, and paddock.recipes has the recipes for asyncio ones"
            )
        bridge = one._bridge
    if bridge is None:
        raise InvalidArgumentError(f"{name}: there are none")
    return bridge


class Owner(Twin[C]):
    """A twin that all others come from, such as a client; it keeps the loop running."""

    # Other twins of the same object, from attributes, need not be closed.
    _is_first = False

    def __init__(self, bridge: Bridge, inner: C) -> None:
        super().__init__(bridge, inner)
        self._is_first = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self.__dict__.get("_inner")), name):
                raise UsageError(
                    f"{name}: a blocking client has no such method; a recipe of paddock.recipes"
                    " needs a client of paddock.connect; paddock.sync.recipes has blocking ones"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _open(self, enter: Callable[[], Awaitable[object]]) -> Self:
        try:
            self._bridge.call(enter)
        except UsageError:
            # Not from here, or not again; an open session stays open.
            raise
        except BaseException:
            self._bridge.leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._bridge.is_over or self._bridge.portal.is_left_behind:
            # It is closed, or the session is the parent's.
            return
        try:
            self._bridge.portal.conclude(self._inner.close)
        finally:
            self._bridge.leave()

    def __del__(self) -> None:
        # At exit the portal closes what is open, and a forked child has nothing to close.
        if self._is_first and not self._bridge.is_over and self._bridge.portal.is_open:
            text = f"a {type(self).__name__} was not closed"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)
            self._bridge.portal.post(self._bridge.abandon, self._inner.close)
