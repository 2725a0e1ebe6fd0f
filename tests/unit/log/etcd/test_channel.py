"""The connection to etcd, on a grpcio without a network."""

from __future__ import annotations

import asyncio
import builtins
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.log.etcd import channel as channel_module
from paddock.log.etcd import messages
from paddock.log.etcd.channel import Channel
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.statuses import DeadlineError, UntrustedError
from paddock.log.etcd.store import StoreError, StoreForbiddenError, StoreFullError
from paddock.testing import run_virtually
from tests.unit.log.etcd import responses
from tests.unit.log.etcd.fake_grpc import FakeGrpc, FakeRpcError, FakeUsageError, Metadata

# What asks for a member that knows a leader.
LED = ("hasleader", "true")
TOKEN = responses.content(2, b"token-1")
REFUSED = FakeRpcError(
    "UNAVAILABLE", "failed to connect to all addresses; last error: UNKNOWN: Connection refused"
)


@pytest.fixture
def grpc(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGrpc]:
    fake = FakeGrpc()
    monkeypatch.setattr(channel_module, "import_grpc", lambda: fake)
    yield fake
    assert fake.open == [], "a channel was left open"


def run(options: EtcdOptions, use: Callable[[Channel], Awaitable[None]]) -> None:
    async def main() -> None:
        channel = Channel(options)
        try:
            await use(channel)
        finally:
            await channel.close()

    run_virtually(main())


async def settle() -> None:
    """Let all tasks go on until they wait for an answer."""
    for _ in range(20):
        await asyncio.sleep(0)


def failing(*endpoints: str, error: Exception = REFUSED) -> Any:
    """Answer everywhere but on some endpoints."""

    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if endpoint in endpoints:
            raise error
        return b"from " + endpoint.encode()

    return answer


def test_the_first_endpoint_is_used_as_long_as_it_answers(grpc: FakeGrpc) -> None:
    grpc.answer = failing()

    async def use(channel: Channel) -> None:
        for _ in range(3):
            assert await channel.call(messages.TXN, b"", 1.0) == b"from a:1"
        assert channel.endpoint == "a:1"

    run(EtcdOptions(("a:1", "b:1")), use)
    assert grpc.calls == [("a:1", "Txn")] * 3


def test_a_failed_endpoint_is_left_for_the_next_and_not_gone_back_to(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1")

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreError, match="etcd at a:1: Connection refused"):
            await channel.call(messages.TXN, b"", 1.0)
        grpc.answer = failing()
        assert await channel.call(messages.TXN, b"", 1.0) == b"from b:1"
        assert await channel.call(messages.TXN, b"", 1.0) == b"from b:1"

    run(EtcdOptions(("a:1", "b:1", "c:1")), use)


def test_the_first_endpoint_comes_behind_the_last(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1", "b:1")

    async def use(channel: Channel) -> None:
        for _ in range(2):
            with pytest.raises(StoreError):
                await channel.call(messages.TXN, b"", 1.0)
        grpc.answer = failing()
        assert await channel.call(messages.TXN, b"", 1.0) == b"from a:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def test_a_call_goes_to_each_endpoint_if_it_asks_for_that(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1", "b:1")

    async def use(channel: Channel) -> None:
        assert await channel.call(messages.TXN, b"", 1.0, 3) == b"from c:1"
        assert channel.endpoint == "c:1"

    run(EtcdOptions(("a:1", "b:1", "c:1")), use)


def test_without_any_etcd_the_error_names_all_endpoints(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1", "b:1")

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreError, match=r"^etcd at a:1, b:1: Connection refused$"):
            await channel.call(messages.TXN, b"", 1.0, 2)

    run(EtcdOptions(("a:1", "b:1")), use)
    assert sent(grpc) == ["a:1", "b:1"]


