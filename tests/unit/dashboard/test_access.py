"""Who gets in, from where, and how much: every way to be somebody else's page is refused."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from paddock.dashboard.access import (
    AT_ONCE_MAX,
    BODY_BYTES_MAX,
    COOKIE_SECONDS,
    CSP,
    LIVE_MAX,
    PER_SECOND_MAX,
    VISITOR,
    VISITORS_MAX,
    WRONG_TOKENS_MAX,
    Door,
    Guard,
    RefusedError,
    Visitor,
)
from tests.support.asgi import Browser, until

HOST = "127.0.0.1:8090"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Echo:
    """An application that says who asks, and how much it was sent; it may be told to wait."""

    def __init__(self) -> None:
        self.held: asyncio.Event | None = None
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0
        if scope["method"] == "POST":
            while True:
                message = await receive()
                size += len(message["body"])
                if not message["more_body"]:
                    break
        if self.held is not None:
            self.inside += 1
            await self.held.wait()
        visitor = scope[VISITOR]
        body = f'{{"visitor": {visitor.number if visitor else 0}, "size": {size}}}'.encode()
        # What an application says of caching does not count.
        headers = [(b"Cache-Control", b"public")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Site:
    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.left: list[Visitor] = []
        self.door = Door(8090, self.clock, on_leave=self.left.append, **options)
        self.echo = Echo()
        self.guard = Guard(self.echo, self.door)

    def browser(self, host: str = HOST, *, with_cookie: bool = True) -> Browser:
        browser = Browser(self.guard, host)
        if with_cookie:
            value = self.door.enter(self.door.new_token())
            browser.cookie = f"{self.door.cookie_name}={value}"
        return browser


def run(story: Callable[[Site], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def main() -> None:
        await story(Site(**options))

    asyncio.run(main())


def test_a_token_works_once_and_gives_a_cookie() -> None:
    async def story(site: Site) -> None:
        token = site.door.new_token()
        value = site.door.enter(token)
        with pytest.raises(RefusedError) as refused:
            site.door.enter(token)
        assert refused.value.status == 403
        browser = site.browser(with_cookie=False)
        assert (await browser.get("/api/about")).status == 401
        browser.cookie = f"other=1; {site.door.cookie_name}={value}"
        assert (await browser.get("/api/about")).json()["visitor"] == 1

    run(story)


def test_the_cookie_is_for_no_script_no_other_site_and_no_plain_connection() -> None:
    plain = Door(8090, Clock()).set_cookie("x")
    assert plain.startswith("paddock_dashboard_8090=x; Path=/; ")
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in plain.split(";")}
    secure = Door(8090, Clock(), has_tls=True).set_cookie("x")
    assert secure.startswith("__Host-paddock_dashboard_8090=x; Path=/; ")
    assert secure.endswith("; Secure")


def test_wrong_tokens_are_counted_and_the_right_one_still_works() -> None:
    site = Site()
    token = site.door.new_token()
    statuses = []
    for _ in range(WRONG_TOKENS_MAX + 2):
        with pytest.raises(RefusedError) as refused:
            site.door.enter(token[:-1])
        statuses.append(refused.value.status)
    assert statuses == [403] * WRONG_TOKENS_MAX + [429] * 2
    assert site.door.enter(token)
    site.clock.now += 60
    with pytest.raises(RefusedError) as refused:
        site.door.enter("")
    assert refused.value.status == 403


def test_a_cookie_lasts_a_day_and_the_oldest_of_too_many_goes() -> None:
    async def story(site: Site) -> None:
        first = site.browser()
        for _ in range(VISITORS_MAX - 1):
            last = site.browser()
        assert (await first.get("/api/about")).status == 200
        site.browser()
        assert (await first.get("/api/about")).status == 401
        assert [one.number for one in site.left] == [1]
        site.clock.now += COOKIE_SECONDS - 1
        assert (await last.get("/api/about")).status == 200
        site.clock.now += 1
        assert (await last.get("/api/about")).status == 401
        assert len(site.left) == VISITORS_MAX + 1

    run(story)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8090", 200),
        ("localhost:8090", 200),
        ("LOCALHOST:8090", 200),
        ("[::1]:8090", 200),
        ("dash.example.com", 200),
        ("dash.example.com:8090", 200),
        # A name that somebody has pointed at this machine, and others that are not ours.
        ("evil.example.com:8090", 403),
        ("127.0.0.1.evil.example.com:8090", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:80", 403),
        ("localhost:8090@evil.example.com", 403),
        ("", 403),
    ],
)
def test_only_names_of_ours_are_answered(host: str, status: int) -> None:
    async def story(site: Site) -> None:
        for path in ("/", "/login", "/static/app.js", "/api/about"):
            answer = await site.browser(host).get(path)
            assert (path, answer.status) == (path, status)

    run(story, names=["Dash.example.com"])


def test_two_hosts_are_none() -> None:
    with pytest.raises(RefusedError):
        Site().door.check("GET", "/", {"host": f"{HOST}, {HOST}"})


@pytest.mark.parametrize("site_of_request", ["cross-site", "same-site", "anything"])
def test_what_another_site_or_port_causes_gets_nothing(site_of_request: str) -> None:
    async def story(site: Site) -> None:
        headers = {"sec-fetch-site": site_of_request}.items()
        assert (await site.browser().get("/api/node", headers)).status == 403
        # A link to the page may stand anywhere.
        assert (await site.browser().get("/", headers)).status == 200
        own = {"sec-fetch-site": "same-origin"}.items()
        assert (await site.browser().get("/api/node", own)).status == 200

    run(story)


@pytest.mark.parametrize(
    "headers",
    [
        # A form of another site: with a type that forms have, and without our header.
        {
            "content_type": "application/x-www-form-urlencoded",
            "x_paddock_dashboard": None,
            "origin": "https://evil.example.com",
        },
        {"content_type": "text/plain"},
        {"content_type": None},
        {"x_paddock_dashboard": None},
        {"x_paddock_dashboard": "0"},
        {"origin": None},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8091"},
        {"origin": "http://localhost:8090"},
        {"origin": "http://127.0.0.1:8090.evil.example.com"},
        {"origin": "ftp://127.0.0.1:8090"},
    ],
)
def test_a_write_needs_json_our_header_and_our_origin(headers: dict[str, str | None]) -> None:
    async def story(site: Site) -> None:
        browser = site.browser()
        assert (await browser.post("/api/set", {}, **headers)).status == 403
        assert (await browser.post("/api/set", {})).status == 200
        json = "application/json; charset=utf-8"
        assert (await browser.post("/api/set", {}, content_type=json)).status == 200

    run(story)


def test_other_methods_have_the_rules_of_writes() -> None:
    async def story(site: Site) -> None:
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            assert (await site.browser().ask(method, "/api/set", {})).status == 403

    run(story)


def test_a_write_needs_the_cookie() -> None:
    async def story(site: Site) -> None:
        browser = site.browser(with_cookie=False)
        assert (await browser.post("/api/set", {})).status == 401
        browser.cookie = f"{site.door.cookie_name}=guess"
        assert (await browser.post("/api/set", {})).status == 401

    run(story)


def test_every_answer_has_the_strict_headers() -> None:
    async def story(site: Site) -> None:
        browser = site.browser()
        for answer in (
            await browser.get("/"),
            await browser.get("/api/about"),
            await site.browser("evil.example.com").get("/"),
            await site.browser(with_cookie=False).get("/api/about"),
            await browser.post("/api/set", {}, origin="http://evil.example.com"),
        ):
            assert answer.headers["content-security-policy"] == CSP
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cross-origin-opener-policy"] == "same-origin"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        about = await browser.get("/api/about")
        assert about.headers["cache-control"] == "no-store"
        assert "Cache-Control" not in about.headers

    run(story)


def test_the_policy_allows_nothing_inline_and_nothing_from_outside() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in CSP.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in CSP


def test_a_browser_has_so_many_requests_a_second() -> None:
    async def story(site: Site) -> None:
        browser, other = site.browser(), site.browser()
        statuses = [(await browser.get("/api/node")).status for _ in range(PER_SECOND_MAX + 1)]
        assert statuses == [200] * PER_SECOND_MAX + [429]
        # The page itself and other browsers are not concerned.
        assert (await browser.get("/")).status == 200
        assert (await other.get("/api/node")).status == 200
        site.clock.now += 1
        assert (await browser.get("/api/node")).status == 200

    run(story)


def test_a_browser_has_so_many_requests_at_once() -> None:
    async def story(site: Site) -> None:
        browser, other = site.browser(), site.browser()
        site.echo.held = asyncio.Event()
        several = [asyncio.ensure_future(browser.get("/api/node")) for _ in range(AT_ONCE_MAX)]
        await until(lambda: site.echo.inside >= AT_ONCE_MAX)
        refused = await browser.get("/api/node")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        more = asyncio.ensure_future(other.get("/api/node"))
        site.echo.held.set()
        answers = await asyncio.gather(*several, more)
        assert {one.status for one in answers} == {200}
        assert (await browser.get("/api/node")).status == 200

    run(story)


def test_there_are_so_many_streams_in_all() -> None:
    async def story(site: Site) -> None:
        site.echo.held = asyncio.Event()
        several = [asyncio.ensure_future(site.browser().get("/api/live")) for _ in range(LIVE_MAX)]
        await until(lambda: site.echo.inside >= LIVE_MAX)
        assert (await site.browser().get("/api/live")).status == 429
        site.echo.held.set()
        await asyncio.gather(*several)
        assert (await site.browser().get("/api/live")).status == 200

    run(story)


@pytest.mark.parametrize("says_its_size", [True, False])
def test_a_body_has_a_size(says_its_size: bool) -> None:
    async def story(site: Site) -> None:
        browser = site.browser()
        headers = {
            "content-type": "application/json",
            "x-paddock-dashboard": "1",
            "origin": f"http://{HOST}",
        }
        for size, status in ((BODY_BYTES_MAX, 200), (BODY_BYTES_MAX + 1, 413)):
            more = {"content-length": str(size)} if says_its_size else {}
            answer = await browser.ask("POST", "/api/set", headers | more, body=bytes(size))
            assert answer.status == status

    run(story)


def test_there_are_no_web_sockets() -> None:
    async def story(site: Site) -> None:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": "websocket", "path": "/api/live", "headers": []}
        await site.guard(scope, receive, send)
        assert [one["type"] for one in sent] == ["websocket.close"]

    run(story)
