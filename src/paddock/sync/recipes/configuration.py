"""The blocking twin of `paddock.recipes.values.configuration`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Self

from paddock.errors import PaddockError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.configuration import Configuration as AsyncConfiguration
from paddock.recipes.values.configuration import T
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Configuration(Twin[AsyncConfiguration[T]], Generic[T]):
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
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(
                AsyncConfiguration,
                client._inner,
                path,
                kind,
                default=default,
                parse=parse,
                serialize=serialize,
                validate=validate,
                acl=acl,
            ),
            client,
        )

    @property
    def path(self) -> str:
        """The node that holds it."""
        return self._inner.path

    @property
    def value(self) -> T:
        """The last value that was good; raises UsageError before it was started."""
        return self._inner.value

    @property
    def error(self) -> PaddockError | None:
        """What is wrong with what the service has now; None if that is our value."""
        return self._inner.error

    def start(self) -> None:
        """Read it for the first time, and follow it from then on; closing ends that.

        Raises InvalidValueError or NoNodeError if there is neither a good value nor a default, and
        UsageError if it was started before.
        """
        self._bridge.call(self._inner.start)

    def close(self) -> None:
        """Follow it no more; the last value stays. Closing twice is fine."""
        self._bridge.call(self._inner.close)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    def set(self, value: T) -> None:
        """Replace it for all; raises InvalidValueError, and changes nothing, if it is not good."""
        self._bridge.call(self._inner.set, value)

    def update(self, function: Callable[[T], T]) -> T:
        """Replace it for all by what the function makes of it; give that.

        It is called again, with the newer value, if somebody else was faster: nobody's update is
        lost. It must be quick and make no calls. Raises InvalidValueError, and changes nothing, if
        what there is or what it gives is not good. Our own `value` follows when we hear of it.
        """
        return self._bridge.call(self._inner.update, function)

    def changes(self) -> Stream[T]:
        """Give the present value, then every newer one that is good.

        Raises SessionExpiredError when the session is over, and RecipeClosedError when it is
        closed.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))

    def add_listener(self, listener: Callable[[T], None]) -> None:
        """Have something called with every value from the next one on.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: Callable[[T], None]) -> None:
        """Call it no more; that it was never called is fine."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def add_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Have something called with the error of every change that is not good.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_error_listener, self._bridge.callbacks.relay(listener))

    def remove_error_listener(self, listener: Callable[[PaddockError], None]) -> None:
        """Call it no more; that it was never called is fine."""
        self._bridge.run(self._inner.remove_error_listener, self._bridge.callbacks.relay(listener))
