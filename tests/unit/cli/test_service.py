"""What becomes of a failure: a line and a status, unless it is a bug."""

import asyncio

import click
import pytest

from paddock.cli.output import CannotBeDone
from paddock.cli.service import _looking, run
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NoNodeError,
    TransactionFailedError,
    UnknownCodeError,
)


def failing(error: BaseException) -> click.ClickException:
    async def work() -> None:
        raise error

    with pytest.raises(click.ClickException) as caught:
        run(work)
    return caught.value


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (NoNodeError("get", "/a"), "/a: no such node"),
        (UnknownCodeError(-4711, "get", "/a"), "/a: the service refused the request (code -4711)"),
        (ConnectionLostError("exists", "/a"), "exists /a: the connection was lost"),
        (TransactionFailedError([NoNodeError("delete", "/a")]), "transaction refused: delete /a: "),
        (FileNotFoundError(2, "No such file or directory", "/a"), "/a: No such file or directory"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (TimeoutError(), "it took too long"),
        (ExceptionGroup("", [ExceptionGroup("", [NoNodeError("get", "/a")])]), "/a: no such"),
    ],
)
def test_what_cannot_be_done_is_a_line_and_status_1(error: Exception, says: str) -> None:
    failure = failing(error)
    assert isinstance(failure, CannotBeDone)
    assert failure.exit_code == 1
    assert failure.format_message().startswith(says)


def test_an_argument_that_cannot_be_used_is_status_2() -> None:
    assert failing(InvalidArgumentError("path: no")).exit_code == 2
    assert failing(ExceptionGroup("", [InvalidArgumentError("path: no")])).exit_code == 2


@pytest.mark.parametrize("error", [ZeroDivisionError(), BrokenPipeError()])
def test_a_bug_and_a_reader_that_is_gone_are_left_to_others(error: Exception) -> None:
    async def work() -> None:
        raise error

    with pytest.raises(type(error)):
        run(work)


def test_a_bug_in_a_group_is_one() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(broken())

    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(work)


def test_an_interrupt_is_status_130() -> None:
    async def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(click.exceptions.Exit) as caught:
        run(work)
    assert caught.value.exit_code == 130


def test_what_it_gives_is_given() -> None:
    async def work() -> int:
        return 7

    assert run(work) == 7


def test_where_nobody_said_which_server_it_is_said_how_to_start_one() -> None:
    hint = "; `paddock serve` starts one"
    assert _looking("127.0.0.1:2181", 9).endswith(f"127.0.0.1:2181 yet, looking on for 9 s{hint}")
    assert hint in _looking("127.0.0.1:2181/app", 9)
    assert hint not in _looking("127.0.0.1:21810", 9)
    assert hint not in _looking("one:2181,two:2181", 9)
