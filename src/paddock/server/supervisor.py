"""Runs servers one after another on the same data folder and port, in one process.

A restore through the control socket stops the server as usual, swaps the data, and starts a new
server. Clients see a short outage. If the new state cannot be served, the old one is restored.

A server whose shared log was trimmed before it had read it is replaced as well: the next one begins
with a snapshot. So is one whose state was found to be wrong. Any other loss of the log ends the
process.

The addresses of etcd can be changed while a server runs; the next one has them as well.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from paddock import __version__
from paddock.errors import PaddockError
from paddock.log.file.disk import Disk
from paddock.log.interface import LogError, TrimmedError
from paddock.server.admin.control_socket import (
    WORD_BYTES_MAX,
    ControlError,
    ControlSocket,
    Message,
)
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.server import Server
from paddock.storage.layout import Claim
from paddock.storage.replay import OtherStateError
from paddock.storage.state_swap import StateSwap, is_staged, swap_state, undo_swap

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

# Seconds that a restore through the admin server has to finish when the process stops.
_RESTORE_GRACE: Final = 5.0


# How often a state may be found wrong and be loaded anew.
_DROPPED_MAX: Final = 3


class Supervisor:
    """Runs servers, each made by `make_server` from a config.

    supervisor = Supervisor(config, make_server, wall_clock_ms)
    await supervisor.start()
    await supervisor.serve_until(stop)
    """

    def __init__(
        self,
        config: ServerConfig,
        make_server: Callable[[ServerConfig], Server],
        wall_clock_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._make_server = make_server
        self._wall_clock_ms = wall_clock_ms
        self._server: Server | None = None
        self._control: ControlSocket | None = None
        # Held while servers are replaced.
        self._busy = asyncio.Lock()
        self._admin_limits = AdminLimits(config.admin_rate_limit_interval_ms / 1000)
        self._over = asyncio.Event()
        # Why no server could be started.
        self._failure: BaseException | None = None
        self._replacement: asyncio.Task[None] | None = None
        # How often the state was dropped, because other servers had another one.
        self._states_dropped = 0

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens."""
        return self._running().address

    @property
    def secure_address(self) -> tuple[str, int] | None:
        """Where the server listens with TLS, if it does."""
        return self._running().secure_address

    async def start(self) -> None:
        """Start the first server. Raises what `Server.start` raises."""
        # A loss that comes before it has started waits until it can be replaced.
        async with self._busy:
            await self._start_server()
            self._config = self._running().config_with_ports()
        if self._config.data_directory is not None:
            self._control = ControlSocket(self._config.data_directory, self._answer)
            await self._control.open()

    async def serve_until(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then stop; or until no server can be started."""
        ends = [asyncio.ensure_future(event.wait()) for event in (stop, self._over)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        async with self._busy:
            if self._server is not None:
                await self._server.stop()
                self._server = None
        if self._control is not None:
            await self._control.close()
        # A restore that is done is answered; one that has not begun is given up.
        await self._admin_limits.restores.end(_RESTORE_GRACE)
        if self._failure is not None:
            raise self._failure

    def reload(self, config: ServerConfig) -> None:
        """Find etcd where a new configuration says. Its other settings count at the next start.

        Raises ConfigError if that is another log.
        """
        old, new = self._config.shared_log, config.shared_log
        assert old is not None
        if new is None or dataclasses.replace(new, endpoints=old.endpoints) != old:
            raise ConfigError(
                f"the log is {old}, and while a server runs only the hosts in it can be changed:"
                f" restart it for {new or 'a log of its own'}"
            )
        if new.endpoints == old.endpoints:
            logger.info("the log is still %s", old)
            return
        logger.info("the log was %s, and is %s now", old, new)
        self._config = dataclasses.replace(self._config, shared_log=new)
        if self._server is not None:
            self._server.use_endpoints(new.endpoints)

    def abandon(self) -> None:
        """Write what would be lost if the process ended now."""
        if self._server is not None:
            self._server.abandon()

    async def _start_server(self) -> None:
        server = self._make_server(self._config)
        server.admin_limits = self._admin_limits
        server.on_lost = self._lose
        await server.start()
        if self._config.shared_log is not None:
            # It may have changed meanwhile.
            server.use_endpoints(self._config.shared_log.endpoints)
        # The garbage collector is not to scan all the nodes again.
        gc.freeze()
        self._server = server

    def _lose(self, error: LogError) -> None:
        """Replace a server that lost its log, if the next one can do better."""
        is_wrong = isinstance(error, OtherStateError)
        self._states_dropped += is_wrong
        if isinstance(error, TrimmedError) or (is_wrong and self._states_dropped <= _DROPPED_MAX):
            self._replacement = asyncio.get_running_loop().create_task(self._start_again())
        else:
            self._end(error)

    async def _start_again(self) -> None:
        async with self._busy:
            server, self._server = self._server, None
            try:
                if server is not None:
                    await server.stop()
                    del server
                    gc.unfreeze()
                    gc.collect()
                    await self._start_server()
            except BaseException as error:
                self._end(error)
                if not isinstance(error, PaddockError | OSError):
                    raise

    def _end(self, error: BaseException) -> None:
        """End the process: one that serves no client must not stay."""
        self._failure = error
        self._over.set()

    async def _answer(self, request: Message) -> Message:
        command = request.get("command")
        if self._busy.locked():
            raise ControlError("it is busy exchanging its data")
        if command == "status":
            return {"pid": os.getpid(), "version": __version__, **self._running().status()}
        if command == "word":
            return {"text": await self._said(request.get("word"))}
        if command == "snapshot":
            return {"index": await self._running().take_snapshot()}
        if command == "restore":
            return await self._restore(request.get("staged"))
        raise ControlError(f"there is no command {command!r:.40}")

    async def _said(self, word: object) -> str:
        """Return what a four-letter word says, up to a size."""
        pieces = self._running().say(word) if isinstance(word, str) else None
        if pieces is None:
            raise ControlError(f"there is no word {word!r:.40}")
        said = bytearray()
        for piece in pieces:
            said += piece
            if len(said) >= WORD_BYTES_MAX:
                break
            # Each piece takes little time, and others come between.
            await asyncio.sleep(0)
        return said[:WORD_BYTES_MAX].decode("utf-8", "replace")

    async def _restore(self, staged: object) -> Message:
        folder = self._config.data_directory
        assert folder is not None, "without a folder there is no control socket"
        if self._config.shared_log is not None:
            raise ControlError(
                "its state is in etcd, and its data folder only a cache: restore under a new name"
                " there, with paddock restore FILE etcd://…/NEW, and start servers on that"
            )
        async with self._busy:
            if not isinstance(staged, str) or not is_staged(folder, staged):
                raise ControlError("nothing is staged under that name")
            self._running()
            logger.info("restoring a backup: clients are disconnected meanwhile")
            try:
                done, problem = await self._replace(folder, staged)
            except BaseException as error:
                self._end(error)
                if not isinstance(error, PaddockError | OSError):
                    raise
                raise ControlError(f"no server could be started any more: {error}") from error
        if problem is not None:
            raise ControlError(f"the old data is served again, since: {problem}") from problem
        assert done is not None
        aside = None if done.aside is None else str(folder.absolute() / done.aside)
        logger.info("a backup was restored; the data before it is in %s", aside)
        return {"aside": aside, **self._running().status()}

    async def _replace(
        self, folder: Path, staged: str
    ) -> tuple[StateSwap | None, BaseException | None]:
        """Replace the server by one with the staged state; or, with a reason, by one as before.

        Raises if no server can be started.
        """
        server, self._server = self._running(), None
        await server.stop()
        # Nothing may hold its state while the next one is loaded.
        del server
        done: StateSwap | None = None
        problem: BaseException | None = None
        now = datetime.fromtimestamp(self._wall_clock_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            done = await _in_thread(folder, lambda: swap_state(folder, staged, now, Disk()))
        except (PaddockError, OSError) as error:
            problem = error
            logger.error("no backup was restored: %s", error)
        # Free the state of the last server: a frozen reference cycle would keep it for ever.
        gc.unfreeze()
        gc.collect()
        try:
            await self._start_server()
        except (PaddockError, OSError) as error:
            if done is None:
                raise
            undone = done
            done, problem = None, error
            logger.error("the restored data cannot be served: %s", error)
            await _in_thread(folder, lambda: undo_swap(folder, undone, Disk()))
            await self._start_server()
        return done, problem

    def _running(self) -> Server:
        if self._server is None:
            raise ControlError("it is about to stop")
        return self._server


async def _in_thread(folder: Path, work: Callable[[], T]) -> T:
    """Change a folder that no server uses, in a thread."""

    def claim_and_work() -> T:
        with Claim(folder):
            return work()

    return await asyncio.get_running_loop().run_in_executor(None, claim_and_work)
