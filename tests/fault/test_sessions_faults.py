"""Programs in one session after the other, as processes: paused, cut off, and with a killed server.

Each time the program has to hold its lock again, in a new session and with a larger token.
"""

from __future__ import annotations

import asyncio
import operator
import signal
import sys
from collections.abc import Awaitable, Callable

import paddock
from paddock.testing import FaultProxy, ServerProcess
from tests.fault.stage.session_program import LOCKS

_DEADLINE_S = 60.0


class Stage:
    """A server, and a program for each API behind a proxy."""

    def __init__(
        self,
        server: ServerProcess,
        proxy: FaultProxy,
        programs: dict[str, asyncio.subprocess.Process],
    ) -> None:
        self.server = server
        self.proxy = proxy
        self.programs = programs

    async def tokens(self) -> list[int]:
        """Wait until each program says that it holds its lock; return the tokens."""
        return [await _token(program) for program in self.programs.values()]

    async def wait_gone(self) -> None:
        """Wait until the sessions of the programs have expired, and their places in the lines."""
        async with paddock.connect(self.server.hosts) as judge:
            for api in self.programs:
                names = await judge.children(f"{LOCKS}/{api}")
                if not names:
                    continue
                async for change in judge.watch(f"{LOCKS}/{api}/{names[0]}"):
                    if change.stat is None:
                        break


async def _token(program: asyncio.subprocess.Process) -> int:
    assert program.stdout is not None
    word, token = (await program.stdout.readline()).split()
    assert word == b"holding"
    return int(token)


async def pause(stage: Stage) -> None:
    for program in stage.programs.values():
        program.send_signal(signal.SIGSTOP)
    await stage.wait_gone()
    for program in stage.programs.values():
        program.send_signal(signal.SIGCONT)


async def cut_off(stage: Stage) -> None:
    stage.proxy.refuse()
    await stage.wait_gone()
    stage.proxy.heal()


async def fall_silent(stage: Stage) -> None:
    stage.proxy.blackhole()
    await stage.wait_gone()
    stage.proxy.heal()


async def kill_server(stage: Stage) -> None:
    # It is one in memory, and knows no session afterwards.
    await asyncio.to_thread(stage.server.kill)
    await asyncio.to_thread(stage.server.start)


def test_programs_outlive_their_sessions() -> None:
    faults: list[Callable[[Stage], Awaitable[None]]] = [pause, cut_off, fall_silent, kill_server]

    async def main() -> None:
        with ServerProcess(options=("--tick-time-ms", "100")) as server:
            async with FaultProxy(server.address) as proxy, asyncio.timeout(_DEADLINE_S):
                programs = {api: await _start(api, proxy.hosts) for api in ("asyncio", "blocking")}
                try:
                    stage = Stage(server, proxy, programs)
                    tokens = await stage.tokens()
                    for fault in faults:
                        await fault(stage)
                        following = await stage.tokens()
                        # A server that has forgotten everything begins with small zxids again.
                        is_later = all(map(operator.gt, following, tokens))
                        assert is_later or fault is kill_server, (fault, tokens, following)
                        tokens = following
                    for program in programs.values():
                        assert program.stdin is not None
                        program.stdin.close()
                        assert await program.wait() == 0
                finally:
                    for program in programs.values():
                        if program.returncode is None:
                            program.kill()
                            await program.wait()

    asyncio.run(main())


async def _start(api: str, hosts: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fault.stage.session_program", api, hosts),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
