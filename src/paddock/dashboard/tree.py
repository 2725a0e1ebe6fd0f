"""The tree as the page reads it: children in pages, one node, a search; all as plain data.

* Nothing is read whole that may be large: children come in pages, data up to a size, and a search
  looks at so many nodes and then says where it goes on.
* The names of a node with many children are kept for the next page of them, as long as the node
  says that they are the same.
* Zxids and sessions are text in hexadecimal, since JavaScript has no integers of 64 bits. Times are
  milliseconds since 1970.
"""

from __future__ import annotations

import asyncio
import base64
import bisect
from collections import OrderedDict
from contextlib import aclosing
from typing import Any, Final

from paddock.client.client import Client
from paddock.dashboard.access import RefusedError
from paddock.errors import NoAuthError, NoNodeError, RequestError
from paddock.protocol.acl import ACL, ADMIN, ALL, CREATE, DELETE, READ, WRITE, Identity
from paddock.protocol.paths import child_path
from paddock.protocol.records import Stat

Fields = dict[str, Any]

PAGE_MAX: Final = 500
DATA_BYTES: Final = 64 << 10
DATA_BYTES_MAX: Final = 4 << 20
FOUND_MAX: Final = 100
LOOKED_MAX: Final = 20_000
_SEARCH_SECONDS: Final = 10.0
# Listings that are kept: how many, and how many names one has at least.
_LISTINGS_MAX: Final = 8
_LISTING_NAMES: Final = 1000
_UINT64: Final = (1 << 64) - 1
# What the owner of a node is if it has none: upstream keeps its kind there.
_CONTAINER: Final = -(1 << 63)
_TTL: Final = 0xFF << 56
PERMISSIONS: Final = {
    "read": READ,
    "write": WRITE,
    "create": CREATE,
    "delete": DELETE,
    "admin": ADMIN,
}
_QUOTA: Final = "/zookeeper/quota"


