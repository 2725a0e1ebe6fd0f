"""The blocking twin of `paddock.recipes.values.configuration`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from paddock.errors import PaddockError
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.configuration import Configuration as AsyncConfiguration
from paddock.recipes.values.configuration import T
from paddock.sync.client import Client
from paddock.sync.recipes.background import Background
from paddock.sync.streams import Stream


class Configuration(Background, Generic[T]):
    """A shared value of a type: the last valid one.

    The type is a dataclass, or anything that JSON has; every field is checked. With `parse` and
    `serialize` it may be any type. `validate` returns the problem of a value as text, or None.
    Without a default, starting raises NoNodeError if there is no such node.

    These functions must be quick and make no calls. If they raise, the value is not valid.
    """

    _inner: AsyncConfiguration[T]

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
        self._make(
            "client",
            client,
            lambda bridge: AsyncConfiguration(
                client._inner,
                path,
                kind,
                default=default,
                parse=parse,
                serialize=serialize,
                validate=validate,
                acl=acl,
            ),
        )

    @property
    def path(self) -> str:
        """The node that holds it."""
        return self._inner.path

    @property
    def value(self) -> T:
        """The last valid value; raises UsageError before the start."""
        return self._inner.value

    @property
    def error(self) -> PaddockError | None:
        """Why the update that the service has was dropped; None if it is our value."""
        return self._inner.error

    @property
    def is_default(self) -> bool:
        """Whether `value` is the default: there is no node, or it was not valid at the start."""
        return self._inner.is_default

    def start(self) -> None:
        """Read it, and follow it until it is closed.

        Raises InvalidValueError or NoNodeError if there is neither a valid value nor a default, and
        UsageError if it was started before.
        """
        self._bridge.call(self._inner.start)

    def set(self, value: T) -> None:
        """Replace the value; raises InvalidValueError, and changes nothing, if it is not valid."""
        self._bridge.call(self._inner.set, value)

    def update(self, function: Callable[[T], T]) -> T:
        """Replace the value by the result of a function of it; return that.

        The function is called again, with the newer value, if another client was faster: no update
        is lost. It must be quick and make no calls. Raises InvalidValueError, and changes nothing,
        if the present or the new value is not valid. Our own `value` follows.
        """
        return self._bridge.call(self._inner.update, function)

    def changes(self) -> Stream[T]:
        """Yield the present value, then every newer one that is valid.

        Raises SessionExpiredError when the session is over, and RecipeClosedError when it is
        closed.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))

    def add_listener(self, listener: Callable[[T], None]) -> None:
        """Call a function with every later value.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: Callable[[T], None]) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def add_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Call a function with the error of every later update that is dropped.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_error_listener, self._bridge.callbacks.relay(listener))

    def remove_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_error_listener, self._bridge.callbacks.relay(listener))
