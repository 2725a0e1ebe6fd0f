"""What the differential run leaves out is in its table; what is not in the table is produced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.differ import rules
from tests.differ.generate import generate
from tests.differ.moves import Burst, Move, Reattach, Renew, Step
from tests.differ.normal import Normaliser
from tests.differ.rules import V3_8, V3_9, V3_9_6, Rule, Rules
from tests.support.records import Event, EventType
from tests.support.release import Release

FOLDER = Path(rules.__file__).parent
NAMES = [name for name, value in vars(rules).items() if isinstance(value, Rule)]
BASE = "/d000000"
#: Enough steps for the rarest of what is looked for.
SEGMENTS = [f"1:{number}" for number in range(4)]


@cache
def steps(version: Release, seed: str) -> Sequence[Step]:
    return generate(seed, BASE, only=Rules({version}))


def moves(version: Release, *seeds: str) -> Iterator[Move]:
    """Yield all moves of some segments, those inside multis behind the multi."""
    for seed in seeds or SEGMENTS:
        for step in steps(version, seed):
            match step:
                case Burst(_, several):
                    for move in several:
                        yield move
                        if move.name in ("multi", "multi_read"):
                            yield from move.arguments
                case Reattach(_, _, watches):
                    yield watches
                case Renew():
                    pass


def names(version: Release) -> set[str]:
    return {move.name for move in moves(version)}


def watch_kinds(version: Release) -> set[int]:
    return {move.arguments[1] for move in moves(version) if move.name == "remove_watches"}


def creates_in_multis(version: Release) -> set[tuple[str, int]]:
    """Return the names and the flags of what is created in multis."""
    return {
        (part.name, part.arguments[-1])
        for move in moves(version)
        if move.name == "multi"
        for part in move.arguments
        if part.name.startswith("create")
    }


def modes_by_path(version: Release, seed: str) -> dict[str, set[int]]:
    """Return in which modes each path is watched in a segment; -1 is once."""
    modes: dict[str, set[int]] = defaultdict(set)
    for move in moves(version, seed):
        match move:
            case Move("get_data" | "get_children" | "get_children2" | "exists", (path, True)):
                modes[path].add(-1)
            case Move("add_watch", (path, mode)):
                modes[path].add(mode)
            case Move("set_watches" | "set_watches2", (_, data, exist, child, *lasting)):
                for path in (*(data or ()), *exist, *child):
                    modes[path].add(-1)
                for mode, paths in enumerate(lasting):
                    for path in paths:
                        modes[path].add(mode)
    return modes


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_a_reason_and_is_asked(name: str) -> None:
    rule = getattr(rules, name)
    assert rule.name
    assert rule.reason
    assert any(rule.is_for(version) for version in (V3_8, V3_9, V3_9_6))
    others = [file for file in FOLDER.glob("*.py") if file.name != "rules.py"]
    assert any(name in file.read_text() for file in others)


def test_no_two_rules_share_a_name() -> None:
    titles = [getattr(rules, name).name for name in NAMES]
    assert len(set(titles)) == len(titles)


def test_what_is_left_out_with_one_version_is_left_out_with_both() -> None:
    both = Rules({V3_8, V3_9})
    assert not both.allow(rules.CHECK_WATCHES)
    assert not both.allow(rules.LONE_CHECK)
    assert Rules({V3_9}).allow(rules.CHECK_WATCHES)
    assert Rules({V3_8}).allow(rules.LONE_CHECK)


def test_only_with_39_a_path_is_watched_in_several_modes() -> None:
    for seed in SEGMENTS:
        assert all(len(modes) == 1 for modes in modes_by_path(V3_8, seed).values())
        assert any(len(modes) == 3 for modes in modes_by_path(V3_9, seed).values())


def test_only_with_39_there_are_its_kinds_of_watches() -> None:
    assert watch_kinds(V3_8) == {1, 2, 3}
    assert watch_kinds(V3_9) == {1, 2, 3, 4, 5}


def test_only_with_39_nodes_that_cannot_be_read_are_asked_for() -> None:
    secret = f"{BASE}/k"
    asked = {
        version: {move.arguments[0] for move in moves(version) if move.name == "exists"}
        for version in (V3_8, V3_9)
    }
    assert not any(path and path.startswith(secret) for path in asked[V3_8])
    assert any(path and path.startswith(secret) for path in asked[V3_9])


def test_in_a_multi_each_version_has_the_creates_that_are_answered_alike() -> None:
    with_38, with_39 = creates_in_multis(V3_8), creates_in_multis(V3_9)
    # Those with flags of a TTL are not understood, whatever they are called.
    understood = {name for name, flags in with_38 if flags not in (5, 6) or name == "create_ttl"}
    assert understood == {"create", "create_ttl"}
    assert ("create2", 0) in with_39
    assert {flags for name, flags in with_39 if name == "create_container"} == {4}
    assert ("create", 7) in with_38
    assert not {flags for name, flags in with_39 if name != "create_ttl"} & {5, 6, 7, -1}


def test_each_version_has_the_requests_that_are_answered_alike() -> None:
    assert names(V3_9) - names(V3_8) == {"check_watches", "delete_container"}
    lone = {
        version: any(
            move.name == "check"
            for step in steps(version, "1:0")
            if isinstance(step, Burst)
            for move in step.moves
        )
        for version in (V3_8, V3_9)
    }
    assert lone == {V3_8: True, V3_9: False}


def test_the_zxid_of_an_event_is_compared_with_39_only() -> None:
    event = Event(EventType.CREATED, "/a", zxid=7)
    for version, shown in ((V3_8, -1), (V3_9, 5)):
        normal = Normaliser(Rules({version}))
        normal.begin(2)
        assert normal.message(event)[-1] == shown


def test_the_same_steps_are_made_below_any_base() -> None:
    for version in (V3_8, V3_9):
        here, there = (generate("1:0", base, only=Rules({version})) for base in ("/one", "/two"))
        assert [str(step).replace("/one", "#") for step in here] == [
            str(step).replace("/two", "#") for step in there
        ]
