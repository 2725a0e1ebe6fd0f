"""A command that runs under us, by way of its warden: see `warden` for what that sees to.

command = ChildProcess(["make", "report"], environment, grace=1.0, group=0)
command.live_until(loop.time() + 10)
print((await command.wait()).status)
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final

from paddock.cli.run_under import warden

# A warden that does not do what it is told within this time is stopped, and of no use.
_PATIENCE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a command has ended."""

    # As a shell gives it: of what a signal has ended, 128 and its number.
    status: int
    # Whether its warden had to end it, or did not even let it begin.
    was_ended: bool = False


class ChildProcess:
    """A command, from before its start until nothing is left of it. It starts when it may live."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        grace: float,
        group: int,
        stdin: IO[bytes] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        # If the warden is killed, what it looked after becomes ours.
        warden.adopt_orphans()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        with theirs:
            theirs.set_inheritable(True)
            self._warden = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", warden.__file__),
                    *(str(theirs.fileno()), str(group), str(grace), *command),
                ],
                stdin=stdin,
                env=environment,
                # Whatever was left open for the command is open for it; all that is ours is not.
                close_fds=False,
                # What a terminal sends is not for the warden.
                process_group=0,
            )
        self._group = group
        self._pid = 0
        self._said = b""
        self._ended: asyncio.Future[ProcessEnd | None] = self._loop.create_future()
        self._loop.add_reader(self._control, self._on_readable)
        self._patience: asyncio.TimerHandle | None = None

    def live_until(self, when: float) -> None:
        """Let it live until then, by the event loop's clock. The first time starts it."""
        self._tell(f"until {warden.clock() + (when - self._loop.time())}")

    def pass_on(self, number: int) -> None:
        """Pass a signal on to it."""
        self._tell(f"signal {number}")

    def end(self) -> None:
        """Kill it, now."""
        self._tell("end")
        if self._patience is None:
            self._patience = self._loop.call_later(_PATIENCE_S, self._warden.kill)

    async def wait(self) -> ProcessEnd:
        """Wait until nothing is left of it. If this is cancelled, it is killed."""
        try:
            ended = await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            self.end()
            await self._see_off(await asyncio.shield(self._ended))
            raise
        return await self._see_off(ended)

    async def _see_off(self, ended: ProcessEnd | None) -> ProcessEnd:
        if self._patience is not None:
            self._patience.cancel()
        self._warden.wait()
        if ended is None:
            # The warden was killed, and with it the command. What is left of it is ours.
            if self._group == 0 and self._pid and not warden.IS_LINUX:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._pid, signal.SIGKILL)
            await asyncio.to_thread(warden.end_children)
            ended = ProcessEnd(128 + signal.SIGKILL, was_ended=self._patience is not None)
        return ended

    def _tell(self, line: str) -> None:
        # It may have ended, which we shall hear; or it is stopped, and does not listen.
        with contextlib.suppress(OSError):
            self._control.send(f"{line}\n".encode())

    def _on_readable(self) -> None:
        try:
            said = self._control.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            said = b""
        if said:
            self._said += said
            return
        # It has ended: only then it closes the socket.
        self._loop.remove_reader(self._control)
        self._control.close()
        self._ended.set_result(self._read(self._said.decode()))

    def _read(self, said: str) -> ProcessEnd | None:
        for line in said.splitlines():
            match line.split():
                case ["started", pid]:
                    self._pid = int(pid)
                case ["ended", status, how]:
                    return ProcessEnd(int(status), was_ended=how == "ended")
                case ["late"]:
                    return ProcessEnd(128 + signal.SIGKILL, was_ended=True)
        return None
