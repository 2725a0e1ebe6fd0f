"""The reader of pages notices what is wrong with one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.documents import Block
from tests.support.reader import Reader, is_file_name


def read(folder: Path, *blocks: Block) -> None:
    async def main() -> None:
        async with Reader(folder, {"WORD": "other"}) as reader:
            for block in blocks:
                await reader.do(block)

    asyncio.run(main())


def console(text: str, title: str = "") -> Block:
    return Block("console", text, 1, title)


def test_commands_share_a_folder_and_variables(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    text = (
        "$ cd there\n$ export NAME=me\n$ echo $NAME in $(basename $PWD), WORD\nme in there, other\n"
    )
    read(tmp_path, console(text))


def test_what_is_shown_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="one"):
        read(tmp_path, console("$ echo one\ntwo\n"))


def test_what_is_shown_must_be_said_in_this_order(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        read(tmp_path, console("$ printf 'one\\ntwo\\n'\ntwo\none\n"))


def test_a_command_must_succeed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="status 3"):
        read(tmp_path, console("$ exit 3\n"))


def test_a_failure_that_is_looked_at_is_none(tmp_path: Path) -> None:
    read(tmp_path, console("$ exit 3\n$ echo $?\n3\n"))


def test_a_script_must_succeed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="status 1"):
        read(tmp_path, Block("sh", "false\ntrue\n", 1))


def test_a_file_is_saved_where_the_reader_is(tmp_path: Path) -> None:
    saved = Block("python", "print('from the file')\n", 1, "program.py")
    read(tmp_path, saved, console("$ python program.py\nfrom the file\n"))


def test_what_is_typed_into_python_keeps_its_promise(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="instead of '3'"):
        read(tmp_path, Block("python", "print(1 + 1)  # 3\n", 1))


def test_a_command_goes_on_in_its_terminal_until_it_is_interrupted(tmp_path: Path) -> None:
    waits = "$ trap 'echo ended; exit 0' INT; echo begun; while :; do sleep 0.1; done\n"
    read(
        tmp_path,
        console(f"{waits}begun\n", "Terminal 1"),
        console("$ echo beside it\nbeside it\n", "Terminal 2"),
        console("^C\nended\n", "Terminal 1"),
    )


def test_the_end_of_the_page_interrupts_what_runs(tmp_path: Path) -> None:
    # Opening it blocks until a writer opens it.
    os.mkfifo(tmp_path / "fifo")
    read(tmp_path, console('$ python -c \'print("begun"); open("fifo")\'\nbegun\n'))


def test_a_block_that_nobody_runs_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="yaml"):
        read(tmp_path, Block("yaml", "a: 1\n", 1))


def test_a_zoo_cfg_must_be_understood(tmp_path: Path) -> None:
    read(tmp_path, Block("ini", "# zoo.cfg\nclientPort=2181\n", 1))
    with pytest.raises(AssertionError):
        read(tmp_path, Block("ini", "# zoo.cfg\nclientPrt=2181\n", 1))


@pytest.mark.parametrize(
    ("title", "is_file"),
    [("worker.py", True), ("gunicorn.conf.py", True), ("Terminal 2", False), ("", False)],
)
def test_the_title_of_a_block_is_that_of_a_file_or_a_terminal(title: str, is_file: bool) -> None:
    assert is_file_name(title) == is_file
