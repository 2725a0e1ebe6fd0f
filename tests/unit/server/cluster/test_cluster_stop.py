"""A server that stops while its log does not work."""

import asyncio
from pathlib import Path

import paddock
from paddock.log.interface import Record
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, staged


@in_virtual_time
async def test_a_stop_ends_though_a_batch_is_held_whose_predecessor_never_comes(
    tmp_path: Path,
) -> None:
    stage = Stage()
    server = await stage.start("a", tmp_path)
    await stage.start("b")
    await stage.settle()
    core = stage.core(server)
    roster = core.machine.roster
    assert roster is not None
    other = list(roster.members.values())[1]
    stage.etcd.link("a").cut()
    records = stage.cluster(server)._records
    assert records is not None
    place = records.position()
    records.committed(Record(place.index + 1, b"", other.boot, other.next + 1, place.revision + 1))
    assert roster.held_count == 1
    async with asyncio.timeout(60):
        await stage.servers.pop("a").stop()
    await stage.stop()


@in_virtual_time
async def test_a_leave_that_comes_out_of_the_log_too_late_does_no_harm() -> None:
    async with staged("a", "b") as stage:
        stage.etcd.elect(T)
        assert not await stage.cluster(stage.servers["a"]).membership.leave()
        await asyncio.sleep(2 * T)
        assert stage.lost == {}
        assert stage.members("a") == stage.members("b")
        assert 1 not in stage.members("a")


@in_virtual_time
async def test_a_boot_that_has_not_surely_left_is_replaced_by_its_successor(tmp_path: Path) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    await stage.start("b")
    # It is withdrawn before etcd hears of it.
    stage.etcd.link("a").cut()
    await stage.servers.pop("a").stop()
    stage.etcd.link("a").heal()
    assert stage.members("b") == [1, 2]
    await stage.start("a", tmp_path)
    assert stage.members("a") == [2, 3]
    await stage.stop()


@in_virtual_time
async def test_a_boot_that_has_left_is_forgotten(tmp_path: Path) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    assert list(tmp_path.rglob("boot"))
    await stage.servers.pop("a").stop()
    assert not list(tmp_path.rglob("boot"))


@in_virtual_time
async def test_a_stop_does_not_wait_for_clients_that_only_read() -> None:
    stage = Stage()
    server = await stage.start("a", read_only_mode_enabled=True)
    stage.etcd.link("a").cut()
    await asyncio.sleep(T)
    async with paddock.connect(stage.hosts("a"), read_only=True) as reader:
        await reader.exists("/")
        # Less than a server waits for clients that do not take their last answers.
        async with asyncio.timeout(10):
            await server.stop()


@in_virtual_time
async def test_a_cut_off_server_answers_four_letter_words_as_a_whole() -> None:
    async with staged("a") as stage:
        stage.etcd.link("a").cut()
        await asyncio.sleep(T)
        aborted: list[object] = []
        core = stage.core(stage.servers["a"])
        reader, writer = await asyncio.open_connection(*stage.servers["a"].address)
        await asyncio.sleep(0.1)
        (connection,) = core.connections
        transport = connection._buffer.transport  # type: ignore[attr-defined]
        abort = transport.abort

        def note_abort() -> None:
            aborted.append("aborted")
            abort()

        transport.abort = note_abort
        writer.write(b"srvr")
        async with asyncio.timeout(T):
            answer = await reader.read()
        assert answer.endswith(b"not currently serving requests\n")
        assert aborted == []
        writer.close()
        stage.etcd.link("a").heal()
