"""Reading the log from its keys, where the watch cannot show it: its history is compacted.

Keys are in the order of boots and numbers, and the log is in the order of revisions. So the keys
are read first, without their values: sorted by revision they say which batch has which index, and
their number is proof that none is missing, because each record counts the head up by one. Then the
values are read, one cursor for each boot, and handed over in the order of the log as they come.

* etcd sorts and filters nothing for us: it would read the whole log for each page.
* No revision is asked for, so a compaction meanwhile does no harm. A batch never changes. Its key
  may go, by trimming, and come back, by a late repetition; its revision tells.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Range, Store, Stored
from paddock.log.interface import Record, TrimmedError

PLAN_KEYS: Final = 10_000
PAGE_KEYS: Final = 64
# Values that were read before their turn. They are read again if there is no room for them.
AHEAD_BYTES_MAX: Final = 32 << 20

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Planned:
    """A record that is to be read."""

    revision: int
    boot: bytes
    number: int


async def plan_pages(store: Store, keys: Keys, after: int, until: int) -> list[Planned]:
    """Return what the log has behind a revision, up to another, in the order of the log."""
    plan: list[Planned] = []
    for item in await _bare_keys(store, keys.batches, keys.batches_end):
        batch = keys.parse_batch(item.key)
        if batch is not None and after < item.mod_revision <= until:
            plan.append(Planned(item.mod_revision, *batch))
    plan.sort()
    return plan


async def read_skips(store: Store, keys: Keys) -> frozenset[int]:
    """Return which indices are void: an operator has decided so."""
    found: set[int] = set()
    for item in await _bare_keys(store, keys.skips, keys.skips_end):
        try:
            found.add(int(item.key.removeprefix(keys.skips), 16))
        except ValueError:
            _logger.warning("not the key of an index to skip: %r", item.key)
    return frozenset(found)


async def read_planned(
    store: Store, keys: Keys, plan: list[Planned], index: int
) -> AsyncGenerator[Record, None]:
    """Read what is planned; the first record has this index. Raises TrimmedError."""
    awaited = {keys.batch(one.boot, one.number): one.revision for one in plan}
    ahead: dict[bytes, bytes] = {}
    ahead_bytes = 0
    for one in plan:
        key = keys.batch(one.boot, one.number)
        if key not in ahead:
            if ahead_bytes > AHEAD_BYTES_MAX:
                ahead.clear()
                ahead_bytes = 0
            wanted = Range(key, keys.batch(one.boot, one.number + PAGE_KEYS))
            page = await store.page(wanted, limit=PAGE_KEYS)
            for item in page.items:
                if awaited.get(item.key) == item.mod_revision and item.key not in ahead:
                    ahead[item.key] = item.value
                    ahead_bytes += len(item.value)
        payload = ahead.pop(key, None)
        if payload is None:
            raise TrimmedError(f"record {index} was trimmed while it was read")
        ahead_bytes -= len(payload)
        del awaited[key]
        yield Record(index, payload, one.boot, one.number, one.revision)
        index += 1


async def _bare_keys(store: Store, start: bytes, end: bytes) -> list[Stored]:
    """Return all keys of a range, without their values."""
    found: list[Stored] = []
    has_more = True
    while has_more:
        page = await store.page(Range(start, end), limit=PLAN_KEYS, keys_only=True)
        found += page.items
        has_more = page.has_more
        if page.items:
            start = page.items[-1].key + b"\0"
    return found
