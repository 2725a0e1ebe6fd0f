"""The application: what is answered at which address, and the files of the page.

* Everything below /api needs the cookie (`access`), and answers in JSON; an error is one sentence.
* A request is made with the session of its person (`people`), or of a service of the past with
  `at`. It never waits for a service that is away.
* The files of the page are read once, at the start: an address names one of them, or nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from paddock.client.client import Client
from paddock.dashboard import tree
from paddock.dashboard.access import VISITOR, Door, Guard, RefusedError, Visitor
from paddock.dashboard.answers import (
    answer,
    checked,
    encoded,
    fields_of,
    number_of,
    path_of,
    refusal_of,
)
from paddock.dashboard.people import Connection, Names, People, Service, credentials_of
from paddock.dashboard.watched import PATHS_MAX, Stream, Told
from paddock.errors import PaddockError

logger: Final = logging.getLogger(__name__)

Fields: TypeAlias = dict[str, Any]
Work: TypeAlias = Callable[[Request], Awaitable[Fields]]

STATIC: Final = Path(__file__).with_name("static")
_REQUEST_SECONDS: Final = 60.0
# A comment on a stream without news: what stands between must not take it for dead.
_ALIVE_SECONDS: Final = 15.0
_SEARCH_BYTES_MAX: Final = 1000
_STRANGER: Final = (
    "Use the link that the dashboard has printed where it was started. Each link works once."
)


@dataclass(frozen=True, slots=True)
class Options:
    """What is shown, and what may be done."""

    service: Service
    allow_writes: bool = False


class Dashboard:
    """The dashboard of one service."""

    def __init__(self, options: Options, door: Callable[[Callable[[Visitor], None]], Door]) -> None:
        self._options = options
        self.people: Final = People(options.service)
        self.door: Final = door(self.people.leave)
        # Is told when a link was used, so that a new one can be printed.
        self.on_enter: Callable[[], None] = lambda: None
        self._files = _read_files(STATIC)
        self._listings: WeakKeyDictionary[Client, tree.Listings] = WeakKeyDictionary()
        self.app: Final[ASGIApp] = Guard(
            Starlette(
                routes=[
                    Route("/", self._page),
                    Route("/login", self._login),
                    Route("/static/{name:path}", self._file),
                    Route("/api/live", self._live),
                    *self._get("about", self._about),
                    *self._get("children", self._children),
                    *self._get("node", self._node),
                    *self._get("search", self._search),
                    *self._post("identity", self._introduce),
                ],
                lifespan=self._lifespan,
                exception_handlers={HTTPException: _http_error},
            ),
            self.door,
        )

    def close_streams(self) -> None:
        """End all streams, so that the server can end."""
        for connection in self.people.all():
            connection.watched.end_streams()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        await self.people.start()
        try:
            yield
        finally:
            await self.people.close()

    def _get(self, name: str, work: Work) -> list[Route]:
        return [Route(f"/api/{name}", _endpoint(work), methods=["GET"])]

    def _post(self, name: str, work: Work) -> list[Route]:
        return [Route(f"/api/{name}", _endpoint(work), methods=["POST"])]

    # The page.

    async def _page(self, request: Request) -> Response:
        if request.scope[VISITOR] is None:
            return _says(_STRANGER, 401)
        return self._files["index.html"].response(request)

    async def _file(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        return file.response(request)

    async def _login(self, request: Request) -> Response:
        if request.method != "GET":
            # What looks ahead at links must not use them up.
            return Response(status_code=204)
        try:
            value = self.door.enter(request.query_params.get("token", ""))
        except RefusedError as refusal:
            return _says(f"{refusal} {_STRANGER}", refusal.status)
        self.on_enter()
        return Response(
            status_code=303, headers={"location": "/", "set-cookie": self.door.set_cookie(value)}
        )

    # Reading.

    async def _about(self, request: Request) -> Fields:
        connection = self._connection(request)
        service = self._options.service
        names, client = Names(), None
        if connection.is_connected:
            names, client = await connection.names(), connection.client
        return {
            "service": service.hosts,
            "servers": service.servers,
            "root": service.root,
            "is_paddock": client is not None and client.is_exact,
            "allow_writes": self._options.allow_writes,
            "identity": names.fields(),
        }

    async def _children(self, request: Request) -> Fields:
        client = await self._client(request)
        return await tree.children(
            client,
            self._listings.setdefault(client, tree.Listings()),
            path_of(request),
            request.query_params.get("after"),
            number_of(request, "offset", 0, 1 << 40),
            max(1, number_of(request, "limit", tree.PAGE_MAX, tree.PAGE_MAX)),
        )

    async def _node(self, request: Request) -> Fields:
        size_max = number_of(request, "bytes", tree.DATA_BYTES, tree.DATA_BYTES_MAX)
        return await tree.node(await self._client(request), path_of(request), size_max)

    async def _search(self, request: Request) -> Fields:
        text, root = request.query_params.get("q", ""), path_of(request, "root", "/")
        if not text or len(text) > _SEARCH_BYTES_MAX:
            raise RefusedError(400, f"q: expected 1 to {_SEARCH_BYTES_MAX} characters.")
        after = request.query_params.get("next")
        if after is not None and not f"{checked(after, 'next')}/".startswith(
            root.rstrip("/") + "/"
        ):
            raise RefusedError(400, "next: expected what the last answer had.")
        return await tree.search(await self._client(request), root, text, after)

    async def _live(self, request: Request) -> Response:
        try:
            paths = {checked(one) for one in request.query_params.getlist("path")}
            if len(paths) > PATHS_MAX:
                raise RefusedError(400, f"path: at most {PATHS_MAX} can be looked at.")
        except RefusedError as refusal:
            return answer(refusal.fields, refusal.status)
        watched = self._connection(request).watched
        stream = watched.add(paths)

        async def telling() -> AsyncIterator[bytes]:
            try:
                async for piece in _pieces(stream):
                    yield piece
            finally:
                watched.remove(stream)

        return StreamingResponse(telling(), media_type="text/event-stream")

    # Who asks.

    async def _introduce(self, request: Request) -> Fields:
        fields = await fields_of(request)
        visitor = _visitor(request)
        if not fields:
            connection = await self.people.forget(visitor)
        else:
            given = credentials_of(fields.get("scheme"), fields.get("credentials"))
            connection = await self.people.introduce(visitor, *given)
        return (await connection.names()).fields()

    def _connection(self, request: Request) -> Connection:
        return self.people.of(_visitor(request))

    async def _client(self, request: Request) -> Client:
        """Return the client for a request: of the present, or of the past that it asks for."""
        return self._connection(request).client


async def _pieces(stream: Stream) -> AsyncIterator[bytes]:
    """Yield what a page is told, as server-sent events."""
    # The first piece is sent with the headers, so that the page knows that it is connected.
    yield b": hello\n\n"
    while True:
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                told = await stream.next()
        except TimeoutError:
            yield b": alive\n\n"
            continue
        if stream.is_closed:
            return
        yield b"".join(map(_event, told))


def _event(told: Told) -> bytes:
    name, fields = told
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encoded(fields))


def _endpoint(work: Work) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of some work: what it raises is one sentence in JSON."""

    async def endpoint(request: Request) -> Response:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                return answer(await work(request))
        except RefusedError as error:
            refusal = error
        except (PaddockError, UnicodeError) as error:
            refusal = refusal_of(error)
        except TimeoutError:
            refusal = RefusedError(503, f"No answer within {_REQUEST_SECONDS:.0f} s.")
        except Exception:
            logger.exception("%s failed", request.url.path)
            refusal = RefusedError(500, "The dashboard has failed; what it has printed says how.")
        return answer(refusal.fields, refusal.status)

    return endpoint


def _visitor(request: Request) -> Visitor:
    visitor = request.scope[VISITOR]
    assert isinstance(visitor, Visitor), "the guard lets nobody else in"
    return visitor


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    says = {404: "There is nothing here.", 405: "This is not done that way."}
    return answer({"error": says.get(error.status_code, error.detail)}, error.status_code)


def _says(sentence: str, status: int) -> Response:
    """Return a page of one sentence, which is ours and no input."""
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Paddock</title>'
        f"<h1>Paddock</h1><p>{sentence}</p></html>",
        status,
    )


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the page."""

    content: bytes
    kind: str
    etag: str

    def response(self, request: Request) -> Response:
        headers = {"etag": self.etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.kind, headers=headers)


def _read_files(folder: Path) -> dict[str, _File]:
    """Return the files of a folder by their names below it."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            # The system's table of types may be wrong or missing.
            kind = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}.get(
                path.suffix, mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            )
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = _File(content, kind, etag)
    return files
