"""Answers of the dashboard: JSON, errors as one sentence, and the arguments of a request.

JSON is in ASCII: a name may have half a character in it, which no encoding can write.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from paddock.client.requests.arguments import checked_path
from paddock.dashboard.access import RefusedError
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
