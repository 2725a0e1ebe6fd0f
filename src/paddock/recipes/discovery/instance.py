"""An instance of a service, and how its node says what it is.

It is JSON, with the names that Curator's service discovery uses, so that each can read the other's.
What else is in it is ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from paddock.client.requests.arguments import check_count
from paddock.errors import InvalidArgumentError

_PORT_MAX: Final = 65535
# What Curator calls an instance that goes with its session.
_DYNAMIC: Final = "DYNAMIC"


class MalformedInstanceError(ValueError):
    """What a node holds is no instance; says why, and not what it is."""


@dataclass(frozen=True, slots=True)
class ServiceInstance:
    """One of those that give a service: where it is, and what it says about itself.

    instance = ServiceInstance("search", "search-1", "10.0.0.1", 8080, payload={"zone": "a"})

    The `id` tells it from the others of its name. The payload is anything that JSON can say. With
    twice the `weight` an instance is chosen twice as often, if that is how one is chosen.
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


def check_name(what: str, name: object) -> None:
    """See that a name can be that of a node."""
    if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
        raise InvalidArgumentError(f"{what}: {name!r} cannot be the name of a node")


def encoded(instance: ServiceInstance) -> bytes:
    """Give what the node of an instance holds."""
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
        raise InvalidArgumentError(f"payload: JSON cannot say it: {error}") from None


def decoded(data: bytes) -> ServiceInstance:
    """Give the instance that a node holds."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise MalformedInstanceError("it is not JSON") from None
    if not isinstance(said, dict):
        raise MalformedInstanceError("it is no JSON object")
    try:
        return ServiceInstance(
            said.get("name"),  # type: ignore[arg-type]
            said.get("id"),  # type: ignore[arg-type]
            said.get("address") or "",
            said.get("port"),
            said.get("payload"),
            said.get("weight", 1),
        )
    except InvalidArgumentError as error:
        raise MalformedInstanceError(str(error)) from None
