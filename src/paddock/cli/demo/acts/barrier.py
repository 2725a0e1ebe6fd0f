"""Barrier: three begin together and end together."""

from typing import Final

from paddock.cli.demo.stage import Act, Stage
from paddock.cli.demo.worker import Worker
from paddock.recipes import DoubleBarrier


async def member(me: Worker) -> None:
    me.tell("arrives")
    async with DoubleBarrier(me.client, "/barrier", 3):
        me.tell("begins")
        await me.work()
        me.tell("is done")
    me.tell("leaves")


async def _story(stage: Stage) -> str:
    members = {"alice": 1.0, "bob": 2.5, "carol": 4.0}
    for name, seconds in members.items():
        await stage.start(name, member, work=seconds)
        await stage.see("arrives", by=name)
        await stage.pause(2)
    await stage.see("leaves", times=len(members))

    came, began = stage.seen("arrives"), stage.seen("begins")
    stage.check(came[-1].number < began[0].number, "all of them come before one begins")
    done, left = stage.seen("is done"), stage.seen("leaves")
    stage.check(done[-1].number < left[0].number, "all of them are done before one leaves")
    return (
        f"all three came before one began, and began within {began[-1].at - began[0].at:.3f} s;"
        f" all were done before one left, and left within {left[-1].at - left[0].at:.3f} s"
    )


BARRIER: Final = Act(
    "barrier",
    "three begin together and end together",
    "Nobody begins before all three are there, and nobody leaves before all three are done: early"
    " ones wait for late ones, quick ones for slow ones.",
    (member,),
    "begins",
    _story,
)
