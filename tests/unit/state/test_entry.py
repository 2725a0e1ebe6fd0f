"""What the log holds, in bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from paddock.protocol import opcodes
from paddock.protocol.acl import Identity
from paddock.protocol.jute import DecodeError
from paddock.state.access import NOBODY, Identities
from paddock.state.entry import EXPIRE, RULES, Batch, Entry

WHO = Identities((Identity("ip", "127.0.0.1"), Identity("digest", "bob:ä")))
ENTRIES = [
    Entry(opcodes.CREATE, b"body", 1 << 62, 7, -4, 1_700_000_000_000, 1, WHO),
    Entry(EXPIRE, b"", 5, 2, time_ms=3),
    Entry(opcodes.SET_DATA, bytes(300), identities=NOBODY),
    Entry(opcodes.SET_DATA, b"x", identities=WHO),
]


def fields(entry: Entry) -> tuple[object, ...]:
    who = None if entry.identities is None else entry.identities.entries
    return (
        *(entry.operation, entry.body, entry.session, entry.generation, entry.xid),
        *(entry.time_ms, entry.flags, who),
    )


def test_a_batch_comes_back_as_encoded() -> None:
    batch = Batch.decode(Batch(ENTRIES, 41, 1 << 40).encode())
    assert [fields(entry) for entry in batch.entries] == [fields(entry) for entry in ENTRIES]
    assert (batch.digest_index, batch.digest) == (41, 1 << 40)


def test_an_empty_batch_is_a_batch() -> None:
    assert Batch.decode(Batch([], 0, 0).encode()).entries == []


def test_a_batch_cut_at_any_byte_is_a_decode_error() -> None:
    wire = Batch(ENTRIES, 41, 42).encode()
    for cut in range(len(wire)):
        with pytest.raises(DecodeError):
            Batch.decode(wire[:cut])


@pytest.mark.parametrize("entry", ENTRIES, ids=range(len(ENTRIES)))
def test_the_size_of_an_entry_is_what_it_takes(entry: Entry) -> None:
    writer = BytesWriter()
    entry.write(writer)
    assert entry.size() == len(writer.getvalue())


def test_the_same_identities_are_decoded_once() -> None:
    known: dict[bytes, Identities] = {}
    batch = Batch.decode(Batch(ENTRIES, 0, 0).encode(), known)
    assert batch.entries[0].identities is batch.entries[3].identities
    again = Batch.decode(Batch(ENTRIES, 0, 0).encode(), known)
    assert again.entries[0].identities is batch.entries[0].identities


def test_an_entry_under_rules_that_we_do_not_have_is_refused() -> None:
    wire = bytearray(Batch([Entry(opcodes.DELETE, b"")], 0, 0).encode())
    assert wire[20] == RULES
    wire[20] = 99
    with pytest.raises(DecodeError, match="rules 99"):
        Batch.decode(bytes(wire))


def test_a_batch_with_a_negative_count_is_refused() -> None:
    with pytest.raises(DecodeError):
        Batch.decode(bytes(16) + b"\xff\xff\xff\xff")


@given(st.binary(max_size=100))
def test_any_bytes_are_a_batch_or_a_decode_error(junk: bytes) -> None:
    try:
        Batch.decode(junk)
    except DecodeError:
        pass


@given(st.integers(0, 1000), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
def test_one_changed_byte_is_a_batch_or_a_decode_error(position: int, byte: int) -> None:
    wire = bytearray(Batch(ENTRIES, 41, 42).encode())
    wire[position % len(wire)] = byte
    try:
        Batch.decode(bytes(wire))
    except DecodeError:
        pass
