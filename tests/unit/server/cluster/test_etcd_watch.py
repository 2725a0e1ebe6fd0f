"""Writes that are refused before etcd is full."""

import asyncio
import logging

import pytest

import paddock
from paddock.server.cluster.etcd_watch import PAUSE
from paddock.server.replication.pacing import TIGHT
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, connect, staged

GIB = 1 << 30


async def fill(stage: Stage, used: int, database: int = GIB, quota: int = GIB) -> None:
    """Have the database be so large, and wait until all servers know it."""
    space = stage.etcd.space
    space.quota_bytes, space.database_bytes, space.used_bytes = quota, database, used
    await asyncio.sleep(PAUSE + 0.5)


@in_virtual_time
async def test_while_etcd_is_nearly_full_only_what_makes_the_state_smaller_is_written() -> None:
    async with staged("a", "b") as stage, connect(stage, "a") as client:
        await client.create("/kept", b"1")
        await client.create("/superfluous", b"1")
        await fill(stage, used=GIB * 7 // 10, database=GIB * 9 // 10)
        for refused in (
            client.create("/new", b"2"),
            client.set("/kept", b"2"),
            client.set_acl("/kept", paddock.OPEN_ACL),
        ):
            with pytest.raises(paddock.ServiceError) as error:
                await refused
            assert error.value.code == paddock.errors.SYSTEM_ERROR
        await client.sync("/")
        await client.delete("/superfluous")
        async with connect(stage, "b") as other:
            assert sorted(await other.children("/")) == ["kept", "zookeeper"]
            assert (await other.get("/kept")).data == b"1"
        # Renewals have gone on as well.
        await asyncio.sleep(20)
        assert stage.is_serving("a")
        await fill(stage, used=GIB // 2, database=GIB * 9 // 10)
        await client.set("/kept", b"3")


@in_virtual_time
async def test_a_large_file_that_is_mostly_free_refuses_nothing() -> None:
    async with staged("a") as stage, connect(stage, "a") as client:
        await fill(stage, used=GIB // 10, database=GIB * 9 // 10)
        await client.create("/new")


@in_virtual_time
async def test_replies_to_refused_writes_come_in_order() -> None:
    async with staged("a") as stage, connect(stage, "a") as client:
        await client.create("/kept", b"1")
        order: list[str] = []

        async def send(name: str, request: asyncio.Future[object]) -> None:
            try:
                await request
            except paddock.ServiceError:
                name += " refused"
            order.append(name)

        pacing = stage.core(stage.servers["a"]).proposer.pacing
        assert pacing is not None
        # The reply comes when etcd commits again; until then the others wait behind it.
        stage.etcd.elect(0.5)
        sent = [asyncio.ensure_future(send("create", client.create("/first")))]
        await asyncio.sleep(0.1)
        pacing.restrain(TIGHT, holds=True)
        for name, request in (
            ("set", client.set("/kept", b"2")),
            ("get", client.get("/kept")),
            ("delete", client.delete("/kept")),
            ("set again", client.set("/kept", b"3")),
        ):
            sent.append(asyncio.ensure_future(send(name, request)))
        await asyncio.gather(*sent)
        assert order == ["create", "set refused", "get", "delete", "set again refused"]


@in_virtual_time
async def test_the_operator_is_told_once_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "paddock.server.cluster.etcd_watch")
    async with staged("a") as stage:
        for _ in range(3):
            await fill(stage, used=GIB * 7 // 10, database=GIB * 9 // 10)
        for _ in range(3):
            await fill(stage, used=GIB // 10, database=GIB * 9 // 10)
    told = [one.getMessage() for one in caplog.records if "clients' writes" in one.getMessage()]
    assert [line.partition(",")[0].partition(":")[0] for line in told] == [
        "clients' writes are refused",
        "clients' writes are accepted again",
    ]
    assert "and may have 1073741824 (model)" in told[0]


@pytest.mark.parametrize(
    ("told", "database", "says"),
    [
        (
            0,
            2 * GIB,
            "and paddock.etcdQuotaBytes says that it may have 8589934592 (model). Either etcd's",
        ),
        (0, 8 * GIB - 1_000_000, "and may have 8589934592 (model). Defragment etcd"),
        (2 * GIB, GIB, "and may have 2147483648 (model). Defragment etcd"),
    ],
    ids=["smaller", "same", "told"],
)
@in_virtual_time
async def test_an_etcd_that_is_full_below_the_quota_that_is_set_here_is_told_of(
    caplog: pytest.LogCaptureFixture, told: int, database: int, says: str
) -> None:
    caplog.set_level(logging.ERROR, "paddock.server.cluster.etcd_watch")
    async with staged("a") as stage:
        stage.etcd.fill()
        for _ in range(2):
            await fill(stage, used=7, database=database, quota=told)
        (line,) = [one.getMessage() for one in caplog.records if "NOSPACE" in one.getMessage()]
        assert f"etcd is full (NOSPACE): its database has {database} bytes, of which 7 are" in line
        assert says in line
        stage.etcd.make_space()
        await fill(stage, used=7)


@in_virtual_time
async def test_a_server_that_is_cut_off_keeps_what_it_knows() -> None:
    async with staged("a") as stage:
        await fill(stage, used=GIB * 7 // 10, database=GIB * 9 // 10)
        stage.etcd.link("a").cut()
        await asyncio.sleep(20)
        view = stage.core(stage.servers["a"]).cluster
        assert view is not None
        assert view.log().is_tight
        stage.etcd.link("a").heal()
        await asyncio.sleep(20)
