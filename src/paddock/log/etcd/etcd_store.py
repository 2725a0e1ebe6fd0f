"""The port to a real etcd.

The rules of `store.py`, and how they are kept:

* An append is one transaction. It is sent again, to the next member, when a member cannot be
  reached: one that was carried out already is recognised by its key. It fails after 1 s without an
  answer, and that doubles up to 4 s as long as none is answered. Meanwhile it is sent again every
  0.1 s, or more rarely if etcd is slow or the batch is large: a member that does not know yet that
  its leader is dead forgets what it is sent. One that may take 4 s is sent once, so that a slow
  etcd or network has the whole time for it.
* A read is a transaction without conditions, because those are linearizable and have one revision.
  Its deadline begins with 1 s, too, and so does that of a page: both come before a watch is opened,
  and no lease is renewed without one.
* A swap is sent once: after a lost reply, a second one would say that it was not carried out.
* The watch may cut a revision in two, between the head and its batch. A record is made of both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from paddock.log.etcd import messages
from paddock.log.etcd.channel import Channel, Watch
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.patience import Patience
from paddock.log.etcd.statuses import DeadlineError, TooLargeError, needs_token, store_error
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Page,
    Range,
    Read,
    Status,
    Store,
    StoreError,
)
from paddock.log.interface import Record

APPEND_TIMEOUT_S_MIN: Final = 1.0
APPEND_TIMEOUT_S_MAX: Final = 4.0
RESEND_S_MIN: Final = 0.1
SLOW_BYTES_PER_S: Final = 1_000_000
READ_TIMEOUT_S_MIN: Final = 1.0
READ_TIMEOUT_S_MAX: Final = 5.0
# A large page over a slow network takes a while.
PAGE_TIMEOUT_S_MAX: Final = 15.0
# Of calls that no lease waits for.
CALL_TIMEOUT_S: Final = 5.0

# Pages are as large as a message may be: usually many keys fit, and the second number always does,
# because etcd takes requests of at most 1.5 MiB.
PAGE_KEYS: Final = 256
LARGE_PAGE_KEYS: Final = 16
# Without their values, a key takes less than 200 bytes.
BARE_PAGE_KEYS: Final = 10_000

_DENIED: Final = "permission denied"


class EtcdStore(Store):
    """etcd, as far as one service needs it."""

    def __init__(self, options: EtcdOptions, keys: Keys) -> None:
        self._keys = keys
        self._channel = Channel(options)
        self._watched = Range(keys.head, keys.batches_end)
        self._append_patience = Patience(APPEND_TIMEOUT_S_MIN, APPEND_TIMEOUT_S_MAX)
        self._read_patience = Patience(READ_TIMEOUT_S_MIN, READ_TIMEOUT_S_MAX)
        self._page_patience = Patience(READ_TIMEOUT_S_MIN, PAGE_TIMEOUT_S_MAX)
        # How long an append takes, smoothed.
        self._latency_s = 0.0
        self._page_keys = PAGE_KEYS

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        keys = self._keys
        key = keys.batch(boot, number)
        name = key[len(keys.batches) :]
        request = messages.append_request(keys.head, name, key, payload)
        channel, patience = self._channel, self._append_patience
        timeout_s = patience.seconds
        resend_s = max(RESEND_S_MIN, 4 * self._latency_s) + len(payload) / SLOW_BYTES_PER_S
        if patience.is_longest:
            # This is no election: etcd or the network is slow, and needs the whole time for one.
            resend_s = timeout_s
        now_s = asyncio.get_running_loop().time
        started_s = now_s()
        left_s = timeout_s
        while True:
            # Not another one for what is left of the last, by a rounding error.
            is_last = left_s < resend_s + RESEND_S_MIN / 2
            sent_s = now_s()
            try:
                response = await channel.call(
                    messages.TXN,
                    request,
                    left_s if is_last else resend_s,
                    channel.size,
                    is_patient=not is_last,
                )
                break
            except DeadlineError:
                left_s = timeout_s - (now_s() - started_s)
                if is_last or left_s <= 0:
                    patience.late(timeout_s)
                    raise
        # Only what was answered counts: what came before it may have been lost in an election. It
        # is believed soon that etcd is slow, because whatever is sent again makes it slower.
        slower_s = now_s() - sent_s - self._latency_s
        self._latency_s += slower_s / (2 if slower_s > 0 else 8)
        patience.answered(self._latency_s)
        return messages.succeeded(response)

    async def tail(self, after: int) -> AsyncGenerator[Record, None]:
        request = messages.watch_request(self._watched, after + 1)
        watch, response = await self._open_watch(request)
        head_key = self._keys.head
        prefix_size = len(self._keys.batches)
        parse_batch = self._keys.parse_batch
        # What was seen of a revision that is not whole yet.
        revision = index = 0
        name = key = payload = b""
        try:
            while True:
                found = messages.parse_watch(response)
                for put_key, put_revision, version, value in found.puts:
                    if put_revision != revision:
                        if revision:
                            raise StoreError(f"revision {revision} of etcd is not whole")
                        revision = put_revision
                    if put_key == head_key:
                        index, name = version, value
                    else:
                        key, payload = put_key, value
                    if index and key:
                        if key[prefix_size:] != name or (batch := parse_batch(key)) is None:
                            raise StoreError(f"{key!r} in etcd is not the batch of its head")
                        yield Record(index, payload, batch[0], batch[1], revision)
                        revision = index = 0
                        key = b""
                if found.is_canceled:
                    raise _canceled(found, self._channel.endpoint)
                response = await watch.read()
        finally:
            watch.close()

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        while True:
            most = BARE_PAGE_KEYS if keys_only else self._page_keys
            keys = min(limit or most, most)
            request = messages.range_request(wanted, revision, keys, keys_only)
            try:
                response = await self._ask(messages.RANGE, request, self._page_patience)
            except TooLargeError:
                if keys_only or keys <= LARGE_PAGE_KEYS:
                    raise
                self._page_keys = LARGE_PAGE_KEYS
                continue
            return messages.parse_page(response)

    async def read(self, *keys: bytes) -> Read:
        request = messages.read_request(keys)
        return messages.parse_read(await self._ask(messages.TXN, request, self._read_patience))

    async def swap(
        self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None = None
    ) -> int:
        guards = [Guard(key, mod_revision)]
        if guard is not None:
            guards.append(guard)
        request = messages.swap_request(key, value, guards)
        response = await self._channel.call(messages.TXN, request, CALL_TIMEOUT_S)
        return messages.revision_if_succeeded(response)

    async def delete(
        self, ranges: Sequence[Range], guard: Guard | None = None, through: int = 0
    ) -> int:
        guards = [] if guard is None else [guard]
        request = messages.delete_request(ranges, guards, through)
        return messages.revision_if_succeeded(await self._call(messages.TXN, request))

    async def compact(self, revision: int) -> None:
        try:
            await self._call(messages.COMPACT, messages.compact_request(revision))
        except CompactedError:
            pass

    async def status(self) -> Status:
        response = await self._call(messages.STATUS, b"")
        return messages.parse_status(response, self._channel.endpoint)

    def use_endpoints(self, endpoints: Sequence[str]) -> None:
        self._channel.use(endpoints)

    async def close(self) -> None:
        await self._channel.close()

    async def _ask(self, method: str, request: bytes, patience: Patience) -> bytes:
        """Send a question, which changes nothing."""
        now_s = asyncio.get_running_loop().time
        started_s, timeout_s = now_s(), patience.seconds
        try:
            response = await self._channel.call(method, request, timeout_s, self._channel.size)
        except DeadlineError:
            patience.late(timeout_s)
            raise
        patience.answered(now_s() - started_s)
        return response

    async def _call(self, method: str, request: bytes) -> bytes:
        """Send what may be sent twice."""
        return await self._channel.call(method, request, CALL_TIMEOUT_S, self._channel.size)

    async def _open_watch(self, request: bytes) -> tuple[Watch, bytes]:
        watch, response = await self._channel.watch(request)
        reason = messages.parse_watch(response).cancel_reason
        if _DENIED in reason or needs_token("", reason):
            # Some releases say this of a token that is too old.
            watch.close()
            if await self._channel.renew_token():
                watch, response = await self._channel.watch(request)
        return watch, response


def _canceled(found: messages.WatchResponse, endpoint: str) -> StoreError:
    """Return the error that says why a watch was canceled."""
    if found.compact_revision:
        return CompactedError(found.compact_revision)
    code = "PERMISSION_DENIED" if _DENIED in found.cancel_reason else "CANCELLED"
    return store_error(code, found.cancel_reason, endpoint)
