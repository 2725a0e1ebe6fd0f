"""The terminal that tests look at: what a person would see is what it gives."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.support.terminal import CONTROL_C, CONTROL_D, Terminal, terminal


def _python(code: str) -> list[str]:
    return [sys.executable, "-u", "-c", code]


def test_it_shows_what_is_left_on_the_screen_and_not_what_was_written() -> None:
    with terminal(_python(r"print('one\rtwo'); print('\x1b[31mred\x1b[0m'); input('> ')")) as seen:
        seen.wait_for("\n>")
        assert seen.lines[:3] == ["two", "red", ">"]
        assert (seen.line, seen.cursor) == (">", (2, 2))
        assert seen.colors_at("red") == {"red"}
        assert seen.colors_at("two") == {"default"}
        seen.type(CONTROL_D)
        assert seen.wait_for_end() == 1


# The programs below wait for signals, rather than have handlers: one that comes after Python's
# last look for signals, and before `input` reads, would be seen only after the read.


def test_control_c_is_a_signal() -> None:
    code = (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "print('!')\n"
        "signal.sigwait({signal.SIGINT})\n"
        "exit(3)"
    )
    with terminal(_python(code)) as seen:
        seen.wait_for("!")
        seen.type(CONTROL_C)
        assert seen.wait_for_end() == 3


def test_a_command_is_told_of_another_size() -> None:
    code = (
        "import os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
        "print(*os.get_terminal_size())\n"
        "signal.sigwait({signal.SIGWINCH})\n"
        "print(*os.get_terminal_size())"
    )
    with terminal(_python(code), columns=50, rows=10) as seen:
        seen.wait_for("50 10")
        seen.resize(30, 8)
        seen.wait_for("30 8")


def test_what_never_comes_is_a_failure_that_shows_the_screen() -> None:
    with terminal(_python("print('this is all')")) as seen:
        with pytest.raises(AssertionError, match=r"(?s)no 'more'.*ended.*this is all"):
            seen.wait_for("more")


@pytest.mark.parametrize("has_fonts", [True, False])
def test_a_picture_has_the_text_and_its_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_fonts: bool
) -> None:
    if not has_fonts:
        monkeypatch.setattr("tests.support.terminal._FONTS", ("no such font.ttf",))
    with terminal(_python(r"print('\x1b[42m  \x1b[0m text')"), columns=20, rows=4) as seen:
        seen.wait_for("text")
        with Image.open(_drawn(seen, tmp_path / "screen.png")) as image:
            colors = {color for _, color in image.convert("RGB").getcolors(100_000) or []}
    assert (0xA6, 0xE3, 0xA1) in colors
    # Letters have more than one shade each.
    assert len(colors) > 4


def _drawn(seen: Terminal, file: Path) -> Path:
    seen.picture(file)
    return file
