"""DIGEST-MD5: what both sides compute, by the examples of its RFC, and how messages are read."""

from __future__ import annotations

import string
from itertools import product

import pytest

from paddock.protocol.digest_md5 import (
    MESSAGE_BYTES_MAX,
    DirectiveError,
    Proof,
    quoted,
    read_directives,
    secret_of,
)


@pytest.mark.parametrize(
    ("service", "nonce", "client_nonce", "of_client", "of_server"),
    [
        (
            *(b"imap", b"OA6MG9tEQGm2hh", b"OA6MHXh6VqTrRk"),
            b"d388dad90d4bbd760a152321f2143af7",
            b"ea40f60335c427b5527b84dbabcdfffd",
        ),
        (
            *(b"acap", b"OA9BSXrbuRhWay", b"OA9BSuZWMSpW8m"),
            b"6084c6db3fede7352c551284490fd0fc",
            b"2f0b3d7c3c2e486600ef710726aa2eae",
        ),
    ],
)
def test_the_examples_of_the_rfc_are_proved(
    service: bytes, nonce: bytes, client_nonce: bytes, of_client: bytes, of_server: bytes
) -> None:
    """RFC 2831, 4."""
    secret = secret_of("chris", "secret", "elwood.innosoft.com")
    proof = Proof(secret, nonce, client_nonce, service + b"/elwood.innosoft.com")
    assert (proof.of_client(), proof.of_server()) == (of_client, of_server)


def test_whom_a_client_wants_to_act_as_is_part_of_the_proof() -> None:
    def proof(authorization: bytes | None) -> bytes:
        return Proof(b"secret", b"n", b"c", b"u", authorization).of_client()

    assert len({proof(None), proof(b""), proof(b"bob")}) == 3


def test_each_part_of_a_secret_is_in_latin_1_if_that_has_its_characters() -> None:
    latin = secret_of("jos\u00e9", "p")
    assert latin != secret_of("jos\u00c3\u00a9", "p")
    # As if its bytes in UTF-8 were those of Latin-1.
    assert secret_of("\u3042", "p") == secret_of("\u00e3\u0081\u0082", "p")
    assert secret_of("jos\u00e9", "\u3042") == secret_of("jos\u00e9", "\u00e3\u0081\u0082")


@pytest.mark.parametrize(
    ("message", "directives"),
    [
        (b"", {}),
        (b"a=b", {"a": b"b"}),
        (b'A="b"', {"a": b"b"}),
        (b'a="b,c=d",e=f', {"a": b"b,c=d", "e": b"f"}),
        (rb'a="\"b\\"', {"a": rb'"b' + b"\\"}),
        (b",,a=b,, \t,c=d,", {"a": b"b", "c": b"d"}),
        (b' a = b ,\r\n c = "d" ', {"a": b"b", "c": b"d"}),
        (b"uri=zookeeper/zk-sasl-md5", {"uri": b"zookeeper/zk-sasl-md5"}),
        (b'a=""', {"a": b""}),
        (b'a="\xff\x00"', {"a": b"\xff\x00"}),
    ],
)
def test_a_message_is_a_list_of_directives(message: bytes, directives: dict[str, bytes]) -> None:
    assert read_directives(message) == directives


@pytest.mark.parametrize(
    "message",
    [
        *(b"a", b"a=", b"=b", b'a="b', b'a="b\\"', b'a="b"c', b"a=b c=d", b"a=b;c=d", b"\x00"),
        # A value that belongs to the directive before it.
        *(b'realm="x",realm', b"a=b,c", b'a="b",c=', b'a="b" c', b'a="b",c="'),
        *(b"a=b,a=c", b"A=b,a=b", b"\xffa=b", b'"a"=b', b"a=" + b"b" * MESSAGE_BYTES_MAX),
    ],
)
def test_what_is_no_such_list_is_refused(message: bytes) -> None:
    with pytest.raises(DirectiveError):
        read_directives(message)


def directives_of(message: bytes) -> dict[str, bytes] | None:
    """Read a message one character at a time; None if it is none."""
    text, at = message.decode("latin-1"), 0
    found: dict[str, bytes] = {}

    def skip(characters: str) -> str:
        nonlocal at
        begin = at
        while at < len(text) and text[at] in characters:
            at += 1
        return text[begin:at]

    token = "".join(chr(code) for code in range(0x21, 0x100) if chr(code) not in '\x7f",;=')
    name = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
    while True:
        skip(" \t\r\n,")
        if at == len(text):
            return found
        key = skip(name).lower()
        skip(" \t\r\n")
        if not key or text[at : at + 1] != "=":
            return None
        at += 1
        skip(" \t\r\n")
        if text[at : at + 1] == '"':
            value = ""
            at += 1
            while text[at : at + 1] not in ("", '"'):
                at += text[at] == "\\"
                value += text[at : at + 1]
                at += 1
            if at >= len(text):
                return None
            at += 1
        else:
            value = skip(token)
            if not value:
                return None
        skip(" \t\r\n")
        if text[at : at + 1] not in ("", ",") or key in found:
            return None
        found[key] = value.encode("latin-1")


@pytest.mark.parametrize("start", [b"", b'a="', b'b="\\",a', b"a=b "])
def test_every_short_message_is_read_by_its_characters(start: bytes) -> None:
    """Not by the expression alone, which Python 3.11.4 and before matched wrongly."""
    for length in range(5):
        for codes in product(b'a="\\, ;(\0', repeat=length):
            message = start + bytes(codes)
            expected = directives_of(message)
            if expected is None:
                with pytest.raises(DirectiveError):
                    read_directives(message)
            else:
                assert read_directives(message) == expected, message


def test_the_number_of_directives_is_bounded() -> None:
    many = [b"a%d=b" % number for number in range(33)]
    assert len(read_directives(b",".join(many[:32]))) == 32
    with pytest.raises(DirectiveError, match="too many directives"):
        read_directives(b",".join(many))


@pytest.mark.parametrize("value", [b"", b"bob", b'"', b"\\", b'a\\"b,c=d', b"\xff\n"])
def test_what_is_quoted_is_read_as_it_was(value: bytes) -> None:
    assert read_directives(b"a=" + quoted(value)) == {"a": value}


def test_a_long_message_of_nothing_but_openings_takes_no_time() -> None:
    for piece in (b'"', b"\\", b" ", b",", b'a="', b"a=b ", b"a", b'\\"', b'a="\\"', b"a=b,c "):
        text = (piece * MESSAGE_BYTES_MAX)[: MESSAGE_BYTES_MAX - 2] + b'"x'
        with pytest.raises(DirectiveError):
            read_directives(text)
