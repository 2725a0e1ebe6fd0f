"""How a server that is one of several is replaced, and where it finds etcd."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.interface import TrimmedError
from paddock.server.admin.control_socket import ControlError
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.config.log_url import LogUrl
from paddock.server.server import Server
from paddock.server.supervisor import Supervisor
from paddock.testing.simulation.store_model import EtcdModel
from paddock.testing.virtual import in_virtual_time


class Case:
    """A supervisor in virtual time: without a socket, but with what answers on it."""

    def __init__(self, folder: Path) -> None:
        model = EtcdModel(keys=Keys("shop"))
        loop = asyncio.get_running_loop()
        shared = LogUrl(("127.0.0.1:2379",), "shop")
        self.config = ServerConfig(
            port=0, data_directory=folder, shared_log=shared, advertise="a.example:2181"
        )
        self.used: list[tuple[str, ...]] = []
        # Of all servers: no boot has the name of another.
        chances = random.Random(1)

        def make(config: ServerConfig) -> Server:
            store = model.store("a")
            store.use_endpoints = self._note  # type: ignore[method-assign]
            return Server(
                config,
                wall_clock_ms=lambda: int(loop.time() * 1000),
                random_bytes=chances.randbytes,
                store=store,
            )

        self.supervisor = Supervisor(self.config, make, lambda: 0)

    def _note(self, endpoints: Sequence[str]) -> None:
        self.used.append(tuple(endpoints))

    async def ask(self, **request: object) -> dict[str, object]:
        return await self.supervisor._answer(request)

    async def stop(self) -> None:
        over = asyncio.Event()
        over.set()
        await self.supervisor.serve_until(over)


@in_virtual_time
async def test_nothing_is_restored_into_a_cache(tmp_path: Path) -> None:
    case = Case(tmp_path / "data")
    await case.supervisor.start()
    try:
        with pytest.raises(ControlError, match="paddock restore FILE etcd://…/NEW, and"):
            await case.ask(command="restore", staged="x")
    finally:
        await case.stop()


@in_virtual_time
async def test_a_server_that_is_lost_at_the_end_of_its_start_is_replaced(tmp_path: Path) -> None:
    case = Case(tmp_path / "data")
    made: list[Server] = []
    make = case.supervisor._make_server

    def make_losing(config: ServerConfig) -> Server:
        server = make(config)
        made.append(server)
        start = server.start

        async def start_and_lose() -> None:
            await start()
            if len(made) == 1:
                assert server.on_lost is not None
                server.on_lost(TrimmedError("the log was trimmed"))
                await asyncio.sleep(0.1)

        server.start = start_and_lose  # type: ignore[method-assign]
        return server

    case.supervisor._make_server = make_losing
    await case.supervisor.start()
    await asyncio.sleep(10)
    assert len(made) == 2
    assert case.supervisor._running() is made[1]
    await case.stop()


@in_virtual_time
async def test_etcd_is_found_elsewhere_without_a_restart(tmp_path: Path) -> None:
    case = Case(tmp_path / "data")
    await case.supervisor.start()
    try:
        case.used.clear()
        other = LogUrl(("h1:2379", "h2:2379"), "shop")
        case.supervisor.reload(dataclasses.replace(case.config, shared_log=other))
        case.supervisor.reload(dataclasses.replace(case.config, shared_log=other))
        assert case.used == [other.endpoints]
        # The next server, which replaces one that was too far behind, finds it there, too.
        await case.supervisor._start_again()
        assert case.used == [other.endpoints] * 2
    finally:
        await case.stop()


@pytest.mark.parametrize(
    "url",
    [
        LogUrl(("h1:2379",), "other"),
        LogUrl(("h1:2379",), "shop", is_secure=True),
        LogUrl(("h1:2379",), "shop", compacts=False),
        None,
    ],
    ids=str,
)
@in_virtual_time
async def test_another_log_needs_a_restart(tmp_path: Path, url: LogUrl | None) -> None:
    case = Case(tmp_path / "data")
    await case.supervisor.start()
    try:
        case.used.clear()
        with pytest.raises(ConfigError) as refused:
            case.supervisor.reload(dataclasses.replace(case.config, shared_log=url))
        assert str(refused.value) == (
            "the log is etcd://127.0.0.1:2379/shop, and while a server runs only the hosts in it"
            f" can be changed: restart it for {url or 'a log of its own'}"
        )
        assert case.used == []
    finally:
        await case.stop()
