"""What becomes of a member that loses its log or its lease at a bad moment."""

import asyncio

import pytest

from paddock.log.etcd.store import StoreForbiddenError
from paddock.log.interface import ForbiddenError
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, staged


def forbid_appends(stage: Stage, name: str) -> None:
    """Have etcd refuse for good what a server appends that is started from now on."""
    store = stage.etcd.store(name)

    async def append(boot: bytes, number: int, payload: bytes) -> bool:
        raise StoreForbiddenError("permission denied")

    store.append = append  # type: ignore[method-assign]
    stage.etcd.store = lambda name: store  # type: ignore[method-assign]


@in_virtual_time
async def test_a_start_ends_if_its_log_fails_before_it_is_a_member() -> None:
    async with staged("a") as stage:
        forbid_appends(stage, "b")
        with pytest.raises(ForbiddenError, match="permission denied"):
            async with asyncio.timeout(10 * T):
                await stage.start("b")
        assert stage.members("a") == [1]


@in_virtual_time
async def test_a_log_that_fails_while_a_server_joins_again_ends_it() -> None:
    async with staged("a", "b") as stage:
        stage.etcd.link("b").cut()
        await asyncio.sleep(T)
        assert stage.cluster(stage.servers["b"]).membership.is_joining
        stage.cluster(stage.servers["b"])._start.log._fail(ForbiddenError("no"))  # type: ignore[union-attr]
        await asyncio.sleep(T)
        assert str(stage.lost["b"]) == "no"
        assert not stage.cluster(stage.servers["b"]).membership.is_joining
        stage.etcd.link("b").heal()
