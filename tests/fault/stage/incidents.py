"""Incidents, whose causes are hidden from `paddock explain`: it has to name them.

    python -m tests.fault.stage.incidents --seeds 100

A seed draws the kind of an incident and its details (`incident_scene`). It happens to real
processes: a server, the holder of a lock, clients beside them. When it is over, `explain` is asked
about the holder's session, that of a neighbour and the lock, with nothing but the data folder. The
judge compares what it says with what was done:

* right: everything that it says is so;
* not told: it says that it does not know;
* wrong: it names another cause, another way in which the lock was lost, or somebody else.

With `--cluster` there are two servers that share their log (`incident_cluster`), and the one is
asked that did not have the holder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from paddock.history.stories import session as s
from tests.fault.stage.incident_cluster import CLUSTER_KINDS, ClusterScene
from tests.fault.stage.incident_kinds import KINDS, Truth
from tests.fault.stage.incident_scene import Holder, Plan, Scene
from tests.support.command import ended_here

RIGHT: Final = "right"
NOT_TOLD: Final = "not told"
WRONG: Final = "wrong"
# It did not happen as it should have.
FAILED: Final = "failed"


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
    kind, plan = KINDS[_place(seed, len(KINDS))], Plan.draw(Random(seed))
    scene = Scene(folder, plan)
    with _noted(f"seed {seed}, {kind.__name__}, {plan}"), scene:
        holder, truth = kind(scene)
        scene.finish()
    return _incident(seed, kind.__name__, scene, holder, truth)


def make_cluster_incident(seed: int, folder: Path) -> Incident:
    """Let the incident of a seed happen to a cluster."""
    folder.mkdir()
    kind, plan = CLUSTER_KINDS[_place(seed, len(CLUSTER_KINDS))], Plan.draw(Random(seed))
    scene = ClusterScene(folder, plan)
    with _noted(f"seed {seed}, {kind.__name__}, {plan}"), scene:
        holder, truth = kind(scene)
        scene.finish()
    return _incident(seed, kind.__name__, scene, holder, truth)


def _place(seed: int, count: int) -> int:
    """Return which kind it is: each comes once in as many seeds as there are kinds."""
    turn, place = divmod(seed, count)
    return Random(turn).sample(range(count), count)[place]


@contextlib.contextmanager
def _noted(what: str) -> Iterator[None]:
    """Let an error say in which incident it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(what)
        raise


def _incident(seed: int, kind: str, scene: Scene, holder: Holder, truth: Truth) -> Incident:
    waiters = tuple(scene.waiters)
    return Incident(
        seed, kind, scene.plan, scene.data, truth, holder.session, waiters, scene.neighbour
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


def play(
    seeds: Iterable[int],
    folder: Path,
    workers: int,
    make: Callable[[int, Path], Incident] = make_incident,
) -> list[Future[Incident]]:
    """Let the incidents of some seeds happen, so many at a time."""
    with ThreadPoolExecutor(workers) as pool:
        return [pool.submit(make, seed, folder / str(seed)) for seed in seeds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="100", help="how many, or FROM:TO")
    parser.add_argument("--cluster", action="store_true", help="in a cluster of two servers")
    parser.add_argument("--workers", type=int, default=4, help="how many at a time")
    options = parser.parse_args()
    first, _, end = options.seeds.rpartition(":")
    seeds = range(int(first or 0), int(end))
    verdicts: Counter[str] = Counter()
    make = make_cluster_incident if options.cluster else make_incident
    with tempfile.TemporaryDirectory(prefix="paddock-incidents-") as name:
        for future in play(seeds, Path(name), options.workers, make):
            if (error := future.exception()) is not None:
                traceback.print_exception(error)
                verdicts[FAILED] += 1
                continue
            incident = future.result()
            verdict, found = judge(incident, ask(incident))
            verdicts[verdict] += 1
            if found:
                print(f"{verdict}: {incident}", *found, sep="\n  ")
    print(", ".join(f"{verdicts[one]} {one}" for one in (RIGHT, NOT_TOLD, WRONG, FAILED)))
    return 1 if verdicts[WRONG] or verdicts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
