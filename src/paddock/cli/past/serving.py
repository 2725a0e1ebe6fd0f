"""`--at`: the state of a moment, served for one command, in its process and for it alone.

The command reads it as it reads any service. It does so as the superuser: whoever can read the
files can read everything in them.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.api import connect
from paddock.cli.past.place import Place
from paddock.client.client import Client
from paddock.history.moment import Moment
from paddock.history.past import state_at
from paddock.server.past_server import past_server
from paddock.state.machine import StateMachine

# Nothing is answered while the process is paused, say; then there is no hurry either.
_SESSION_SECONDS = 60.0


@asynccontextmanager
async def past_service(place: Place, moment: Moment) -> AsyncIterator[Client]:
    """Serve the state of a moment in this scope; yields a client of it. Raises HistoryError."""

    def load() -> StateMachine:
        return state_at(place.open(), moment).machine()

    machine = await asyncio.get_running_loop().run_in_executor(None, load)
    server, credentials = past_server(
        machine, lambda: time.time_ns() // 1_000_000, secrets.token_bytes
    )
    await server.start()
    try:
        host, port = server.address
        async with connect(
            f"{host}:{port}", session_timeout=_SESSION_SECONDS, read_only=True
        ) as client:
            await client.add_auth("digest", credentials.encode())
            yield client
    finally:
        await server.stop()
