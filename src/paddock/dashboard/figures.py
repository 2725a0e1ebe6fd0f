"""The figures of the servers: now, over the last hour, and what is wrong with them.

* All servers are asked each second while somebody looks, else every ten seconds, so that the hour
  is there for the next one who does.
* Each of the last five minutes has a point a second; what is older has one for ten seconds.
* A problem has the time since when it is there. `problems_of` has the rules; they are pure.
* Figures of several servers are one: rates and counts of connections are added up, of times the
  worst counts, and of what all servers have (nodes, sessions) the largest.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from paddock.dashboard.access import RefusedError
from paddock.dashboard.people import People
from paddock.dashboard.tree import quota
from paddock.dashboard.words import Words
from paddock.errors import PaddockError
from paddock.monitor import Figures

logger: Final = logging.getLogger(__name__)

Fields = dict[str, Any]

LOOK_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 10.0
_FINE: Final = 300
_COARSE: Final = 360
_COARSE_MS: Final = 10_000
_QUOTA_SECONDS: Final = 30.0
_RECIPES_SECONDS: Final = 3.0
_RECIPES_SHARE: Final = 0.02
_QUOTA_NODES_MAX: Final = 2000
_QUOTA_ROOT: Final = "/zookeeper/quota"

# When something is a problem.
SLOW_SYNC_MS: Final = 100.0
QUOTA_SHARE: Final = 0.9
LEAK_WATCHES: Final = 10_000
LEAK_SECONDS: Final = 1800
LAG_MAX: Final = 1000
HELD_MS: Final = 3600 * 1000

# Names of `mntr` that are shown over time. Of those of a read and of a write the worst counts.
PERCENTILES: Final = {
    "latency_p50_ms": ("zk_p50_readlatency", "zk_p50_updatelatency"),
    "latency_p99_ms": ("zk_p99_readlatency", "zk_p99_updatelatency"),
}
_LOCKS: Final = ("lock", "read-write lock", "semaphore", "election")


class Series:
    """One figure over the last hour."""

    def __init__(self) -> None:
        self._fine: deque[tuple[int, float]] = deque(maxlen=_FINE)
        self._coarse: deque[tuple[int, float]] = deque(maxlen=_COARSE)
        # Those of the present ten seconds.
        self._gathered: list[float] = []
        self._since_ms = 0

    def add(self, time_ms: int, value: float) -> None:
        self._fine.append((time_ms, value))
        if time_ms - self._since_ms >= _COARSE_MS:
            if self._gathered:
                mean = sum(self._gathered) / len(self._gathered)
                self._coarse.append((self._since_ms, mean))
            self._gathered, self._since_ms = [], time_ms
        self._gathered.append(value)

    def points(self) -> list[list[float]]:
        """Return time and value of each point, the oldest first."""
        begin_ms = self._fine[0][0] if self._fine else 0
        old = [one for one in self._coarse if one[0] < begin_ms]
        return [[at, round(value, 3)] for at, value in (*old, *self._fine)]

    def last(self) -> list[list[float]]:
        """Return the newest point."""
        return [[at, round(value, 3)] for at, value in [*self._fine][-1:]]

    def at(self, time_ms: int) -> float | None:
        """Return the first value that is not older than a time."""
        return next((value for at, value in self.points() if at >= time_ms), None)


class Watching:
    """Asks the servers again and again, and tells the pages."""

    def __init__(self, words: Words, people: People) -> None:
        self._words = words
        self._people = people
        self._servers: list[Figures] = []
        self._series: dict[str, Series] = {}
        self._quotas: list[Fields] = []
        self._quotas_due = self._recipes_due = 0.0
        # Since when each problem is there.
        self._since_ms: dict[str, int] = {}
        self._problems: list[Fields] = []
        self._look_at_recipes: Callable[[], Awaitable[list[Fields]]] | None = None
        self._recipes: list[Fields] = []
        self._task: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()

    def start(self, look_at_recipes: Callable[[], Awaitable[list[Fields]]]) -> None:
        """Begin; among the recipes there may be problems as well."""
        self._look_at_recipes = look_at_recipes
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    @property
    def servers(self) -> list[Figures]:
        """The servers, as they were last."""
        return self._servers

    async def overview(self) -> Fields:
        """Return everything, with the last hour."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._looked.wait()
        return self._fields({name: one.points() for name, one in self._series.items()})

    def lacking(self) -> list[Fields]:
        """Return what the servers do not tell, and how they would."""
        silent = [one.server for one in self._servers if not one.problem and not one.has_details]
        if not silent:
            return []
        return [
            {
                "what": "Sessions, watches, the size of the data and the times of syncs.",
                "why": f"{', '.join(silent)} does not answer the four-letter word mntr."
                f" {self._words.admin_problem}".rstrip(),
                "how": whitelist("mntr"),
            }
        ]

    def _fields(self, series: Fields) -> Fields:
        return {
            "servers": server_fields(self._servers),
            "series": series,
            "problems": self._problems,
        }

    async def _watch(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self._look()
            except Exception:
                # What a server says must not end this for all of them.
                logger.exception("the figures of the servers could not be read")
            looks = any(one.watched.count for one in self._people.all())
            if looks:
                newest = self._fields({name: one.last() for name, one in self._series.items()})
                for connection in self._people.all():
                    connection.watched.tell("overview", newest)
            pause = LOOK_SECONDS if looks else IDLE_SECONDS
            # Somebody may come meanwhile.
            while (left := began + pause - time.monotonic()) > 0:
                await asyncio.sleep(min(left, LOOK_SECONDS))
                if any(one.watched.count for one in self._people.all()):
                    pause = LOOK_SECONDS

    async def _look(self) -> None:
        before = {one.server: one for one in self._servers}
        self._servers = await self._words.look()
        for one in self._servers:
            one.compare(before.get(one.server))
        now_ms = time.time_ns() // 1_000_000
        for name, value in values_of(self._servers, before).items():
            self._series.setdefault(name, Series()).add(now_ms, value)
        if time.monotonic() >= self._quotas_due:
            self._quotas_due = time.monotonic() + _QUOTA_SECONDS
            await self._read_quotas()
        await self._read_recipes()
        found = problems_of(self._servers, self._series, self._quotas, self._recipes, now_ms)
        self._since_ms = {key: self._since_ms.get(key, now_ms) for key in found}
        self._problems = [
            {"since_ms": self._since_ms[key], **fields} for key, fields in found.items()
        ]
        self._looked.set()

    async def _read_quotas(self) -> None:
        """Read the quotas, as far as there are few of them."""
        connection = self._people.base
        if not connection.is_connected:
            return
        found = []
        try:
            client = connection.client
            looked = 0
            async for node in client.walk(_QUOTA_ROOT):
                looked += 1
                if looked > _QUOTA_NODES_MAX:
                    break
                if node.name == "zookeeper_limits":
                    path = node.path[len(_QUOTA_ROOT) : -len("/zookeeper_limits")]
                    found.append(await quota(client, path))
        except (PaddockError, RefusedError):
            # Below a chroot there are none, and the service may have gone away.
            return
        self._quotas = [one for one in found if one is not None]

    async def _read_recipes(self) -> None:
        """Look at the recipes, while somebody looks at the page."""
        looks = any(one.watched.count for one in self._people.all())
        if self._look_at_recipes is None or not looks or not self._people.base.is_connected:
            return
        if time.monotonic() < self._recipes_due:
            return
        began = time.monotonic()
        # What is away now is there the next time.
        with contextlib.suppress(PaddockError, RefusedError):
            self._recipes = await self._look_at_recipes()
        # As a rule it looks only where something has changed. A large or busy tree takes longer,
        # and gets a longer pause.
        took = time.monotonic() - began
        self._recipes_due = time.monotonic() + max(_RECIPES_SECONDS, took / _RECIPES_SHARE)


def values_of(servers: list[Figures], before: dict[str, Figures]) -> dict[str, float]:
    """Return the figures that are shown over time, of all servers as one."""
    values: dict[str, float] = {}

    def put(name: str, found: Iterable[float | None], join: Callable[[list[float]], float]) -> None:
        known = [one for one in found if one is not None]
        if known:
            values[name] = join(known)

    put("requests_per_second", (one.requests_per_s for one in servers), sum)
    put("latency_avg_ms", (one.latency_avg_ms for one in servers), max)
    put("connections", (one.clients for one in servers), sum)
    put("watches", (one.watches for one in servers), sum)
    put("sessions", (one.sessions for one in servers), max)
    put("nodes", (one.nodes for one in servers), max)
    put("data_bytes", (one.data_bytes for one in servers), max)
    put("sync_avg_ms", (sync_ms(one, before.get(one.server)) for one in servers), max)
    for name, keys in PERCENTILES.items():
        put(name, (_number(one.details.get(key)) for one in servers for key in keys), max)
    return values


def sync_ms(now: Figures, before: Figures | None) -> float | None:
    """Return how long a sync took since the last look, or on the whole at the first one."""
    count, total = _number(now.details.get("zk_cnt_fsynctime")), _sum(now)
    if count is None or total is None:
        return None
    if before is not None and before.details:
        old_count, old_total = _number(before.details.get("zk_cnt_fsynctime")), _sum(before)
        # After a restart they begin from zero.
        if old_count is not None and old_total is not None and old_count < count:
            return max(0.0, (total - old_total) / (count - old_count))
        return None
    return total / count if count else None


def _sum(figures: Figures) -> float | None:
    return _number(figures.details.get("zk_sum_fsynctime"))


def server_fields(servers: list[Figures]) -> list[Fields]:
    """Return the servers for JSON."""
    zxids = [_zxid(one) for one in servers]
    newest = max((one for one in zxids if one is not None), default=0)
    return [
        {
            "server": one.server,
            "problem": one.problem,
            "mode": one.mode,
            "version": one.version,
            "zxid": one.zxid,
            "lag": None if zxid is None else newest - zxid,
            "latency_ms": None
            if one.latency_avg_ms is None
            else {
                "min": one.latency_min_ms,
                "avg": one.latency_avg_ms,
                "max": one.latency_max_ms,
            },
            "requests_per_second": one.requests_per_s,
            "connections": one.clients,
            "sessions": one.sessions,
            "watches": one.watches,
            "nodes": one.nodes,
            "ephemerals": one.ephemerals,
            "data_bytes": one.data_bytes,
            "sync_ms": _number(one.details.get("zk_avg_fsynctime")),
            "uptime_ms": None if one.uptime_s is None else int(one.uptime_s * 1000),
        }
        for one, zxid in zip(servers, zxids, strict=True)
    ]


def problems_of(
    servers: list[Figures],
    series: dict[str, Series],
    quotas: list[Fields],
    recipes: list[Fields],
    now_ms: int,
) -> dict[str, Fields]:
    """Return what is wrong, each under a key that stays the same; the worst first."""
    found: dict[str, Fields] = {}

    def add(key: str, severity: str, what: str, link: str | None = None) -> None:
        found[key] = {"severity": severity, "what": what, "link": link}

    for one in servers:
        if one.problem is not None:
            add(f"away {one.server}", "bad", f"{one.server} is away: {one.problem}.", "#/overview")
    for row in server_fields(servers):
        if row["lag"] is not None and row["lag"] > LAG_MAX:
            add(
                f"lag {row['server']}",
                "warn",
                f"{row['server']} is {row['lag']:,} transactions behind.",
                "#/overview",
            )
    points = series["sync_avg_ms"].points()[-10:] if "sync_avg_ms" in series else []
    if points and sum(value for _, value in points) / len(points) > SLOW_SYNC_MS:
        slow = max(value for _, value in points)
        add("disk", "warn", f"The disk is slow: a sync takes up to {slow:.0f} ms.")
    if "watches" in series:
        last = series["watches"].last()
        before = series["watches"].at(now_ms - LEAK_SECONDS * 1000)
        oldest = series["watches"].points()[0][0]
        has_past = oldest <= now_ms - LEAK_SECONDS * 1000
        if last and before is not None and has_past:
            number = last[0][1]
            if number >= LEAK_WATCHES and number >= 2 * max(before, 1):
                add(
                    "watches",
                    "warn",
                    f"The watches grow: {number:,.0f} now, {before:,.0f} half an hour ago.",
                    "#/sessions",
                )
    for one_quota in quotas:
        for noun in ("nodes", "bytes"):
            used, limit = one_quota[noun], one_quota[f"{noun}_limit"]
            if used is not None and limit and used >= QUOTA_SHARE * limit:
                path = one_quota["path"]
                add(
                    f"quota {noun} {path}",
                    "bad" if used >= limit else "warn",
                    f"The quota of {path} is {'reached' if used >= limit else 'nearly reached'}:"
                    f" {used:,} of {limit:,} {noun}.",
                    path,
                )
    for recipe in recipes:
        for sessions in recipe.get("deadlocks", ()):
            several = ", ".join(sessions[:3]) + (", …" if len(sessions) > 3 else "")
            add(
                f"deadlock {several}",
                "bad",
                f"{len(sessions)} sessions wait for each other: {several}.",
                "#/coordination",
            )
        holders = [one for one in recipe.get("holders", ()) if one.get("since_ms")]
        if recipe.get("kind") in _LOCKS and recipe.get("waiters") and holders:
            held_ms = now_ms - min(one["since_ms"] for one in holders)
            if held_ms >= HELD_MS:
                path = recipe["path"]
                hours = held_ms / 3_600_000
                add(f"held {path}", "warn", f"{path} is held for {hours:.1f} h.", path)
    return dict(sorted(found.items(), key=lambda one: one[1]["severity"] != "bad"))


def whitelist(*words: str) -> str:
    """Return how a server is made to answer words."""
    every = ",".join(("srvr", *words))
    return (
        f"Set `4lw.commands.whitelist={every}` in its `zoo.cfg` (`paddock serve"
        f" --four-letter-words {every}`), or name its admin server with `--admin`."
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _zxid(figures: Figures) -> int | None:
    try:
        return int(figures.zxid or "", 16)
    except ValueError:
        return None
