"""A campaign: many worlds, one seed each, and a table of what they have seen.

    python -m paddock.testing.simulation.campaign --seeds 1:1000

It can be stopped and goes on where it was, with `--state FILE`. A world that breaks a rule is
shrunk, and its story and history are written to a folder; the seed alone plays it again
(`--seeds 7:8`). The status is 1 if a world has failed, or if a long campaign has never seen what it
is meant to see.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from paddock.testing.simulation.plan import Plan, make_plan
from paddock.testing.simulation.recipe_plan import RECIPES, make_recipe_plan
from paddock.testing.simulation.shrink import Shrinker
from paddock.testing.simulation.world import Result, run_world

# How many servers the worlds have, in turn by their seed.
_SERVERS: Final = (3, 1, 3, 2)
_PROGRESS_SECONDS: Final = 10.0
# From so many worlds on, a campaign has to have seen all of these.
WORLDS_FOR_COVERAGE: Final = 400
TO_BE_SEEN: Final = (
    "unknown outcomes",
    "unknown outcomes that took effect",
    "late writes refused (moved)",
    "moved sessions",
    "told that the session is over",
    "log: expired",
    "log: held batches",
    "log: void batches",
    "members: deposed",
    "members: left",
    "lost its log: TrimmedError",
    "recipes: grants",
    "recipes: grants that outlived their session",
    "recipes: guarded writes refused",
    "recipes: queue items",
    "recipes: looks at members",
)


# One seed in so many also has a world of recipes.
_RECIPES_EVERY: Final = 3


def plans_of(seed: int, servers: int = 0) -> Iterator[Plan]:
    """Yield the worlds of a seed; with `servers`, all have so many."""
    yield make_plan(seed, servers or servers_of(seed))
    if seed % _RECIPES_EVERY == 0:
        yield make_recipe_plan(seed, servers or servers_of(seed // _RECIPES_EVERY))


def servers_of(seed: int) -> int:
    """Return how many servers the world of a seed has."""
    return _SERVERS[seed % len(_SERVERS)]


class Campaign:
    """What is done and seen so far; `state` is the file that keeps it."""

    def __init__(self, state: Path | None = None) -> None:
        self.done: set[int] = set()
        self.failed: dict[int, list[str]] = {}
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0
        self._state = state
        if state is not None:
            with contextlib.suppress(FileNotFoundError):
                kept = json.loads(state.read_text())
                self.done = set(kept["done"])
                self.failed = {int(seed): told for seed, told in kept["failed"].items()}
                self.counts = Counter(kept["counts"])
                self.seconds = kept["seconds"]

    def note(self, seed: int, result: Result) -> None:
        """Take the result of a seed."""
        self.done.add(seed)
        self.counts += result.counts
        self.counts[f"worlds with {result.plan.servers} servers"] += 1
        self.seconds += result.seconds
        if result.problems:
            self.failed[seed] = result.problems[:5]

    def save(self) -> None:
        if self._state is not None:
            kept = {
                "done": sorted(self.done),
                "failed": self.failed,
                "counts": dict(self.counts),
                "seconds": self.seconds,
            }
            temporary = self._state.with_suffix(".tmp")
            temporary.write_text(json.dumps(kept))
            temporary.replace(self._state)

    def missing(self) -> list[str]:
        """Return what should have been seen and was not; nothing in a short campaign."""
        if len(self.done) < WORLDS_FOR_COVERAGE:
            return []
        return [name for name in TO_BE_SEEN if not self.counts[name]]

    def summary(self) -> str:
        return (
            f"{len(self.done)} worlds, {self.seconds / 3600:.1f} virtual hours,"
            f" {self.counts['calls']} calls, {len(self.failed)} failed"
        )

    def table(self) -> Iterator[str]:
        """Yield what was seen, a line each."""
        width = max((len(name) for name in self.counts), default=0)
        for name, count in sorted(self.counts.items()):
            yield f"{name:{width}}  {count:>9}"


def run_campaign(
    campaign: Campaign, seeds: Sequence[int], *, servers: int, failures: Path, shrinks: bool
) -> None:
    """Run the worlds of all seeds that were not run before."""
    told = time.monotonic()
    for seed in seeds:
        if seed in campaign.done:
            continue
        for plan in plans_of(seed, servers):
            result = run_world(plan)
            campaign.note(seed, result)
            if result.problems:
                _say(f"seed {seed} fails: {result.problems[0]}")
                keep_failure(result, failures, shrinks=shrinks)
        campaign.save()
        if time.monotonic() - told >= _PROGRESS_SECONDS:
            told = time.monotonic()
            _say(f"seed {seed}: {campaign.summary()}")


def keep_failure(result: Result, folder: Path, *, shrinks: bool) -> None:
    """Write the story and the history of a failing world, as small as it can be made."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"seed-{result.plan.seed}-servers-{result.plan.servers}"
    if any(client.kind == RECIPES for client in result.plan.clients):
        name += f"-{RECIPES}"
    if shrinks:
        shrinker = Shrinker(result)
        result = shrinker.shrink()
        _say(f"shrunk in {shrinker.attempts} attempts to {result.plan}")
    (folder / f"{name}.txt").write_text(result.report() + "\n")
    with (folder / f"{name}.history").open("w") as file:
        result.history.dump(file)
    _say(result.report(story=False))
    _say(f"its story is in {folder / name}.txt")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _range(text: str) -> range:
    first, colon, end = text.partition(":")
    return range(int(first), int(end)) if colon else range(1, int(first) + 1)


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
    parser.add_argument("--failures", type=Path, default=Path("build/simulation"))
    parser.add_argument("--no-shrinking", action="store_true")
    options = parser.parse_args(arguments)
    campaign = Campaign(options.state)
    try:
        run_campaign(
            campaign,
            options.seeds,
            servers=options.servers,
            failures=options.failures,
            shrinks=not options.no_shrinking,
        )
    except KeyboardInterrupt:
        _say("stopped")
    for line in campaign.table():
        _say(line)
    _say(campaign.summary())
    for seed, problems in campaign.failed.items():
        _say(f"seed {seed}: {problems[0]}")
    for name in campaign.missing():
        _say(f"never seen: {name}")
    return 1 if campaign.failed or campaign.missing() else 0


if __name__ == "__main__":
    sys.exit(main())
