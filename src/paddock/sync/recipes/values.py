"""The blocking twin of `paddock.recipes.values`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from paddock import recipes
from paddock.errors import PaddockError
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.configuration import T
from paddock.sync.bridge import ScopedTwin, Twin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Configuration(ScopedTwin[recipes.Configuration[T]], Generic[T]):
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
        self._make(
            "client",
            client,
            lambda bridge: recipes.Configuration(
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
    def error(self) -> PaddockError | None:
        """Why the update that the service has was dropped; None if it is our value."""
        return self._inner.error

    @property
    def is_default(self) -> bool:
        """Whether `value` is the default: there is no node, or it was not valid at the start."""
        return self._inner.is_default

    @property
    def value(self) -> T:
        """The last valid value; raises UsageError before the start."""
        return self._inner.value

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

    def close(self) -> None:
        """Stop; what is known stays. Closing twice is fine."""
        self._bridge.call(self._inner.close)


class Counter(Twin[recipes.Counter]):
    """A whole number, of any size, in one node.

    Data that are no number raise InvalidValueError, and are not changed.
    """

    def __init__(
        self, client: Client, path: str, *, initial: int = 0, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.Counter(client._inner, path, initial=initial, acl=acl),
        )

    @property
    def path(self) -> str:
        """The node that holds the number."""
        return self._inner.path

    def get(self) -> int:
        """Return the number that the connected server has.

        Call `client.sync` first for the newest.
        """
        return self._bridge.call(self._inner.get)

    def add(self, amount: int = 1) -> int:
        """Add to it; return the sum."""
        return self._bridge.call(self._inner.add, amount)

    def subtract(self, amount: int = 1) -> int:
        """Subtract from it; return the difference, which may be negative."""
        return self._bridge.call(self._inner.subtract, amount)

    def set(self, number: int) -> None:
        """Set the number."""
        self._bridge.call(self._inner.set, number)

    def changes(self) -> Stream[int]:
        """Yield the present number, then every newer one.

        Intermediate numbers may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))


class Naming(Twin[recipes.Naming]):
    """Names, each of which is bound to some bytes.

    A name has no slash. Its node is `names/<name>` below the base; `ids` counts the numbers.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: recipes.Naming(client._inner, base, acl=acl))

    @property
    def base(self) -> str:
        """The node below which everything is."""
        return self._inner.base

    def bind(self, name: str, data: bytes) -> None:
        """Bind a free name to some bytes; raises NodeExistsError if it is bound."""
        self._bridge.call(self._inner.bind, name, data)

    def rebind(self, name: str, data: bytes) -> None:
        """Bind a name to some bytes, whether it is free or not."""
        self._bridge.call(self._inner.rebind, name, data)

    def unbind(self, name: str) -> None:
        """Unbind a name, if it is bound. A newer binding of another client stays."""
        self._bridge.call(self._inner.unbind, name)

    def resolve(self, name: str) -> bytes | None:
        """Return the bytes that a name is bound to; None if it is free.

        Call `client.sync` first for the newest.
        """
        return self._bridge.call(self._inner.resolve, name)

    def names(self) -> list[str]:
        """Return all names that are bound, sorted."""
        return self._bridge.call(self._inner.names)

    def watch(self, name: str) -> Stream[bytes | None]:
        """Return a stream of the bytes that a name is bound to; None while it is free.

        Intermediate changes may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch, name))

    def new_id(self) -> int:
        """Return a unique number from 1 on, larger than all before."""
        return self._bridge.call(self._inner.new_id)


class PersistentNode(ScopedTwin[recipes.PersistentNode]):
    """A node that is re-created whenever it is gone, until it is closed.

        node = PersistentNode(client, "/workers/7", b"ready")
        with node:
            print(node.is_there)  # True

    It is ephemeral by default. A node that is not may have been created by others as well. Without
    `recreate` it is re-created only after session expiry: a node that is deleted while the session
    lives stays deleted. One client keeps a path only once. Parents are created as needed.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = True,
        recreate: bool = True,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.PersistentNode(
                client._inner, path, data, ephemeral=ephemeral, recreate=recreate, acl=acl
            ),
        )

    @property
    def path(self) -> str:
        return self._inner.path

    @property
    def is_there(self) -> bool:
        """Whether our node existed when we last heard of it, in a session that lives."""
        return self._inner.is_there

    def start(self) -> None:
        """Begin to keep the node, as entering the scope does; `close` has to follow."""
        self._bridge.run(self._inner.start)

    def wait_there(self) -> None:
        """Wait until our node exists.

        Raises RecipeError if it was deleted and is not re-created, and SessionExpiredError if the
        client was closed.
        """
        self._bridge.call(self._inner.wait_there)

    def wait_over(self) -> None:
        """Wait until it is not re-created any more: it was deleted for good, or closed."""
        self._bridge.call(self._inner.wait_over)

    def set_data(self, data: bytes) -> None:
        """Change the data of the node, also for when it is re-created; wait until it has them.

        Data that others write stay until then.
        """
        self._bridge.call(self._inner.set_data, data)

    def close(self) -> None:
        """Delete the node, and do not re-create it.

        For an ephemeral node it waits no longer than the session surely lives. A node with children
        stays. Closing twice is fine.
        """
        self._bridge.call(self._inner.close)

    @property
    def is_over(self) -> bool:
        """Whether it is not re-created any more."""
        return self._inner.is_over


class SharedValue(Twin[recipes.SharedValue]):
    """The data of one node, or None while there is none."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make(
            "client", client, lambda bridge: recipes.SharedValue(client._inner, path, acl=acl)
        )

    @property
    def path(self) -> str:
        """The node that holds the value."""
        return self._inner.path

    def get(self) -> bytes | None:
        """Return the value that the connected server has.

        Call `client.sync` first for the newest.
        """
        return self._bridge.call(self._inner.get)

    def set(self, data: bytes) -> None:
        """Replace the value; the node is created if there is none."""
        self._bridge.call(self._inner.set, data)

    def update(self, function: Callable[[bytes | None], bytes]) -> bytes:
        """Replace the value by the result of a function of it; return that.

            SharedValue(client, "/motto").update(lambda data: (data or b"more") + b"!")

        The function is called again, with the newer value, if another client was faster: no update
        is lost. It must be quick and make no calls. If it raises, nothing changes.
        """
        return self._bridge.call(self._inner.update, function)

    def compare_and_set(self, expected: bytes | None, data: bytes) -> bool:
        """Replace the value if it is the expected one; return whether it was."""
        return self._bridge.call(self._inner.compare_and_set, expected, data)

    def changes(self) -> Stream[bytes | None]:
        """Return a stream of the present value, then every newer one.

        Intermediate values may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))
