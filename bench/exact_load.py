"""Exact sessions whose windows are full, in a process of its own.

    python -m bench.exact_load PORT SESSIONS WRITES

Each session writes so often, and its connection ends without it: the session stays for its timeout,
and with it the replies that the service keeps. The process prints the number of sessions.
"""

import asyncio
import sys
from typing import Final

from librt.strings import BytesWriter

import paddock
from paddock.protocol import opcodes
from paddock.protocol.exact import ASKS_EXACT
from paddock.protocol.records import ConnectRequest
from paddock.protocol.requests import SetDataRequest

PATH: Final = "/windows"
TIMEOUT_MS: Final = 600_000
# How many sessions are opened at a time.
_AT_ONCE: Final = 20
# A reply to a set: its length, a header, and a Stat.
_REPLY_BYTES: Final = 4 + 16 + 68


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _writes(count: int) -> bytes:
    writer = BytesWriter()
    SetDataRequest(PATH.encode(), b"x", -1).write(writer)
    request = opcodes.SET_DATA.to_bytes(4, "big") + writer.getvalue()
    return b"".join(_framed(xid.to_bytes(4, "big") + request) for xid in range(1, count + 1))


async def _fill(port: int, handshake: bytes, writes: bytes, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(handshake)
        answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        if not int.from_bytes(answer[4:8], "big"):
            raise SystemExit("no session was granted")
        writer.write(writes)
        replies = await reader.readexactly(count * _REPLY_BYTES)
        if replies[16:20] != bytes(4):
            raise SystemExit(f"a set was refused: {replies[:20].hex()}")
    finally:
        writer.close()


async def main(port: int, sessions: int, count: int) -> None:
    async with paddock.connect(f"127.0.0.1:{port}") as client:
        await client.create(PATH, exist_ok=True)
    writer = BytesWriter()
    ConnectRequest(0, 0, TIMEOUT_MS, 0, ASKS_EXACT, False).write(writer)
    handshake, writes = _framed(writer.getvalue()), _writes(count)
    numbers = iter(range(sessions))

    async def work() -> None:
        for _ in numbers:
            await _fill(port, handshake, writes, count)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    print(sessions)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
