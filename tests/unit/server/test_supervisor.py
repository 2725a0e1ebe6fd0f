"""One server after another in one process; whatever happens, none stays that serves nobody."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

import paddock.server.supervisor as supervisor_module
from paddock.log.file.disk import Disk
from paddock.server.admin.control_socket import Message, RefusedError, ask
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server
from paddock.server.supervisor import Supervisor
from paddock.state.machine import StateMachine
from paddock.storage.state_swap import discard_staged, stage

DEADLINE_S = 30.0


class Hooked(Server):
    """A server that does something more when it stops."""

    on_stopped: Callable[[], None] | None = None

    async def stop(self) -> None:
        await super().stop()
        if self.on_stopped is not None:
            self.on_stopped()


async def refusal(
    folder: Path,
    hook: Callable[[str], None],
    and_then: Callable[[Supervisor], Coroutine[None, None, None]],
) -> str:
    """Have a server restore something, with this hook on its stop; give why it did not."""

    def make_server(config: ServerConfig) -> Server:
        server = Hooked(config, wall_clock_ms=lambda: 0, random_bytes=os.urandom)
        if first:
            server.on_stopped = lambda: hook(staged)
            first.clear()
        return server

    first = ["the one that is to restore"]
    supervisor = Supervisor(ServerConfig(port=0, data_directory=folder), make_server, lambda: 0)
    await supervisor.start()
    staged = stage(folder, StateMachine(), 1, Disk())
    with pytest.raises(RefusedError) as refused:
        await asyncio.get_running_loop().run_in_executor(
            None, ask, folder, {"command": "restore", "staged": staged}, DEADLINE_S
        )
    async with asyncio.timeout(DEADLINE_S):
        await and_then(supervisor)
    return str(refused.value)


def test_a_stop_that_fails_unexpectedly_ends_the_process(tmp_path: Path) -> None:
    def fail(staged: str) -> None:
        raise RuntimeError("what nobody thought of")

    async def ends(supervisor: Supervisor) -> None:
        with pytest.raises(RuntimeError, match="nobody thought of"):
            await supervisor.serve_until(asyncio.Event())

    assert "failed unexpectedly" in asyncio.run(refusal(tmp_path, fail, ends))


def test_what_is_staged_and_gone_is_refused_and_the_old_data_served(tmp_path: Path) -> None:
    async def goes_on(supervisor: Supervisor) -> None:
        assert supervisor.address[1] > 0
        stop = asyncio.Event()
        stop.set()
        await supervisor.serve_until(stop)

    said = asyncio.run(refusal(tmp_path, lambda name: discard_staged(tmp_path, name), goes_on))
    assert "the old data is served again" in said
    assert "what was staged is gone" in said


def test_nothing_of_a_restore_goes_on_behind_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore by way of the admin server outlives its server, and not the process."""
    monkeypatch.setattr(supervisor_module, "_RESTORE_GRACE", 0.01)
    servers: list[Server] = []

    def make_server(config: ServerConfig) -> Server:
        servers.append(Server(config, wall_clock_ms=lambda: 0, random_bytes=os.urandom))
        return servers[-1]

    async def scenario() -> None:
        supervisor = Supervisor(
            ServerConfig(port=0, data_directory=tmp_path), make_server, lambda: 0
        )
        await supervisor.start()
        stop = asyncio.Event()
        hangs = servers[0].admin_limits.restores.start(waits_for_ever())
        stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await supervisor.serve_until(stop)
        assert hangs.cancelled()

    asyncio.run(scenario())


async def waits_for_ever() -> None:
    await asyncio.Event().wait()


def test_the_owner_of_the_folder_is_told_words_that_are_on_no_whitelist(tmp_path: Path) -> None:
    async def main() -> None:
        def make_server(config: ServerConfig) -> Server:
            return Server(config, wall_clock_ms=lambda: 0, random_bytes=os.urandom)

        def told(word: object) -> Message:
            return ask(tmp_path, {"command": "word", "word": word}, DEADLINE_S, limit=1 << 20)

        supervisor = Supervisor(
            ServerConfig(port=0, data_directory=tmp_path), make_server, lambda: 0
        )
        await supervisor.start()
        loop = asyncio.get_running_loop()
        said = await loop.run_in_executor(None, told, "mntr")
        assert "zk_global_sessions\t0\n" in said["text"]
        for wrong in ("srst", "nope", 5):
            with pytest.raises(RefusedError, match="there is no word"):
                await loop.run_in_executor(None, told, wrong)
        stop = asyncio.Event()
        stop.set()
        await supervisor.serve_until(stop)

    asyncio.run(main())
