"""Watches by the ten thousand, and events at every depth."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.stage.process import FaultServer, eventually
from tests.fault.stage.siege import (
    SCALE,
    SLACK_MB,
    Crowd,
    besieged_server,
    encoded,
    siege,
    take_frame,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code, EventType, Request

WATCHES = 50_000 * SCALE
LEVELS = 5_000
AT_ONCE = 5_000
#: Of requests that are ten kilobytes long, and so are their replies.
DEEP_AT_ONCE = 50
#: A path, a place in two tables, and the frame of its event: less than a kilobyte.
WATCHES_MB = WATCHES / 1_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    with besieged_server(tmp_path, {"paddock.maxWatchesPerSession": 0}) as server:
        yield server


def in_parts(requests: Iterator[Request], at_once: int = AT_ONCE) -> Iterator[list[Request]]:
    while some := list(itertools.islice(requests, at_once)):
        yield some


def test_fifty_thousand_watches_of_one_session_fire(server: FaultServer) -> None:
    paths = [f"/missing-{number}" for number in range(WATCHES)]
    # The nodes take memory for good, as much again as the watches.
    with siege(server, growth_mb_max=SLACK_MB + 2 * WATCHES_MB):
        with wire.connect(server.address) as watcher, wire.connect(server.address) as maker:
            for some in in_parts(rq.exists(path, watch=True) for path in paths):
                assert set(wire.errors(watcher.calls(*some))) == {Code.NO_NODE}
            for some in in_parts(rq.create(path) for path in paths):
                assert set(wire.errors(maker.calls(*some))) == {Code.OK}
            assert watcher.drain() == wire.events(*((EventType.CREATED, path) for path in paths))
            watcher.close()
            maker.close()


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "lost"])
def test_fifty_thousand_watches_end_with_their_session(server: FaultServer, clean: bool) -> None:
    with siege(server, growth_mb_max=SLACK_MB + WATCHES_MB):
        with wire.connect(server.address) as watcher:
            paths = (f"/missing-{number}" for number in range(WATCHES))
            for some in in_parts(rq.exists(path, watch=True) for path in paths):
                watcher.calls(*some)
            if clean:
                watcher.close()
        eventually(lambda: _watches(server) <= 1, "the end of the watches")


def test_watches_over_the_limit_are_refused(tmp_path: Path) -> None:
    with besieged_server(tmp_path, {"paddock.maxWatchesPerSession": 1000}) as server:
        with siege(server, growth_mb_max=SLACK_MB), wire.connect(server.address) as watcher:
            paths = (f"/missing-{number}" for number in range(20_000 * SCALE))
            for some in in_parts(rq.exists(path, watch=True) for path in paths):
                watcher.calls(*some)
            assert _watches(server) <= 1_001
            assert watcher.call(rq.exists("/")).err == Code.OK
            watcher.close()


def test_long_paths_over_the_limit_are_refused(tmp_path: Path) -> None:
    with besieged_server(tmp_path, {"paddock.maxWatchBytesPerSession": 1000000}) as server:
        with siege(server, growth_mb_max=SLACK_MB), wire.connect(server.address) as watcher:
            for number in range(200 * SCALE):
                watcher.call(rq.exists(f"/{number}{'x' * 900_000}", watch=True))
            assert _watches(server) <= 2
            watcher.close()


def test_one_change_with_two_thousand_watchers(server: FaultServer) -> None:
    changes = 20 * SCALE
    with siege(server, growth_mb_max=SLACK_MB + 60) as bystander, Crowd(server.address) as crowd:
        watch = encoded([rq.add_watch("/shared", 0)])
        watchers = [crowd.join_session() for _ in range(2_000)]
        for one in watchers:
            one.sendall(watch)
            take_frame(one)
        with wire.connect(server.address) as busy:
            busy.calls(rq.create("/shared"), *[rq.set_data("/shared", b"")] * changes)
            busy.close()
        for one in watchers:
            for _ in range(changes + 1):
                take_frame(one)
        bystander.wait_rounds(3)


def test_a_path_of_five_thousand_levels_under_a_recursive_watch(server: FaultServer) -> None:
    paths = list(itertools.accumulate(["/deep", *["/n"] * LEVELS]))
    told = [
        *((EventType.CREATED, path) for path in paths),
        *((EventType.DELETED, path) for path in reversed(paths)),
    ]
    # The paths themselves are 25 MB; so are the events on their way, made twice.
    with siege(server, growth_mb_max=SLACK_MB + 150):
        with wire.connect(server.address) as watcher, wire.connect(server.address) as builder:
            watches = watcher.calls(rq.add_watch("/deep", 1), rq.add_watch("/deep/n", 1))
            assert wire.errors(watches) == [Code.OK, Code.OK]
            heard: list[tuple[int, str]] = []
            listener = threading.Thread(target=_listen, args=(watcher, len(told), heard))
            listener.start()
            for some in in_parts((rq.create(path) for path in paths), DEEP_AT_ONCE):
                assert set(wire.errors(builder.calls(*some))) == {Code.OK}
            for some in in_parts((rq.delete(path) for path in reversed(paths)), DEEP_AT_ONCE):
                assert set(wire.errors(builder.calls(*some))) == {Code.OK}
            listener.join()
            # Without the comparison that a plain assert would print: of megabytes it takes minutes.
            is_all = heard == told
            assert is_all, f"{len(heard)} of {len(told)} events, or others"
            watcher.close()
            builder.close()


def test_recursive_watches_at_each_of_five_thousand_levels(server: FaultServer) -> None:
    paths = list(itertools.accumulate(["/deep", *["/n"] * LEVELS]))
    with siege(server, growth_mb_max=SLACK_MB + 150) as bystander:
        with wire.connect(server.address) as watcher, wire.connect(server.address) as builder:
            for some in in_parts((rq.create(path) for path in paths), DEEP_AT_ONCE):
                assert set(wire.errors(builder.calls(*some))) == {Code.OK}
            for some in in_parts((rq.add_watch(path, 1) for path in paths), DEEP_AT_ONCE):
                watcher.calls(*some)
            # Each of them has to look at every level.
            changes = [rq.set_data(paths[-1], b"")] * 20
            assert set(wire.errors(builder.calls(*changes))) == {Code.OK}
            assert watcher.drain() == wire.events(*[(EventType.DATA_CHANGED, paths[-1])] * 20)
            bystander.wait_rounds(3)
            watcher.close()
            builder.close()


def test_set_watches_with_as_many_paths_as_a_frame_holds(server: FaultServer) -> None:
    paths = [f"/{number}" for number in range(90_000)]
    # A path and its place in two tables are less than a kilobyte.
    with siege(server, growth_mb_max=SLACK_MB + 2 * 90) as bystander:
        for kind in range(5):
            lists: list[list[str]] = [[] for _ in range(5)]
            lists[kind] = paths
            with wire.connect(server.address) as watcher:
                watcher.call(rq.set_watches2(0, *lists))
                # Some of the kinds fire at once: the nodes are not there.
                assert len(watcher.drain()) in (0, len(paths))
                watcher.close()
        eventually(lambda: _watches(server) <= 1, "the end of the watches")
        bystander.wait_rounds(3)


def _listen(client: wire.Client, count: int, heard: list[tuple[int, str]]) -> None:
    """Take events up to the last one, or to the first that does not come."""
    with contextlib.suppress(TimeoutError, wire.ConnectionClosedError):
        for _ in range(count):
            event = client.next_event()
            heard.append((event.type, event.path))


def _watches(server: FaultServer) -> int:
    lines = wire.four_letter_word(server.address, "mntr").splitlines()
    return int(dict(line.split("\t") for line in lines)["zk_watch_count"])