def test_calls_wait_longer_and_longer_while_no_member_can_be_reached(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1", "b:1")
    assert waits(grpc, 8) == [0, 0, 0.1, 0.2, 0.4, 0.8, 1, 1]


def test_calls_do_not_wait_longer_and_longer_during_an_election(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        raise REFUSED if endpoint == "a:1" else FakeRpcError("UNAVAILABLE", "etcdserver: no leader")

    grpc.answer = answer
    assert max(waits(grpc, 40)) == 0.1


def sent(grpc: FakeGrpc) -> list[str]:
    """Return where calls were sent; not where it was asked how a member is."""
    return [endpoint for endpoint, method in grpc.calls if method != "Status"]


def waits(grpc: FakeGrpc, count: int) -> list[float]:
    """Return how long each of some calls takes that all fail."""
    found = []

    async def use(channel: Channel) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            before = loop.time()
            with pytest.raises(StoreError):
                await channel.call(messages.TXN, b"", 1.0)
            found.append(round(loop.time() - before, 3))

    run(EtcdOptions(("a:1", "b:1")), use)
    return found


def test_an_answer_ends_the_waiting(grpc: FakeGrpc) -> None:
    async def use(channel: Channel) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        for _ in range(2):
            grpc.answer = failing("a:1")
            for _ in range(3):
                with pytest.raises(StoreError):
                    await channel.call(messages.TXN, b"", 1.0)
            grpc.answer = failing()
            await channel.call(messages.TXN, b"", 1.0)
        # Each time 0.1 and 0.2 s, and 0.4 s before the answer.
        assert round(loop.time() - before, 3) == 1.4

    run(EtcdOptions(("a:1",)), use)


LATE = [
    FakeRpcError("DEADLINE_EXCEEDED"),
    FakeRpcError("UNAVAILABLE", "etcdserver: request timed out"),
]


@pytest.mark.parametrize("late", LATE)
def test_a_deadline_leaves_the_endpoint_but_the_call_is_not_sent_again(
    grpc: FakeGrpc, late: FakeRpcError
) -> None:
    grpc.answer = failing("a:1", error=late)

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreError):
            await channel.call(messages.TXN, b"", 1.0, 2)
        assert channel.endpoint == "b:1"

    run(EtcdOptions(("a:1", "b:1")), use)
    assert len(grpc.calls) == 1


@pytest.mark.parametrize("late", LATE)
def test_a_patient_call_that_is_late_does_not_leave_the_endpoint(
    grpc: FakeGrpc, late: FakeRpcError
) -> None:
    grpc.answer = failing()

    async def use(channel: Channel) -> None:
        await channel.call(messages.TXN, b"", 1.0)
        grpc.answer = failing("a:1", error=late)
        with pytest.raises(DeadlineError):
            await channel.call(messages.TXN, b"", 1.0, 2, is_patient=True)
        assert channel.endpoint == "a:1"
        grpc.answer = failing("a:1")
        assert await channel.call(messages.TXN, b"", 1.0, 2, is_patient=True) == b"from b:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def silent(*endpoints: str) -> Any:
    """Answer everywhere but on some endpoints, which are connected to and say nothing."""

    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if endpoint in endpoints:
            await asyncio.Event().wait()
        return b"from " + endpoint.encode()

    return answer


def test_a_member_that_never_answers_is_left_even_by_patient_calls(grpc: FakeGrpc) -> None:
    grpc.answer = silent("a:1")

    async def use(channel: Channel) -> None:
        with pytest.raises(DeadlineError):
            await channel.call(messages.TXN, b"", 0.2, is_patient=True)
        assert await channel.call(messages.TXN, b"", 0.2, is_patient=True) == b"from b:1"
        # One that has answered is waited for.
        grpc.answer = hanging
        for _ in range(5):
            with pytest.raises(DeadlineError):
                await channel.call(messages.TXN, b"", 0.2, is_patient=True)
        assert channel.endpoint == "b:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def test_no_call_is_sent_to_a_silent_member_if_another_answers(grpc: FakeGrpc) -> None:
    grpc.answer = failing()

    async def use(channel: Channel) -> None:
        await channel.call(messages.TXN, b"", 1.0)
        grpc.answer = silent("a:1", "b:1", "c:1")
        with pytest.raises(DeadlineError):
            await channel.call(messages.TXN, b"", 1.0)
        before = asyncio.get_running_loop().time()
        assert await channel.call(messages.TXN, b"", 1.0) == b"from d:1"
        # They were asked one after the other.
        assert asyncio.get_running_loop().time() - before == pytest.approx(0.2)

    run(EtcdOptions(("a:1", "b:1", "c:1", "d:1")), use)
    assert sent(grpc) == ["a:1", "a:1", "d:1"]


def test_a_member_that_knows_no_leader_is_asked_again_before_a_silent_one(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if endpoint == "s:1":
            await asyncio.Event().wait()
        if method == messages.STATUS:
            return b""
        raise FakeRpcError("UNAVAILABLE", "etcdserver: no leader")

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(20):
            before = loop.time()
            with pytest.raises(StoreError, match="no leader"):
                await channel.call(messages.TXN, b"", 1.0)
            assert loop.time() - before <= 0.11

    run(EtcdOptions(("a:1", "s:1")), use)
    assert "s:1" not in sent(grpc)


def test_a_slow_network_is_used_all_the_same(grpc: FakeGrpc) -> None:
    """Nobody says how it is in time."""

    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        await asyncio.sleep(0.9)
        return b"from " + endpoint.encode()

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        with pytest.raises(DeadlineError):
            await channel.call(messages.TXN, b"", 0.5)
        assert await channel.call(messages.TXN, b"", 1.0) == b"from b:1"

    run(EtcdOptions(("a:1", "b:1")), use)


async def hanging(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
    await asyncio.Event().wait()
    return b""


def test_what_takes_long_to_be_unreachable_is_silent(grpc: FakeGrpc) -> None:
    """As a host is that a firewall hides: it is not tried again while others answer."""

    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if endpoint == "a:1":
            await asyncio.sleep(1)
            raise REFUSED
        raise FakeRpcError("UNAVAILABLE", "etcdserver: no leader")

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        for _ in range(20):
            with pytest.raises(StoreError):
                await channel.call(messages.TXN, b"", 5.0)

    run(EtcdOptions(("a:1", "b:1")), use)
    assert sent(grpc).count("a:1") == 1


def test_a_refusal_does_not_leave_the_endpoint(grpc: FakeGrpc) -> None:
    full = FakeRpcError("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded")
    grpc.answer = failing("a:1", error=full)

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreFullError):
            await channel.call(messages.TXN, b"", 1.0, 2)
        assert channel.endpoint == "a:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def test_calls_that_fail_together_leave_one_endpoint(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1")

    async def use(channel: Channel) -> None:
        calls = [channel.call(messages.TXN, b"", 1.0, 3) for _ in range(4)]
        assert await asyncio.gather(*calls) == [b"from b:1"] * 4

    run(EtcdOptions(("a:1", "b:1", "c:1")), use)


def test_a_member_that_is_left_ends_other_calls_and_the_watch(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if request == b"hangs":
            await asyncio.Event().wait()
        raise FakeRpcError("DEADLINE_EXCEEDED")

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        opened = asyncio.create_task(channel.watch(b"watch"))
        hanging = asyncio.create_task(channel.call(messages.TXN, b"hangs", 1.0))
        await settle()
        grpc.streams[0].responses.put_nowait(b"created")
        watch, first = await opened
        assert first == b"created"
        reading = asyncio.create_task(watch.read())
        await asyncio.sleep(0)
        with pytest.raises(StoreError):
            await channel.call(messages.TXN, b"", 1.0)
        for task in (hanging, reading):
            with pytest.raises(StoreError, match="given up"):
                await task

    run(EtcdOptions(("a:1", "b:1")), use)


def test_a_member_that_is_left_ends_a_watch_that_is_not_open_yet(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1")
    grpc.connects = False

    async def use(channel: Channel) -> None:
        opening = asyncio.create_task(channel.watch(b"watch"))
        await settle()
        with pytest.raises(StoreError):
            await channel.call(messages.TXN, b"", 1.0)
        with pytest.raises(StoreError, match="given up"):
            await opening

    run(EtcdOptions(("a:1", "b:1")), use)


def test_other_endpoints_are_used_at_once(grpc: FakeGrpc) -> None:
    grpc.answer = failing()

    async def use(channel: Channel) -> None:
        assert await channel.call(messages.TXN, b"", 1.0) == b"from a:1"
        channel.use(("c:1", "d:1"))
        assert await channel.call(messages.TXN, b"", 1.0) == b"from c:1"
        assert channel.size == 2
        # One that stays is not left.
        channel.use(("b:1", "c:1"))
        assert await channel.call(messages.TXN, b"", 1.0) == b"from c:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def test_a_watch_ends_when_its_endpoint_is_used_no_more(grpc: FakeGrpc) -> None:
    async def use(channel: Channel) -> None:
        opened = asyncio.create_task(channel.watch(b"watch"))
        await settle()
        grpc.streams[0].responses.put_nowait(b"created")
        watch, _ = await opened
        reading = asyncio.create_task(watch.read())
        await settle()
        channel.use(("b:1",))
        with pytest.raises(StoreError, match="given up"):
            await reading

    run(EtcdOptions(("a:1",)), use)


def test_closing_ends_calls_and_refuses_new_ones(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        await asyncio.Event().wait()
        return b""

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        hanging = asyncio.create_task(channel.call(messages.TXN, b"", 1.0))
        await settle()
        await channel.close()
        with pytest.raises(StoreError, match="given up"):
            await hanging
        with pytest.raises(StoreError, match="closed"):
            await channel.call(messages.TXN, b"", 1.0)

    run(EtcdOptions(("a:1",)), use)


def test_a_caller_that_is_canceled_is_canceled(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        await asyncio.Event().wait()
        return b""

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        calling = asyncio.create_task(channel.call(messages.TXN, b"", 1.0))
        await settle()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        # And that is nothing against the endpoint.
        assert channel.endpoint == "a:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def test_a_call_on_a_closed_channel_of_grpcio_is_a_store_error(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1", error=FakeUsageError("Channel is closed."))

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreError, match="Channel is closed"):
            await channel.call(messages.TXN, b"", 1.0)

    run(EtcdOptions(("a:1",)), use)


@pytest.mark.parametrize("end", [None, FakeRpcError("UNAVAILABLE", "etcdserver: no leader")])
def test_a_watch_that_ends_leaves_the_endpoint(grpc: FakeGrpc, end: Exception | None) -> None:
    async def use(channel: Channel) -> None:
        opened = asyncio.create_task(channel.watch(b"watch"))
        await settle()
        stream = grpc.streams[0]
        assert stream.metadata == (LED,)
        stream.responses.put_nowait(b"created")
        watch, _ = await opened
        assert stream.requests == [b"watch"]
        stream.responses.put_nowait(end)
        with pytest.raises(StoreError, match=r"etcd at a:1: (the watch has ended|no leader)"):
            await watch.read()
        assert channel.endpoint == "b:1"

    run(EtcdOptions(("a:1", "b:1")), use)


def test_a_watch_that_is_not_answered_leaves_the_endpoint(
    grpc: FakeGrpc,
) -> None:
    async def use(channel: Channel) -> None:
        with pytest.raises(StoreError, match="no answer to a watch"):
            await channel.watch(b"watch")
        assert grpc.streams[0].is_canceled
        assert channel.endpoint == "b:1"

    run(EtcdOptions(("a:1", "b:1")), use)


class Users:
    """An etcd with users: one token is valid at a time."""

    def __init__(self, *, password: str = "pw") -> None:
        self.valid = 1
        self.given = 0
        self._password = password

    async def answer(self, endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if method == messages.AUTHENTICATE:
            if request != messages.authenticate_request("ann", self._password):
                raise FakeRpcError("INVALID_ARGUMENT", "etcdserver: authentication failed")
            self.given += 1
            return responses.content(2, b"token-%d" % self.valid)
        if metadata != (LED, ("token", f"token-{self.valid}")):
            raise FakeRpcError("UNAUTHENTICATED", "etcdserver: invalid auth token")
        return b"done"


ANN = EtcdOptions(("a:1", "b:1"), user="ann", password="pw")


def test_a_token_is_asked_for_once_and_sent_with_each_call(grpc: FakeGrpc) -> None:
    users = Users()
    grpc.answer = users.answer

    async def use(channel: Channel) -> None:
        calls = [channel.call(messages.TXN, b"", 1.0) for _ in range(4)]
        assert await asyncio.gather(*calls) == [b"done"] * 4
        opened = asyncio.create_task(channel.watch(b"watch"))
        await settle()
        grpc.streams[0].responses.put_nowait(b"created")
        await opened
        assert grpc.streams[0].metadata == (LED, ("token", "token-1"))

    run(ANN, use)
    assert users.given == 1


def test_a_token_that_is_not_valid_any_more_is_renewed(grpc: FakeGrpc) -> None:
    users = Users()
    grpc.answer = users.answer

    async def use(channel: Channel) -> None:
        await channel.call(messages.TXN, b"", 1.0)
        users.valid = 2
        calls = [channel.call(messages.TXN, b"", 1.0) for _ in range(4)]
        assert await asyncio.gather(*calls) == [b"done"] * 4

    run(ANN, use)
    # Those in flight share the new one.
    assert users.given == 2


def test_a_token_that_is_refused_again_is_an_error_for_good(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if method == messages.AUTHENTICATE:
            return TOKEN
        raise FakeRpcError("UNAUTHENTICATED", "etcdserver: invalid auth token")

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreForbiddenError, match="invalid auth token"):
            await channel.call(messages.TXN, b"", 1.0)

    run(ANN, use)
    assert [method for _, method in grpc.calls] == ["Authenticate", "Txn", "Authenticate", "Txn"]


def test_a_wrong_password_is_an_error_for_good(grpc: FakeGrpc) -> None:
    grpc.answer = Users(password="other").answer

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreForbiddenError, match="authentication failed"):
            await channel.call(messages.TXN, b"", 1.0)

    run(ANN, use)


def test_without_a_user_a_refused_token_is_an_error_for_good(grpc: FakeGrpc) -> None:
    grpc.answer = failing("a:1", error=FakeRpcError("INVALID_ARGUMENT", "user name is empty"))

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreForbiddenError, match="user name is empty"):
            await channel.call(messages.TXN, b"", 1.0)
        assert not await channel.renew_token()

    run(EtcdOptions(("a:1",)), use)


def test_an_etcd_without_users_is_used_without_a_token(grpc: FakeGrpc) -> None:
    async def answer(endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        if method == messages.AUTHENTICATE:
            raise FakeRpcError("FAILED_PRECONDITION", "etcdserver: authentication is not enabled")
        assert metadata == (LED,)
        return b"done"

    grpc.answer = answer

    async def use(channel: Channel) -> None:
        assert await channel.call(messages.TXN, b"", 1.0) == b"done"

    run(ANN, use)


def test_files_are_read_for_each_connection(grpc: FakeGrpc, tmp_path: Path) -> None:
    grpc.answer = failing("a:1")
    files = [tmp_path / name for name in ("ca", "key", "certificate")]
    for file in files:
        file.write_text(f"{file.name} 1")
    ca, key, certificate = files
    options = EtcdOptions(
        ("a:1", "b:1"), is_secure=True, ca_file=ca, certificate_file=certificate, key_file=key
    )

    async def use(channel: Channel) -> None:
        with pytest.raises(StoreError):
            await channel.call(messages.TXN, b"", 1.0)
        certificate.write_text("certificate 2")
        await channel.call(messages.TXN, b"", 1.0)

    run(options, use)
    assert grpc.credentials == [
        (b"ca 1", b"key 1", b"certificate 1"),
        (b"ca 1", b"key 1", b"certificate 2"),
    ]


@pytest.mark.parametrize(
    ("name", "reason"), [("missing", "No such file or directory"), ("", "Is a directory")]
)
def test_a_file_that_cannot_be_read_is_named_and_not_waited_for(
    grpc: FakeGrpc, tmp_path: Path, name: str, reason: str
) -> None:
    file = tmp_path / name
    options = EtcdOptions(("a:1",), is_secure=True, ca_file=file)

    async def use(channel: Channel) -> None:
        with pytest.raises(UntrustedError) as refused:
            await channel.call(messages.TXN, b"", 1.0)
        assert str(refused.value) == f"{file}: cannot be read, for the connection to etcd: {reason}"

    run(options, use)


def test_without_grpcio_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_grpc(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == "grpc":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_grpc)
    monkeypatch.delitem(sys.modules, "grpc", raising=False)
    with pytest.raises(StoreForbiddenError, match=r"^[^\n]*pip install 'paddock-zk\[etcd\]'$"):
        asyncio.run(_make())


async def _make() -> Channel:
    return Channel(EtcdOptions(("a:1",)))
