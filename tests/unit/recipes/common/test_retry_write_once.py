"""A write that is sent until it has happened: what each kind of loss means for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock.errors import ConnectionLostError, NotAppliedError, ReplyLostError
from paddock.recipes.common.retry import RetryLimit, write_once

NOBODY: Any = None


class Writes:
    """A write that fails as it is told, and what is found of it then."""

    def __init__(self, *failures: ConnectionLostError, found: str | None = None) -> None:
        self._failures = list(failures)
        self._found = found
        self.sent = 0

    async def write(self) -> str:
        self.sent += 1
        if self._failures:
            raise self._failures.pop(0)
        return "written"

    async def find(self, lost: ConnectionLostError) -> str | None:
        return self._found

    def run(self) -> str:
        return asyncio.run(write_once(NOBODY, self.write, self.find, RetryLimit()))


@pytest.mark.parametrize("loss", [ConnectionLostError("set"), ReplyLostError("set")])
def test_what_is_found_is_not_sent_again(loss: ConnectionLostError) -> None:
    writes = Writes(loss, found="found")
    assert (writes.run(), writes.sent) == ("found", 1)


def test_what_is_not_found_is_sent_again() -> None:
    writes = Writes(ConnectionLostError("set"), ConnectionLostError("set"))
    assert (writes.run(), writes.sent) == ("written", 3)


@pytest.mark.parametrize("kind", [ReplyLostError, NotAppliedError])
def test_what_the_client_knows_of_is_not_sent_again(kind: type[ConnectionLostError]) -> None:
    """It was applied and is gone, or was sent ten times."""
    writes = Writes(kind("set"))
    with pytest.raises(kind):
        writes.run()
    assert writes.sent == 1
