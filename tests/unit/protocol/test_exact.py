"""The terms of an exact session, as the wire has them."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from paddock.protocol.exact import ASKS_EXACT, EXACT, ExactTerms, KeptReply
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectResponse

TERMS = bytes.fromhex(
    "00000001 00000040 0000000000000002 0000000000000107 0000000000000001 00000009 00000002"
    "0000002b"
    "0000000a 0000000000000105 00000000 00000003 2f6161"
    "0000000b 0000000000000106 ffffff9b ffffffff"
)


def written(terms: ExactTerms) -> bytes:
    writer = BytesWriter()
    terms.write(writer)
    return writer.getvalue()


def test_the_constant_has_the_length_of_a_password() -> None:
    assert len(ASKS_EXACT) == 16
    assert any(ASKS_EXACT)


@pytest.mark.parametrize("rest", [b"", b"more that only a later version knows"])
def test_terms_are_read_as_they_are_written(rest: bytes) -> None:
    terms = ExactTerms.read(Reader(TERMS + rest))
    assert (terms.flags, terms.window, terms.generation, terms.zxid) == (EXACT, 64, 2, 0x107)
    assert (terms.kept_generation, terms.confirmed) == (1, 9)
    one, other = terms.replies()
    assert (one.xid, one.zxid, one.error, one.body) == (10, 0x105, 0, b"/aa")
    assert (other.xid, other.zxid, other.error, other.body) == (11, 0x106, -101, None)
    assert written(terms) == TERMS
    for reply in (one, other):
        writer = BytesWriter()
        reply.write(writer)
        assert writer.getvalue() in TERMS


def test_a_refused_transaction_is_known_by_the_operation_that_failed() -> None:
    data = bytes.fromhex("0000000c 0000000000000107 ffffff9b fffffffc")
    reply = KeptReply.read(Reader(data))
    assert (reply.xid, reply.error, reply.body, reply.failed) == (12, -101, None, 2)
    writer = BytesWriter()
    reply.write(writer)
    assert writer.getvalue() == data
    assert reply.refusal() == bytes.fromhex(
        "ffffffff 00 00000000 00000000" * 2 + "ffffffff 00 ffffff9b ffffff9b ffffffff 01 ffffffff"
    )


@pytest.mark.parametrize("length", range(len(TERMS)))
def test_terms_that_are_cut_are_not_read(length: int) -> None:
    with pytest.raises(DecodeError):
        ExactTerms.read(Reader(TERMS[:length]))


@pytest.mark.parametrize("window", ["00000000", "ffffffff"])
def test_a_window_without_room_for_a_write_is_refused(window: str) -> None:
    with pytest.raises(DecodeError, match="a window of"):
        ExactTerms.read(Reader(TERMS[:4] + bytes.fromhex(window) + TERMS[8:]))


def test_who_does_not_know_terms_reads_the_response_before_them() -> None:
    writer = BytesWriter()
    response = ConnectResponse(0, 4000, 7, b"p" * 16, False)
    response.write(writer)
    assert len(writer.getvalue()) == 37
    assert ConnectResponse.read(Reader(writer.getvalue() + TERMS)) == response
