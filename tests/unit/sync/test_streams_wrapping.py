"""Streams and scopes whose items and values are wrapped: they end as what is in them does."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from paddock.sync.portal import Portal
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream


def test_a_wrapped_stream_is_closed_as_the_one_in_it(portal: Portal) -> None:
    is_closed = threading.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            is_closed.set()

    with Stream(portal, numbers(), str) as stream:
        assert next(stream) == "0"
        assert next(stream) == "1"
        assert not is_closed.is_set()
    assert is_closed.is_set()


def test_what_cannot_be_closed_need_not_be(portal: Portal) -> None:
    class Endless(AsyncIterator[int]):
        async def __anext__(self) -> int:
            return 1

    with Stream(portal, Endless(), str) as stream:
        assert next(stream) == "1"


def test_a_wrapped_scope_takes_care_as_the_one_in_it(portal: Portal) -> None:
    @asynccontextmanager
    async def careful() -> AsyncIterator[int]:
        try:
            yield 1
        except KeyError:
            pass

    def use(error: Exception) -> None:
        with Scope(portal, careful(), str) as value:
            assert value == "1"
            raise error

    use(KeyError("taken care of"))
    with pytest.raises(ValueError, match="not"):
        use(ValueError("not taken care of"))
