"""The tool on a package as that of the recipes: what it writes works, and nobody is forgotten."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paddock.errors import InvalidArgumentError, UsageError
from paddock.sync.bridge import Bridge
from tests.unit.tools.samples import recipes
from tests.unit.tools.samples.recipes import Colour, Form
from tools import twin
from tools.blocking.packages import with_pairs
from tools.blocking.source import read

DEADLINE_S = 30.0

PACKAGE = twin.Package(recipes.__name__, "paddock_samples.recipes")
RULES = twin.Rules(
    (),
    owners=frozenset({"Office"}),
    made_inside=frozenset({"Ticket"}),
    asyncio_only=frozenset({"Desk.only_asyncio"}),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Write the twin of the whole package, for everybody to import."""
    folder = tmp_path_factory.mktemp("twins")
    rules = with_pairs(RULES, PACKAGE.pairs(RULES))
    (folder / "paddock_samples" / "recipes").mkdir(parents=True)
    (folder / "paddock_samples" / "__init__.py").write_text("")
    everything: list[twin.Pair | twin.Package] = [*rules.pairs, PACKAGE]
    for one in everything:
        path = folder / twin.path_of(one).relative_to(twin.path_of(PACKAGE).parents[2])
        path.write_text(twin.text_of(one, RULES if one is PACKAGE else rules))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def blocking(folder: Path) -> ModuleType:
    return importlib.import_module("paddock_samples.recipes")


@pytest.fixture
def office(blocking: ModuleType) -> Iterator[Any]:
    bridge = Bridge()
    with blocking.Office(bridge, bridge.own(recipes.Office)) as office:
        yield office


@pytest.fixture
def desk(blocking: ModuleType, office: Any) -> Any:
    return blocking.Desk(office, "ada", "bob")


def test_the_package_has_the_same_names_and_shares_what_waits_for_nothing(
    blocking: ModuleType,
) -> None:
    assert blocking.__all__ == recipes.__all__
    shared = {name for name in recipes.__all__ if getattr(blocking, name) is getattr(recipes, name)}
    assert shared == {"Colour", "Form", "Handler", "price_of"}
    assert not hasattr(blocking.Desk, "only_asyncio")


def test_objects_with_a_twin_come_out_as_twins(blocking: ModuleType, desk: Any) -> None:
    first = desk.give()
    assert type(first) is blocking.Ticket
    assert first.number == 1
    assert first.next.next.next is None
    assert desk.try_give(1) is None
    assert desk.try_give(2).number == 2
    assert [type(one) for one in desk.all()] == [blocking.Ticket] * 2
    assert desk.by_name() == {"ada": None, "bob": None, "one": first}
    assert desk.some() == (first, first.next)
    assert [one.number for one in desk.tickets()] == [1, 2, 3]
    assert [type(one) for one in desk] == [blocking.Ticket] * 3
    with desk as third:
        assert third.number == 3
    with desk.take() as fourth:
        assert type(fourth) is blocking.Ticket
    assert len(desk) == 4
    assert 4 in desk
    assert 5 not in desk
    assert desk.given() == 4


def test_objects_with_a_twin_go_in_as_what_they_stand_for(desk: Any) -> None:
    first = desk.give()
    assert desk.total(first, first.next, others=[first, first]) == 5
    assert desk.after(first) == 2
    assert desk.after(None) == 0


def test_what_is_made_of_several_twins_has_the_way_of_the_first(
    blocking: ModuleType, desk: Any
) -> None:
    assert blocking.Lobby([desk, desk.give()]).kinds() == ["Desk", "Ticket"]
    with pytest.raises(InvalidArgumentError, match="parts: there are none"):
        blocking.Lobby([])
    with pytest.raises(InvalidArgumentError, match="parts: 'desk' is not of the blocking API"):
        blocking.Lobby(["desk"])


def test_twins_of_the_same_object_are_the_same(office: Any, desk: Any) -> None:
    assert desk.office == office
    assert len({desk.office, office}) == 1
    assert desk.give() != desk.give()
    assert desk.give() != 3


def test_attributes_are_told_with_what_is_said_about_them(blocking: ModuleType, desk: Any) -> None:
    assert desk.names == ("ada", "bob")
    assert blocking.Desk.names.__doc__ == "Whose it is."
    assert blocking.Ticket.number.__doc__ == "Its place."


