"""A JOIN that has no effect, or is refused."""

import asyncio
import logging
from pathlib import Path

import pytest

import paddock.state.membership
from paddock.log.interface import ForbiddenError
from paddock.server.cluster.membership import JoinRefusedError
from paddock.state.entry import RULES
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, staged
from tests.unit.state.shared_state import join_entry, payload_of

JUNK = b"\xff" * 8


def append_junk(stage: Stage, count: int) -> None:
    """Let the log grow, by batches of servers that never joined."""
    for number in range(1, count + 1):
        stage.etcd.append(JUNK, number, payload_of())


def skip(stage: Stage, index: int) -> None:
    stage.etcd.space.swap(stage.etcd.keys.skip(index), b"skip", 0, None)


@pytest.mark.source
@in_virtual_time
async def test_a_join_that_came_too_late_is_repeated_and_replaces_the_same_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paddock.state.membership, "JOIN_AGE_MAX", 10)
    async with staged("a") as stage:
        stage.etcd.link("a").cut()
        await asyncio.sleep(T)
        assert stage.cluster(stage.servers["a"]).membership.is_joining
        append_junk(stage, 20)
        stage.etcd.link("a").heal()
        await asyncio.sleep(0.9 * T)
        assert stage.is_serving("a")
        # Otherwise the first one would have to be deposed.
        assert stage.members("a") == [2]


@in_virtual_time
async def test_a_join_that_is_skipped_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    skip(stage, 1)
    async with asyncio.timeout(T):
        await stage.start("a")
    assert stage.is_serving("a")
    assert stage.members("a") == [1]
    assert "had no effect, and is proposed anew: batch 1 is skipped" in caplog.text
    await stage.start("b")
    await stage.settle()
    await stage.stop()


@in_virtual_time
async def test_a_start_that_is_refused_says_why_and_what_to_do() -> None:
    stage = Stage()
    boot = bytes(8)
    stage.etcd.append(boot, 0, payload_of(join_entry(rules_max=RULES + 1, rules=RULES)))
    expected = (
        r"the JOIN of this server was refused: it knows the rules up to .*: start a newer version"
    )
    with pytest.raises(JoinRefusedError, match=expected):
        async with asyncio.timeout(10 * T):
            await stage.start("a")


@in_virtual_time
async def test_a_server_that_is_refused_when_it_comes_back_ends_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "paddock.server.cluster")
    async with staged("a") as stage:
        stage.etcd.link("a").cut()
        await asyncio.sleep(T)
        roster = stage.core(stage.servers["a"]).machine.roster
        assert roster is not None
        roster.rules = RULES + 1
        stage.etcd.link("a").heal()
        await asyncio.sleep(T)
        assert isinstance(stage.lost["a"], JoinRefusedError)
    (line,) = [one.getMessage() for one in caplog.records if one.levelno == logging.CRITICAL]
    assert line.startswith("the JOIN of this server was refused: it knows the rules")
    assert line.endswith(": start a newer version")
    assert "cannot be followed" not in caplog.text


@in_virtual_time
async def test_a_server_killed_before_its_join_was_applied_leaves_its_former_boot_to_the_next(
    tmp_path: Path,
) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    await stage.kill("a")

    async def never(boot: bytes, number: int, payload: bytes) -> bool:
        await asyncio.get_running_loop().create_future()
        return True

    second = stage.make("a", stage.config(tmp_path))
    assert second._store is not None
    second._store.append = never  # type: ignore[method-assign]
    starting = asyncio.create_task(second.start())
    await asyncio.sleep(T / 4)
    starting.cancel()
    await asyncio.wait([starting])
    await stage.start("a", tmp_path)
    assert stage.members("a") == [2]
    await stage.stop()


@in_virtual_time
async def test_a_name_that_a_clone_has_taken_is_not_written_down(tmp_path: Path) -> None:
    """Its successor would replace the clone, which speaks to clients."""
    stage = Stage()
    await stage.start("a", tmp_path)
    await stage.kill("a")
    (file,) = tmp_path.rglob("boot")
    written = file.read_bytes()
    second = stage.make("a", stage.config(tmp_path))
    assert second._store is not None
    append = second._store.append

    async def too_late(boot: bytes, number: int, payload: bytes) -> bool:
        stage.etcd.append(boot, 0, payload_of(join_entry()))
        return await append(boot, number, payload)

    second._store.append = too_late  # type: ignore[method-assign]
    with pytest.raises(ForbiddenError, match="clone"):
        await second.start()
    assert file.read_bytes() == written
    await stage.stop()
