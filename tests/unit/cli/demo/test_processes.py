"""A killed process leaves its exit status to the caller that waits for it."""

import asyncio
import os
import signal
import subprocess
from typing import cast

from paddock.cli.demo.processes import kill


def test_a_process_may_be_killed_when_it_is_dead_and_its_status_is_left_to_who_waits() -> None:
    # Here nobody waits for it, so that there is something to take away.
    with subprocess.Popen(["sleep", "1000"]) as started:
        process = cast(asyncio.subprocess.Process, started)
        kill(process)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        kill(process)
        _, status = os.waitpid(process.pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        kill(process)
        started.returncode = -signal.SIGKILL


def test_asyncio_knows_how_a_killed_process_has_ended() -> None:
    async def die() -> int:
        process = await asyncio.create_subprocess_exec("sleep", "1000")
        kill(process)
        status = await process.wait()
        kill(process)
        return status

    assert asyncio.run(die()) == -signal.SIGKILL
