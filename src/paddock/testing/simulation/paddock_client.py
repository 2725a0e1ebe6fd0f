"""The real client as a client of a world: it issues the calls of its plan, whatever comes of them.

Its histories are those of its connections, as with any client. Beyond that, every call must end: in
a result or in an error of its own. Every other client has an exact session: none of its calls may
be in doubt while the session lives.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.states import Event, SessionState
from paddock.errors import ConnectionLostError, PaddockError, SessionExpiredError
from paddock.testing.simulation.plan import Burst, ClientPlan, Wish

Address = tuple[str, int]

# What is no call, or only a raw client does.
_OF_RAW: Final = ("close", "hop", "linger")


class PaddockClient:
    """One client, on the process's loop that runs it."""

    def __init__(self, plan: ClientPlan, servers: Sequence[Address], draw: random.Random) -> None:
        self._plan = plan
        self._hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self._draw = draw
        self._client: Client | None = None
        self._is_exact = plan.name[-1] in "02468"
        # Whether the session may have been over since the client was opened.
        self._was_overdue = False

    async def run(self) -> None:
        """Carry out the plan, whatever comes of the calls."""
        for burst in self._plan.bursts:
            await self.carry_out(burst)

    async def carry_out(self, burst: Burst) -> None:
        """Issue some calls after their pause, and wait for their outcomes."""
        await asyncio.sleep(burst.pause)
        await self._issue(await self._open(), burst)

    async def stay(self) -> None:
        """Stay connected, for ever."""
        while True:
            await self._open()
            await asyncio.sleep(1.0)

    async def close(self) -> None:
        """Close the session, if there is one."""
        if self._client is not None:
            await self._client.close()

    async def _open(self) -> Client:
        while self._client is None or self._client.state.is_final:
            client = connect(
                self._hosts,
                session_timeout=self._plan.timeout,
                random=self._draw,
                exact=self._is_exact,
            )
            self._was_overdue = False
            client.add_listener(self._listen)
            try:
                await client.start()
            except PaddockError:
                await client.close()
                continue
            self._client = client
        return self._client

    def _listen(self, state: SessionState) -> None:
        if state is SessionState.OVERDUE or state.is_final:
            self._was_overdue = True

    async def _issue(self, client: Client, burst: Burst) -> None:
        calls = [
            self._call(client, wish)
            for wish in burst.wishes
            if wish.name not in ("close", "hop", "linger")
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        for result in results:
            if isinstance(result, SessionExpiredError):
                self._client = None
            elif isinstance(result, BaseException) and not isinstance(result, PaddockError):
                raise result
            elif isinstance(result, ConnectionLostError) and client.is_exact:
                assert self._was_overdue, f"in doubt in an exact session: {result}"
        if self._client is None or any(wish.name == "close" for wish in burst.wishes):
            self._client = None
            await client.close()

    def _call(self, client: Client, wish: Wish) -> Awaitable[Any]:
        watch = _ignore if wish.watch else None
        match wish.name:
            case "create":
                return client.create(
                    wish.path,
                    wish.data.encode(),
                    ephemeral=wish.flags in (1, 3),
                    sequential=wish.flags in (2, 3),
                    container=wish.flags == 4,
                )
            case "set":
                return client.set(wish.path, wish.data.encode(), version=wish.version)
            case "delete":
                return client.delete(wish.path, version=wish.version)
            case "get":
                return client.get(wish.path, watch=watch)
            case "exists":
                return client.exists(wish.path, watch=watch)
            case "children":
                return client.children(wish.path, watch=watch)
            case "children2":
                return client.children_with_stat(wish.path, watch=watch)
            case "sync":
                return client.sync(wish.path)
            case "ephemerals":
                return client.ephemerals()
            case "add_watch":
                return client.add_watch(wish.path, _ignore, recursive=bool(wish.flags))
            case "remove_watches":
                return client.remove_watches(wish.path)
            case "multi":
                return _transaction(client, wish)
        assert wish.name == "multi_read", wish.name
        reads = client.multi_read()
        for step in wish.steps:
            if step.name == "get":
                reads.get(step.path)
            else:
                reads.children(step.path)
        return reads.commit()


def _transaction(client: Client, wish: Wish) -> Awaitable[Any]:
    transaction = client.transaction()
    for step in wish.steps:
        if step.name == "create":
            transaction.create(
                step.path,
                step.data.encode(),
                ephemeral=step.flags == 1,
                sequential=step.flags == 2,
            )
        elif step.name == "set":
            transaction.set(step.path, step.data.encode(), version=step.version)
        elif step.name == "delete":
            transaction.delete(step.path, version=step.version)
        else:
            transaction.check(step.path, version=step.version)
    return transaction.commit()


def _ignore(_: Event) -> None:
    """Take an event; the history has it."""
