"""Whatever comes instead of a message of etcd's: it is decoded, or it is a MessageError."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.log.etcd import messages
from paddock.log.etcd.messages import MessageError
from tests.property.bounds import examples
from tests.unit.log.etcd import responses

PARSERS: list[Callable[[bytes], object]] = [
    messages.parse_page,
    messages.parse_read,
    messages.parse_token,
    messages.parse_watch,
    messages.revision_if_succeeded,
    messages.succeeded,
    lambda data: messages.parse_status(data, "host:1"),
]

numbers = st.integers(0, (1 << 64) - 1)
keys = st.builds(
    responses.item, st.binary(max_size=20), st.binary(max_size=300), numbers, st.integers(0, 300)
)
# Bytes that may be read as a message, some levels deep.
bodies = st.recursive(
    st.one_of(st.binary(max_size=30), keys),
    lambda inner: st.lists(
        st.one_of(
            st.builds(responses.content, st.integers(1, 12), inner),
            st.builds(responses.number, st.integers(1, 12), numbers),
            inner,
        ),
        max_size=5,
    ).map(b"".join),
    max_leaves=8,
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Draw a message with something cut out, put in or changed."""
    message = bytearray(draw(bodies))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(message)))
        until = at + draw(st.integers(0, 4))
        message[at:until] = draw(st.binary(max_size=4))
    return bytes(message)


@pytest.mark.parametrize("parse", PARSERS)
@given(data=spoiled())
@examples(300)
def test_any_bytes_are_decoded_or_refused(parse: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(MessageError):
        parse(data)


@given(puts=st.lists(st.tuples(st.binary(max_size=40), numbers, numbers, st.binary(max_size=400))))
@examples(100)
def test_every_put_of_a_watch_is_found(puts: list[tuple[bytes, int, int, bytes]]) -> None:
    events = [responses.put_event(key, value, mod, version) for key, mod, version, value in puts]
    assert messages.parse_watch(responses.watch(*events)).puts == puts
