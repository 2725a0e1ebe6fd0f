"""Changes of a node or a tree, as a stream.

A change is `created`, `changed` (its data were written) or `deleted`. Before the first one, if that
is wanted, comes what is there already: `present`, or `absent` for a watched node that is not there.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from paddock.cli.describe import data_fields, stat_fields
from paddock.client.client import Client
from paddock.protocol.records import Stat


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One thing that has happened to a node."""

    kind: str
    path: str
    # None if there is no such node, now.
    data: bytes | None
    stat: Stat | None
    # When we heard of it, in milliseconds since 1970.
    time_ms: int

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "time": self.time_ms,
            "change": self.kind,
            "path": self.path,
            **data_fields(self.data),
            **stat_fields(self.stat),
        }


async def node_changes(
    client: Client, path: str, *, recursive: bool = False, initially: bool = False
) -> AsyncGenerator[NodeChange, None]:
    """Yield the changes of a node, or of a tree, without end.

    Nothing is missed over lost connections, though changes in quick succession may come as one; it
    raises SessionExpiredError when the session is over.
    """
    # What is newer was written since we began, also if we meet it in the first pass.
    await client.sync(path)
    began = client.last_zxid
    # The zxid with which each node was created that is there, as far as we have told.
    born: dict[str, int] = {}
    async with aclosing(client.watch(path, recursive=recursive)) as changes:
        async for node, data, stat in changes:
            if stat is None:
                change = "absent" if born.pop(node, None) is None else "deleted"
            else:
                before, born[node] = born.get(node), stat.czxid
                if max(stat.czxid, stat.mzxid) <= began:
                    change = "present"
                elif before == stat.czxid or (before is None and stat.czxid <= began):
                    change = "changed"
                else:
                    change = "created"
            if initially or change not in ("present", "absent"):
                yield NodeChange(change, node, data, stat, time.time_ns() // 1_000_000)
