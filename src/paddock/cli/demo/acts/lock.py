"""Lock: three contend for it, one at a time has it, also when a holder is killed."""

import math
from collections.abc import Iterable
from typing import Final

from paddock.cli.demo.notebook import KILLS, Happening
from paddock.cli.demo.stage import Act, Stage
from paddock.cli.demo.worker import Worker
from paddock.recipes import Lock

# How often the lock is held before the one comes that is never done.
_HOLDS: Final = 5


async def contender(me: Worker) -> None:
    lock = Lock(me.client, "/lock", data=me.name.encode())
    while True:
        me.tell("wants the lock")
        async with lock as grant:
            me.tell("holds the lock", token=grant.token)
            await me.work()
            me.tell("lets go")


async def _story(stage: Stage) -> str:
    for name in ("alice", "bob", "carol"):
        await stage.start(name, contender, work=1.0)
    await stage.see("holds the lock", times=_HOLDS)
    await stage.start("dave", contender, work=math.inf)
    await stage.see("holds the lock", by="dave")
    await stage.see_nodes("/lock", 4)
    await stage.pause(3)
    killed = await stage.kill("dave")
    heir = await stage.see("holds the lock", after=killed)
    await stage.see("holds the lock", after=heir, times=2)

    holds = stage.seen("holds the lock")
    stage.check(one_at_a_time(stage.notebook.page), "one at a time has the lock")
    tokens = [one.facts["token"] for one in holds]
    stage.check(tokens == sorted(set(tokens)), "tokens grow")
    return (
        f"the lock was held {len(holds)} times, by one at a time, each with a larger token;"
        f" {heir.who} had it {heir.at - killed.at:.2f} s after dave was killed with it"
    )


def one_at_a_time(happenings: Iterable[Happening]) -> bool:
    """Return whether the lock never had two holders at once."""
    holder = None
    for one in happenings:
        if one.what == "holds the lock":
            if holder is not None:
                return False
            holder = one.who
        elif holder in _who_lost_it(one):
            holder = None
    return True


def _who_lost_it(happening: Happening) -> tuple[str, ...]:
    if happening.what in ("lets go", "ends"):
        return (happening.who,)
    return (happening.facts["worker"],) if happening.what == KILLS else ()


LOCK: Final = Act(
    "lock",
    "three contend for a lock, one at a time has it, also when a holder is killed",
    "The first in line holds the lock. Dave is never done with it, and is killed: when its session"
    " ends, the next one has it, with a larger token.",
    (contender,),
    "holds the lock",
    _story,
)
