"""Who may ask the dashboard, from where, and how much.

* A browser gets in with a token that is in the link which the command prints. It works once, and is
  exchanged for a cookie that scripts cannot read and that other sites cannot send.
* The Host has to be a name of ours: a name that somebody else has pointed at this machine (DNS
  rebinding) gets nothing. A request that another site, or another port, has caused gets nothing.
* What changes something needs more: JSON, a header that no form can send, and our own Origin.
* Every answer has the same strict headers: no script or style but ours, no frame, no cache.
* A cookie has so many requests at once and each second; a body has a size. Nothing waits in line:
  what is too much gets 429 or 413.

`Door` decides and knows no ASGI; `Guard` is the middleware around the application.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

VISITOR: Final = "paddock.visitor"
"""The key of the visitor in the scope of a request; None without a valid cookie."""

COOKIE_SECONDS: Final = 24 * 3600
VISITORS_MAX: Final = 100
WRONG_TOKENS_MAX: Final = 5
WRONG_TOKENS_SECONDS: Final = 60.0
AT_ONCE_MAX: Final = 8
PER_SECOND_MAX: Final = 50
LIVE_MAX: Final = 20
BODY_BYTES_MAX: Final = 1_500_000
"""The limits. A token that was not used yet is taken also after too many wrong ones."""

API: Final = "/api/"
LIVE: Final = "/api/live"
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_SECRET_BYTES: Final = 32
_READING: Final = frozenset({"GET", "HEAD"})
_HEADERS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)

Headers = dict[str, str]


class RefusedError(Exception):
    """A request that is not done: the status, a sentence, and what else the answer has."""

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.status = status
        self.fields = {"error": sentence, **more}


class Visitor:
    """Somebody with a cookie."""

    def __init__(self, number: int, expires_at: float) -> None:
        # For the audit line: which browser it was.
        self.number = number
        self.expires_at = expires_at
        self.at_once = 0
        # What is left of the requests of this second, and when that was counted.
        self._left = float(PER_SECOND_MAX)
        self._counted_at = 0.0

    def count(self, now: float) -> None:
        """Count a request. Raises RefusedError."""
        passed = max(0.0, now - self._counted_at)
        self._left = min(PER_SECOND_MAX, self._left + passed * PER_SECOND_MAX)
        self._counted_at = now
        if self._left < 1:
            raise RefusedError(429, f"This browser asks more than {PER_SECOND_MAX} times a second.")
        self._left -= 1


class Door:
    """Tokens, cookies and the rules for requests."""

    def __init__(
        self,
        port: int,
        now: Callable[[], float],
        *,
        names: Iterable[str] = (),
        has_tls: bool = False,
        on_leave: Callable[[Visitor], None] = lambda _: None,
    ) -> None:
        self._now = now
        self._has_tls = has_tls
        self._on_leave = on_leave
        own = ("localhost", "127.0.0.1", "[::1]")
        self._hosts = {f"{name}:{port}" for name in own}
        for name in names:
            # Behind a proxy it is asked for at the port of the proxy.
            self._hosts |= {name.lower(), f"{name.lower()}:{port}"}
        if port == (443 if has_tls else 80):
            self._hosts |= set(own)
        # Cookies belong to all ports of a host, so each dashboard has a name of its own.
        self.cookie_name: Final = f"{'__Host-' if has_tls else ''}paddock_dashboard_{port}"
        # Digests, so that no comparison tells how much of a guess was right.
        self._tokens: OrderedDict[bytes, None] = OrderedDict()
        self._visitors: OrderedDict[bytes, Visitor] = OrderedDict()
        self._wrong: deque[float] = deque()
        self._count = 0
        self.live = 0

    def new_token(self) -> str:
        """Return a token that works once. At most a few are valid at a time."""
        token = secrets.token_urlsafe(_SECRET_BYTES)
        self._tokens[_digest(token)] = None
        if len(self._tokens) > VISITORS_MAX:
            self._tokens.popitem(last=False)
        return token

    def enter(self, token: str) -> str:
        """Exchange a token for a cookie; return its value. Raises RefusedError."""
        given = _digest(token)
        found = None
        for one in self._tokens:
            if hmac.compare_digest(one, given):
                found = one
        if found is None:
            self._count_wrong()
            raise RefusedError(403, "This link was used already, or is not one of ours.")
        del self._tokens[found]
        value = secrets.token_urlsafe(_SECRET_BYTES)
        self._count += 1
        self._forget_expired()
        self._visitors[_digest(value)] = Visitor(self._count, self._now() + COOKIE_SECONDS)
        if len(self._visitors) > VISITORS_MAX:
            self._on_leave(self._visitors.popitem(last=False)[1])
        return value

    def set_cookie(self, value: str) -> str:
        """Return the header that gives a browser its cookie."""
        secure = "; Secure" if self._has_tls else ""
        return (
            f"{self.cookie_name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly;"
            f" SameSite=Strict{secure}"
        )

    def visitor(self, headers: Headers) -> Visitor | None:
        """Return whose cookie is in a request."""
        self._forget_expired()
        for pair in headers.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.cookie_name and (found := self._visitors.get(_digest(value))):
                return found
        return None

    def check(self, method: str, path: str, headers: Headers) -> Visitor | None:
        """Return who asks; None if that is nobody and need not be anybody. Raises RefusedError."""
        if headers.get("host", "").lower() not in self._hosts:
            raise RefusedError(
                403, "This is not the name of this dashboard; --name NAME gives it another one."
            )
        visitor = self.visitor(headers)
        is_api = path.startswith(API)
        if is_api and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise RefusedError(403, "Another site has caused this request.")
        if method not in _READING:
            self._check_write(headers)
        if is_api and visitor is None:
            raise RefusedError(
                401, "Use the link that the dashboard has printed where it was started."
            )
        if is_api and visitor is not None:
            visitor.count(self._now())
            if path == LIVE:
                if self.live >= LIVE_MAX:
                    raise RefusedError(429, f"{LIVE_MAX} pages are open already.")
            elif visitor.at_once >= AT_ONCE_MAX:
                raise RefusedError(
                    429, f"This browser asks for more than {AT_ONCE_MAX} things at once."
                )
        if _number(headers.get("content-length")) > BODY_BYTES_MAX:
            raise too_large()
        return visitor

    def _check_write(self, headers: Headers) -> None:
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RefusedError(403, "Expected the content type application/json.")
        if headers.get("x-paddock-dashboard") != "1":
            raise RefusedError(403, "The header X-Paddock-Dashboard is missing.")
        scheme, _, host = headers.get("origin", "").partition("://")
        # A proxy may have taken TLS off, so the scheme may be either.
        if scheme not in ("http", "https") or host.lower() != headers["host"].lower():
            raise RefusedError(403, "The Origin is another site.")

    def _count_wrong(self) -> None:
        now = self._now()
        while self._wrong and self._wrong[0] <= now - WRONG_TOKENS_SECONDS:
            self._wrong.popleft()
        if len(self._wrong) >= WRONG_TOKENS_MAX:
            raise RefusedError(429, "Too many wrong links; try again in a minute.")
        self._wrong.append(now)

    def _forget_expired(self) -> None:
        # They stand in the order in which they came, and all last equally long.
        while self._visitors:
            first = next(iter(self._visitors.values()))
            if first.expires_at > self._now():
                return
            self._on_leave(self._visitors.popitem(last=False)[1])


class Guard:
    """The middleware: the rules of a door around an application."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There are no WebSockets here.
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(scope["path"], send)
        try:
            visitor = self._door.check(
                scope["method"], scope["path"], _by_name(scope.get("headers", ()))
            )
            scope[VISITOR] = visitor
            await self._serve(scope, _limited(receive), answer, visitor)
        except RefusedError as refusal:
            await answer.refuse(refusal)

    async def _serve(
        self, scope: Scope, receive: Receive, answer: _Answer, visitor: Visitor | None
    ) -> None:
        if visitor is None:
            await self._app(scope, receive, answer.send)
        elif scope["path"] == LIVE:
            self._door.live += 1
            try:
                await self._app(scope, receive, answer.send)
            finally:
                self._door.live -= 1
        else:
            visitor.at_once += 1
            try:
                await self._app(scope, receive, answer.send)
            finally:
                visitor.at_once -= 1


