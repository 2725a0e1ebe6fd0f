"""The standard library in a simulated process: its clock, its randomness, and what is refused."""

import asyncio
import secrets
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.testing.simulation import Faults, SimulatedWorld, WorldFailedError, simulated


def play(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a process in one world; return its result."""
    results = []

    @simulated(seeds=1, faults=Faults.NONE)
    async def test(world: SimulatedWorld) -> None:
        handle = world.spawn("alice", work)
        await world.rest()
        results.append(handle.result)

    test()
    return results[0]


def test_clocks_are_those_of_the_process() -> None:
    async def work() -> tuple[float, float]:
        day, up = time.time(), time.monotonic()
        await asyncio.sleep(100)
        return time.time() - day, time.monotonic() - up

    real = time.monotonic()
    passed = play(work)
    assert passed == (pytest.approx(100), pytest.approx(100))
    # And real again afterwards.
    assert time.monotonic() - real < 90


def test_randomness_is_that_of_the_seed() -> None:
    async def work() -> tuple[str, str]:
        return secrets.token_hex(), str(uuid.uuid4())

    assert play(work) == play(work)
    assert secrets.token_hex() != secrets.token_hex()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: threading.Thread(target=print).start(), "threads are not simulated"),
        (lambda: time.sleep(1), "use asyncio.sleep"),
        (lambda: subprocess.Popen(["true"]), "no child processes"),
        (lambda: socket.socket().connect(("127.0.0.1", 1)), "no real sockets"),
        (lambda: asyncio.get_running_loop().add_reader(0, print), "no real sockets"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_would_wait_for_the_real_world_is_refused(call: Callable[[], Any], text: str) -> None:
    async def work() -> None:
        call()

    with pytest.raises(WorldFailedError, match=f"SimulationError: .*{text}"):
        play(work)


def test_tls_is_refused() -> None:
    async def work() -> None:
        await asyncio.open_connection("s1", 2181, ssl=True)

    with pytest.raises(WorldFailedError, match="TLS is not simulated"):
        play(work)


def test_an_unknown_host_is_not_found() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().getaddrinfo("example.org", 80)

    with pytest.raises(WorldFailedError, match="gaierror"):
        play(work)


def test_a_generator_that_is_left_is_closed_by_its_process() -> None:
    async def work() -> list[str]:
        closed = []

        async def numbers() -> Any:
            try:
                yield 1
            finally:
                await asyncio.sleep(1)
                closed.append(type(asyncio.get_running_loop()).__name__)

        async for _ in numbers():
            break
        await asyncio.sleep(5)
        return closed

    assert play(work) == ["UserProcess"]
