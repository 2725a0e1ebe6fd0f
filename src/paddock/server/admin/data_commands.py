"""The admin commands on all data: `snapshot` sends them, `restore` replaces them.

`past` reads what they were (`paddock.server.admin.past_command`).

    echo 'Authorization: digest super:secret' > authorization
    curl -H @authorization -o FILE http://127.0.0.1:8080/commands/snapshot
    curl -H @authorization -X POST -T FILE http://127.0.0.1:8080/commands/restore

Names, settings, headers and statuses are those of Apache ZooKeeper 3.9. Both bodies are backups, as
`paddock backup` writes them. The rules:

* A client authenticates with the header Authorization, by the scheme digest.
* The client must be the superuser. The ACL of `/`, which upstream goes by, does not count: where it
  is open, any client may add an entry of its own, so any password would do.
* Rate limit: each is allowed once in an interval.

A snapshot is streamed from the file that the server has just written. A restore runs `paddock
restore` in a process of its own, which checks the whole body before it asks this server, by the
control socket, to swap its state. So neither takes memory or time of the event loop here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final

from paddock import __version__
from paddock.errors import OK
from paddock.log.interface import LogError
from paddock.server.admin.past_command import PAST, PastCommands
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.admin.refusal import RefusedError
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.sessions.authentication import Authenticator
from paddock.state.access import NOBODY, Identities
from paddock.storage.maintenance.backup import Manifest, StreamedBackup
from paddock.storage.snapshots import snapshot_name

SNAPSHOT: Final = "snapshot"
RESTORE: Final = "restore"
# By name.
DATA_COMMANDS: Final = {
    "restore": RESTORE,
    "rest": RESTORE,
    "snapshot": SNAPSHOT,
    "snap": SNAPSHOT,
    "past": PAST,
}

# Snapshots that are tried, if writes arrive meanwhile.
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """A backup that is ready to send."""

    zxid: int
    size: int
    pieces: Iterator[bytes]
    # To be closed after the pieces.
    file: IO[bytes]


class DataCommands:
    """Runs both commands for one server."""

    def __init__(
        self, config: ServerConfig, snapshotter: Snapshotter | None, limits: AdminLimits
    ) -> None:
        self._config = config
        self._snapshotter = snapshotter
        self.limits = limits
        data = config.data_directory
        self.past = None if data is None else PastCommands(data)

    def identify(self, authorization: bytes | None, address: str) -> Identities:
        """Return the identities of a client; raise RefusedError (401) if they are not proved."""
        if authorization is None:
            raise RefusedError(401, "Auth info is missing for the command")
        scheme, _, credentials = authorization.strip().partition(b" ")
        code, identities = Authenticator(address, self._config.super_digest).receive(
            scheme.decode("latin-1").lower(), credentials.strip() or None, NOBODY
        )
        if code != OK:
            raise RefusedError(401, "Not authenticated: expected 'digest user:password' or 'ip'")
        return identities

    def authorize(self, identities: Identities) -> None:
        """Raise RefusedError (403) unless the client is the superuser."""
        if not identities.is_super:
            raise RefusedError(403, "Not authorized: it takes the superuser")

    def check(self, command: str) -> float:
        """Count a command for its rate limit and return the time; raise RefusedError if refused."""
        config = self._config
        if command == PAST:
            if self.past is None:
                raise RefusedError(503, "A server in memory has no history")
            return asyncio.get_running_loop().time()
        is_snapshot = command == SNAPSHOT
        if not (config.admin_snapshot_enabled if is_snapshot else config.admin_restore_enabled):
            raise RefusedError(503, f"The {command} command is disabled")
        if config.shared_log is not None:
            raise RefusedError(503, _in_etcd(is_snapshot, config.shared_log))
        if is_snapshot:
            if self._snapshotter is None:
                raise RefusedError(503, "A server in memory takes no snapshots")
        elif config.data_directory is None:
            raise RefusedError(503, "A server in memory has no data to replace")
        elif not (config.data_directory / "control").is_socket():
            raise RefusedError(503, "There is no control socket, by which data are exchanged")
        now = asyncio.get_running_loop().time()
        seconds = (self.limits.snapshot if is_snapshot else self.limits.restore).wait(now)
        if seconds > 0:
            raise RefusedError(
                429,
                f"The {command} command was asked for already; try again in {math.ceil(seconds)} s",
                seconds,
            )
        return now

    async def take_snapshot(self, time_ms: int) -> SnapshotAnswer:
        """Take a snapshot of the current state, unless there is one. Raises RefusedError."""
        assert self._snapshotter is not None
        assert self._config.data_directory is not None
        folder = self._config.data_directory / "snapshots"
        for _ in range(_ATTEMPTS):
            try:
                await self._snapshotter.take_now()
                taken = self._snapshotter.newest()
                if taken is None:
                    # The newest is older than this server, and writes have arrived since.
                    continue
                file = (folder / snapshot_name(taken.index)).open("rb")
            except FileNotFoundError:
                raise RefusedError(503, "There is nothing yet: no write has come") from None
            except (LogError, OSError) as error:
                raise RefusedError(500, f"No snapshot could be taken: {error}") from error
            streamed = StreamedBackup(
                file,
                os.fstat(file.fileno()).st_size,
                Manifest(
                    backup=1,
                    paddock=__version__,
                    time_ms=time_ms,
                    index=taken.index,
                    zxid=taken.zxid,
                    nodes=taken.nodes,
                    sessions=taken.sessions,
                    digest=taken.digest,
                    sha256={},
                ),
            )
            return SnapshotAnswer(taken.zxid, streamed.size, streamed.pieces(), file)
        raise RefusedError(500, "No snapshot could be taken: writes came faster")

    async def begin_restore(self) -> RestoreProcess:
        """Start the process that restores a backup. Raises RefusedError."""
        assert self._config.data_directory is not None
        # -P: no module is imported from the current folder.
        command = (sys.executable, "-P", "-m", "paddock", "restore", "--replace", "--json", "-")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(self._config.data_directory.absolute()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise RefusedError(
                500, f"The restore could not be started: {error.strerror}"
            ) from error
        return RestoreProcess(process)


class RestoreProcess:
    """A restore in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def write(self, data: bytes) -> bool:
        """Write a piece of the backup; return False if the process takes no more."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except OSError:
            return False
        return True

    async def finish(self) -> int:
        """Wait for the end; return the zxid that the server continues from. Raises RefusedError."""
        out, err = await self._end()
        try:
            answer = json.loads(out)
        except ValueError:
            answer = None
        result = answer if isinstance(answer, dict) else {}
        zxid, error = result.get("zxid"), result.get("error")
        if self._process.returncode == 0 and isinstance(zxid, int):
            return zxid
        if error is not None and result.get("is_backup") is False:
            raise no_backup(str(error))
        if error is None:
            last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
            error = f"its process ended with status {self._process.returncode}: {last}"
        raise RefusedError(500, f"Nothing was restored: {error}")

    async def kill(self) -> None:
        """Kill the process: it changes nothing before it has the whole backup."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._end()

    async def _end(self) -> tuple[bytes, bytes]:
        """Close its stdin and wait for its end; return its stdout and stderr."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        output = await self._process.communicate()
        with contextlib.suppress(OSError):
            await self._process.stdin.wait_closed()
        return output


def _in_etcd(is_snapshot: bool, log: LogUrl) -> str:
    """Say what to do instead with data that this server has not for itself."""
    if is_snapshot:
        return f"The data are in etcd: back them up there, with paddock backup {log} FILE"
    return (
        "The data are in etcd: restore under a new name there, with paddock restore FILE"
        " etcd://…/NEW, and start servers on that"
    )


def no_backup(reason: str) -> RefusedError:
    """Return the error for a body that is not a backup."""
    return RefusedError(
        400,
        f"The body cannot be restored: {reason}; expected a backup of Paddock, from its command"
        " snapshot or from 'paddock backup'",
    )
