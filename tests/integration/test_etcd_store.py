"""The port to etcd, on a real one: each call, and what becomes of it when etcd fails."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, suppress
from pathlib import Path

import pytest

from paddock.log.etcd.etcd_store import EtcdStore
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.statuses import TooLargeError
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Range,
    Stored,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)
from paddock.log.interface import Record
from tests.support.etcd import Etcd, EtcdCluster, EtcdPki
from tests.support.server import ServerMissingError, free_port

pytestmark = [pytest.mark.judge, pytest.mark.foreign]

BOOT = bytes(range(8))
OTHER = b"\xff" * 8
SILENCE_S = 60.0

_names = itertools.count()


@pytest.fixture
def keys() -> Keys:
    """The keys of a service that no other test has."""
    return Keys(f"test-{next(_names)}")


def run(
    endpoints: tuple[str, ...], keys: Keys, use: Callable[[EtcdStore], Awaitable[None]]
) -> None:
    run_with(EtcdOptions(endpoints), keys, use)


def run_with(options: EtcdOptions, keys: Keys, use: Callable[[EtcdStore], Awaitable[None]]) -> None:
    async def main() -> None:
        store = EtcdStore(options, keys)
        try:
            await use(store)
        finally:
            await store.close()

    asyncio.run(main())


def tail(store: EtcdStore, after: int) -> AsyncGenerator[Record, None]:
    return store.tail(after)


async def take(source: AsyncGenerator[Record, None], count: int) -> list[Record]:
    async with asyncio.timeout(SILENCE_S):
        return [await anext(source) for _ in range(count)]


# --- Each call


def test_an_append_moves_the_head_and_does_nothing_when_repeated(
    shared_etcd: Etcd, keys: Keys
) -> None:
    async def use(store: EtcdStore) -> None:
        assert await store.append(BOOT, 0, b"first")
        assert await store.append(OTHER, 0, b"second")
        assert not await store.append(BOOT, 0, b"again")
        found = await store.read(keys.head, keys.batch(BOOT, 0), keys.batch(BOOT, 1))
        head, batch, none = found.found
        assert head is not None
        assert batch is not None
        assert (head.value, head.version) == (b"ff" * 8 + b"/" + b"0" * 16, 2)
        assert (batch.value, batch.version) == (b"first", 1)
        assert none is None
        assert head.mod_revision == found.revision == batch.mod_revision + 1

    run((shared_etcd.endpoint,), keys, use)


def test_a_payload_of_any_size_up_to_1_mib_comes_back(shared_etcd: Etcd, keys: Keys) -> None:
    sizes = [0, 1, 100, 127, 128, 16_383, 16_384, 65_536, 1 << 20]
    payloads = [bytes([number]) * size for number, size in enumerate(sizes)]

    async def use(store: EtcdStore) -> None:
        for number, payload in enumerate(payloads):
            await append_until_done(store, number, payload)
        async with aclosing(tail(store, 0)) as records:
            found = await take(records, len(sizes))
        assert [record.payload for record in found] == payloads
        assert [record.index for record in found] == list(range(1, 1 + len(sizes)))

    run((shared_etcd.endpoint,), keys, use)


def test_a_batch_that_is_too_large_is_forbidden(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        # Refused by etcd itself, by its side of gRPC, by our side of gRPC.
        for size in (1_700_000, 4 << 20, 40 << 20):
            with pytest.raises(TooLargeError):
                await append_until_done(store, 0, bytes(size))
        assert (await store.read(keys.head)).found == (None,)

    run((shared_etcd.endpoint,), keys, use)


def test_a_swap_needs_the_revision_and_the_guard(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        first = await store.swap(keys.manifest, b"1", 0)
        assert first
        assert not await store.swap(keys.manifest, b"2", 0)
        assert not await store.swap(keys.manifest, b"2", first + 1000)
        assert not await store.swap(keys.id, b"x", 0, Guard(keys.manifest, first + 1))
        assert await store.swap(keys.id, b"x", 0, Guard(keys.manifest, first))
        second = await store.swap(keys.manifest, b"2", first, Guard(keys.skips, 0))
        assert second == first + 2
        found = await store.read(keys.manifest, keys.id)
        assert [one and one.value for one in found.found] == [b"2", b"x"]

    run((shared_etcd.endpoint,), keys, use)


def test_pages_have_keys_in_order_at_one_revision(shared_etcd: Etcd, keys: Keys) -> None:
    names = [keys.snapshot_piece("s", number) for number in range(10)]

    async def use(store: EtcdStore) -> None:
        for name in reversed(names):
            last = await store.swap(name, name, 0)
        await store.swap(names[0], b"later", last)
        wanted = Range(keys.snapshots, keys.snapshots_end)
        page = await store.page(wanted, last, 4)
        assert [item.key for item in page.items] == names[:4]
        assert page.items[0].value == names[0]
        assert page.has_more
        rest = await store.page(Range(page.items[-1].key + b"\0", keys.snapshots_end), last, 6)
        assert [item.key for item in rest.items] == names[4:]
        assert not rest.has_more
        single = await store.page(Range(names[0]))
        assert [item.value for item in single.items] == [b"later"]

    run((shared_etcd.endpoint,), keys, use)


def test_a_page_is_cut_short_before_it_is_too_large(shared_etcd: Etcd, keys: Keys) -> None:
    """40 MiB do not fit into one message."""

    async def use(store: EtcdStore) -> None:
        payload = bytes(1 << 20)
        for number in range(40):
            await append_until_done(store, number, payload)
        found: list[Stored] = []
        start, has_more = keys.batches, True
        while has_more:
            page = await store.page(Range(start, keys.batches_end))
            found += page.items
            start, has_more = page.items[-1].key + b"\0", page.has_more
        assert [item.key for item in found] == [keys.batch(BOOT, number) for number in range(40)]
        assert all(item.value == payload for item in found)

    run((shared_etcd.endpoint,), keys, use)


def test_a_deletion_takes_ranges_if_its_guard_holds(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        for number in range(4):
            await store.append(BOOT, number, b"x")
            await store.append(OTHER, number, b"x")
        manifest = await store.swap(keys.manifest, b"", 0)
        ranges = [Range(keys.batch(BOOT, 0), keys.batch(BOOT, 3)), Range(keys.batch(OTHER, 3))]
        # As many as the port promises.
        ranges += [Range(keys.skip(number)) for number in range(98)]
        assert not await store.delete(ranges, Guard(keys.manifest, manifest + 1))
        assert await store.delete(ranges, Guard(keys.manifest, manifest)) == manifest + 1
        page = await store.page(Range(keys.batches, keys.batches_end))
        left = [keys.batch(BOOT, 3), *(keys.batch(OTHER, number) for number in range(3))]
        assert [item.key for item in page.items] == left

    run((shared_etcd.endpoint,), keys, use)


def test_a_status_says_how_etcd_is(shared_etcd: Etcd, keys: Keys) -> None:
    said = json.loads(shared_etcd.ctl("endpoint", "status", "-w", "json"))[0]["Status"]

    async def use(store: EtcdStore) -> None:
        before = await store.read(keys.id)
        status = await store.status()
        assert status.version == said["version"]
        assert status.revision == before.revision
        assert status.database_bytes >= status.used_bytes > 0
        assert not status.is_full
        assert status.endpoint == shared_etcd.endpoint

    run((shared_etcd.endpoint,), keys, use)


# --- Following


def test_a_tail_tells_batches_in_order_however_many_are_in_flight(
    shared_etcd: Etcd, keys: Keys
) -> None:
    """Neighbours swap on the way, but each is told once, with its own index."""
    count = 300

    async def use(store: EtcdStore) -> None:
        numbers = iter(range(count))

        async def append_all() -> None:
            for number in numbers:
                await append_until_done(store, number, b"%d" % number)

        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(follow_until_done(store, count))
            for _ in range(16):
                tasks.create_task(append_all())
        found = reading.result()
        assert [record.index for record in found] == list(range(1, count + 1))
        assert sorted(record.number for record in found) == list(range(count))
        assert all(record.payload == b"%d" % record.number for record in found)
        assert all(record.server == BOOT for record in found)
        revisions = [record.revision for record in found]
        assert revisions == sorted(set(revisions))
        # From the middle.
        again = await follow_until_done(store, count - 100, found[99].revision)
        assert again == found[100:]

    run((shared_etcd.endpoint,), keys, use)


def test_a_tail_puts_fragments_together(shared_etcd: Etcd, keys: Keys) -> None:
    """A fragment has at most 2 MiB, and etcd cuts between head and batch as well."""
    sizes = [1 << 20, 10, 700_000, 1_300_000, 5, (1 << 20) - 200, 900_000] * 3

    async def use(store: EtcdStore) -> None:
        for number, size in enumerate(sizes):
            await append_until_done(store, number, bytes([number]) * size)
        for start in (0, 1, 2):
            after = 0
            if start:
                batch = (await store.read(keys.batch(BOOT, start - 1))).found[0]
                assert batch is not None
                after = batch.mod_revision
            async with aclosing(tail(store, after)) as records:
                found = await take(records, len(sizes) - start)
            assert [len(record.payload) for record in found] == sizes[start:]
            assert [record.number for record in found] == list(range(start, len(sizes)))

    run((shared_etcd.endpoint,), keys, use)


def test_a_tail_tells_of_no_other_service(shared_etcd: Etcd) -> None:
    """Nor of snapshots of its own service."""
    mine, other = Keys("mine"), Keys("mine-too")

    async def use(store: EtcdStore) -> None:
        beside = EtcdStore(EtcdOptions((shared_etcd.endpoint,)), other)
        try:
            await beside.append(OTHER, 0, b"not mine")
            await store.swap(mine.manifest, b"", 0)
            await store.append(BOOT, 0, b"mine")
        finally:
            await beside.close()
        async with aclosing(tail(store, 0)) as records:
            (record,) = await take(records, 1)
        assert (record.server, record.payload) == (BOOT, b"mine")

    run((shared_etcd.endpoint,), mine, use)


def test_a_tail_tells_what_was_deleted_but_not_the_deletion(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        await store.append(BOOT, 0, b"first")
        async with aclosing(tail(store, 0)) as records:
            assert [record.number for record in await take(records, 1)] == [0]
            await store.delete([Range(keys.batches, keys.batches_end)])
            await store.append(BOOT, 1, b"second")
            assert [record.number for record in await take(records, 1)] == [1]
        async with aclosing(tail(store, 0)) as records:
            assert [record.number for record in await take(records, 2)] == [0, 1]

    run((shared_etcd.endpoint,), keys, use)


def test_a_compaction_is_told_to_a_tail_that_is_behind_and_to_no_other(
    etcd: Etcd, keys: Keys
) -> None:
    async def use(store: EtcdStore) -> None:
        for number in range(20):
            await append_until_done(store, number, b"x")
        async with aclosing(tail(store, 0)) as records:
            last = (await take(records, 20))[-1]
            await store.compact(last.revision)
            # What is compacted already is no error.
            await store.compact(last.revision)
            await store.append(BOOT, 20, b"behind it")
            assert [record.number for record in await take(records, 1)] == [20]
        with pytest.raises(CompactedError) as compacted:
            await take(tail(store, 0), 1)
        assert compacted.value.revision == last.revision
        with pytest.raises(CompactedError):
            await store.page(Range(keys.batches, keys.batches_end), last.revision - 1)
        page = await store.page(Range(keys.batches, keys.batches_end), last.revision)
        assert len(page.items) == 20
        # Nor is anything else.
        with pytest.raises(StoreError) as future:
            await store.compact(last.revision + 1000)
        assert type(future.value) is StoreError

    run((etcd.endpoint,), keys, use)


# --- Failures


def test_an_endpoint_where_nobody_listens_is_passed_over(shared_etcd: Etcd, keys: Keys) -> None:
    nobody = f"127.0.0.1:{free_port()}"

    async def use(store: EtcdStore) -> None:
        assert await store.append(BOOT, 0, b"x")
        assert (await store.status()).endpoint == shared_etcd.endpoint

    run((nobody, shared_etcd.endpoint), keys, use)


def test_without_any_etcd_there_is_one_clear_error(keys: Keys) -> None:
    nobody = tuple(f"127.0.0.1:{free_port()}" for _ in range(2))

    async def use(store: EtcdStore) -> None:
        for call in (store.append(BOOT, 0, b""), store.read(keys.id), store.status()):
            with pytest.raises(StoreError) as error:
                await call
            assert str(error.value) == f"etcd at {nobody[0]}, {nobody[1]}: Connection refused"
        with pytest.raises(StoreError, match="Connection refused"):
            await take(tail(store, 0), 1)

    run(nobody, keys, use)


def test_a_server_that_is_no_etcd_is_a_clear_error(keys: Keys, tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            store = EtcdStore(EtcdOptions((f"127.0.0.1:{port}",)), keys)
            with pytest.raises(StoreError, match=f"^etcd at 127.0.0.1:{port}: "):
                await store.status()
            await store.close()

    asyncio.run(main())


async def fill(store: EtcdStore) -> int:
    """Append until there is no space; return the number that was refused."""
    for number in itertools.count():
        try:
            await store.append(BOOT, number, bytes(100_000))
        except StoreFullError:
            return number
    raise AssertionError


def test_an_etcd_that_is_full_says_so_and_lets_deletions_pass(tmp_path: Path, keys: Keys) -> None:
    with ExitStack() as stack:
        try:
            # A database has at least 16 KiB of pages.
            etcd = stack.enter_context(Etcd(tmp_path / "etcd", quota_bytes=1 << 20))
        except ServerMissingError as missing:
            pytest.skip(str(missing))

        async def use(store: EtcdStore) -> None:
            written = await fill(store)
            assert written
            assert (await store.status()).is_full
            with pytest.raises(StoreFullError):
                await store.swap(keys.manifest, b"", 0)
            # Reads and deletions go on; and space comes back when somebody disarms the alarm.
            assert (await store.read(keys.batch(BOOT, 0))).found[0] is not None
            deleted = await store.delete([Range(keys.batches, keys.batches_end)])
            assert deleted
            await store.compact(deleted)
            with pytest.raises(StoreFullError):
                await store.append(BOOT, written, b"x")
            await asyncio.to_thread(etcd.ctl, "defrag")
            await asyncio.to_thread(etcd.ctl, "alarm", "disarm")
            assert await store.append(BOOT, written + 1, b"x")
            status = await store.status()
            assert not status.is_full
            assert status.used_bytes < 1 << 19

        run((etcd.endpoint,), keys, use)


def test_a_tail_and_calls_of_a_killed_etcd_fail_and_go_on_when_it_is_back(
    etcd: Etcd, keys: Keys
) -> None:
    async def use(store: EtcdStore) -> None:
        await store.append(BOOT, 0, b"before")
        records = tail(store, 0)
        (before,) = await take(records, 1)
        reading = asyncio.create_task(take(records, 1))
        etcd.kill()
        with pytest.raises(StoreError):
            await reading
        with pytest.raises(StoreError):
            await store.append(BOOT, 1, b"meanwhile")
        await asyncio.to_thread(etcd.start)
        async with asyncio.timeout(SILENCE_S):
            while True:
                try:
                    await store.append(BOOT, 1, b"after")
                    break
                except StoreError:
                    pass
        async with aclosing(tail(store, before.revision)) as records:
            (after,) = await take(records, 1)
        assert (after.number, after.payload, after.index) == (1, b"after", 2)

    run((etcd.endpoint,), keys, use)


def test_a_paused_member_is_left_with_its_watch(etcd_cluster: EtcdCluster, keys: Keys) -> None:
    paused = etcd_cluster.followers()[0]

    async def use(store: EtcdStore) -> None:
        await store.append(BOOT, 0, b"before")
        records = tail(store, 0)
        (before,) = await take(records, 1)
        reading = asyncio.create_task(take(records, 1))
        paused.pause()
        # It fails after a second; or is carried out elsewhere, if an election came in between.
        with suppress(StoreError):
            await store.append(BOOT, 1, b"x")
        # The watch ends as well, and does not wait until its connection counts as dead.
        with pytest.raises(StoreError):
            await reading
        await append_until_done(store, 1, b"x")
        assert (await store.status()).endpoint != paused.endpoint
        async with aclosing(tail(store, before.revision)) as records:
            (after,) = await take(records, 1)
        assert after.number == 1

    run(etcd_cluster.in_order(paused), keys, use)


async def append_until_done(store: EtcdStore, number: int, payload: bytes) -> None:
    async with asyncio.timeout(SILENCE_S):
        while True:
            try:
                await store.append(BOOT, number, payload)
                return
            except StoreForbiddenError:
                raise
            except StoreError:
                pass


async def follow_until_done(store: EtcdStore, count: int, after: int = 0) -> list[Record]:
    found: list[Record] = []
    async with asyncio.timeout(2 * SILENCE_S):
        while len(found) < count:
            records = tail(store, found[-1].revision if found else after)
            try:
                while len(found) < count:
                    found.append(await anext(records))
            except CompactedError:
                raise
            except StoreError:
                pass
            finally:
                await records.aclose()
    return found


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_nothing_is_lost_or_told_twice_when_the_leader_fails(
    etcd_cluster: EtcdCluster, keys: Keys, how: str
) -> None:
    count = 400
    leader = etcd_cluster.leader()

    async def use(store: EtcdStore) -> None:
        numbers = iter(range(count))

        async def append_all() -> None:
            for number in numbers:
                if number == count // 2:
                    leader.kill() if how == "kill" else leader.pause()
                await append_until_done(store, number, b"%d" % number)

        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow_until_done(store, count))
            for _ in range(4):
                tasks.create_task(append_all())
        found = following.result()
        assert [record.index for record in found] == list(range(1, count + 1))
        assert sorted(record.number for record in found) == list(range(count))
        assert all(record.payload == b"%d" % record.number for record in found)

    # The leader is the one that is used first.
    run(etcd_cluster.in_order(leader), keys, use)


def test_a_member_without_a_quorum_refuses_instead_of_lying(
    etcd_cluster: EtcdCluster, keys: Keys
) -> None:
    left = etcd_cluster.followers()[0]

    async def use(store: EtcdStore) -> None:
        await append_until_done(store, 0, b"x")
        for member in etcd_cluster.members:
            if member is not left:
                member.kill()
        with pytest.raises(StoreError):
            await store.read(keys.head)
        with pytest.raises(StoreError):
            await store.append(BOOT, 1, b"x")

    run((left.endpoint,), keys, use)


# --- Users and TLS


def allow(etcd: Etcd, keys: Keys) -> None:
    """Turn on users: root, ann who may use a service, and bob who may do nothing."""
    etcd.ctl("user", "add", "root:rootpw")
    etcd.ctl("user", "grant-role", "root", "root")
    etcd.ctl("role", "add", "service")
    prefix = keys.head.decode().removesuffix("log")
    etcd.ctl("role", "grant-permission", "service", "readwrite", "--prefix=true", prefix)
    etcd.ctl("user", "add", "ann:annpw")
    etcd.ctl("user", "grant-role", "ann", "service")
    etcd.ctl("user", "add", "bob:bobpw")
    etcd.ctl("auth", "enable")


def test_users_need_their_password_and_their_role(etcd: Etcd, keys: Keys) -> None:
    allow(etcd, keys)
    endpoints = (etcd.endpoint,)

    async def use(store: EtcdStore) -> None:
        await append_until_done(store, 0, b"x")
        async with aclosing(tail(store, 0)) as records:
            assert len(await take(records, 1)) == 1
        assert (await store.read(keys.head)).found[0] is not None
        with pytest.raises(StoreForbiddenError, match="permission denied"):
            await store.read(b"/elsewhere")
        assert (await store.status()).version

    run_with(EtcdOptions(endpoints, user="ann", password="annpw"), keys, use)

    async def is_forbidden(store: EtcdStore) -> None:
        with pytest.raises(StoreForbiddenError):
            await append_until_done(store, 1, b"x")
        with pytest.raises(StoreForbiddenError):
            await store.read(keys.head)
        with pytest.raises(StoreForbiddenError):
            await take(tail(store, 0), 1)

    run_with(EtcdOptions(endpoints, user="ann", password="wrong"), keys, is_forbidden)
    run_with(EtcdOptions(endpoints, user="bob", password="bobpw"), keys, is_forbidden)
    run_with(EtcdOptions(endpoints), keys, is_forbidden)


def test_a_token_that_etcd_has_forgotten_is_renewed(etcd: Etcd, keys: Keys) -> None:
    allow(etcd, keys)

    async def use(store: EtcdStore) -> None:
        await append_until_done(store, 0, b"x")
        # It keeps tokens in memory.
        await asyncio.to_thread(etcd.restart)
        await append_until_done(store, 1, b"x")
        await asyncio.to_thread(etcd.restart)
        assert [record.number for record in await follow_until_done(store, 2)] == [0, 1]
        # Every token is too old after a change of users.
        root = ("--user", "root:rootpw")
        await asyncio.to_thread(etcd.ctl, *root, "user", "add", "cid:cidpw")
        await append_until_done(store, 2, b"x")

    run_with(EtcdOptions((etcd.endpoint,), user="ann", password="annpw"), keys, use)


def test_users_that_are_turned_on_later_are_authenticated(etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        await append_until_done(store, 0, b"x")
        await asyncio.to_thread(allow, etcd, keys)
        await append_until_done(store, 1, b"x")
        assert len(await follow_until_done(store, 2)) == 2

    run_with(EtcdOptions((etcd.endpoint,), user="ann", password="annpw"), keys, use)


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[Etcd, EtcdPki]]:
    """An etcd that asks its clients for certificates."""
    pki = EtcdPki(tmp_path)
    with ExitStack() as stack:
        try:
            etcd = stack.enter_context(
                Etcd(tmp_path / "etcd", arguments=pki.arguments(), is_secure=True)
            )
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield etcd, pki


def options(pki: EtcdPki, etcd: Etcd, *, has_certificate: bool = True) -> EtcdOptions:
    return EtcdOptions(
        (etcd.endpoint,),
        is_secure=True,
        ca_file=pki.ca,
        certificate_file=pki.certificate if has_certificate else None,
        key_file=pki.key if has_certificate else None,
    )


def test_tls_needs_a_certificate_that_is_trusted(secured: tuple[Etcd, EtcdPki], keys: Keys) -> None:
    etcd, pki = secured

    async def use(store: EtcdStore) -> None:
        await append_until_done(store, 0, b"x")
        async with aclosing(tail(store, 0)) as records:
            assert len(await take(records, 1)) == 1

    run_with(options(pki, etcd), keys, use)

    async def fails(store: EtcdStore) -> None:
        with pytest.raises(StoreError, match=f"^etcd at {etcd.endpoint}: "):
            await store.append(BOOT, 1, b"x")

    run_with(options(pki, etcd, has_certificate=False), keys, fails)
    run_with(EtcdOptions((etcd.endpoint,)), keys, fails)
    # Trusted by the system are others.
    run_with(EtcdOptions((etcd.endpoint,), is_secure=True), keys, fails)


def test_new_certificates_count_without_a_restart(
    secured: tuple[Etcd, EtcdPki], keys: Keys
) -> None:
    etcd, pki = secured

    async def use(store: EtcdStore) -> None:
        await append_until_done(store, 0, b"x")
        pki.issue()
        # It reads its authorities at its start.
        await asyncio.to_thread(etcd.restart)
        await append_until_done(store, 1, b"x")
        assert len(await follow_until_done(store, 2)) == 2

    run_with(options(pki, etcd), keys, use)
