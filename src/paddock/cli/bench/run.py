"""A benchmark: connections, the folder, one cell after the other, and its removal.

A connection that is lost ends it. The client would go on by itself, but what it measured then would
be how long it looked for a server.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from paddock.cli.bench.load import FanOut, Load, asking
from paddock.cli.bench.plan import Cell, Plan
from paddock.cli.bench.report import Report
from paddock.cli.bench.site import Site, furnished
from paddock.cli.bench.tally import Measurement, Tally
from paddock.cli.output import CannotBeDone
from paddock.cli.service import ServiceOptions
from paddock.client.client import Client
from paddock.client.session.hosts import parse_hosts
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError
from paddock.monitor import build_of, look

_LOOK_S: Final = 2.0


async def measure(service: ServiceOptions, plan: Plan, path: str, report: Report) -> int:
    """Measure everything and report it; give the status: 1 if something was refused."""
    refusals = 0
    hosts, _ = parse_hosts(service.hosts)
    data = b"x" * plan.size
    async with service.connect() as client:
        servers = await asyncio.gather(*(look(host, service.tls, _LOOK_S) for host in hosts))
        for server, host in zip(servers, hosts, strict=True):
            if "paddock" in (server.version or ""):
                server.build = await build_of(host, service.tls, _LOOK_S)
        site = Site(path, f"paddock bench {client.new_mark()}".encode())
        bench = _Bench(service, plan, client, site, data)
        async with furnished(client, site, data), bench.several(plan.clients) as crew:
            with report.telling(plan, path, servers):
                for cell in plan.cells():
                    report.announce(cell)
                    measured = await bench.measure(cell, crew)
                    report.add(measured)
                    refusals += measured.refusals
    return int(refusals > 0)


class _Bench:
    """What measures cells."""

    def __init__(
        self, service: ServiceOptions, plan: Plan, client: Client, site: Site, data: bytes
    ) -> None:
        self._service = service
        self._plan = plan
        # The one to whom everything belongs.
        self._client = client
        self._site = site
        self._data = data
        self._is_lost = False
        self._running: asyncio.Future[None] | None = None
        client.add_listener(self._on_state)

    async def measure(self, cell: Cell, crew: list[Client]) -> Measurement:
        """Measure one; raises CannotBeDone if a connection is lost meanwhile."""
        tally = Tally()
        self._running = asyncio.ensure_future(self._run(cell, crew, tally))
        if self._is_lost:
            self._running.cancel()
        try:
            await self._running
        except BaseException:
            if self._is_lost:
                raise CannotBeDone(
                    f"the connection to {self._service.hosts} was lost"
                    f" while {cell.operation} was measured"
                ) from None
            raise
        return tally.result(cell)

    async def _run(self, cell: Cell, crew: list[Client], tally: Tally) -> None:
        warm_up_s, seconds = self._plan.warm_up_s(cell), self._plan.seconds
        if cell.operation == "watch":
            async with self.several(cell.clients) as watchers:
                fan_out = FanOut(tally, crew[0], watchers, self._site.watched, self._data)
                await fan_out.run(warm_up_s, seconds)
            return
        asks = [
            asking(cell.operation, client, self._site, self._data, number)
            for number, client in enumerate(crew[: cell.clients])
        ]
        await Load(tally, self._plan.limit(cell)).run(asks, cell.window, warm_up_s, seconds)
        if cell.operation == "create":
            await self._site.clear(self._client)

    @asynccontextmanager
    async def several(self, count: int) -> AsyncIterator[list[Client]]:
        """Open more clients in this scope, each with a session of its own."""
        clients = [self._client.another() for _ in range(count)]
        try:
            try:
                await asyncio.gather(*(client.start() for client in clients))
            except ConnectionLostError as error:
                raise CannotBeDone(
                    f"{count} connections more were not accepted (does the server's"
                    f" maxClientCnxns allow them?): {error}"
                ) from None
            for client in clients:
                client.add_listener(self._on_state)
            yield clients
        finally:
            for client in clients:
                client.remove_listener(self._on_state)
            await asyncio.gather(*(client.close() for client in clients))

    def _on_state(self, state: SessionState) -> None:
        if not state.is_connected:
            self._is_lost = True
            if self._running is not None:
                self._running.cancel()
