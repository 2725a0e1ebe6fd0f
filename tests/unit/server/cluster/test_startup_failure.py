"""A start on a log that cannot be applied."""

import pytest

from paddock.log.interface import LogError
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, connect, staged


def append_garbage(stage: Stage, name: str) -> None:
    """Write a batch under the name of a server, which nobody can read."""
    roster = stage.core(stage.servers[name]).machine.roster
    assert roster is not None
    (member,) = roster.members.values()
    stage.etcd.append(member.boot, member.next, b"not a batch at all")


@in_virtual_time
async def test_a_batch_that_cannot_be_read_fails_the_start_and_says_how_to_go_on() -> None:
    async with staged("a") as stage:
        async with connect(stage, "a") as client:
            await client.create("/n")
        append_garbage(stage, "a")
        await stage.kill("a")
        with pytest.raises(LogError, match=r"batch \d+ of the log cannot be read.*cluster skip"):
            await stage.start("b")