class _Answer:
    """Sends an answer with the headers that each one has."""

    def __init__(self, path: str, send: Send) -> None:
        self._send = send
        self._is_started = False
        self._cache = b"no-store" if path.startswith(API) or path in ("/", "/login") else None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_started = True
            own = [*_HEADERS]
            if self._cache is not None:
                own.append((b"cache-control", self._cache))
            names = {name for name, _ in own}
            given = [one for one in message.get("headers", ()) if one[0].lower() not in names]
            message = {**message, "headers": [*given, *own]}
        await self._send(message)

    async def refuse(self, refusal: RefusedError) -> None:
        if self._is_started:
            return
        body = json.dumps(refusal.fields).encode()
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        if refusal.status == 429:
            headers.append((b"retry-after", b"1"))
        await self.send(
            {"type": "http.response.start", "status": refusal.status, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body})


def too_large() -> RefusedError:
    """Return the refusal of a body."""
    return RefusedError(413, f"A request has at most {BODY_BYTES_MAX:,} bytes.")


def _limited(receive: Receive) -> Receive:
    """Return the same, with an error once a body is too large."""
    size = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > BODY_BYTES_MAX:
                raise too_large()
        return message

    return limited


def _by_name(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return headers by their names. One that is given twice is both, so it is none of ours."""
    found: Headers = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joint = "; " if key == "cookie" else ", "
        found[key] = f"{found[key]}{joint}{text}" if key in found else text
    return found


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
