"""An instance of a service, as JSON in a node.

The names are those of Curator's service discovery, so that each can read the other's. Unknown names
are ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from paddock.client.requests.arguments import check_count
from paddock.errors import InvalidArgumentError
from paddock.recipes.common.encoding import decode_object
from paddock.recipes.common.retry import check_name

_PORT_MAX: Final = 65535
# Curator's word for an ephemeral instance.
_DYNAMIC: Final = "DYNAMIC"


class MalformedInstanceError(ValueError):
    """The data of a node are no instance; the message does not show them."""


@dataclass(frozen=True, slots=True)
class ServiceInstance:
    """One instance of a service: its address, and a payload.

    instance = ServiceInstance("search", "search-1", "10.0.0.1", 8080, payload={"zone": "a"})

    The `id` is unique within the service. The payload is anything that JSON has. With twice the
    `weight` an instance is chosen twice as often by `Choice.WEIGHTED`.
    """

    name: str
    id: str
    address: str = ""
    port: int | None = None
    payload: object = field(default=None, hash=False)
    weight: int = 1

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_name("id", self.id)
        address: object = self.address
        if not isinstance(address, str):
            raise InvalidArgumentError(f"address: expected text, not {address!r}")
        port: object = self.port
        if port is not None and (
            not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= _PORT_MAX
        ):
            raise InvalidArgumentError(f"port: {port!r} is no port")
        check_count("weight", self.weight)
        encoded(self)


def encoded(instance: ServiceInstance) -> bytes:
    """Return the data of an instance's node."""
    said: dict[str, object] = {
        "name": instance.name,
        "id": instance.id,
        "address": instance.address,
        "port": instance.port,
        "payload": instance.payload,
        "serviceType": _DYNAMIC,
    }
    if instance.weight != 1:
        said["weight"] = instance.weight
    try:
        return json.dumps(said, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"payload: it cannot be written as JSON: {error}") from None


def decoded(data: bytes) -> ServiceInstance:
    """Return the instance in the data of a node."""
    try:
        said = decode_object(data)
        return ServiceInstance(
            said.get("name"),  # type: ignore[arg-type]
            said.get("id"),  # type: ignore[arg-type]
            said.get("address") or "",
            said.get("port"),
            said.get("payload"),
            said.get("weight", 1),
        )
    except (ValueError, InvalidArgumentError) as error:
        raise MalformedInstanceError(str(error)) from None
