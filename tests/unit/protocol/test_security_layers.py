"""The end of a conversation by GSSAPI, and how its beginning is known."""

from __future__ import annotations

import pytest

from paddock.protocol import security_layers as layers

KERBEROS = bytes.fromhex("06092a864886f712010202")
SPNEGO = bytes.fromhex("06062b0601050502")


@pytest.mark.parametrize("length", [b"\x20", b"\x81\x90", b"\x82\x02\xd6"])
def test_a_token_of_kerberos_is_known_however_long_it_is(length: bytes) -> None:
    assert layers.is_kerberos(b"\x60" + length + KERBEROS + b"\x01\x00")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\x60",
        b"\x60\x82",
        b"\x60\x20" + SPNEGO,
        b"\x61\x20" + KERBEROS,
        b"\x60\x20" + KERBEROS[:-1],
        b"\x60\x81" + KERBEROS,
        b'username="bob"',
    ],
)
def test_any_other_token_is_not(token: bytes) -> None:
    assert not layers.is_kerberos(token)


def test_what_is_offered_and_chosen_is_no_layer() -> None:
    # RFC 4752: without a layer, the longest message is 0.
    assert layers.offer() == b"\x01\x00\x00\x00"
    layers.read_offer(layers.offer())
    assert layers.choice("älice@R") == b"\x01\x00\x00\x00\xc3\xa4lice@R"
    assert layers.read_choice(layers.choice("älice@R")) == "älice@R"
    assert layers.read_choice(layers.choice("")) == ""


def test_no_layer_is_taken_from_an_offer_of_several() -> None:
    layers.read_offer(b"\x07\x01\x00\x00")


@pytest.mark.parametrize(
    "offer", [b"", b"\x01\x00\x00", b"\x01\x00\x00\x00\x00", b"\x06\x00\x10\x00"]
)
def test_another_offer_is_an_error(offer: bytes) -> None:
    with pytest.raises(layers.LayerError):
        layers.read_offer(offer)


@pytest.mark.parametrize(
    "choice",
    [
        b"",
        b"\x01\x00\x00",
        b"\x00\x00\x00\x00",
        b"\x02\x00\x10\x00",
        b"\x03\x00\x00\x00",
        b"\x01\0\0\0\xff",
    ],
)
def test_another_choice_is_an_error(choice: bytes) -> None:
    with pytest.raises(layers.LayerError):
        layers.read_choice(choice)
