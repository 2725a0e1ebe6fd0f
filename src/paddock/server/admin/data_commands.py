"""The two admin commands that take all data out or exchange them: `snapshot` and `restore`.

    echo 'Authorization: digest super:secret' > authorization
    curl -H @authorization -o FILE http://127.0.0.1:8080/commands/snapshot
    curl -H @authorization -X POST -T FILE http://127.0.0.1:8080/commands/restore

Names, settings, headers and statuses are those of Apache ZooKeeper 3.9. What is sent is a backup,
as `paddock backup` writes it, and so is what is taken. The ACLs of nodes do not hold for either, so
the rules are:

* A client authenticates with the header Authorization, by the scheme digest.
* It must be the superuser. What the ACL of `/` grants does not count: where that is open, anybody
  may add an entry of its own to it. Upstream goes by it, so that there any password will do.
* Each may be asked for once in an interval.

A snapshot is sent from the file that the server has just written, piece by piece. A restore is done
by `paddock restore`, in a process of its own that takes the body as it comes: it checks the whole
before it asks this server, by its control socket, to exchange its data. So neither the memory nor
the loop of this process has to do with the size of either.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from paddock import __version__
from paddock.errors import OK
from paddock.log.interface import LogError
from paddock.server.admin.rate_limits import AdminLimits, RateLimit
from paddock.server.config.config import ServerConfig
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.sessions.authentication import Authenticator
from paddock.state.access import NOBODY, Identities
from paddock.state.machine import StateMachine
from paddock.storage.maintenance.backup import Manifest, StreamedBackup
from paddock.storage.snapshots import snapshot_name

SNAPSHOT: Final = "snapshot"
RESTORE: Final = "restore"
# By each of their names.
DATA_COMMANDS: Final = {"restore": RESTORE, "rest": RESTORE, "snapshot": SNAPSHOT, "snap": SNAPSHOT}

# Snapshots that are tried, if writes come while one is asked for.
_ATTEMPTS: Final = 3


class RefusedError(Exception):
    """Why a command is not run, and with which status that is said."""

    def __init__(self, status: int, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        # Seconds after which it may be tried again; 0 if that is no matter of time.
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """A backup that is ready to be sent."""

    zxid: int
    size: int
    pieces: Iterator[bytes]
    # To be closed when the pieces have been sent, or will not be.
    file: IO[bytes]


class DataCommands:
    """Runs both commands for one server."""

    def __init__(
        self,
        config: ServerConfig,
        machine: StateMachine,
        snapshotter: Snapshotter | None,
        limits: AdminLimits,
    ) -> None:
        self._config = config
        self._machine = machine
        self._snapshotter = snapshotter
        self.limits = limits

    def identify(self, authorization: bytes | None, address: str) -> Identities:
        """Return who has asked; raises RefusedError with 401 if that is not proved."""
        if authorization is None:
            raise RefusedError(401, "Auth info is missing for the command")
        scheme, _, credentials = authorization.strip().partition(b" ")
        conversation = Authenticator(address, self._config.super_digest)
        code, identities = conversation.receive(
            scheme.decode("latin-1").lower(), credentials.strip() or None, NOBODY
        )
        if code != OK:
            raise RefusedError(401, "Not authenticated: expected 'digest user:password' or 'ip'")
        return identities

    def authorize(self, identities: Identities) -> None:
        """Raise RefusedError with 403 unless these may have all data."""
        if not identities.is_super:
            raise RefusedError(403, "Not authorized: it takes the superuser")

    def check_snapshot(self) -> float:
        """Raise RefusedError unless a snapshot may be asked for now; return when it was counted."""
        if not self._config.admin_snapshot_enabled:
            raise RefusedError(503, "The snapshot command is disabled")
        if self._snapshotter is None:
            raise RefusedError(503, "A server in memory takes no snapshots")
        return _limit(self.limits.snapshot, SNAPSHOT)

    def check_restore(self) -> float:
        """Raise RefusedError unless a restore may be asked for now; return when it was counted."""
        if not self._config.admin_restore_enabled:
            raise RefusedError(503, "The restore command is disabled")
        folder = self._config.data_directory
        if folder is None:
            raise RefusedError(503, "A server in memory has no data to replace")
        if not _is_socket(folder / "control"):
            raise RefusedError(503, "There is no control socket, by which data are exchanged")
        return _limit(self.limits.restore, RESTORE)

    async def take_snapshot(self, time_ms: int) -> SnapshotAnswer:
        """Take a snapshot of the state as it is now, unless there is one; raises RefusedError."""
        assert self._snapshotter is not None
        assert self._config.data_directory is not None
        folder = self._config.data_directory / "snapshots"
        for _ in range(_ATTEMPTS):
            try:
                await self._snapshotter.take_now()
                taken = self._snapshotter.newest()
                if taken is None:
                    # It was there before this server, and writes have come since.
                    continue
                file = (folder / snapshot_name(taken.index)).open("rb")
            except FileNotFoundError:
                raise RefusedError(503, "There is nothing yet: no write has come") from None
            except (LogError, OSError) as error:
                raise RefusedError(500, f"No snapshot could be taken: {error}") from error
            manifest = Manifest(
                backup=1,
                paddock=__version__,
                time_ms=time_ms,
                index=taken.index,
                zxid=taken.zxid,
                nodes=taken.nodes,
                sessions=taken.sessions,
                digest=taken.digest,
                sha256={},
            )
            streamed = StreamedBackup(file, os.fstat(file.fileno()).st_size, manifest)
            return SnapshotAnswer(taken.zxid, streamed.size, streamed.pieces(), file)
        raise RefusedError(500, "No snapshot could be taken: writes came faster")

    async def begin_restore(self) -> RestoreProcess:
        """Start the process that a backup is handed to; raises RefusedError."""
        assert self._config.data_directory is not None
        # -P: no module is taken from the folder that the server happens to be in.
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
    """A restore under way, in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def write(self, data: bytes) -> bool:
        """Hand over a piece of the backup; False if no more of it is wanted."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except OSError:
            return False
        return True

    async def finish(self) -> int:
        """Wait for the end; return the zxid that the server goes on at. Raises RefusedError."""
        out, complaint = await self._end()
        said = _read_answer(out)
        zxid, error = said.get("zxid"), said.get("error")
        if self._process.returncode == 0 and isinstance(zxid, int):
            return zxid
        if error is not None and said.get("is_backup") is False:
            raise no_backup(str(error))
        if error is None:
            # It ended without a word to us, and may have said something for people.
            last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
            error = f"its process ended with status {self._process.returncode}: {last}"
        raise RefusedError(500, f"Nothing was restored: {error}")

    async def kill(self) -> None:
        """End it: nothing has been touched before the whole was handed over."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._end()

    async def _end(self) -> tuple[bytes, bytes]:
        """Say that there is no more, and wait; return what it has said, to us and to people."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        said = await self._process.communicate()
        with contextlib.suppress(OSError):
            await self._process.stdin.wait_closed()
        return said


def no_backup(reason: str) -> RefusedError:
    """Say why a body is not one that can be restored."""
    return RefusedError(
        400,
        f"The body cannot be restored: {reason}; expected a backup of Paddock, from its command"
        " snapshot or from 'paddock backup'",
    )


def _read_answer(line: bytes) -> dict[str, object]:
    """Read what a process has said; empty if it ended before it could say anything."""
    try:
        answer = json.loads(line)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _limit(limit: RateLimit, command: str) -> float:
    now = asyncio.get_running_loop().time()
    seconds = limit.wait(now)
    if seconds > 0:
        raise RefusedError(
            429,
            f"The {command} command was asked for already; try again in {math.ceil(seconds)} s",
            seconds,
        )
    return now


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False
