"""Election: one of three leads. It is killed, and the next one takes over."""

import math
from typing import Final

from paddock.cli.demo.stage import Act, Stage
from paddock.cli.demo.worker import Worker
from paddock.recipes import Election


async def candidate(me: Worker) -> None:
    election = Election(me.client, "/election", data=me.name.encode())
    me.tell("stands for election")
    async with election.lead() as leadership:
        me.tell("leads", token=leadership.token)
        await me.work()


async def _story(stage: Stage) -> str:
    for name in ("alice", "bob", "carol"):
        await stage.start(name, candidate, work=math.inf)
    first = await stage.see("leads")
    await stage.see_nodes("/election", 3)
    await stage.pause(4)
    killed = await stage.kill(first.who)
    second = await stage.see("leads", after=killed)
    await stage.pause(4)
    stopped = await stage.stop(second.who)
    third = await stage.see("leads", after=stopped)

    leaders = stage.seen("leads")
    stage.check(leaders == [first, second, third], "one leads after the other, and nobody else")
    tokens = [leader.facts["token"] for leader in leaders]
    stage.check(tokens == sorted(set(tokens)), "tokens grow")
    return (
        f"{second.who} led {second.at - killed.at:.2f} s after {first.who} was killed, and"
        f" {third.who} {(third.at - stopped.at) * 1000:.0f} ms after {second.who} was asked to end;"
        f" tokens {' < '.join(map(str, tokens))}"
    )


ELECTION: Final = Act(
    "election",
    "one of three leads; it is killed, and the next one takes over",
    "The first in line leads. It is killed, and when its session ends, the next one leads. One that"
    " ends in good order is followed at once.",
    (candidate,),
    "leads",
    _story,
)
