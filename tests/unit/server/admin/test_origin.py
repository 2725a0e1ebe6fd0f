"""Which requests the admin server refuses for where they come from, rule by rule."""

from __future__ import annotations

import socket

import pytest

from paddock.server.admin.origin import AdminHosts, why_refused

HOSTS = AdminHosts("admin.example", ["Proxy.Example."])
BROWSER = ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)")
HERE = ("Host", "localhost:8080")
CROSS_SITE = ("Sec-Fetch-Site", "cross-site")
NAVIGATE, DOCUMENT = ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")

NAME, SITE, UNMARKED = "not asked by that name", "another site may not", "Nothing tells that"


def refusal(
    *headers: tuple[str, str], changes: bool = False, hosts: AdminHosts = HOSTS
) -> str | None:
    # As h11 gives them: names in lower case, values as they came.
    found = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return why_refused(found, hosts, changes=changes)


@pytest.mark.parametrize(
    "host",
    [
        "admin.example",
        "proxy.example:8080",
        "LOCALHOST.",
        "any.localhost:1",
        "127.0.0.1",
        "192.0.2.7:80",
        "[::1]:8080",
        socket.gethostname(),
        # HTTP 1.0 has none.
        "",
    ],
)
def test_names_by_which_it_may_be_asked(host: str) -> None:
    assert refusal(("Host", host)) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil-localhost",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1:8080@evil.example",
        "admin.example.evil",
        "[::1].evil",
        "[::1",
        "*",
    ],
)
def test_names_by_which_it_may_not_be_asked(host: str) -> None:
    assert NAME in str(refusal(("Host", host)))
    assert refusal(("Host", host), hosts=AdminHosts("admin.example", ["*"])) is None


def test_a_refused_name_says_how_it_can_be_allowed() -> None:
    assert "--admin-allowed-hosts (paddock.adminAllowedHosts)" in str(refusal(("Host", "x")))


@pytest.mark.parametrize(
    ("headers", "read", "change"),
    [
        # Tools mark nothing.
        ([], None, None),
        ([("User-Agent", "curl/8")], None, None),
        # What a browser says of where it comes from.
        ([("Sec-Fetch-Site", "same-origin")], None, None),
        ([("Sec-Fetch-Site", "none")], None, None),
        ([("Sec-Fetch-Site", "same-site")], SITE, SITE),
        ([CROSS_SITE], SITE, SITE),
        ([CROSS_SITE, NAVIGATE, DOCUMENT], None, SITE),
        ([CROSS_SITE, NAVIGATE, ("Sec-Fetch-Dest", "iframe")], SITE, SITE),
        ([CROSS_SITE, ("Sec-Fetch-Mode", "no-cors"), DOCUMENT], SITE, SITE),
        ([("Origin", "http://localhost:8080")], None, None),
        ([("Origin", "HTTP://LOCALHOST:8080")], None, None),
        ([("Origin", "http://localhost")], SITE, SITE),
        ([("Origin", "https://localhost:8080")], SITE, SITE),
        ([("Origin", "http://evil.example")], SITE, SITE),
        ([("Origin", "null")], SITE, SITE),
        ([("Origin", "")], SITE, SITE),
        ([("Origin", "http://[")], SITE, SITE),
        ([("Origin", "http://evil.example"), NAVIGATE, DOCUMENT], SITE, SITE),
        ([("Origin", "http://evil.example"), ("Sec-Fetch-Site", "none")], SITE, SITE),
        ([("Origin", "http://localhost:8080"), CROSS_SITE], SITE, SITE),
        # One that does not say it.
        ([BROWSER], None, UNMARKED),
        ([("User-Agent", "MOZILLA/5.0")], None, UNMARKED),
        ([BROWSER, ("Referer", "http://evil.example/")], None, UNMARKED),
        ([BROWSER, ("Referer", "http://localhost:8080/commands")], None, None),
        ([BROWSER, ("Sec-Fetch-Site", "same-origin")], None, None),
        ([BROWSER, ("Origin", "http://localhost:8080")], None, None),
    ],
)
def test_what_a_page_of_another_site_may_ask(
    headers: list[tuple[str, str]], read: str | None, change: str | None
) -> None:
    for changes, expected in ((False, read), (True, change)):
        found = refusal(HERE, *headers, changes=changes)
        assert found is None if expected is None else expected in str(found)


def test_without_a_host_no_origin_is_ours() -> None:
    assert SITE in str(refusal(("Origin", "http://")))
    assert UNMARKED in str(refusal(BROWSER, ("Referer", "http://"), changes=True))
