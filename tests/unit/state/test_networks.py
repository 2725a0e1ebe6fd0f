"""Addresses and networks, against the standard library where its rules are ours."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paddock.state.networks import parse_address, parse_network

#: What an address is made of, and what it may be mistaken for.
_PIECES = st.sampled_from(
    ["0", "1", "f", "AB", "ffff", "00001", "g", "٣", ":", ":", ":", "::", ".", "1.2.3.4", "255",
     "256", "01", "%", "%eth0", " ", "-", "+", "_", "0x1", "\n"]
)  # fmt: skip


def standard(text: str) -> tuple[int, int] | None:
    try:
        return int(IPv6Address(text)), 128
    except AddressValueError:
        return None


@example("::")
@example(":::")
@example("1::2::3")
@example("1:2:3:4:5:6:7::")
@example("::2:3:4:5:6:7:8")
@example("1:2:3:4:5:6:7:8")
@example("1:2:3:4:5:6:7:8:9")
@example("1:2:3:4::5:6:7:8")
@example("1:2:3:4:5:6:1.2.3.4")
@example("::1.2.3.4")
@example("1.2.3.4::")
@example("::1.2.3.4:5")
@example("::01.2.3.4")
@example("::1.2.3.256")
@example(":1.2.3.4")
@example("1.2.3.4%a:b")
@example("::1%")
@example("::1%a%b")
@example("::1\n")
@given(st.lists(_PIECES, max_size=17).map("".join).filter(lambda text: ":" in text))
def test_ipv6_addresses_are_those_of_the_standard_library(text: str) -> None:
    assert parse_address(text) == standard(text)


@given(st.ip_addresses(v=6), st.sampled_from(["compressed", "exploded"]))
def test_every_ipv6_address_is_parsed(address: IPv6Address, form: str) -> None:
    assert parse_address(getattr(address, form)) == (int(address), 128)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1", (0x7F000001, 32)),
        ("+1.01.000.9", (0x01010009, 32)),
        ("-0.0.0.0", (0, 32)),
        ("256.0.0.1", None),
        ("1.2.3", None),
        ("1.2.3.4.5", None),
        ("1.2.3.", None),
        ("1.2.3.٣", None),
        ("", None),
    ],
)
def test_ipv4_addresses_have_numbers_as_java_parses_them(
    text: str, expected: tuple[int, int] | None
) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.0", (0x0A000000, 32, 32)),
        ("10.0.0.0/8", (0x0A000000, 32, 8)),
        ("10.0.0.0/0", (0x0A000000, 32, 0)),
        ("10.0.0.0/33", None),
        ("10.0.0.0/-1", None),
        ("10.0.0.0/", None),
        ("10.0.0.0/8/8", None),
        ("fe80::/10", (0xFE80 << 112, 128, 10)),
        ("::/129", None),
        ("/8", None),
    ],
)
def test_networks(text: str, expected: tuple[int, int, int] | None) -> None:
    assert parse_network(text) == expected
