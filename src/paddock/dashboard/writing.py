"""Changes that a person makes: create, set, delete, ACLs; and an audit line for each.

* They are made in the session of the person, so the service decides by his credentials, and its own
  audit log has them.
* A node is written with the version that was shown. If it has another one by now, nothing is done
  and the answer (409) has the node as it is.
* A tree is deleted after its preview, and only as much of it as that has counted.
* `paddock.dashboard.audit` logs one line for each attempt: who, from where, what, with which
  result. It never has data.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Any, Final, TypeVar

from starlette.requests import Request

from paddock.client.client import Client
from paddock.dashboard import tree
from paddock.dashboard.access import RefusedError, Visitor
from paddock.dashboard.answers import checked, data_of, version_of
from paddock.dashboard.people import Connection
from paddock.errors import BadVersionError, NoAuthError, NoNodeError, PaddockError

audit: Final = logging.getLogger("paddock.dashboard.audit")

T = TypeVar("T")
Fields = dict[str, Any]

SHOWN_MAX: Final = 100
COUNTED_MAX: Final = 20_000
_TTL_MS_MAX: Final = (1 << 40) - 1
_KEPT: Final = ("/", "/zookeeper")
_KINDS: Final = ("persistent", "container", "ttl")


class Writer:
    """Who writes."""

    def __init__(self, connection: Connection, visitor: Visitor, request: Request) -> None:
        self._client = connection.client
        who = ",".join(connection.known_names.names) or "nobody"
        host = request.client.host if request.client is not None else "?"
        self._who = f"user={who} browser={visitor.number} ip={host}"

    async def create(self, fields: Fields) -> Fields:
        """Create a node."""
        path, kind = checked(fields.get("path")), fields.get("kind", "persistent")
        if kind not in _KINDS:
            raise RefusedError(400, f"kind: expected one of {', '.join(_KINDS)}.")
        options: dict[str, Any] = {"container": kind == "container"}
        if kind == "ttl":
            ttl_ms = fields.get("ttl_ms")
            if not isinstance(ttl_ms, int) or not 0 < ttl_ms <= _TTL_MS_MAX:
                raise RefusedError(400, "ttl_ms: expected milliseconds.")
            options["ttl"] = ttl_ms / 1000
        if fields.get("acl") is not None:
            options["acl"] = tree.parse_acl_fields(fields["acl"])
        creating = self._client.create(
            path, data_of(fields), sequential=fields.get("is_sequential") is True, **options
        )
        return {"path": await self._noted("create", path, creating)}

    async def set(self, fields: Fields) -> Fields:
        """Replace the data of a node."""
        path, version = checked(fields.get("path")), version_of(fields)
        setting = self._client.set(path, data_of(fields), version=version)
        stat = await self._unless_changed(path, self._noted("set", path, setting))
        return {"stat": tree.stat_fields(stat)}

    async def set_acl(self, fields: Fields) -> Fields:
        """Replace the ACL of a node."""
        path, version = checked(fields.get("path")), version_of(fields)
        acl = tree.parse_acl_fields(fields.get("acl"))
        setting = self._client.set_acl(path, acl, version=version)
        stat = await self._unless_changed(path, self._noted("set_acl", path, setting))
        return {"stat": tree.stat_fields(stat)}

    async def delete(self, fields: Fields) -> Fields:
        """Delete a node, with all below it if that was asked for; or say what would go."""
        path = checked(fields.get("path"))
        if path in _KEPT:
            raise RefusedError(400, f"{path} is not deleted; choose what is below it.")
        if fields.get("preview") is True:
            return await preview(self._client, path)
        version = version_of(fields)
        if fields.get("is_recursive") is True:
            return await self._delete_tree(path, version, fields.get("count"))
        deleting = self._client.delete(path, version=version)
        await self._unless_changed(path, self._noted("delete", path, deleting))
        return {"count": 1}

    async def _delete_tree(self, path: str, version: int, counted: object) -> Fields:
        found = await preview(self._client, path)
        if found["count"] != counted or found["version"] != version or not found["is_complete"]:
            reason = "There is something else by now; look at what would go."
            if not found["is_complete"]:
                reason = f"More than {COUNTED_MAX:,} nodes are for `paddock delete --recursive`."
            raise RefusedError(409, reason, current=await self._current(path))
        deleting = self._client.delete_tree(path)
        return {"count": await self._noted("delete_tree", path, deleting)}

    async def _unless_changed(self, path: str, write: Awaitable[T]) -> T:
        """Do a write; if the node is another one by now, say how it is."""
        try:
            return await write
        except (BadVersionError, NoNodeError) as error:
            gone = isinstance(error, NoNodeError)
            says = "It was deleted meanwhile." if gone else "It was changed meanwhile."
            raise RefusedError(409, says, current=await self._current(path)) from None

    async def _current(self, path: str) -> Fields | None:
        try:
            return await tree.node(self._client, path, tree.DATA_BYTES_MAX)
        except NoNodeError:
            return None

    async def _noted(self, operation: str, path: str, write: Awaitable[T]) -> T:
        """Do a write, and log it with its result."""
        try:
            result = await write
        except PaddockError as error:
            # The class says enough; a text may have what was entered.
            self._note(operation, path, type(error).__name__)
            raise
        self._note(operation, path, "success")
        return result

    def _note(self, operation: str, path: str, result: str) -> None:
        # A name may have anything in it, and a line is one line.
        audit.info("%s operation=%s path=%s result=%s", self._who, operation, ascii(path), result)


async def preview(client: Client, path: str) -> Fields:
    """Return what would be deleted with a node."""
    shown: list[str] = []
    count = ephemerals = size = 0
    version = None
    is_complete = True
    async with aclosing(client.walk(path)) as nodes:
        async for one in nodes:
            if one.error is not None:
                raise NoAuthError("delete", one.path)
            if count >= COUNTED_MAX:
                is_complete = False
                break
            count += 1
            if len(shown) < SHOWN_MAX:
                shown.append(one.path)
            if one.stat is not None:
                version = one.stat.version if count == 1 else version
                size += one.stat.data_length
                ephemerals += tree.kind_of(one.stat) == "ephemeral"
    return {
        "count": count,
        "paths": shown,
        "ephemeral_count": ephemerals,
        "data_bytes": size,
        "version": version,
        "is_complete": is_complete,
    }
