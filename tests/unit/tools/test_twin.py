"""The tool that writes the twin: what it writes works, and what it has no rule for it refuses."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.tools.samples import house
from tools import twin
from tools.blocking.source import read

PAIR = twin.Pair(house.__name__, "paddock.sync.house", ("House", "Key", "build"))


def written(pair: twin.Pair = PAIR) -> str:
    rules = twin.Rules((pair,), owners=frozenset({"House"}), builders=frozenset({"Key"}))
    return twin.text_of(pair, rules)


@pytest.fixture(scope="module")
def blocking() -> ModuleType:
    module = ModuleType("paddock.sync.house")
    exec(compile(written(), "house.py", "exec"), module.__dict__)
    return module


@pytest.fixture
def home(blocking: ModuleType) -> Iterator[Any]:
    with blocking.build() as home:
        yield home


def test_what_promises_something_waits_for_it(home: Any) -> None:
    assert home.invite("ada") == "adaadaada"
    assert home.invite("bob", 1, loudly=True) == "BOB"
    assert home.guests == ["ada", "bob"]
    assert home.size == 2


def test_an_owner_that_another_one_returns_has_a_bridge_of_its_own(home: Any) -> None:
    with home.another() as other:
        other.invite("eve", 1)
        assert (other.guests, home.guests) == (["eve"], [])
        assert other._bridge is not home._bridge


def test_streams_and_scopes_are_plain_ones(home: Any) -> None:
    assert list(home.count(3)) == [0, 1, 2]
    with home.party("dinner") as name:
        assert name == "dinner"


def test_callbacks_are_told_and_can_be_removed(blocking: ModuleType) -> None:
    heard: list[str] = []
    with blocking.build() as home:
        home.add_listener(None)
        home.add_listener(heard.append)
        home.remove_listener(heard.append)
        home.add_listener(heard.append)
        home.invite("ada")
    assert heard == ["listening", "listening", "ada", "closed"]


def test_objects_with_a_twin_are_wrapped_and_unwrapped(blocking: ModuleType, home: Any) -> None:
    key = blocking.Key(home).cut(1).cut(2)
    assert type(key) is blocking.Key
    assert type(home.key()) is blocking.Key
    assert not key.fits(home.key())
    assert key.fits(key.copy())
    with key as copy:
        assert type(copy) is blocking.Key
        assert key.fits(copy)
        raise KeyError("taken care of")


def test_a_builder_is_called_in_the_callers_thread_and_all_else_on_the_loop(
    blocking: ModuleType, home: Any
) -> None:
    text = written()
    assert "        self._inner.cut(depth)\n" in text
    assert "self._bridge.run(self._inner.add_listener, " in text


def test_signatures_are_those_of_the_source(blocking: ModuleType) -> None:
    assert str(inspect.signature(blocking.House.invite)) == (
        "(self, name: 'str', /, times: 'int' = 3, *, loudly: 'bool' = False) -> 'str'"
    )
    assert inspect.signature(blocking.House.count).return_annotation == "Stream[int]"
    assert inspect.signature(blocking.House.party).return_annotation == "Scope[str]"


def test_words_about_asyncio_become_words_about_blocking_code(blocking: ModuleType) -> None:
    assert inspect.getdoc(blocking.House.add_listener) == textwrap.dedent(
        """\
        Have somebody told.

        house.add_listener(print)
        for one in house.count():
            with timeout(1):
                one"""
    )
    assert blocking.House.guests.__doc__ == "Who is in it."


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("def f(self, ask: Callable[[Sample], int]) -> None: ...", "the function ask takes or"),
        ("def f(self, ask: Callable[[], Awaitable[Sample]]) -> None: ...", "the handler ask gives"),
        ("def f(self, ask: Callable[[], Any]) -> None: ...", "may give a promise or not"),
        ("def f(self, ask: Callable[[], int | Awaitable[int]]) -> None: ...", "Awaitable has no"),
        ("def f(self, ask: dict[str, Callable[[], None]]) -> None: ...", "callables within ask"),
        ("def f(self, *ask: Callable[[], None]) -> None: ...", r"the callables \*ask"),
        ("def f(self, ask: Callable[[], None] | Sample) -> None: ...", "too many things"),
        ("def f(self) -> Callable[[], None]: ...", "a function that is returned"),
        ("def f(self) -> tuple[int, Sample]: ...", "a class with a twin within"),
        ("def f(self) -> AsyncIterator[set[Sample]]: ...", "a class with a twin within"),
        ("def f(self, other: Sample | str) -> None: ...", "a class with a twin within"),
        ("def f(self, **others: Sample) -> None: ...", r"a class with a twin in \*\*others"),
        ("def f(self) -> list[Self]: ...", "Self in"),
        ("def f(self) -> AsyncIterable[int]: ...", "AsyncIterable has no rule"),
        ("def f(self, what: Awaitable[int]) -> None: ...", "Awaitable has no rule"),
        ("def f(self) -> Hidden: ...", "Hidden has no twin"),
        ("def __init__(self) -> None:\n        self.x = list()", "the attribute x is public"),
        ("def f(self): ...", "no return type"),
        ("@classmethod\n    def f(cls) -> None: ...", "the decorators"),
        ("def __anext__(self) -> Awaitable[int]: ...", "has no rule"),
        (
            'async def f(self) -> None:\n        """Await it on the event loop."""',
            "about 'event loop'",
        ),
        ("def f(self, x: int = _hidden) -> None: ...", "_hidden is not public"),
    ],
)
def test_what_fits_no_rule_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, reason: str
) -> None:
    (tmp_path / "sample.py").write_text(
        "from __future__ import annotations\n"
        "from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable\n"
        "from typing import Any, Self\n"
        "_hidden = 1\n"
        "class Hidden:\n    async def f(self) -> None: ...\n"
        f'class Sample:\n    """A sample."""\n    {method}\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sample", raising=False)
    importlib.invalidate_caches()
    read.cache_clear()
    pair = twin.Pair("sample", "paddock.sync.sample", ("Sample",))
    with pytest.raises(twin.RefusedError, match=reason):
        written(pair)


def test_the_sample_is_itself_what_it_says() -> None:
    async def main() -> None:
        async with house.build() as home:
            async with home.key().cut(1) as copy:
                assert not await copy.fits(home.key())
                raise KeyError("taken care of")

    asyncio.run(main())
