"""Whether a certificate names a host; upstream's rules."""

import asyncio
from typing import Any

import pytest

from paddock.server.tls.hostnames import comes_from_its_host, names_host


def certificate(*alternatives: tuple[str, str], common_name: str = "") -> dict[str, Any]:
    shown: dict[str, Any] = {"subject": ((("organizationName", "Example"),),)}
    if common_name:
        shown["subject"] += ((("commonName", common_name),),)
    if alternatives:
        shown["subjectAltName"] = alternatives
    return shown


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("one.example", "one.example", True),
        ("ONE.example", "one.EXAMPLE", True),
        ("one.example", "two.example", False),
        ("*.example", "one.example", True),
        ("*.example", "a.one.example", False),
        ("*.example", "example", False),
        ("o*e.example", "one.example", True),
        ("o*e.example", "two.example", False),
        ("one*one.example", "one.example", False),
    ],
)
def test_a_name_is_matched_with_at_most_one_star(pattern: str, host: str, matches: bool) -> None:
    assert names_host(certificate(("DNS", pattern)), host) is matches
    assert names_host(certificate(common_name=pattern), host) is matches


@pytest.mark.parametrize(
    ("shown", "host", "matches"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1", True),
    ],
)
def test_an_address_is_matched_by_value(shown: str, host: str, matches: bool) -> None:
    assert names_host(certificate(("IP Address", shown)), host) is matches


def test_the_common_name_counts_only_without_alternative_names() -> None:
    assert names_host(certificate(common_name="one.example"), "one.example")
    other = certificate(("DNS", "two.example"), common_name="one.example")
    assert not names_host(other, "one.example")
    # An address for mail is no alternative for a host.
    mail = certificate(("email", "a@one.example"), common_name="one.example")
    assert names_host(mail, "one.example")


def test_an_address_among_the_names_does_not_count() -> None:
    assert not names_host(certificate(("DNS", "192.0.2.1")), "192.0.2.1")


def test_the_last_common_name_counts() -> None:
    shown = {"subject": ((("commonName", "one.example"),), (("commonName", "two.example"),))}
    assert names_host(shown, "two.example")
    assert not names_host(shown, "one.example")


def test_nothing_names_nobody() -> None:
    assert not names_host({}, "one.example")


class FakeResolver:
    """Answers for the loop: names of addresses, and addresses of names."""

    def __init__(self, names: dict[str, str], addresses: dict[str, list[str]]) -> None:
        self._names = names
        self._addresses = addresses

    async def getnameinfo(self, place: tuple[str, int], flags: int = 0) -> tuple[str, str]:
        if place[0] not in self._names:
            raise OSError("no such address")
        return self._names[place[0]], "0"

    async def getaddrinfo(self, host: str, port: object, **_: object) -> list[tuple[Any, ...]]:
        return [(0, 0, 0, "", (one, 0)) for one in self._addresses.get(host, [])]


@pytest.mark.parametrize(
    ("names", "addresses", "expected"),
    [
        ({"192.0.2.1": "one.example"}, {"one.example": ["192.0.2.1"]}, True),
        # The owner of the address claims a name that does not resolve to the address.
        ({"192.0.2.1": "one.example"}, {"one.example": ["192.0.2.9"]}, False),
        ({"192.0.2.1": "two.example"}, {"two.example": ["192.0.2.1"]}, False),
        ({}, {}, False),
    ],
)
def test_the_name_of_the_address_counts_if_it_leads_back(
    names: dict[str, str],
    addresses: dict[str, list[str]],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> bool:
        resolver = FakeResolver(names, addresses)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getnameinfo", resolver.getnameinfo)
        monkeypatch.setattr(loop, "getaddrinfo", resolver.getaddrinfo)
        return await comes_from_its_host(certificate(("DNS", "one.example")), "192.0.2.1")

    assert asyncio.run(ask()) is expected
