"""Revocation: a holder is asked to let go, and learns by whom.

    async with Lock(client, "/locks/report", data=b"nightly") as grant:
        asked = await grant.wait_asked()  # Or look at `grant.asked` from time to time.
        print(asked[0].data)  # b'worker 7'

Elsewhere, `await Lock(client, "/locks/report", data=b"worker 7").ask_to_release()` asks.

* It is a request: the holder decides, and nothing is forced. Who asks need not wait in the line.
* A request is in the data of the holder's node. So it is kept until the holder looks, also if it
  came before the turn of the holder or while its connection was lost; it goes with the node, and
  never reaches the next holder.
* It is Curator's protocol: its Revoker asks our holders, and we ask those of its locks that are
  made revocable. Only our own say who asks, and only to ours: Curator knows one message.
* Who asks has to be allowed to read and to write the holder's node, by its ACL. What it says about
  itself is not verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddock.errors import BadVersionError, InvalidArgumentError, UsageError
from paddock.layouts import PADDOCK, REVOKE, Request, place_of, read_requests, with_request
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import RetryLimit, name_of, request_each, retry
from paddock.recipes.locks.line import Contender, Entry, Line, contender_of

# How much of what an asker says about itself is passed on.
_DATA_BYTES_MAX: Final = 1000


def check_own_data(data: bytes | None) -> None:
    """Raise InvalidArgumentError if others would take a contender's data for a request."""
    if data and data.startswith(REVOKE):
        raise InvalidArgumentError(f"data: it begins with {REVOKE!r}, which asks for a release")


async def ask(line: Line, holders: Sequence[Entry]) -> list[Contender]:
    """Ask holders in a line to let go; return those who were asked, without those who had left."""
    if line.layout == "kazoo":
        raise UsageError(
            f"{line.path}: holders in kazoo's layout cannot be asked to release it: kazoo does not "
            "listen, and its contenders are known by the data that a request would replace"
        )

    async def ask_one(path: str) -> Contender:
        return await _ask(line, path)

    paths = [child_path(line.path, entry.name) for entry in holders]
    return list((await request_each(ask_one, paths)).values())


async def _ask(line: Line, path: str) -> Contender:
    """Ask one holder; raise NoNodeError if it has left."""
    client = line.client
    place = place_of(name_of(path))
    is_ours = place is not None and place.layout == PADDOCK
    request = Request(client.new_mark(), (line.data or b"")[:_DATA_BYTES_MAX], client.session_id)

    async def write() -> Contender:
        while True:
            node = await client.get(path)
            if any(one.mark == request.mark for one in read_requests(node.data).requests):
                # An earlier attempt, whose reply was lost.
                return contender_of(path, node)
            try:
                if is_ours:
                    asked = with_request(node.data, request)
                    await client.set(path, asked, version=node.stat.version)
                else:
                    # All that Curator's know.
                    await client.set(path, REVOKE)
                return contender_of(path, node)
            except BadVersionError:
                # Somebody else has asked, or this server is behind.
                await client.sync(path)

    return await retry(client, write, RetryLimit())
