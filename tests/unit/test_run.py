"""`paddock.run`: uvloop where it is installed, and whatever asyncio has otherwise."""

from __future__ import annotations

import asyncio
import sys

import pytest
import uvloop

import paddock


async def the_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_a_program_runs_on_uvloop() -> None:
    loop = paddock.run(the_loop())
    assert isinstance(loop, uvloop.Loop)
    assert loop.is_closed()


def test_without_uvloop_it_runs_on_the_loop_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert isinstance(paddock.run(the_loop()), asyncio.SelectorEventLoop)


@pytest.mark.parametrize("debug", [True, False])
def test_it_may_run_in_the_debug_mode(debug: bool) -> None:
    async def main() -> bool:
        return (await the_loop()).get_debug()

    assert paddock.run(main(), debug=debug) is debug


def test_what_a_program_raises_comes_out() -> None:
    async def main() -> None:
        raise paddock.NoNodeError("get", "/a")

    with pytest.raises(paddock.NoNodeError, match="/a"):
        paddock.run(main())


def test_where_a_loop_runs_there_is_nothing_to_begin() -> None:
    async def main() -> None:
        program = the_loop()
        with pytest.raises(paddock.UsageError, match="an event loop runs here"):
            paddock.run(program)
        # And nobody is warned that it was never awaited.
        assert program.cr_frame is None  # type: ignore[attr-defined]

    asyncio.run(main())
