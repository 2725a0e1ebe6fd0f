"""Users' worlds: processes that are killed, paused, restarted and judged."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import paddock
from paddock.testing.simulation import Faults, SimulatedWorld, WorldFailedError, simulated

Test = Callable[[SimulatedWorld], Awaitable[None]]


def play(test: Test, *, servers: int = 1) -> None:
    """Run a test in one world without faults."""
    simulated(seeds=1, servers=servers, faults=Faults.NONE)(test)()


@pytest.mark.parametrize("servers", [1, 3])
def test_processes_use_the_real_client(servers: int) -> None:
    async def test(world: SimulatedWorld) -> None:
        async def write(data: bytes) -> bytes:
            async with paddock.connect(world.hosts) as client:
                await client.create("/n-", data, sequential=True)
                return data

        handles = [world.spawn(f"p{data!r}", write, data) for data in (b"1", b"2")]
        await world.rest()
        assert [handle.result for handle in handles] == [b"1", b"2"]
        assert sorted(write.data or b"" for write in world.written("/n-")) == [b"1", b"2"]

    play(test, servers=servers)


def test_a_killed_process_runs_no_finally() -> None:
    said = []

    async def test(world: SimulatedWorld) -> None:
        async def work() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                said.append(world.now)

        handle = world.spawn("alice", work)
        await asyncio.sleep(1)
        handle.kill()
        assert not handle.is_running
        await world.rest()
        assert not said

    play(test)


def test_a_paused_process_does_nothing_until_it_goes_on() -> None:
    async def test(world: SimulatedWorld) -> None:
        async def work() -> float:
            await asyncio.sleep(1)
            return world.now

        handle = world.spawn("alice", work)
        handle.pause()
        await asyncio.sleep(10)
        assert handle.is_running
        handle.resume()
        await world.rest()
        assert handle.result >= 10

    play(test)


def test_a_process_that_was_killed_is_started_again() -> None:
    starts = []

    async def test(world: SimulatedWorld) -> None:
        async def work() -> None:
            starts.append(world.now)
            await asyncio.sleep(3)

        handle = world.spawn("alice", work, restarts=True)
        await asyncio.sleep(1)
        handle.kill()
        await world.rest()
        assert len(starts) == 2

    play(test)


def test_what_may_be_raised_ends_the_process_alone() -> None:
    async def test(world: SimulatedWorld) -> None:
        async def work() -> None:
            raise paddock.PaddockError

        world.spawn("alice", work, may_raise=paddock.PaddockError)
        await world.rest()

    play(test)


async def fail() -> None:
    raise ArithmeticError("planted")


async def fail_in_a_task() -> None:
    task = asyncio.create_task(fail())
    await asyncio.sleep(1)
    assert task.done()


async def fail_in_a_callback() -> None:
    def call() -> None:
        raise ArithmeticError("planted")

    asyncio.get_running_loop().call_soon(call)
    await asyncio.sleep(1)


@pytest.mark.parametrize("work", [fail, fail_in_a_task, fail_in_a_callback])
def test_what_a_process_raises_fails_the_world(work: Callable[[], Awaitable[None]]) -> None:
    async def test(world: SimulatedWorld) -> None:
        # Nobody waits for it: the world does.
        world.spawn("alice", work)

    with pytest.raises(WorldFailedError, match="seed 1: alice: ArithmeticError: planted"):
        play(test)


def test_a_check_fails_the_world_where_errors_are_caught() -> None:
    async def test(world: SimulatedWorld) -> None:
        async def work() -> None:
            try:
                world.check(False, "one is not two")
            except AssertionError:
                await asyncio.sleep(1)

        world.spawn("alice", work)

    with pytest.raises(WorldFailedError, match="alice: AssertionError: one is not two"):
        play(test)


def test_a_process_that_never_ends_fails_the_world() -> None:
    async def test(world: SimulatedWorld) -> None:
        async def work() -> None:
            await asyncio.Event().wait()

        world.spawn("alice", work)

    with pytest.raises(WorldFailedError, match="alice did not end within 300 s"):
        play(test)


def test_a_process_in_the_background_is_not_waited_for() -> None:
    async def test(world: SimulatedWorld) -> None:
        async def serve() -> None:
            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(await reader.readline())
                writer.close()

            async with await asyncio.start_server(answer, port=80) as server:
                await server.serve_forever()

        async def ask() -> bytes:
            reader, writer = await asyncio.open_connection("server", 80)
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            return answer

        world.spawn("server", serve, background=True)
        asking = world.spawn("alice", ask)
        await world.rest()
        assert asking.result == b"hello\n"

    play(test)


def test_a_request_that_was_sent_arrives() -> None:
    async def test(world: SimulatedWorld) -> None:
        arrived: list[int] = []

        async def send() -> None:
            sending = asyncio.ensure_future(world.call(arrived.append, 1))
            await asyncio.sleep(0)
            sending.cancel()

        world.spawn("alice", send)
        await world.rest()
        assert arrived == [1]

    play(test)


def test_what_a_request_raises_comes_back() -> None:
    async def test(world: SimulatedWorld) -> None:
        def refuse() -> None:
            raise PermissionError("planted")

        with pytest.raises(PermissionError, match="planted"):
            await world.call(refuse)

    play(test)


def test_names_are_given_once() -> None:
    async def test(world: SimulatedWorld) -> None:
        world.spawn("alice", asyncio.sleep, 0)
        with pytest.raises(ValueError, match="there is 'alice' already"):
            world.spawn("alice", asyncio.sleep, 0)

    play(test)
