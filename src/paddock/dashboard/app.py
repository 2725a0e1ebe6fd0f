"""The application: what is answered at which address, and the files of the page.

* Everything below /api needs the cookie (`access`), and answers in JSON; an error is one sentence.
* A request is made with the session of its person (`people`), or of a service of the past with
  `at`. It never waits for a service that is away.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from paddock.client.client import Client
from paddock.client.session.hosts import parse_hosts
from paddock.dashboard import changes, tree
from paddock.dashboard.access import VISITOR, Door, Guard, RefusedError, Visitor
from paddock.dashboard.answers import (
    Work,
    answer,
    checked,
    endpoint,
    events_of,
    fields_of,
    http_error,
    number_of,
    path_of,
)
from paddock.dashboard.coordinating import Coordinating, Recognition, with_addresses
from paddock.dashboard.coordination.coordination import Coordination
from paddock.dashboard.figures import Watching
from paddock.dashboard.files import STATIC, page_of, read_files
from paddock.dashboard.past import NO_HISTORY, Past, Place
from paddock.dashboard.people import Connection, People, Service, credentials_of
from paddock.dashboard.sessions import Sessions, sessions_of_tree
from paddock.dashboard.watched import PATHS_MAX, Stream, Watched
from paddock.dashboard.words import AdminServer, Words
from paddock.dashboard.writing import Writer
from paddock.storage.events import FOLDER

logger: Final = logging.getLogger(__name__)

Fields: TypeAlias = dict[str, Any]

_FIRST_SECONDS: Final = 5.0
_SEARCH_BYTES_MAX: Final = 1000
_STRANGER: Final = (
    "Use the link that the dashboard has printed where it was started. Each link works once."
)


@dataclass(frozen=True, slots=True)
class Options:
    """What is shown, and what may be done."""

    service: Service
    allow_writes: bool = False
    place: Place = field(default_factory=Place)
    # How recipes are recognised below a root.
    recognise: Callable[[str], Recognition] = Coordination


class Dashboard:
    """The dashboard of one service."""

    def __init__(self, options: Options, door: Callable[[Callable[[Visitor], None]], Door]) -> None:
        self._options = options
        self.people: Final = People(options.service)
        self.door: Final = door(self._leave)
        self._streams: dict[Stream, tuple[Visitor, Watched]] = {}
        service, place = options.service, options.place
        words = Words(
            parse_hosts(service.hosts)[0],
            service.tls,
            None if place.admin is None else AdminServer(place.admin, place.admin_password),
            place.data,
        )
        self._figures = Watching(words, self.people)
        self._sessions = Sessions(words, None if place.data is None else place.data / FOLDER)
        self._past = Past(place)
        self._coordinating = Coordinating(options.recognise)
        # Is told when a link was used, so that a new one can be printed.
        self.on_enter: Callable[[], None] = lambda: None
        self._files = read_files(STATIC)
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
                    *self._get("moment", self._moment),
                    *self._get("overview", self._overview),
                    *self._get("coordination", self._coordination),
                    *self._get("sessions", self._every_session),
                    *self._get("session", self._session),
                    *self._get("history", self._history),
                    *self._get("diff", self._diff),
                    *self._post("identity", self._introduce),
                    *self._post("create", self._writing(Writer.create)),
                    *self._post("set", self._writing(Writer.set)),
                    *self._post("delete", self._writing(Writer.delete)),
                    *self._post("acl", self._writing(Writer.set_acl)),
                ],
                lifespan=self._lifespan,
                exception_handlers={HTTPException: http_error},
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
        self._figures.start(self._recipes)
        self._past.start()
        try:
            yield
        finally:
            await self._figures.close()
            await self._past.close()
            await self._coordinating.close()
            await self.people.close()

    def _get(self, name: str, work: Work) -> list[Route]:
        return [Route(f"/api/{name}", endpoint(work), methods=["GET"])]

    def _post(self, name: str, work: Work) -> list[Route]:
        return [Route(f"/api/{name}", endpoint(work), methods=["POST"])]

    # The page.

    async def _page(self, request: Request) -> Response:
        if request.scope[VISITOR] is None:
            return page_of(_STRANGER, 401)
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
            return page_of(f"{refusal} {_STRANGER}", refusal.status)
        self.on_enter()
        return Response(
            status_code=303, headers={"location": "/", "set-cookie": self.door.set_cookie(value)}
        )

    # Reading.

    async def _about(self, request: Request) -> Fields:
        connection = self._connection(request)
        service = self._options.service
        # A page asks once, perhaps before the first connection is there.
        await connection.wait_first(_FIRST_SECONDS)
        names = await connection.latest_names()
        return {
            "service": service.hosts,
            "servers": service.servers,
            "root": service.root,
            "is_paddock": connection.is_paddock,
            "version": next((one.version for one in self._figures.servers if one.version), None),
            "allow_writes": self._options.allow_writes,
            "history": await self._reach(connection),
            "identity": names.fields(),
            "lacking": self._lacking(),
        }

    async def _reach(self, connection: Connection) -> Fields | None:
        found = await self._past.reach()
        if found is None:
            return None
        zxid = connection.client.last_zxid if connection.is_connected else 0
        return {**found, "to_ms": time.time_ns() // 1_000_000, "to_zxid": f"0x{zxid:x}"}

    def _lacking(self) -> list[Fields]:
        lacking = self._figures.lacking()
        if not self._options.place.has_states:
            lacking.append(
                {
                    "what": "The history: states of the past, and what changed.",
                    "why": "No history is named.",
                    "how": NO_HISTORY,
                }
            )
        return lacking

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
        path = path_of(request)
        if size_max == 0:
            # A page with many rows asks for each that changes.
            return await tree.row(await self._client(request), path)
        found = await tree.node(await self._client(request), path, size_max)
        if _at(request) is None:
            full = changes.full_path(self._options.service.root, path)
            found["watchers"] = await self._sessions.watchers(full)
        return found

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
        visitor = _visitor(request)
        watched = self.people.of(visitor).watched

        async def telling() -> AsyncIterator[bytes]:
            # Begun here: a page that has gone before never comes to its end.
            stream = watched.add(paths)
            self._streams[stream] = visitor, watched
            try:
                async for piece in events_of(stream):
                    yield piece
            finally:
                del self._streams[stream]
                watched.remove(stream)

        return StreamingResponse(telling(), media_type="text/event-stream")

    async def _overview(self, request: Request) -> Fields:
        if (at := _at(request)) is None:
            return await self._figures.overview()
        moment = await self._past.moment(at)
        client = await self._client(request)
        nodes = await client.count_descendants("/")
        row = {"server": self._options.service.hosts, "problem": None, "mode": "past"}
        return {
            "servers": [{**row, "zxid": moment["zxid"], "nodes": nodes + 1}],
            "series": {},
            "problems": [],
            "moment": moment,
        }

    async def _moment(self, request: Request) -> Fields:
        """Return what a moment is: the last write before it, and its time."""
        at = _at(request)
        if at is None:
            raise RefusedError(400, "at: expected a time or a zxid.")
        return await self._past.moment(at)

    async def _coordination(self, request: Request) -> Fields:
        root = path_of(request, "root", "/")
        if _at(request) is not None:
            return await self._coordinating.past(await self._client(request), root)
        found = await self._coordinating.present(self._connection(request), root)
        return with_addresses(found, await self._sessions.addresses())

    async def _recipes(self) -> list[Fields]:
        """Return the recipes that everybody may see, for the problems among them."""
        found = await self._coordinating.present(self.people.base, "/")
        recipes = found.get("recipes", [])
        return [*recipes, {"deadlocks": found.get("deadlocks", [])}]

    async def _every_session(self, request: Request) -> Fields:
        if _at(request) is None:
            return await self._sessions.fields()
        return await sessions_of_tree(await self._client(request))

    async def _session(self, request: Request) -> Fields:
        session = request.query_params.get("id", "")
        if not re.fullmatch("0x[0-9a-f]{1,16}", session):
            raise RefusedError(400, "id: expected a session, such as 0x1000a2b3c4d0001.")
        lives, over, lacking = await self._sessions.one(session)
        told = None
        if self._options.place.has_changes:
            told = await changes.story(self._past, session)
        if lives is None and over is None and told is None:
            raise RefusedError(404, f"Nothing is known of the session {session}.")
        return {"session": lives, "ended": over, "story": told, "lacking": lacking}

    async def _history(self, request: Request) -> Fields:
        return await changes.history(
            self._past,
            self._connection(request),
            self._options.service.root,
            path_of(request),
            request.query_params.get("before"),
            max(1, number_of(request, "limit", 50, changes.CHANGES_MAX)),
        )

    async def _diff(self, request: Request) -> Fields:
        since, until = (request.query_params.get(name, "") for name in ("from", "to"))
        root, path = self._options.service.root, path_of(request, "path", "/")
        return await changes.diff(
            self._past, self._connection(request), root, path, since, until or "now"
        )

    # Writing.

    def _writing(self, write: Callable[[Writer, Fields], Awaitable[Fields]]) -> Work:
        async def work(request: Request) -> Fields:
            if not self._options.allow_writes:
                raise RefusedError(403, "Nothing can be written: start it with --allow-writes.")
            fields = await fields_of(request)
            return await write(
                Writer(self._connection(request), _visitor(request), request), fields
            )

        return work

    # Who asks.

    async def _introduce(self, request: Request) -> Fields:
        fields = await fields_of(request)
        visitor = _visitor(request)
        if not fields:
            connection = await self.people.forget(visitor)
        else:
            given = credentials_of(fields.get("scheme"), fields.get("credentials"))
            connection = await self.people.introduce(visitor, *given)
        # They were told with other credentials. The page opens new ones.
        self._end_streams(visitor)
        names = connection.names() if fields else connection.latest_names()
        return (await names).fields()

    def _leave(self, visitor: Visitor) -> None:
        """Forget a visitor whose cookie is over."""
        self._end_streams(visitor)
        self.people.leave(visitor)

    def _end_streams(self, visitor: Visitor) -> None:
        for stream, (owner, watched) in [*self._streams.items()]:
            if owner is visitor:
                watched.remove(stream)

    def _connection(self, request: Request) -> Connection:
        return self.people.of(_visitor(request))

    async def _client(self, request: Request) -> Client:
        """Return the client for a request: of the present, or of the past that it asks for."""
        connection = self._connection(request)
        at = _at(request)
        return connection.client if at is None else await self._past.client(at, connection)


def _at(request: Request) -> str | None:
    """Return the moment that a request asks for; None for the present."""
    at = request.query_params.get("at")
    return None if at in ("", "now") else at


def _visitor(request: Request) -> Visitor:
    visitor = request.scope[VISITOR]
    assert isinstance(visitor, Visitor), "the guard lets nobody else in"
    return visitor
