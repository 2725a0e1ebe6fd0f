"""Incidents, whose causes are hidden from `paddock explain`: it has to name them.

    python -m tests.fault.stage.incidents --seeds 100

A seed draws the kind of an incident and its details (`incident_scene`). It happens to real
processes: a server, the holder of a lock, clients beside them. When it is over, `explain` is asked
about the holder's session, that of a neighbour and the lock, with nothing but the data folder. The
judge compares what it says with what was done:

* right: everything that it says is so;
* not told: it says that it does not know;
* wrong: it names another cause, another way in which the lock was lost, or somebody else.

What no server can tell apart is not drawn: a client that is killed by chance while its server is
paused or dead, and one that ends itself because of that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from paddock.history.stories import lock as k
from paddock.history.stories import session as s
from paddock.storage import events as e
from paddock.testing import Direction
from tests.fault.stage.incident_scene import Holder, Plan, Scene
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import ended_here

RIGHT: Final = "right"
NOT_TOLD: Final = "not told"
WRONG: Final = "wrong"


@dataclass(frozen=True, slots=True)
class Truth:
    """What was done to the holder: why its session ended, and how it lost the lock."""

    # None: it lives, it holds the lock.
    cause: str | None
    how: str | None
    # The trouble of the server that it came from.
    trouble: str | None = None
    # Who else has deleted its node.
    culprit: int = 0


SILENT: Final = Truth(s.CLIENT_SILENT, k.EXPIRED)
GONE: Final = Truth(s.CLIENT_GONE, k.EXPIRED)
CUT_OFF: Final = Truth(s.CLIENT_CUT_OFF, k.EXPIRED)
CLOSED: Final = Truth(s.CLOSED, k.CLOSED)
RELEASED: Final = Truth(None, k.RELEASED)
NOTHING: Final = Truth(None, None)
PAUSED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.STALLED)
KILLED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.SERVER_STARTED)
STOPPED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.SERVER_STOPPING)
SLOW: Final = Truth(s.SERVER_SLOW, k.EXPIRED, e.SLOW_SYNC)


def client_paused(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.pause()
    scene.happen()
    scene.wait_lost(holder)
    return holder, SILENT


def client_paused_for_a_moment(scene: Scene) -> tuple[Holder, Truth]:
    """It comes back too late."""
    holder, _ = client_paused(scene)
    holder.resume()
    scene.wait_event(e.HANDSHAKE_FAILED, holder.session)
    return holder, SILENT


def client_killed(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.kill()
    scene.happen()
    scene.wait_lost(holder)
    return holder, GONE


def client_closes(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.tell("close")
    scene.wait_lost(holder)
    return holder, CLOSED


def client_releases(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.tell("release", "released")
    return holder, RELEASED


def session_closed_by_another(scene: Scene) -> tuple[Holder, Truth]:
    """Somebody who knows its password takes the session over, and ends it."""
    holder = scene.begin()
    thief = wire.connect(
        scene.server.address,
        timeout_ms=int(scene.plan.timeout * 1000),
        session_id=holder.session,
        password=holder.password,
    )
    thief.close()
    return holder, CLOSED


def lock_deleted_by_another(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    culprit = scene.connect()
    assert culprit.call(rq.delete(holder.node)).err == 0
    return holder, Truth(None, k.DELETED_BY_OTHER, culprit=culprit.session_id)


def network_cut(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.proxy.blackhole()
    scene.happen()
    scene.wait_lost(holder)
    return holder, SILENT


def network_cut_to_server(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.proxy.blackhole(Direction.TO_SERVER)
    scene.wait_lost(holder)
    return holder, SILENT


def network_cut_to_client(scene: Scene) -> tuple[Holder, Truth]:
    """It comes back again and again, until it looks for its server too seldom."""
    holder = scene.begin()
    scene.proxy.blackhole(Direction.TO_CLIENT)
    scene.wait_lost(holder)
    return holder, CUT_OFF


def network_refuses(scene: Scene) -> tuple[Holder, Truth]:
    """Something in between closes its connections; to the server it is as if the client did."""
    holder = scene.begin()
    scene.proxy.refuse()
    scene.wait_lost(holder)
    return holder, GONE


def server_paused(scene: Scene) -> tuple[Holder, Truth]:
    """For longer than the timeout: the holder looks for it until it is back."""
    holder = scene.begin()
    scene.server.pause()
    scene.last(scene.plan.timeout + scene.plan.longer)
    scene.server.resume()
    return holder, _after(holder, PAUSED)


def server_paused_and_left(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin_impatient()
    scene.server.pause()
    holder.wait_end()
    scene.last(scene.plan.longer)
    scene.server.resume()
    scene.wait_lost(holder)
    return holder, PAUSED


def server_paused_and_client_killed_later(scene: Scene) -> tuple[Holder, Truth]:
    holder, truth = server_paused(scene)
    if truth != NOTHING:
        return holder, truth
    scene.last(0.5 + scene.plan.longer)
    holder.kill()
    scene.wait_lost(holder)
    return holder, GONE


def server_killed(scene: Scene) -> tuple[Holder, Truth]:
    """It is back later than the timeout, and the holder looks for it until then."""
    holder = scene.begin()
    scene.server.kill()
    scene.last(scene.plan.timeout + scene.plan.longer)
    scene.server.start()
    return holder, _after(holder, KILLED)


def server_killed_and_left(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin_impatient()
    scene.server.kill()
    holder.wait_end()
    scene.last(scene.plan.timeout + scene.plan.longer)
    scene.server.start()
    scene.wait_lost(holder)
    return holder, KILLED


def client_killed_before_server(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.kill()
    scene.wait_event(e.CONNECTION_ENDED, holder.session)
    scene.server.kill()
    scene.last(scene.plan.longer)
    scene.server.start()
    scene.wait_lost(holder)
    return holder, GONE


def server_killed_and_client_paused_later(scene: Scene) -> tuple[Holder, Truth]:
    holder, truth = server_killed(scene)
    if truth != NOTHING:
        return holder, truth
    holder.pause()
    scene.wait_lost(holder)
    return holder, SILENT


def server_stopped_and_left(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin_impatient()
    scene.server.stop()
    holder.wait_end()
    scene.last(scene.plan.longer)
    scene.server.start()
    scene.wait_lost(holder)
    return holder, STOPPED


def disk_slow(scene: Scene) -> tuple[Holder, Truth]:
    """Writes wait for longer than the timeout, and nobody loses a session by that."""
    holder = scene.begin()
    slow = scene.slow_disk(scene.plan.timeout + scene.plan.longer)
    holder.tell("write", "asked")
    assert holder.ask() == "answered"
    assert slow.end() > 0
    return holder, NOTHING


def disk_slow_and_left(scene: Scene) -> tuple[Holder, Truth]:
    """The holder ends because it has no answer."""
    holder = scene.begin()
    slow = scene.slow_disk(scene.plan.timeout + scene.plan.longer)
    holder.tell("hurry")
    holder.wait_end()
    slow.end()
    scene.wait_lost(holder)
    return holder, SLOW


def disk_slow_and_client_paused(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    slow = scene.slow_disk(scene.plan.timeout + scene.plan.longer)
    holder.pause()
    scene.happen()
    slow.end()
    scene.wait_lost(holder)
    return holder, SILENT


def _after(holder: Holder, trouble: Truth) -> Truth:
    """Return what became of a holder that looks for its server, and may do so too seldom."""
    return {"answered": NOTHING, "gave_up": RELEASED, "expired": trouble}[holder.ask()]


Kind = Callable[[Scene], tuple[Holder, Truth]]

KINDS: Final[tuple[Kind, ...]] = (
    client_paused,
    client_paused_for_a_moment,
    client_killed,
    client_closes,
    client_releases,
    session_closed_by_another,
    lock_deleted_by_another,
    network_cut,
    network_cut_to_server,
    network_cut_to_client,
    network_refuses,
    server_paused,
    server_paused_and_left,
    server_paused_and_client_killed_later,
    server_killed,
    server_killed_and_left,
    client_killed_before_server,
    server_killed_and_client_paused_later,
    server_stopped_and_left,
    disk_slow,
    disk_slow_and_left,
    disk_slow_and_client_paused,
)


@dataclass(frozen=True, slots=True)
class Incident:
    """What has happened, and what is left of it."""

    seed: int
    kind: str
    plan: Plan
    data: Path
    truth: Truth
    session: int
    # Those behind the holder, in order.
    waiters: tuple[int, ...]
    # Who has closed its session; 0 is nobody.
    neighbour: int

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.kind}, {self.plan}"


def make_incident(seed: int, folder: Path) -> Incident:
    """Let the incident of a seed happen, with its data in a new folder."""
    folder.mkdir()
    # Each kind comes once in as many seeds as there are kinds.
    turn, place = divmod(seed, len(KINDS))
    kind = Random(turn).sample(KINDS, len(KINDS))[place]
    plan = Plan.draw(Random(seed))
    try:
        with Scene(folder, plan) as scene:
            holder, truth = kind(scene)
            # It is stopped before the holder's process is ended, which is no part of this.
            scene.server.stop()
    except BaseException as error:
        error.add_note(f"seed {seed}, {kind.__name__}, {plan}")
        raise
    return Incident(
        seed,
        kind.__name__,
        plan,
        scene.data,
        truth,
        holder.session,
        tuple(scene.waiters),
        scene.neighbour,
    )


class Told(NamedTuple):
    """What `explain` says, as it does for programs."""

    session: dict[str, Any]
    lock: dict[str, Any]
    # Of the session that a neighbour has closed, and of the node that was deleted; if there is one.
    neighbour: dict[str, Any] | None
    node: dict[str, Any] | None


def ask(incident: Incident) -> Told:
    """Ask about an incident; it is not said what has happened."""
    lock = explained(incident.data, "lock", incident.plan.path)
    former, neighbour = lock["former"], incident.neighbour
    return Told(
        explained(incident.data, "session", f"0x{incident.session:x}"),
        lock,
        explained(incident.data, "session", f"0x{neighbour:x}") if neighbour else None,
        explained(incident.data, "node", former[0]["path"]) if former else None,
    )


def explained(data: Path, *arguments: str) -> dict[str, Any]:
    """Return what `paddock explain` says of a data folder."""
    done = ended_here("explain", *arguments, "--json", "--data", str(data))
    assert done.status == 0, done
    found: dict[str, Any] = json.loads(done.output)
    return found


def judge(incident: Incident, told: Told) -> tuple[str, list[str]]:
    """Return the verdict on what was told, and what of it is not as it was."""
    truth, session, found = incident.truth, told.session, list[str]()
    if session["cause"] == s.NOT_KNOWN:
        return NOT_TOLD, [session["text"]]
    if (session["cause"], session["trouble"]) != (truth.cause, truth.trouble):
        found.append(f"the session: {session['cause']}, {session['trouble']}: {session['text']}")
    if told.neighbour is not None and told.neighbour["cause"] != s.CLOSED:
        found.append(f"the neighbour: {told.neighbour['text']}")
    found += _lock_faults(incident, told)
    return WRONG if found else RIGHT, found


def _lock_faults(incident: Incident, told: Told) -> Iterable[str]:
    """Yield what is wrong in the story of the lock."""
    truth, names = incident.truth, [f"0x{one:x}" for one in (incident.session, *incident.waiters)]
    lock = told.lock
    line = [one for one in (lock["holder"], *lock["waiters"]) if one is not None]
    former = lock["former"]
    expected = names if truth.how is None else names[1:]
    if [one["session"] for one in line] != expected:
        yield f"the line: {line}"
    if {one["layout"] for one in (*line, *former)} != {incident.plan.layout}:
        yield f"the layout: {line} {former}"
    if truth.how is None:
        if former:
            yield f"lost by {former}"
        return
    if [(one["session"], one["how"]) for one in former] != [(names[0], truth.how)]:
        yield f"the former holder: {former}"
    elif line and line[0]["held"] != former[0]["went"]:
        yield f"the hand-over: {former[0]} {line[0]}"
    if truth.culprit:
        last = told.node["last"][-1] if told.node is not None else {}
        if (last.get("kind"), last.get("session")) != ("deleted", f"0x{truth.culprit:x}"):
            yield f"who has deleted it: {last}"


def play(seeds: Iterable[int], folder: Path, workers: int) -> list[Incident]:
    """Let the incidents of some seeds happen, so many at a time."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda seed: make_incident(seed, folder / str(seed)), seeds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="100", help="how many, or FROM:TO")
    parser.add_argument("--workers", type=int, default=4, help="how many at a time")
    options = parser.parse_args()
    first, _, end = options.seeds.rpartition(":")
    verdicts: Counter[str] = Counter()
    seeds = range(int(first or 0), int(end))
    with tempfile.TemporaryDirectory(prefix="paddock-incidents-") as name:
        for incident in play(seeds, Path(name), options.workers):
            verdict, found = judge(incident, ask(incident))
            verdicts[verdict] += 1
            if found:
                print(f"{verdict}: {incident}", *found, sep="\n  ")
    print(", ".join(f"{verdicts[one]} {one}" for one in (RIGHT, NOT_TOLD, WRONG)))
    return 1 if verdicts[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
