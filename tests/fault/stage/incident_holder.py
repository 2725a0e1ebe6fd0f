"""The holder of a lock in an incident, as a process of its own.

    python -m tests.fault.stage.incident_holder HOSTS SECONDS PATH LAYOUT TEMPER

It says `holding SESSION PASSWORD NODE` and then does what it is told, a word on a line:

* `release` deletes its node, `close` ends its session, both in good order.
* `write` asks for a write and does not wait. `hurry` asks for one, and the process ends if it takes
  long.
* `ask` waits for a server, and says `answered`; or `gave_up` if the recipe has done that, because
  it had heard nothing for too long; or `expired`.

A patient one looks for its server for as long as it takes. An impatient one ends, without a word to
anybody, as soon as its connection is lost: so many programs fence themselves.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from typing import Any, Final

from paddock.api import connect
from paddock.client.states import SessionState
from paddock.errors import SessionExpiredError
from paddock.recipes import Lock
from paddock.recipes.common.retry import retry, wait_gone

LAYOUTS: Final = ("Paddock", "kazoo", "Curator")
PATIENT: Final = "patient"
IMPATIENT: Final = "impatient"
# How long one waits for an answer that is in a hurry.
HURRY_SECONDS: Final = 2.0


def say(*words: object) -> None:
    print(*words, flush=True)


async def hold(hosts: str, seconds: float, path: str, layout: str, temper: str) -> None:
    """Hold a lock with Paddock's client, in its own layout or in Curator's."""
    client = connect(hosts, session_timeout=seconds)
    await client.start()

    def listen(state: SessionState) -> None:
        if not state.is_connected and temper == IMPATIENT:
            os._exit(3)

    client.add_listener(listen)
    grant: Any = None
    if layout == "Paddock":
        grant = await Lock(client, path).acquire()
        (name,) = [one for one in await client.children(path) if one.startswith("_c_")]
        node = f"{path}/{name}"
    else:
        prefix = f"{path}/_c_{uuid.uuid4()}-lock-"
        node = await client.create(prefix, ephemeral=True, sequential=True)
    say("holding", client.session_id, client.session_password.hex(), node)
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Future[Any]] = []
    while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        if word == "release":
            await (grant.release() if grant is not None else client.delete(node))
            say("released")
        elif word == "close":
            await client.close()
            return
        elif word == "write":
            asked.append(client.set(path, b"written"))
            say("asked")
        elif word == "hurry":
            try:
                async with asyncio.timeout(HURRY_SECONDS):
                    await client.set(path, b"written")
            finally:
                os._exit(4)
        else:
            try:
                await retry(client, lambda: client.exists(path))
                if grant is not None and not grant.is_held:
                    # Nothing was heard for too long, so it has given up.
                    await wait_gone(client, node)
                    say("gave_up")
                else:
                    say("answered")
            except SessionExpiredError:
                say("expired")


def hold_by_kazoo(hosts: str, seconds: float, path: str, temper: str) -> None:
    """Hold a lock with kazoo."""
    # Only here: the others need not wait for it.
    from kazoo.client import KazooClient
    from kazoo.protocol.states import KazooState
    from kazoo.recipe.lock import Lock as KazooLock

    client = KazooClient(hosts, timeout=seconds, connection_retry={"max_tries": -1})

    def listen(state: str) -> None:
        if state != KazooState.CONNECTED and temper == IMPATIENT:
            os._exit(3)

    client.start()
    lock = KazooLock(client, path)
    assert lock.acquire()
    client.add_listener(listen)
    session, password = client.client_id
    say("holding", session, password.hex(), f"{path}/{lock.node}")
    for line in sys.stdin:
        word = line.strip()
        if word == "release":
            lock.release()
            say("released")
        elif word == "close":
            # As one that ends: the lock goes with the session.
            client.remove_listener(listen)
            client.stop()
            return
        elif word == "write":
            client.set_async(path, b"written")
            say("asked")
        elif word == "hurry":
            try:
                client.set_async(path, b"written").get(timeout=HURRY_SECONDS)
            finally:
                os._exit(4)
        else:
            # It makes itself a new session where the old one is over.
            client.retry(client.exists, path)
            say("answered" if client.client_id[0] == session else "expired")


def main() -> None:
    hosts, seconds, path, layout, temper = sys.argv[1:]
    if layout == "kazoo":
        hold_by_kazoo(hosts, float(seconds), path, temper)
    else:
        asyncio.run(hold(hosts, float(seconds), path, layout, temper))


if __name__ == "__main__":
    main()
