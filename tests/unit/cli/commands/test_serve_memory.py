"""A server whose event loop fails for want of memory ends, and does not fail for ever."""

from __future__ import annotations

import asyncio
import os
from typing import Any, NoReturn

import pytest

from paddock.cli.commands import serve


class EndedError(Exception):
    """The process would have ended."""


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> asyncio.AbstractEventLoop:
    def end(status: int) -> NoReturn:
        raise EndedError(status)

    monkeypatch.setattr(os, "_exit", end)
    return asyncio.new_event_loop()


def take_note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    vars(loop)["default_exception_handler"] = told.append
    try:
        serve._take_note(loop, context)
    finally:
        loop.close()
    return told


def test_a_callback_without_memory_ends_the_process(
    loop: asyncio.AbstractEventLoop, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EndedError):
        take_note(loop, {"message": "in a callback", "exception": MemoryError()})
    assert "no memory left" in capfd.readouterr().err


@pytest.mark.parametrize(
    "context",
    [
        {"exception": MemoryError(), "protocol": object()},
        {"exception": ValueError()},
        {"message": "nothing was raised"},
    ],
)
def test_anything_else_is_only_reported(
    loop: asyncio.AbstractEventLoop, context: dict[str, Any]
) -> None:
    assert take_note(loop, context) == [context]
