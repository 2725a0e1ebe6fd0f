"""grpcio without a network: what a test has scripted for each endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any


class FakeRpcError(Exception):
    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(code, text)
        self._code = code
        self._text = text

    def code(self) -> Any:
        return SimpleNamespace(name=self._code)

    def details(self) -> str:
        return self._text


class FakeUsageError(Exception):
    pass


Metadata = tuple[tuple[str, str], ...] | None
Answer = Callable[[str, str, bytes, Metadata], Awaitable[bytes]]


class FakeStream:
    """A watch: what it reads next is put into its queue."""

    def __init__(self, metadata: Metadata, *, connects: bool) -> None:
        self.metadata = metadata
        self._connects = connects
        self.requests: list[bytes] = []
        self.responses: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.is_canceled = False
        self._readers: set[asyncio.Task[bytes | Exception | None]] = set()

    async def write(self, request: bytes) -> None:
        if not self._connects:
            # As grpcio does it: not even `cancel` ends it.
            await asyncio.Event().wait()
        self.requests.append(request)

    async def read(self) -> bytes | None:
        if self.is_canceled:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(self.responses.get())
        self._readers.add(task)
        try:
            response = await task
        finally:
            self._readers.discard(task)
        if isinstance(response, Exception):
            raise response
        return response

    def cancel(self) -> bool:
        self.is_canceled = True
        for task in self._readers:
            task.cancel()
        return True


class FakeGrpc:
    """Stands for the module `grpc`. `answer` is given endpoint, method, request and metadata."""

    RpcError = FakeRpcError

    def __init__(self, answer: Answer | None = None) -> None:
        self.aio = SimpleNamespace(
            BaseError=FakeUsageError,
            insecure_channel=lambda target, options: FakeChannel(self, target),
            secure_channel=lambda target, credentials, options: FakeChannel(self, target),
        )
        self.answer = answer
        # False: streams wait for a connection for ever.
        self.connects = True
        # What calls were made: endpoint and method.
        self.calls: list[tuple[str, str]] = []
        self.open: list[FakeChannel] = []
        self.streams: list[FakeStream] = []
        self.credentials: list[tuple[bytes | None, ...]] = []

    def ssl_channel_credentials(self, *contents: bytes | None) -> object:
        self.credentials.append(contents)
        return object()


class FakeChannel:
    def __init__(self, grpc: FakeGrpc, target: str) -> None:
        self._grpc = grpc
        self._endpoint = target.removeprefix("dns:///")
        self._under_way: set[asyncio.Future[bytes]] = set()
        self._streams: list[FakeStream] = []
        grpc.open.append(self)

    def unary_unary(self, method: str) -> Any:
        async def call(request: bytes, *, metadata: Metadata, **deadline: float) -> bytes:
            self._grpc.calls.append((self._endpoint, method.rpartition("/")[2]))
            assert self._grpc.answer is not None
            task = asyncio.ensure_future(
                self._grpc.answer(self._endpoint, method, request, metadata)
            )
            self._under_way.add(task)
            try:
                async with asyncio.timeout(deadline["timeout"]):
                    return await task
            except TimeoutError:
                raise FakeRpcError("DEADLINE_EXCEEDED", "Deadline Exceeded") from None
            finally:
                self._under_way.discard(task)

        return call

    def stream_stream(self, method: str) -> Any:
        def call(*, metadata: Metadata) -> FakeStream:
            stream = FakeStream(metadata, connects=self._grpc.connects)
            self._streams.append(stream)
            self._grpc.streams.append(stream)
            return stream

        return call

    async def close(self) -> None:
        self._grpc.open.remove(self)
        for task in self._under_way:
            task.cancel()
        for stream in self._streams:
            stream.cancel()
