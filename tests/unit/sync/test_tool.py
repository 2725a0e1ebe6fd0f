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

from tests.unit.sync.samples import house
from tools import twin

PAIR = twin.Pair(house.__name__, "paddock.sync.house", ("House", "Key", "build"))
OWNERS = frozenset({"House"})


def written(pair: twin.Pair = PAIR, owners: frozenset[str] = OWNERS) -> str:
    return twin.twin_of(pair, (pair,), owners, frozenset({"Key"}))


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
        ("def f(self, ask: Callable[[str], int]) -> None: ...", "gives something back"),
        ("def f(self, tell: Callable[[Sample], None]) -> None: ...", "is told of a twin"),
        ("def f(self) -> Callable[[], None]: ...", "a function that is returned"),
        ("def f(self) -> list[Sample]: ...", "Sample within"),
        ("def f(self) -> AsyncIterator[Sample]: ...", "Sample within"),
        ("def f(self, *names: str) -> None: ...", "arguments with stars"),
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
        "from collections.abc import AsyncIterator, Awaitable, Callable\n"
        "_hidden = 1\n"
        f'class Sample:\n    """A sample."""\n    {method}\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sample", raising=False)
    importlib.invalidate_caches()
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
