"""One server after another on the same data folder and port, in one process.

A running server gets another state by way of its control socket: it stops as it always does, the
data is exchanged, and a new server starts. Clients see a server that is away for a moment. If the
new state cannot be served, the old one is brought back and served.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from paddock import __version__
from paddock.errors import PaddockError
from paddock.log.file.disk import Disk
from paddock.server.admin.control_socket import ControlError, ControlSocket, Message
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server
from paddock.storage.layout import Claim
from paddock.storage.state_swap import StateSwap, is_staged, swap_state, undo_swap

logger: Final = logging.getLogger(__name__)

# Seconds that a restore by way of the admin server has to end when we do.
_RESTORE_GRACE: Final = 5.0


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
        # Held while servers are exchanged: nothing else is done to them then.
        self._busy = asyncio.Lock()
        self._admin_limits = AdminLimits(config.admin_rate_limit_interval_ms / 1000)
        self._over = asyncio.Event()
        # Why no server could be started any more.
        self._failure: BaseException | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens."""
        assert self._server is not None, "no server runs"
        return self._server.address

    @property
    def secure_address(self) -> tuple[str, int] | None:
        """Where the server listens with TLS, if it does."""
        assert self._server is not None, "no server runs"
        return self._server.secure_address

    async def start(self) -> None:
        """Start the first server. Raises what `Server.start` raises."""
        await self._start_server()
        self._config = self._running().config_with_ports()
        if self._config.data_directory is not None:
            self._control = ControlSocket(self._config.data_directory, self._answer)
            await self._control.open()

    async def serve_until(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, then stop; or until no server can be started any more."""
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
        # What was exchanged is answered; what was not even asked for is given up.
        await self._admin_limits.restores.end(_RESTORE_GRACE)
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        """Keep what would be lost if the process ended now."""
        if self._server is not None:
            self._server.abandon()

    async def _start_server(self) -> None:
        server = self._make_server(self._config)
        server.admin_limits = self._admin_limits
        await server.start()
        # No collection is to look at all the nodes again.
        gc.freeze()
        self._server = server

    async def _answer(self, request: Message) -> Message:
        command = request.get("command")
        if self._busy.locked():
            raise ControlError("it is busy exchanging its data")
        if command == "status":
            return {"pid": os.getpid(), "version": __version__, **self._running().status()}
        if command == "snapshot":
            return {"index": await self._running().take_snapshot()}
        if command == "restore":
            return await self._restore(request.get("staged"))
        raise ControlError(f"there is no command {command!r:.40}")

    async def _restore(self, staged: object) -> Message:
        folder = self._config.data_directory
        assert folder is not None, "without a folder there is no control socket"
        async with self._busy:
            if not isinstance(staged, str) or not is_staged(folder, staged):
                raise ControlError("nothing is staged under that name")
            self._running()
            logger.info("restoring a backup: clients are disconnected meanwhile")
            try:
                done, problem = await self._replace(folder, staged)
            except BaseException as error:
                # Whatever it was: a process that serves nobody must not stay.
                self._failure = error
                self._over.set()
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

        Raises if no server runs any more.
        """
        server, self._server = self._running(), None
        await server.stop()
        # Nothing is to hold its state while the next one is loaded.
        del server
        done, problem = await self._exchange(folder, staged)
        self._forget_the_old_state()
        try:
            await self._start_server()
        except (PaddockError, OSError) as error:
            if done is None:
                raise
            undone = done
            done, problem = None, error
            logger.error("the restored data cannot be served: %s", error)
            await self._in_thread(folder, lambda: undo_swap(folder, undone, Disk()))
            await self._start_server()
        return done, problem

    def _running(self) -> Server:
        if self._server is None:
            raise ControlError("it is about to stop")
        return self._server

    async def _exchange(
        self, folder: Path, staged: str
    ) -> tuple[StateSwap | None, BaseException | None]:
        now = datetime.fromtimestamp(self._wall_clock_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        done: list[StateSwap] = []
        try:
            await self._in_thread(
                folder, lambda: done.append(swap_state(folder, staged, now, Disk()))
            )
        except (PaddockError, OSError) as error:
            logger.error("no backup was restored: %s", error)
            return None, error
        return done[0], None

    async def _in_thread(self, folder: Path, work: Callable[[], None]) -> None:
        """Do something to a folder that nobody uses, beside the event loop."""

        def claim_and_work() -> None:
            with Claim(folder):
                work()

        await asyncio.get_running_loop().run_in_executor(None, claim_and_work)

    def _forget_the_old_state(self) -> None:
        """Let go of what the last server held: a frozen cycle would keep it for ever."""
        gc.unfreeze()
        gc.collect()