def test_a_listener_is_told_of_twins_in_a_thread_of_its_own(
    blocking: ModuleType, office: Any
) -> None:
    heard: list[tuple[Any, ...]] = []
    told = threading.Event()
    desk: Any = None

    def listen(ticket: Any, what: str) -> None:
        # It may make calls.
        heard.append((type(ticket), ticket.number, what, desk.given()))
        told.set()

    desk = blocking.Desk(office, listener=listen)
    with desk.take():
        assert not heard
    assert told.wait(DEADLINE_S)
    assert heard == [(blocking.Ticket, 1, "back", 1)]


def test_a_function_that_gives_something_back_is_called_on_the_loop(desk: Any) -> None:
    threads = []

    def change(data: bytes) -> bytes:
        threads.append(threading.current_thread().name)
        return data + b", new"

    assert desk.update(change) == b"old, new"
    assert threads == ["paddock"]
    with pytest.raises(UsageError, match="would block the event loop"):
        desk.update(lambda data: b"%d" % desk.given())


def test_handlers_block_each_in_a_thread_of_its_own(desk: Any) -> None:
    all_there = threading.Barrier(3)

    def handle(form: Form) -> bytes:
        all_there.wait(DEADLINE_S)
        # It may make calls.
        return b"%s %d" % (form.text.encode(), desk.given())

    assert desk.work(handle, "a", "b", "c") == [b"a 0", b"b 0", b"c 0"]


def test_a_handler_is_told_of_twins(blocking: ModuleType, desk: Any) -> None:
    kinds = []

    def handle(ticket: Any) -> int:
        kinds.append(type(ticket))
        return int(ticket.number) * 10

    assert desk.work_on(desk.give(), handle) == 10
    assert kinds == [blocking.Ticket]


def test_a_coroutine_function_is_no_handler(desk: Any) -> None:
    async def nobody_awaits(form: Form) -> bytes:
        return b""

    with pytest.raises(InvalidArgumentError, match=r"nobody_awaits .* is a coroutine function"):
        desk.work(nobody_awaits, "a")


def test_a_function_that_takes_a_twin_has_one(blocking: ModuleType, office: Any) -> None:
    opened = blocking.open_desk(office, "eve")
    assert type(opened) is blocking.Desk
    assert opened.names == ("eve",)


def test_a_generic_class_stays_one(blocking: ModuleType, office: Any) -> None:
    shelf = blocking.Shelf[int](office, len)
    assert shelf.get(b"abc") == 3
    assert shelf.same() == shelf
    assert Colour.RED is blocking.Colour.RED


def test_a_handler_is_written_as_a_plain_function(blocking: ModuleType) -> None:
    annotation = inspect.signature(blocking.Desk.work).parameters["handler"].annotation
    assert annotation == "Callable[[Form], bytes]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@dataclass\nclass One:\n    async def f(self) -> None: ...", "waits for something"),
        ("@dataclass\nclass One:\n    other: list[Other]", "One.other is Other"),
        ("@dataclass\nclass One:\n    tell: Listener", "One.tell is Listener"),
        ("@dataclass\nclass One:\n    tell: Callable[[], None]", "One.tell is Callable"),
        ("async def One() -> None: ...", "takes nothing that has a twin"),
    ],
)
def test_what_would_bring_asyncio_along_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    package = tmp_path / "bad"
    package.mkdir()
    (package / "__init__.py").write_text(
        'from bad.one import One, Other\n__all__ = ["One", "Other"]\n'
    )
    (package / "one.py").write_text(
        "from __future__ import annotations\n"
        "from collections.abc import Callable\n"
        "from dataclasses import dataclass\n"
        "from typing import TypeAlias\n"
        "Listener: TypeAlias = Callable[[], None]\n"
        f'class Other:\n    """Other."""\n{text}\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("bad", "bad.one"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    read.cache_clear()
    with pytest.raises(twin.RefusedError, match=reason):
        twin.Package("bad", "twins.bad").pairs(twin.Rules(()))


def test_a_name_that_is_only_half_exported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "__init__.py").write_text("from half.one import One\n__all__ = []\n")
    (tmp_path / "half" / "one.py").write_text("class One: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    read.cache_clear()
    with pytest.raises(twin.RefusedError, match=r"not both: \{'One'\}"):
        twin.Package("half", "twins.half").pairs(twin.Rules(()))
