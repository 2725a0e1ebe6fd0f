"""The event loops of tests check what those of a program do not: asyncio's debug mode."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest


def test_a_call_from_another_thread_is_refused() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as thread:
            called = thread.submit(lambda: loop.call_soon(int))
        with pytest.raises(RuntimeError, match="other than the current one"):
            called.result()

    asyncio.run(main())


def test_a_coroutine_is_no_callback() -> None:
    async def coroutine() -> None: ...

    callback: Any = coroutine

    async def main() -> None:
        with pytest.raises(TypeError, match="coroutines cannot be used"):
            asyncio.get_running_loop().call_soon(callback)

    asyncio.run(main())
