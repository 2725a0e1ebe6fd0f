"""A slow disk for a process that runs: each of its syncs takes so much longer.

    slow = SlowDisk(etcd.pid, 0.3)
    ...
    assert slow.end() > 0

strace stands between the process and the kernel, and holds back fsync and fdatasync, whatever disk
they are of. That needs neither a device of our own nor a special kernel, only strace 4.22 or later
and the right to trace, as root has it outside of confined containers. Other system calls become a
little slower as well.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.support.server import POLL_S, ServerMissingError

_SYNCS: Final = "fsync,fdatasync"
_DEADLINE_S: Final = 30.0


class SlowDisk:
    """Raises ServerMissingError where nothing can be traced."""

    def __init__(self, pid: int, seconds: float) -> None:
        if shutil.which("strace") is None:
            raise ServerMissingError("strace is missing (Debian: apt-get install strace)")
        self._folder = tempfile.TemporaryDirectory(prefix="paddock-test-slow-")
        self._trace = Path(self._folder.name, "trace")
        command = ["strace", "-f", "-p", str(pid), "-o", str(self._trace), "-e", "signal=none"]
        command += ["-e", f"trace={_SYNCS}"]
        command += ["-e", f"inject={_SYNCS}:delay_enter={int(seconds * 1_000_000)}"]
        self._tracer = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            self._wait_attached(pid)
        except BaseException:
            self.end()
            raise

    def end(self) -> int:
        """Let the process have its disk as it is; return how many syncs were slow."""
        self._tracer.terminate()
        self._tracer.communicate(timeout=_DEADLINE_S)
        with contextlib.suppress(FileNotFoundError):
            slow = self._trace.read_text().count("(DELAYED)")
            self._folder.cleanup()
            return slow
        return 0

    def _wait_attached(self, pid: int) -> None:
        limit = time.monotonic() + _DEADLINE_S
        while f"TracerPid:\t{self._tracer.pid}\n" not in Path(f"/proc/{pid}/status").read_text():
            if self._tracer.poll() is not None:
                assert self._tracer.stderr is not None
                said = self._tracer.stderr.read().decode(errors="replace").strip()
                raise ServerMissingError(f"nothing can be traced here: {said}")
            if time.monotonic() > limit:
                raise ServerMissingError("nothing can be traced here")
            time.sleep(POLL_S)
