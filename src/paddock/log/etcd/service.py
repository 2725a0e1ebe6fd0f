"""The identity of a service: the key `/id`, which is written once and never changed.

* A service exists once `/id` does. Its random id is in every snapshot, so that those of another
  service with the same name are recognised.
* The format is that of all keys of the service. A server that does not know it does not serve.
* A server creates `/id` only where there is no manifest. An import writes its manifest first and
  `/id` last, so no server takes a half imported service for an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from paddock.log.etcd.calls import UNPACED, Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Guard, Store, Stored
from paddock.log.interface import LogCorruptError, LogError

FORMAT: Final = 1
ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Service:
    """A service in etcd."""

    id: bytes
    format: int = FORMAT

    def encode(self) -> bytes:
        return json.dumps({"format": self.format, "id": self.id.hex()}).encode()


def service_path(keys: Keys) -> str:
    """Return what the keys of a service begin with, for messages."""
    return keys.id.decode().removesuffix("/id")


async def find_service(store: Store, keys: Keys, calls: Calls = UNPACED) -> Service | None:
    """Return the service; None if there is none. Raises LogError if its format is unknown."""
    stored = (await calls.repeat(store.read, keys.id)).found[0]
    return None if stored is None else decode_service(stored)


async def find_or_create_service(
    store: Store, keys: Keys, random_bytes: Callable[[int], bytes], calls: Calls = UNPACED
) -> Service:
    """Return the service, which is created if there is none.

    Raises LogError if its format is unknown, or if an import into its name has not ended.
    """
    wanted = Service(random_bytes(ID_BYTES))
    service = await find_service(store, keys, calls)
    if service is not None:
        return service
    if await calls.swap(store, keys.id, wanted.encode(), 0, Guard(keys.manifest, 0)):
        return wanted
    service = await find_service(store, keys, calls)
    if service is None:
        raise LogError(
            f"{service_path(keys)} has a snapshot and no id: an import or a restore into it runs,"
            " or was interrupted. Wait for it, or run it again."
        )
    return service


def decode_service(stored: Stored) -> Service:
    """Return the service that is stored. Raises LogError if its format is unknown."""
    where = stored.key.decode(errors="replace")
    try:
        fields = json.loads(stored.value)
        number = fields["format"]
        if number != FORMAT:
            raise LogError(
                f"{where}: the service has the format {number}, and this version knows {FORMAT}"
                " alone: run a version of Paddock that knows it"
            )
        service = Service(bytes.fromhex(fields["id"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LogCorruptError(f"{where}: not the id of a service: {stored.value!r}") from error
    if len(service.id) != ID_BYTES:
        raise LogCorruptError(f"{where}: not the id of a service: {stored.value!r}")
    return service
