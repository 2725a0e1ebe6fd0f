"""What takes several requests, against a service that does what no real one can be made to do."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from paddock.client.client import Client
from paddock.client.operations.compound import set_carefully
from paddock.client.results import NodeData
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NoNodeError,
    QuotaExceededError,
    ServiceError,
)
from paddock.protocol.records import Stat


def stat(*, version: int, czxid: int = 5) -> Stat:
    return Stat(czxid, 9, 0, 0, version, 0, 0, 0, 0, 0, czxid)


class Service:
    """Answers reads and writes with what it was told, in turn."""

    def __init__(self, writes: list[Any], reads: list[Any]) -> None:
        self._writes = writes
        self._reads = reads

    def write(self) -> asyncio.Future[Stat]:
        return self._answer(self._writes.pop(0))

    def get(self, path: str) -> asyncio.Future[NodeData]:
        return self._answer(self._reads.pop(0))

    def sync(self, path: str) -> asyncio.Future[None]:
        return self._answer(None)

    def _answer(self, answer: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if isinstance(answer, ServiceError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    def run(self, version: int = 3, seen_zxid: int = 7) -> Stat:
        async def main() -> Stat:
            client = cast(Client, self)
            first = self.write()
            return await set_carefully(client, "/n", first, self.write, version, b"mark", seen_zxid)

        result = asyncio.run(main())
        assert not self._writes
        assert not self._reads
        return result


LOST = ConnectionLostError("set", "/n")


def test_a_first_attempt_that_lands_after_we_looked_is_recognised() -> None:
    ours = stat(version=4)
    service = Service(
        [LOST, BadVersionError("set", "/n")],
        [NodeData(b"old", stat(version=3)), NodeData(b"with mark", ours)],
    )
    assert service.run() is ours


def test_a_second_lost_reply_is_found_out_like_the_first() -> None:
    ours = stat(version=4)
    service = Service(
        [LOST, LOST], [NodeData(b"old", stat(version=3)), NodeData(b"with mark", ours)]
    )
    assert service.run() is ours


def test_the_last_version_is_followed_by_the_least() -> None:
    ours = stat(version=-(2**31))
    service = Service([LOST], [NodeData(b"with mark", ours)])
    assert service.run(version=2**31 - 1) is ours


@pytest.mark.parametrize(
    ("writes", "reads", "outcome"),
    [
        # The node came after the last zxid that we saw before the write: maybe a second one.
        ([LOST], [NodeData(b"old", stat(version=3, czxid=8))], ConnectionLostError),
        ([LOST], [NodeData(b"theirs", stat(version=4, czxid=8))], ConnectionLostError),
        # Our mark at a later version: another client wrote since and kept it, which none should.
        ([LOST], [NodeData(b"with mark", stat(version=5))], ConnectionLostError),
        ([LOST], [NodeData(b"theirs", stat(version=4))], BadVersionError),
        ([LOST], [NoNodeError("get", "/n")], ConnectionLostError),
        ([LOST], [ConnectionLostError("get", "/n")], ConnectionLostError),
        # The version is one that the node has never had.
        (
            [LOST, BadVersionError("set", "/n")],
            [NodeData(b"old", stat(version=2)), NodeData(b"old", stat(version=2))],
            BadVersionError,
        ),
        (
            [LOST, QuotaExceededError("set", "/n")],
            [NodeData(b"old", stat(version=3)), NodeData(b"old", stat(version=3))],
            QuotaExceededError,
        ),
        (
            [LOST, NoNodeError("set", "/n")],
            [NodeData(b"old", stat(version=3)), NoNodeError("get", "/n")],
            ConnectionLostError,
        ),
        # Refused when nothing was lost: that is the answer, without a look.
        ([BadVersionError("set", "/n")], [], BadVersionError),
        ([NoNodeError("set", "/n")], [], NoNodeError),
    ],
)
def test_what_a_marked_write_does_not_know_it_does_not_say(
    writes: list[Any], reads: list[Any], outcome: type[ServiceError]
) -> None:
    with pytest.raises(outcome, match="set /n: "):
        Service(writes, reads).run()
