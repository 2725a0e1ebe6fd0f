"""What is played in a storm: every recipe that can be, each at a place of its own.

An act is what one player does with one recipe, from its beginning to its end, as long as nothing
happens to it. It may raise what a recipe raises when its session is over, and is played again.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from paddock.client.client import Client
from paddock.recipes import (
    Barrier,
    Cache,
    Configuration,
    Counter,
    DoubleBarrier,
    Election,
    LayoutName,
    Lease,
    Lock,
    LogRoom,
    Master,
    Membership,
    MultiLock,
    Naming,
    Partitioner,
    PersistentNode,
    Queue,
    ReadWriteLock,
    Semaphore,
    ServiceInstance,
    ServiceRegistry,
    SharedValue,
    SimpleMutex,
    Task,
    TaskClient,
    TaskState,
    Worker,
)
from tests.fault.stage.recipe_players import SESSION_TIMEOUT_S, Fenced, Note, Player


@dataclass(frozen=True, slots=True)
class Act:
    """What is played, by any number of players at once."""

    # With the path at which the recipe has its nodes.
    play: Callable[[Player, str, Random], Awaitable[None]]
    capacity: int = 1
    # What may be left below the path: patterns of whole paths.
    remains: tuple[str, ...] = ()
    # Raises AssertionError when everybody has gone: by what a client of its own reads below the
    # path, and by the notes of the players.
    judge: Callable[[Client, str, list[Note]], Awaitable[None]] | None = None


def some_time(random: Random) -> float:
    """Return a holding time: usually short, sometimes longer than a session timeout."""
    return random.uniform(0.0, 3.0) if random.random() < 0.9 else 1.5 * SESSION_TIMEOUT_S


async def lock(me: Player, path: str, random: Random, layout: LayoutName = "curator") -> None:
    async with Lock(me.client, path, layout=layout) as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(some_time(random))
            await me.write(grant)


async def request(me: Player, path: str, random: Random) -> None:
    """Ask the holder of a lock to let go, and hold it until somebody asks us."""
    wanted = Lock(me.client, path, data=me.name.encode())
    await wanted.ask_to_release()
    async with wanted as grant:
        with me.holds(grant.token):
            await me.write(grant)
            with suppress(TimeoutError):
                async with asyncio.timeout(some_time(random)):
                    for one in await grant.wait_asked():
                        me.expect(one.session_id != me.client.session_id, "it has asked itself")
            await me.write(grant)


async def mutex(me: Player, path: str, random: Random) -> None:
    async with SimpleMutex(me.client, path, "mutex") as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(some_time(random))


# More than there are players; a writer holds as many as there are.
READERS: Final = 100
LEASES: Final = 2


async def read_write_lock(
    me: Player, path: str, random: Random, layout: LayoutName = "curator"
) -> None:
    shared = ReadWriteLock(me.client, path, layout=layout)
    if random.random() < 0.6:
        async with shared.read as grant:
            with me.holds(grant.token, share=1):
                await me.write(grant)
                await asyncio.sleep(some_time(random))
                await me.write(grant)
        return
    async with shared.write as writing:
        with ExitStack() as holding:
            hold = holding.enter_context(me.holds(writing.token))
            await me.write(writing)
            await asyncio.sleep(random.uniform(0.0, 2.0))
            async with shared.read as reading:
                with holding.pop_all():
                    hold.share = 1
                    await writing.release()
                    await asyncio.sleep(random.uniform(0.0, 2.0))
                    await me.write(reading)


async def semaphore(me: Player, path: str, random: Random, layout: LayoutName = "curator") -> None:
    # kazoo has the line beside the semaphore.
    where = f"{path}/pool" if layout == "kazoo" else path
    async with Semaphore(me.client, where, leases=LEASES, layout=layout) as grant:
        with me.holds(grant.token, share=1):
            await me.write(grant)
            await asyncio.sleep(some_time(random))
            await me.write(grant)


async def multi_lock(me: Player, path: str, random: Random) -> None:
    """Take a lock that all want, together with some others in any order."""
    others = random.sample("abde", random.randint(0, 2))
    names = random.sample(["c", *others], 1 + len(others))
    async with MultiLock([Lock(me.client, f"{path}/{name}") for name in names]) as grant:
        wanted = Fenced(grant.tokens[names.index("c")], grant.guard)
        with me.holds(wanted.token):
            await me.write(wanted)
            await asyncio.sleep(random.uniform(0.0, 2.0))
            await me.write(wanted)


async def election(me: Player, path: str, random: Random) -> None:
    async with Election(me.client, path).lead() as leadership:
        with me.holds(leadership.token):
            await me.write(leadership)
            await asyncio.sleep(some_time(random))
            await me.write(leadership)


async def lease(me: Player, path: str, random: Random) -> None:
    async with Lease(me.client, path, seconds=5.0) as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(random.uniform(0.0, 2.0))
            await grant.renew()
            await asyncio.sleep(random.uniform(0.0, 2.0))
            await me.write(grant)


async def membership(me: Player, path: str, random: Random) -> None:
    """Have a name that everybody wants."""
    members = Membership(me.client, path)
    async with members.joined("the name"):
        [own] = await members.members()
        with me.holds(own.token):
            await asyncio.sleep(some_time(random))


async def partitioner(me: Player, path: str, random: Random) -> None:
    """Be a member until we had the one item that there is."""
    async with (
        Partitioner(me.client, path, ["only"]) as members,
        aclosing(members.shares()) as shares,
    ):
        async for share in shares:
            if share.items:
                grant = members.grant("only")
                with me.holds(grant.token):
                    await me.write(grant)
                    await asyncio.sleep(some_time(random))
                return


async def double_barrier(me: Player, path: str, random: Random) -> None:
    """Wait for another one, but not for ever: there may be none."""
    try:
        async with asyncio.timeout(30.0) as limit:
            async with DoubleBarrier(me.client, path, 2):
                limit.reschedule(None)
                await asyncio.sleep(random.uniform(0.0, 3.0))
    except TimeoutError:
        pass


async def gate(me: Player, path: str, random: Random) -> None:
    """Close a gate and open it again; others may have closed it meanwhile, and have gone."""
    shared = Barrier(me.client, f"{path}/gate")
    await shared.close()
    await asyncio.sleep(random.uniform(0.0, 3.0))
    await shared.open()
    try:
        async with asyncio.timeout(30.0):
            await shared.wait()
    except TimeoutError:
        pass


async def queue(me: Player, path: str, random: Random) -> None:
    """Put an item, and take one, whichever that is; some are not finished with it."""
    shared = Queue(me.client, path)
    own = me.client.new_mark().encode()
    await shared.put(own, priority=random.randint(1, 2), delay=random.choice((0.0, 0.0, 1.0)))
    me.note("put", own)
    try:
        async with shared.take() as item:
            await asyncio.sleep(random.uniform(0.0, 3.0))
            if random.random() < 0.2:
                raise ArithmeticError
            me.note("finished", item.data)
        me.note("done", item.data)
    except ArithmeticError:
        pass


async def judge_queue(observer: Client, path: str, notes: list[Note]) -> None:
    """See that nothing is lost, and nothing was acknowledged twice or is there nevertheless."""
    put, finished, done = (
        Tally(note.value for note in notes if note.what == what)
        for what in ("put", "finished", "done")
    )
    left = Tally(item.data for item in await Queue(observer, path).items())
    assert set(put) <= set(finished) | set(left)
    assert max((done + left).values(), default=0) <= 1


# What takes no time is done so often, with pauses: or no wind would ever meet it.
TIMES: Final = 8


async def counter(me: Player, path: str, random: Random) -> None:
    for _ in range(TIMES):
        me.note("tried")
        me.note("added", await Counter(me.client, f"{path}/number").add())
        await asyncio.sleep(random.uniform(0.0, 1.0))


async def judge_counter(observer: Client, path: str, notes: list[Note]) -> None:
    """See that no sum came twice, and that everything that was added counts, once at most."""
    sums = [note.value for note in notes if note.what == "added"]
    tried = sum(note.what == "tried" for note in notes)
    assert len(set(sums)) == len(sums)
    number = await Counter(observer, f"{path}/number").get()
    assert max(*sums, len(sums)) <= number <= tried


async def shared_value(me: Player, path: str, random: Random) -> None:
    value = SharedValue(me.client, f"{path}/words")
    for _ in range(TIMES):
        own = me.client.new_mark().encode()
        await value.update(lambda words, own=own: b" ".join([words or b"", own]))  # type: ignore[misc]
        me.note("added", own)
        await asyncio.sleep(random.uniform(0.0, 1.0))


async def judge_value(observer: Client, path: str, notes: list[Note]) -> None:
    """See that every word is there that was surely added, and none is there twice."""
    words = Tally((await SharedValue(observer, f"{path}/words").get() or b"").split())
    assert max(words.values()) == 1
    assert {note.value for note in notes} <= set(words)


async def configuration(me: Player, path: str, random: Random) -> None:
    """Add one, and have that pushed."""
    async with Configuration(me.client, f"{path}/number", int, default=0) as shared:
        me.note("tried")
        me.note("added", await shared.update(lambda number: number + 1))
        async with aclosing(shared.changes()) as changes:  # type: ignore[type-var]
            async for number in changes:
                if number > 0:
                    break


async def naming(me: Player, path: str, random: Random) -> None:
    names = Naming(me.client, path)
    for _ in range(TIMES):
        me.note("number", await names.new_id())
        await asyncio.sleep(random.uniform(0.0, 1.0))
    own = me.client.new_mark()
    await names.bind(own, b"here")
    me.expect(await names.resolve(own) == b"here", "a name that was bound is not")
    await names.unbind(own)
    me.expect(await names.resolve(own) is None, "a name that was unbound is bound")


async def judge_naming(observer: Client, path: str, notes: list[Note]) -> None:
    numbers = [note.value for note in notes]
    assert len(set(numbers)) == len(numbers)


async def log_room(me: Player, path: str, random: Random) -> None:
    room = LogRoom(me.client, path)
    channels = await room.channels()
    if channels and random.random() < 0.9:
        channel = channels[-1]
    else:
        channel = await room.open_channel()
    for _ in range(TIMES):
        own = me.client.new_mark().encode()
        number = await channel.append(own)
        me.note("appended", (channel.number, number, own))
        await asyncio.sleep(random.uniform(0.0, 1.0))


async def judge_log_room(observer: Client, path: str, notes: list[Note]) -> None:
    """See that each entry is where its writer was told, no other one is twice, and none missing."""
    channels = await LogRoom(observer, path).channels()
    entries = [entry for channel in channels for entry in await channel.entries()]
    assert {note.value for note in notes} <= {
        (entry.channel, entry.number, entry.data) for entry in entries
    }
    assert len({entry.data for entry in entries}) == len(entries)
    for channel in channels:
        numbers = [entry.number for entry in entries if entry.channel == channel.number]
        assert numbers == [*range(len(numbers))]


async def cache(me: Player, path: str, random: Random) -> None:
    """See what we have made ourselves, and that it has gone."""
    own = f"{path}/{me.client.new_mark()}"
    async with Cache(me.client, path) as tree:
        await me.client.create(own, b"here", ephemeral=True, make_parents=True)
        await tree.sync()
        me.expect(own in tree.snapshot(), "the cache lacks what was made")
        await asyncio.sleep(random.uniform(0.0, 3.0))
        await me.client.delete(own)
        await tree.sync()
        me.expect(own not in tree.snapshot(), "the cache has what was deleted")


async def persistent_node(me: Player, path: str, random: Random) -> None:
    own = f"{path}/{me.client.new_mark()}"
    async with PersistentNode(me.client, own, b"here") as node:
        await asyncio.sleep(some_time(random))
        await node.wait_there()


async def discovery(me: Player, path: str, random: Random) -> None:
    own = ServiceInstance("search", me.client.new_mark())
    async with ServiceRegistry(me.client, path) as registry:
        await registry.register(own)
        await asyncio.sleep(some_time(random))
        await registry.instances("search")


async def master_worker(me: Player, path: str, random: Random) -> None:
    """Be master and worker until a task of our own is done, by any worker."""

    async def handle(task: Task) -> bytes:
        await asyncio.sleep(random.uniform(0.0, 1.0))
        return task.data.upper()

    own = me.client.new_mark().encode()
    name = await TaskClient(me.client, path).submit(own)
    serving = [
        asyncio.create_task(one.serve())
        for one in (Master(me.client, path, attempts_max=100), Worker(me.client, path, handle))
    ]
    try:
        status = await TaskClient(me.client, path).result(name)
        is_right = (status.state, status.data) == (TaskState.DONE, own.upper())
        me.expect(is_right, f"a task has another result: {status}")
    finally:
        for one in serving:
            one.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


ACTS: Final[dict[str, Act]] = {
    # What a player makes there without a recipe is its own to forget.
    "cache": Act(cache, remains=("*",)),
    "configuration": Act(configuration, remains=("*/number",), judge=judge_counter),
    "counter": Act(counter, remains=("*/number",), judge=judge_counter),
    "discovery": Act(discovery, remains=("*/search",)),
    "double barrier": Act(double_barrier),
    "election": Act(election),
    "gate": Act(gate, remains=("*/gate",)),
    "kazoo lock": Act(partial(lock, layout="kazoo")),
    "kazoo read-write lock": Act(partial(read_write_lock, layout="kazoo"), capacity=READERS),
    "kazoo semaphore": Act(
        partial(semaphore, layout="kazoo"), capacity=LEASES, remains=("*/pool", "*/pool-__lock__")
    ),
    "lease": Act(lease),
    "lock": Act(lock),
    "log room": Act(log_room, remains=("*",), judge=judge_log_room),
    "master and workers": Act(
        master_worker,
        remains=("*/tasks", "*/tasks/*", "*/workers", "*/assign", "*/status", "*/status/*"),
    ),
    "membership": Act(membership),
    "multi lock": Act(multi_lock, remains=("*/[a-e]",)),
    "mutex": Act(mutex),
    # An interrupted player leaves its name behind.
    "naming": Act(naming, remains=("*/names", "*/names/*", "*/ids"), judge=judge_naming),
    "partitioner": Act(partitioner, remains=("*/members", "*/items")),
    "persistent node": Act(persistent_node),
    "queue": Act(queue, remains=("/queue/*",), judge=judge_queue),
    "read-write lock": Act(read_write_lock, capacity=READERS),
    "request": Act(request),
    "semaphore": Act(semaphore, capacity=LEASES, remains=("*/locks", "*/leases")),
    "shared value": Act(shared_value, remains=("*/words",), judge=judge_value),
}
