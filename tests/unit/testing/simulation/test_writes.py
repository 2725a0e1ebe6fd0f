"""What was written to a node, in the order of the service."""

import contextlib

import paddock
from paddock.testing.simulation import Faults, SimulatedWorld, simulated


@simulated(seeds=1, faults=Faults.NONE)
async def test_every_write_of_a_node_is_found_in_order(world: SimulatedWorld) -> None:
    async def write() -> None:
        async with world.client() as client:
            await client.create("/a", b"1")
            await client.create("/b")
            async with client.transaction() as transaction:
                transaction.check("/b")
                transaction.set("/a", b"2")
            await client.delete("/a")

    world.spawn("alice", write)
    await world.rest()
    writes = world.written("/a")
    assert [write.data for write in writes] == [b"1", b"2", None]
    assert [write.who for write in writes] == ["alice"] * 3
    assert [write.checked for write in writes] == [(), ("/b",), ()]
    assert sorted(write.zxid for write in writes) == [write.zxid for write in writes]


@simulated(seeds=1, faults=Faults.NONE)
async def test_a_refused_write_is_none(world: SimulatedWorld) -> None:
    async with world.client() as client:
        await client.create("/a", b"1")
        with contextlib.suppress(paddock.NodeExistsError):
            await client.create("/a", b"2")
        with contextlib.suppress(paddock.TransactionFailedError):
            await client.transaction().set("/a", b"3").check("/b").commit()
    assert [write.data for write in world.written("/a")] == [b"1"]
