"""A server in a process of its own, to be killed."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from paddock.testing.listening import Listening, ReservedPort

_START_DEADLINE: Final = 60.0
_STOP_DEADLINE: Final = 30.0
_LOG_BYTES_SHOWN: Final = 3000


class ServerProcessError(Exception):
    """The process did not come up or did not stop; the message has the end of its log."""


class ServerProcess(Listening):
    """`paddock serve` on a port of its own, which it keeps over any number of starts.

        with ServerProcess(tmp_path) as server:
            server.kill()
            server.start()

    `data` is its folder; without one everything is in memory, and a restart begins with nothing.
    `options` are further options of `paddock serve`, such as `("--tick-time-ms", "200")`. Its calls
    block; under asyncio they go through `asyncio.to_thread`. Leaving the `with` stops it.
    """

    def __init__(self, data: Path | None = None, options: Sequence[str] = ()) -> None:
        self._port = ReservedPort()
        self._data = data
        self._options = tuple(options)
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens whenever it runs. While it does not, connections are refused."""
        return self._port.address

    @property
    def pid(self) -> int:
        """The id of the process that runs."""
        assert self._process is not None, "the server does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process, and it has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Its log so far, over all starts."""
        # Not through the file's position, which is the one where the process writes.
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(self, *details: object) -> None:
        try:
            if self.is_running:
                self.stop()
        finally:
            self._let_go()

    def start(self) -> None:
        """Start it and wait until it serves. Raises ServerProcessError if it does not."""
        assert not self.is_running, "the server runs already"
        host, port = self.address
        command = [sys.executable, "-m", "paddock", "serve", "--host", host, "--port", str(port)]
        command += ["--memory"] if self._data is None else ["--data", str(self._data)]
        self._process = subprocess.Popen(
            [*command, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Ctrl-C in a terminal ends the tests, and they end the server.
            start_new_session=True,
        )
        try:
            self._wait_until_it_serves(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop it in good order. Raises ServerProcessError if that fails."""
        status = self._end(signal.SIGTERM)
        if status != 0:
            raise ServerProcessError(f"the server ended with status {status}:\n{self._log_end()}")

    def kill(self) -> None:
        """End it at once, as `kill -9` does, with no chance to write or answer anything."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it, and start it again on the same port and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Let it do nothing, as on a machine that hangs; its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: int) -> int:
        process, self._process = self._process, None
        assert process is not None, "the server does not run"
        process.send_signal(number)
        # One that was paused would not hear of it.
        process.send_signal(signal.SIGCONT)
        try:
            return process.wait(_STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerProcessError(
                f"the server did not stop and was killed:\n{self._log_end()}"
            ) from None
        finally:
            assert process.stdout is not None
            process.stdout.close()

    def _wait_until_it_serves(self, process: subprocess.Popen[bytes]) -> None:
        """Read what it says, up to where it listens: it says so when it does."""
        assert process.stdout is not None
        said = b""
        limit = time.monotonic() + _START_DEADLINE
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b" listens on " not in said:
                if not selector.select(max(0.0, limit - time.monotonic())):
                    raise ServerProcessError(f"the server does not serve:\n{self._log_end()}")
                chunk = os.read(process.stdout.fileno(), 4096)
                if not chunk:
                    process.wait()
                    raise ServerProcessError(f"the server did not start:\n{self._log_end()}")
                said += chunk

    def _log_end(self) -> str:
        return self.log[-_LOG_BYTES_SHOWN:]

    def _let_go(self) -> None:
        if self._process is not None:
            self.kill()
        self._log.close()
        self._port.close()
