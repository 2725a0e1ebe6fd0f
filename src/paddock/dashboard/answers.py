"""Answers of the dashboard: JSON, events, errors as one sentence; and the arguments of a request.

JSON is in ASCII: a name may have half a character in it, which no encoding can write.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from paddock.client.requests.arguments import checked_path
from paddock.dashboard.access import RefusedError
from paddock.dashboard.watched import Stream, Told
from paddock.errors import (
    AuthenticationError,
    BadVersionError,
    ConnectionLostError,
    InvalidArgumentError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    PaddockError,
    QuotaExceededError,
    RequestError,
    SessionExpiredError,
)
from paddock.history.past import HistoryError

logger: Final = logging.getLogger(__name__)

Work: TypeAlias = Callable[[Request], Awaitable[dict[str, Any]]]

_REQUEST_SECONDS: Final = 60.0
# A comment on a stream without news: what stands between must not take it for dead.
_ALIVE_SECONDS: Final = 15.0
_STATUS: Final[dict[type[PaddockError], int]] = {
    NoNodeError: 404,
    NoAuthError: 403,
    AuthenticationError: 403,
    BadVersionError: 409,
    NodeExistsError: 409,
    NotEmptyError: 409,
    QuotaExceededError: 409,
    HistoryError: 409,
    InvalidArgumentError: 400,
    ConnectionLostError: 503,
    SessionExpiredError: 503,
    RequestError: 400,
}


def answer(fields: dict[str, Any], status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(encoded(fields), status, media_type="application/json")


def encoded(fields: dict[str, Any]) -> bytes:
    """Return JSON as it is sent."""
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode("ascii")


def refusal_of(error: PaddockError | UnicodeError) -> RefusedError:
    """Return what is answered if the service, or its client, refuses something."""
    if isinstance(error, UnicodeError):
        return RefusedError(400, "A name here is no text (UTF-8), and cannot be shown.")
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
    return RefusedError(status, f"{error}."[:2000])


def endpoint(work: Work) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of some work: what it raises is one sentence in JSON."""

    async def answering(request: Request) -> Response:
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

    return answering


async def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    says = {404: "There is nothing here.", 405: "This is not done that way."}
    return answer({"error": says.get(error.status_code, error.detail)}, error.status_code)


async def events_of(stream: Stream) -> AsyncIterator[bytes]:
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


def path_of(request: Request, name: str = "path", default: str | None = None) -> str:
    """Return the path that a request has as an argument. Raises RefusedError."""
    return checked(request.query_params.get(name, default), name)


def checked(path: object, name: str = "path") -> str:
    """Return a path if it is one. Raises RefusedError."""
    if not isinstance(path, str):
        raise RefusedError(400, f"{name}: expected the path of a node.")
    try:
        checked_path(path)
    except InvalidArgumentError as error:
        raise RefusedError(400, f"{error}."[:2000]) from None
    return path


def number_of(request: Request, name: str, default: int, limit: int) -> int:
    """Return a number that a request has as an argument, up to a limit. Raises RefusedError."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RefusedError(400, f"{name}: expected a number.")
    return min(int(text), limit)


async def fields_of(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request. Raises RefusedError."""
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusedError(400, "Expected a JSON object.")
    return found


def data_of(fields: dict[str, Any]) -> bytes:
    """Return the data of a node that a request has. Raises RefusedError."""
    given = fields.get("data", "")
    try:
        if isinstance(given, str):
            return base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise RefusedError(400, "data: expected base64.")


def version_of(fields: dict[str, Any]) -> int:
    """Return the version that a request expects. Raises RefusedError."""
    version = fields.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1 << 31:
        raise RefusedError(400, "version: expected the one that was shown.")
    return version
