"""A campaign: many worlds, one seed each, and a table of what they have seen.

    python -m paddock.testing.simulation.campaign --seeds 1:1001

* It uses all cores. What comes of it does not depend on how many: results are taken in the order of
  the seeds, and a world knows nothing but its plan.
* It can be stopped and goes on where it was, with `--state FILE`, also with more seeds.
* A world that breaks a rule is shrunk, and its story and history are written to a folder; the seed
  alone plays it again (`--seeds 7:8`). So is a world whose judging raised something.
* The status is 1 if a world has failed, or if a long campaign has never seen what it is meant to
  see (`TO_BE_SEEN`).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import paddock
from paddock.testing.simulation.plan import CLUSTER_FAULTS, RESTORE, SINGLE_FAULTS, Plan, make_plan
from paddock.testing.simulation.recipe_plan import RECIPES, make_recipe_plan
from paddock.testing.simulation.shrink import Shrinker
from paddock.testing.simulation.world import Result, kept_of, run_world

# How many servers the worlds have, in turn by their seed.
_SERVERS: Final = (3, 1, 3, 2)
# One seed in so many also has a world of recipes.
_RECIPES_EVERY: Final = 3
_PROGRESS_SECONDS: Final = 10.0
_PROBLEMS_MAX: Final = 5
# From so many worlds on, a campaign has to have seen all of these.
WORLDS_FOR_COVERAGE: Final = 1_000
TO_BE_SEEN: Final = (
    "unknown outcomes",
    "unknown outcomes that took effect",
    "late writes refused (moved)",
    "moved sessions",
    "told that the session is over",
    "log: expired",
    "log: reaped",
    "log: held batches",
    "log: void batches",
    "log: watches opened again",
    "log: read in pages",
    "disk: torn tails",
    "disk: batches found at a start",
    "disk: starts from a snapshot",
    "members: deposed",
    "members: left",
    "lost its log: TrimmedError",
    "ended by itself: ForbiddenError",
    "ended by itself: OtherHistoryError",
    "recipes: grants",
    "recipes: grants that outlived their session",
    "recipes: guarded writes refused",
    "recipes: queue items",
    "recipes: looks at members",
    *(f"fault: {kind}" for kind in dict.fromkeys((*SINGLE_FAULTS, *CLUSTER_FAULTS, RESTORE))),
)


def plans_of(seed: int, servers: int = 0) -> Iterator[Plan]:
    """Yield the worlds of a seed; with `servers`, all have so many."""
    yield make_plan(seed, servers or servers_of(seed))
    if seed % _RECIPES_EVERY == 0:
        yield make_recipe_plan(seed, servers or servers_of(seed // _RECIPES_EVERY))


def servers_of(seed: int) -> int:
    """Return how many servers the world of a seed has."""
    return _SERVERS[seed % len(_SERVERS)]


@dataclass
class Outcome:
    """What came of a seed, as far as a campaign keeps it."""

    seed: int
    worlds: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    # What is to be told of failures.
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Terms:
    """How the worlds of a campaign are run; `servers` is 0 if it depends on the seed."""

    servers: int = 0
    failures: Path = Path("build/simulation")
    shrinks: bool = True


def run_seed(terms: Terms, seed: int) -> Outcome:
    """Run the worlds of a seed, and keep what is left of those that fail."""
    outcome = Outcome(seed)
    for plan in plans_of(seed, terms.servers):
        outcome.worlds += 1
        outcome.counts[f"worlds with {plan.servers} servers"] += 1
        try:
            result = run_world(plan)
        except Exception as error:
            # A judge that meets what cannot be has found it.
            outcome.problems.append(f"world: {type(error).__name__}: {error}")
            outcome.said.append(f"seed {seed} fails: {outcome.problems[-1]}")
            continue
        outcome.seconds += result.seconds
        outcome.counts += result.counts
        if result.problems:
            outcome.problems += result.problems[:_PROBLEMS_MAX]
            outcome.said.append(f"seed {seed} fails: {result.problems[0]}")
            outcome.said += keep_failure(result, terms.failures, shrinks=terms.shrinks)
    return outcome


class Campaign:
    """What is done and seen so far; `state` is the file that keeps it."""

    def __init__(self, state: Path | None = None) -> None:
        self.done: set[int] = set()
        self.worlds = 0
        self.failed: dict[int, list[str]] = {}
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0
        # How long it has taken, in real seconds, and how many worlds each version of the code had.
        self.real_seconds = 0.0
        self.versions: Counter[str] = Counter()
        self._state = state
        if state is not None:
            with contextlib.suppress(FileNotFoundError):
                kept = json.loads(state.read_text())
                self.done = set(kept["done"])
                self.worlds = kept["worlds"]
                self.failed = {int(seed): told for seed, told in kept["failed"].items()}
                self.counts = Counter(kept["counts"])
                self.seconds = kept["seconds"]
                self.real_seconds = kept["real_seconds"]
                self.versions = Counter(kept["versions"])

    def note(self, outcome: Outcome) -> None:
        """Take what came of a seed."""
        self.done.add(outcome.seed)
        self.worlds += outcome.worlds
        self.counts += outcome.counts
        self.seconds += outcome.seconds
        self.versions[version()] += 1
        if outcome.problems:
            self.failed[outcome.seed] = outcome.problems

    def save(self) -> None:
        if self._state is not None:
            kept = {
                "done": sorted(self.done),
                "worlds": self.worlds,
                "failed": self.failed,
                "counts": dict(self.counts),
                "seconds": self.seconds,
                "real_seconds": self.real_seconds,
                "versions": dict(self.versions),
            }
            temporary = self._state.with_suffix(".tmp")
            temporary.write_text(json.dumps(kept))
            temporary.replace(self._state)

    def missing(self) -> list[str]:
        """Return what should have been seen and was not; nothing in a short campaign."""
        if self.worlds < WORLDS_FOR_COVERAGE:
            return []
        return [name for name in TO_BE_SEEN if not self.counts[name]]

    def summary(self) -> str:
        faults = sum(count for name, count in self.counts.items() if name.startswith("fault: "))
        pace = self.worlds * 60 / self.real_seconds if self.real_seconds else 0
        versions = f", {len(self.versions)} versions of the code" if len(self.versions) > 1 else ""
        return (
            f"{len(self.done)} seeds, {self.worlds} worlds ({pace:.0f} a minute),"
            f" {self.seconds / 3600:.1f} virtual hours, {self.counts['calls']} calls,"
            f" {faults} faults, {len(self.failed)} failed{versions}"
        )

    def table(self) -> Iterator[str]:
        """Yield what was seen, a line each."""
        width = max((len(name) for name in self.counts), default=0)
        for name, count in sorted(self.counts.items()):
            yield f"{name:{width}}  {count:>9}"


@functools.cache
def version() -> str:
    """Return what tells this source from another: a campaign that goes on may be of both."""
    digest = hashlib.sha256()
    folder = Path(paddock.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def run_campaign(
    campaign: Campaign,
    seeds: Iterable[int],
    terms: Terms,
    *,
    processes: int = 1,
    stops: bool = False,
) -> None:
    """Run the worlds of all seeds that were not run before; with `stops` until one fails."""
    left = [seed for seed in seeds if seed not in campaign.done]
    begun = told = time.monotonic()
    earlier = campaign.real_seconds
    with _outcomes(terms, left, processes) as outcomes:
        try:
            for outcome in outcomes:
                campaign.note(outcome)
                for line in outcome.said:
                    _say(line)
                now = time.monotonic()
                campaign.real_seconds = earlier + now - begun
                if now - told >= _PROGRESS_SECONDS:
                    told = now
                    campaign.save()
                    _say(f"seed {outcome.seed}: {campaign.summary()}")
                if stops and outcome.problems:
                    break
        finally:
            campaign.save()


@contextlib.contextmanager
def _outcomes(terms: Terms, seeds: list[int], processes: int) -> Iterator[Iterator[Outcome]]:
    """Return what comes of some seeds, in their order."""
    run = functools.partial(run_seed, terms)
    if processes == 1 or len(seeds) < 2:
        yield map(run, seeds)
        return
    # New processes: what this one has done so far may not reach into a world.
    with multiprocessing.get_context("spawn").Pool(min(processes, len(seeds))) as pool:
        yield pool.imap(run, seeds)


def keep_failure(result: Result, folder: Path, *, shrinks: bool) -> list[str]:
    """Write the story and the history of a failing world, as small as it can be made.

    Returns what is to be told of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"seed-{result.plan.seed}-servers-{result.plan.servers}"
    if any(client.kind == RECIPES for client in result.plan.clients):
        name += f"-{RECIPES}"
    said = []
    if shrinks:
        shrinker = Shrinker(result)
        result = shrinker.shrink()
        said.append(f"shrunk in {shrinker.attempts} attempts to {result.plan}")
    (folder / f"{name}.txt").write_text(result.report() + "\n")
    kept_of(result.plan, result.history).write(folder / f"{name}.history")
    return [*said, result.report(story=False), f"its story is in {folder / name}.txt"]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _range(text: str) -> range:
    first, colon, end = text.partition(":")
    try:
        return range(int(first), int(end)) if colon else range(1, int(first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1000, or 7:8") from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="campaign", description="Run simulated worlds.")
    parser.add_argument(
        "--seeds",
        type=_range,
        default=range(1, 101),
        metavar="A:B",
        help="from A to just before B; or how many, from 1 on",
    )
    parser.add_argument("--servers", type=int, default=0, help="the same in all worlds")
    parser.add_argument("--state", type=Path, help="the file to go on from")
    parser.add_argument("--failures", type=Path, default=Terms.failures)
    parser.add_argument("--no-shrinking", action="store_true")
    parser.add_argument("--stop", action="store_true", help="end at the first seed that fails")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="as many as cores"
    )
    options = parser.parse_args(arguments)
    campaign = Campaign(options.state)
    terms = Terms(options.servers, options.failures, not options.no_shrinking)
    try:
        run_campaign(
            campaign, options.seeds, terms, processes=options.processes, stops=options.stop
        )
    except KeyboardInterrupt:
        _say("stopped")
    for line in campaign.table():
        _say(line)
    _say(campaign.summary())
    for seed, problems in sorted(campaign.failed.items()):
        _say(f"seed {seed}: {problems[0]}")
    for name in campaign.missing():
        _say(f"never seen: {name}")
    return 1 if campaign.failed or campaign.missing() else 0


if __name__ == "__main__":
    sys.exit(main())