class Listings:
    """The sorted names of nodes with many children, of one session."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[tuple[int, ...], list[str]]] = OrderedDict()

    async def names(self, client: Client, path: str) -> list[str]:
        """Return the names of all children, sorted. Raises NoNodeError, NoAuthError."""
        kept = self._kept.get(path)
        if kept is not None:
            stat = await client.exists(path)
            if stat is not None and _of_children(stat) == kept[0]:
                self._kept.move_to_end(path)
                return kept[1]
            del self._kept[path]
        names, stat = await client.children_with_stat(path)
        names.sort()
        if len(names) >= _LISTING_NAMES:
            self._kept[path] = _of_children(stat), names
            if len(self._kept) > _LISTINGS_MAX:
                self._kept.popitem(last=False)
        return names


def _of_children(stat: Stat) -> tuple[int, ...]:
    # With the ACL: what may not be read any more is asked for again.
    return stat.czxid, stat.pzxid, stat.cversion, stat.num_children, stat.aversion


async def children(
    client: Client, listings: Listings, path: str, after: str | None, offset: int, limit: int
) -> Fields:
    """Return a page of the children of a node: behind a name, or from a row on."""
    names = await listings.names(client, path)
    begin = offset if after is None else bisect.bisect_right(names, after)
    shown = names[begin : begin + limit]
    stats = await asyncio.gather(
        *(client.exists(child_path(path, name)) for name in shown), return_exceptions=True
    )
    found: list[Fields] = []
    for name, stat in zip(shown, stats, strict=True):
        if isinstance(stat, NoAuthError):
            # Newer servers do not even tell that.
            found.append({"name": name, "stat": None, "has_children": None, "kind": None})
        elif isinstance(stat, BaseException):
            raise stat
        elif stat is not None:
            found.append(
                {
                    "name": name,
                    "stat": stat_fields(stat),
                    "has_children": stat.num_children > 0,
                    "kind": kind_of(stat),
                }
            )
    follows = begin + len(shown) < len(names)
    return {
        "path": path,
        "children": found,
        "offset": begin,
        "total": len(names),
        "next": shown[-1] if shown and follows else None,
    }


async def node(client: Client, path: str, size_max: int) -> Fields:
    """Return a node: its data up to a size, its ACL, its quota. Raises NoNodeError."""
    reading, asking = client.get(path), client.get_acl(path)
    data: bytes | None = None
    hidden = acl = None
    read, told = await asyncio.gather(reading, asking, return_exceptions=True)
    if isinstance(read, NoAuthError):
        hidden = "The credentials do not allow to read this node."
        stat = await _stat_of(client, path, told)
    elif isinstance(read, BaseException):
        raise read
    else:
        data, stat = read
    if not isinstance(told, BaseException):
        acl = [acl_fields(one) for one in told[0]]
    elif not isinstance(told, RequestError):
        raise told
    return {
        "path": path,
        "stat": None if stat is None else stat_fields(stat),
        **data_fields(data, size_max),
        "hidden": hidden,
        "acl": acl,
        "kind": None if stat is None else kind_of(stat),
        "owner": None if stat is None else owner_of(stat),
        "watchers": None,
        "quota": await quota(client, path),
    }


async def row(client: Client, path: str) -> Fields:
    """Return what a row of the tree shows of a node, for one request. Raises NoNodeError."""
    stat = await _stat_of(client, path, None)
    return {
        "path": path,
        "stat": None if stat is None else stat_fields(stat),
        "kind": None if stat is None else kind_of(stat),
        "owner": None if stat is None else owner_of(stat),
    }


async def _stat_of(client: Client, path: str, told: object) -> Stat | None:
    """Return what is known of a node that may not be read."""
    if isinstance(told, tuple):
        return told[1] if isinstance(told[1], Stat) else None
    try:
        stat = await client.exists(path)
    except NoAuthError:
        return None
    if stat is None:
        raise NoNodeError("get", path)
    return stat


async def search(client: Client, root: str, text: str, after: str | None) -> Fields:
    """Return the nodes at and below a root that have a text in their names, a part at a time."""
    found: list[str] = []
    looked, last, is_complete = 0, after, False
    wanted = text.casefold()
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + _SEARCH_SECONDS
    async with aclosing(client.walk(root, after=after)) as nodes:
        async for one in nodes:
            looked += 1
            last = one.path
            if wanted in one.name.casefold():
                found.append(one.path)
            if len(found) >= FOUND_MAX or looked >= LOOKED_MAX or loop.time() >= ends_at:
                break
        else:
            is_complete = True
    return {
        "found": found,
        "looked": looked,
        "is_complete": is_complete,
        "next": None if is_complete else last,
    }


async def quota(client: Client, path: str) -> Fields | None:
    """Return the quota of a node: what there is, and how much there may be."""
    if path == "/":
        return None
    above = f"{_QUOTA}{path}"
    limits, used = await asyncio.gather(
        client.get(f"{above}/zookeeper_limits"),
        client.get(f"{above}/zookeeper_stats"),
        return_exceptions=True,
    )
    for one in (limits, used):
        if isinstance(one, BaseException) and not isinstance(one, RequestError):
            raise one
    if isinstance(limits, BaseException):
        return None
    allowed = _counts(limits[0])
    there = {} if isinstance(used, BaseException) else _counts(used[0])
    return {
        "path": path,
        "nodes": there.get("count"),
        "nodes_limit": _least(allowed, "count", "countHardLimit"),
        "bytes": there.get("bytes"),
        "bytes_limit": _least(allowed, "bytes", "byteHardLimit"),
    }


def _counts(data: bytes) -> dict[str, int]:
    """Read `count=10,bytes=-1=;byteHardLimit=1000`; -1 stands for nothing."""
    found = {}
    for pair in data.decode("utf-8", "replace").replace(";", ",").split(","):
        key, _, rest = pair.partition("=")
        number = rest.partition("=")[0].strip()
        if number.isascii() and number.isdigit():
            found[key.strip()] = int(number)
    return found


def _least(counts: dict[str, int], *keys: str) -> int | None:
    return min((counts[key] for key in keys if key in counts), default=None)


def stat_fields(stat: Stat) -> Fields:
    """Return a stat for JSON."""
    return {
        "czxid": f"0x{stat.czxid:x}",
        "mzxid": f"0x{stat.mzxid:x}",
        "pzxid": f"0x{stat.pzxid:x}",
        "ctime_ms": stat.ctime,
        "mtime_ms": stat.mtime,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeral_owner": owner_of(stat),
        "data_length": stat.data_length,
        "num_children": stat.num_children,
    }


def data_fields(data: bytes | None, size_max: int) -> Fields:
    """Return data for JSON, up to a size."""
    if data is None:
        return {"data": None, "size": None, "is_cut": False}
    return {
        "data": base64.b64encode(data[:size_max]).decode(),
        "size": len(data),
        "is_cut": len(data) > size_max,
    }


def acl_fields(acl: ACL) -> Fields:
    """Return an entry of an ACL for JSON."""
    names = [name for name, bit in PERMISSIONS.items() if acl.permissions & bit]
    return {"scheme": acl.identity.scheme, "id": acl.identity.id, "permissions": names}


def parse_acl_fields(fields: object) -> list[ACL]:
    """Read an ACL of JSON. Raises RefusedError."""
    if not isinstance(fields, list) or not fields:
        raise RefusedError(400, "acl: expected a list of scheme, id and permissions.")
    found = []
    for one in fields:
        match one:
            case {"scheme": str(scheme), "id": str(identifier), "permissions": list(names)} if all(
                name in PERMISSIONS for name in names
            ):
                bits = sum(PERMISSIONS[name] for name in {*names})
                found.append(ACL(bits & ALL, Identity(scheme, identifier)))
            case _:
                raise RefusedError(400, f"acl: {one!r} is not scheme, id and permissions.")
    return found


def session_text(session: int) -> str:
    """Return a session as text."""
    return f"0x{session & _UINT64:x}"


def owner_of(stat: Stat) -> str | None:
    """Return the session that an ephemeral node belongs to."""
    return session_text(stat.ephemeral_owner) if kind_of(stat) == "ephemeral" else None


def kind_of(stat: Stat) -> str:
    """Return what kind of node it is."""
    owner = stat.ephemeral_owner
    if not owner:
        return "persistent"
    if owner == _CONTAINER:
        return "container"
    if owner & _TTL == _TTL:
        # With extended types, the first byte says so; the time follows.
        return "ttl"
    return "ephemeral"
