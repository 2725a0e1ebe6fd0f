"""A browser that calls an ASGI application, as a server would, without a socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import ASGIApp, Message

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Answer:
    """What was answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Keeps its cookie, and sends what a browser sends for a page of the application itself."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1:8090") -> None:
        self.app = app
        self.host = host
        self.cookie = ""

    async def login(self, token: str) -> Answer:
        answer = await self.get("/login", token=token)
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer

    async def get(
        self, path: str, headers: Iterable[tuple[str, str]] = (), /, **query: Any
    ) -> Answer:
        return await self.ask("GET", path, dict(headers), query=query)

    async def post(self, path: str, fields: Any, **headers: str | None) -> Answer:
        """Post JSON; a header that is None is left out."""
        own: dict[str, str | None] = {
            "content-type": "application/json",
            "x-paddock-dashboard": "1",
            "origin": f"http://{self.host}",
        }
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        given = {name: value for name, value in own.items() if value is not None}
        return await self.ask("POST", path, given, body=json.dumps(fields).encode())

    async def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        *,
        query: dict[str, Any] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Make a request, in pieces of a body as a server has them."""
        pieces = [body[at : at + 65_536] for at in range(0, len(body), 65_536)] or [b""]
        received = [
            {"type": "http.request", "body": one, "more_body": number + 1 < len(pieces)}
            for number, one in enumerate(pieces)
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            if received:
                return received.pop(0)
            await asyncio.Event().wait()
            raise AssertionError("it waits for ever")

        async def send(message: Message) -> None:
            sent.append(message)

        async with asyncio.timeout(DEADLINE_S):
            await self.app(self._scope(method, path, headers, query or {}), receive, send)
        start = sent[0]
        assert start["type"] == "http.response.start"
        return Answer(
            start["status"],
            {name.decode(): value.decode() for name, value in start["headers"]},
            b"".join(one.get("body", b"") for one in sent[1:]),
        )

    @asynccontextmanager
    async def live(self, *paths: str) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        """Open the stream of a page that shows these paths; yields names and fields."""
        gone = asyncio.Event()
        sent: asyncio.Queue[Message] = asyncio.Queue()

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        scope = self._scope("GET", "/api/live", {}, {"path": list(paths)})
        serving = asyncio.ensure_future(self.app(scope, receive, sent.put))
        try:
            yield _events(sent)
        finally:
            gone.set()
            async with asyncio.timeout(DEADLINE_S):
                await serving

    def _scope(
        self, method: str, path: str, headers: dict[str, str], query: dict[str, Any]
    ) -> dict[str, Any]:
        own = {"host": self.host, **({"cookie": self.cookie} if self.cookie else {}), **headers}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "root_path": "",
            "query_string": urlencode(query, doseq=True).encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in own.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8090),
        }


async def _events(sent: asyncio.Queue[Message]) -> AsyncIterator[tuple[str, Any]]:
    """Yield the events of a stream."""
    text = b""
    while True:
        async with asyncio.timeout(DEADLINE_S):
            message = await sent.get()
        if message["type"] == "http.response.start":
            assert message["status"] == 200, await sent.get()
            continue
        text += message.get("body", b"")
        *whole, text = text.split(b"\n\n")
        for one in whole:
            lines = dict(line.split(b": ", 1) for line in one.split(b"\n"))
            if b"event" in lines:
                yield lines[b"event"].decode(), json.loads(lines[b"data"])
        if not message.get("more_body", False):
            return


async def awaited(
    events: AsyncIterator[tuple[str, Any]], name: str, **wanted: Any
) -> dict[str, Any]:
    """Return the next event of a name that has these fields; the others are passed over."""
    async with asyncio.timeout(DEADLINE_S):
        async for found, fields in events:
            if found == name and wanted.items() <= fields.items():
                assert isinstance(fields, dict)
                return fields
    raise AssertionError(f"the stream has ended without {name}")


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that nobody tells of."""
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """Have the application start, and stop at the end."""
    received: asyncio.Queue[Message] = asyncio.Queue()
    sent: asyncio.Queue[Message] = asyncio.Queue()
    serving = asyncio.ensure_future(app({"type": "lifespan"}, received.get, sent.put))
    try:
        await received.put({"type": "lifespan.startup"})
        assert (await sent.get())["type"] == "lifespan.startup.complete"
        yield
    finally:
        await received.put({"type": "lifespan.shutdown"})
        async with asyncio.timeout(DEADLINE_S):
            with contextlib.suppress(asyncio.CancelledError):
                await serving
