"""What recursive watches can give of a change feed, on a service without them.

An event only says where to look, and what is found there is yielded: the present state of a node,
by the time it was read. So changes in quick succession come as one, a node that came and went at
once is not seen, and ACL changes never are. While there is no connection there are no events, and
no service remembers them; a GAP says so, before the next change. Nothing of it is exact, and each
change says that as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from paddock.client.operations.feeds import ChangeFeed, FeedChange
from paddock.client.operations.operations import Operations
from paddock.client.operations.streams import watch_tree
from paddock.client.session.session import Session
from paddock.client.states import FeedKind, SessionState
from paddock.errors import ConnectionLostError, UnimplementedError


async def changes_at_best(
    client: Operations,
    session: Session,
    feed: ChangeFeed,
    path: str,
    since: int | None,
    progress: bool,
) -> AsyncGenerator[FeedChange, None]:
    """Yield what a feed gives, and where there is none, what watches can."""
    known = since
    try:
        async with aclosing(feed.changes(since, progress)) as changes:
            async for change in changes:
                known = change.zxid
                yield change
    except UnimplementedError:
        async with aclosing(_watched_changes(client, session, path, known)) as changes:
            async for change in changes:
                yield change


async def _watched_changes(
    client: Operations, session: Session, path: str, since: int | None
) -> AsyncGenerator[FeedChange, None]:
    """Yield the changes of a tree, as far as they are noticed."""
    has_gap = False

    def listen(state: SessionState) -> None:
        nonlocal has_gap
        has_gap = has_gap or not state.is_connected

    began = await _present(client, session, path) if since is None else since
    # Up to where it was told.
    known = began
    if since is not None:
        # Nobody knows what has happened since.
        yield FeedChange(FeedKind.GAP, path, since, None, None, is_exact=False)
    # The zxid with which each node was created that is there, as far as we know.
    born: dict[str, int] = {}
    session.states.add(listen)
    try:
        async with aclosing(watch_tree(client, path)) as states:
            async for node, data, stat in states:
                if stat is None:
                    if born.pop(node, None) is None:
                        continue
                    kind, zxid = FeedKind.DELETED, session.dispatcher.seen_zxid
                else:
                    before, born[node] = born.get(node), stat.czxid
                    zxid = max(stat.czxid, stat.mzxid)
                    if zxid <= began:
                        continue
                    is_known = before == stat.czxid or (before is None and stat.czxid <= began)
                    kind = FeedKind.DATA if is_known else FeedKind.CREATED
                if has_gap:
                    has_gap = False
                    yield FeedChange(FeedKind.GAP, path, known, None, None, is_exact=False)
                known = max(known, zxid)
                yield FeedChange(kind, node, zxid, data, stat, is_exact=False)
    finally:
        session.states.remove(listen)


async def _present(client: Operations, session: Session, path: str) -> int:
    """Return the zxid of the service as it is now."""
    while True:
        try:
            await client.sync(path)
        except ConnectionLostError:
            await session.wait_connected()
        else:
            return session.dispatcher.seen_zxid
