"""Queue: every job is done, also that of a consumer that is killed in the middle of it."""

import math
from collections import Counter
from typing import Final

from paddock.cli.demo.stage import Act, Stage
from paddock.cli.demo.worker import Worker
from paddock.recipes import Queue

_JOBS: Final = 6


async def consumer(me: Worker) -> None:
    queue = Queue(me.client, "/jobs")
    while True:
        async with queue.take() as item:
            me.tell("takes", job=int(item.data), attempt=item.attempts)
            await me.work()
        me.tell("is done", job=int(item.data))


async def producer(me: Worker) -> None:
    queue = Queue(me.client, "/jobs")
    for number in range(1, _JOBS + 1):
        await queue.put(b"%d" % number)
        me.tell("puts", job=number)


async def _story(stage: Stage) -> str:
    await stage.start("carol", consumer, work=math.inf)
    await stage.start("shop", producer)
    job = (await stage.see("takes", by="carol")).facts["job"]
    for name in ("alice", "bob"):
        await stage.start(name, consumer, work=1.5)
    await stage.see("is done")
    await stage.pause(2)
    await stage.kill("carol")
    again = await stage.see("takes", job=job, attempt=2)
    for number in range(1, _JOBS + 1):
        await stage.see("is done", job=number)

    done = Counter(one.facts["job"] for one in stage.seen("is done"))
    stage.check(done == Counter(range(1, _JOBS + 1)), "each job is done, and acknowledged once")
    taken_jobs = Counter(one.facts["job"] for one in stage.seen("takes"))
    stage.check(taken_jobs == done + Counter([job]), "only the job of the killed one comes again")
    return (
        f"all {_JOBS} jobs were done; job {job}, with which carol was killed, was delivered to"
        f" {again.who} again as attempt 2, every other one once"
    )


QUEUE: Final = Act(
    "queue",
    "every job is done, also that of a consumer that is killed in the middle of it",
    "A job is in the queue until a worker is done with it. Carol takes one and is killed: when its"
    " session ends, the job is delivered again.",
    (consumer, producer),
    "takes",
    _story,
)
