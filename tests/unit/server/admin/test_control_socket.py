"""The control socket: for its owner only, one line in and one out, and nobody can hold it up."""

import asyncio
import contextlib
import json
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddock.server.admin import control_socket
from paddock.server.admin.control_socket import (
    CONNECTIONS_MAX,
    LINE_BYTES_MAX,
    ControlError,
    ControlSocket,
    Message,
    RefusedError,
    ask,
)

DEADLINE_S = 20.0


async def answer(request: Message) -> Message:
    if request.get("command") == "refuse":
        raise ControlError("not today")
    if request.get("command") == "fail":
        raise ZeroDivisionError
    return {"heard": request}


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[ControlSocket]:
    one = ControlSocket(folder, answer)
    await one.open()
    try:
        yield one
    finally:
        await one.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left


async def asked(folder: Path, request: Message) -> Message:
    return await asyncio.get_running_loop().run_in_executor(None, ask, folder, request, DEADLINE_S)


def test_a_question_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path):
            assert await asked(tmp_path, {"command": "x"}) == {
                "ok": True,
                "heard": {"command": "x"},
            }
            mode = (tmp_path / "control").stat().st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o600
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_a_path_that_is_too_long_for_a_socket_works(tmp_path: Path) -> None:
    async def main() -> None:
        folder = tmp_path / ("long" * 30) / ("longer" * 20)
        folder.mkdir(parents=True)
        async with opened(folder):
            assert (folder / "control").exists()
            assert (await asked(folder, {}))["ok"] is True
        assert list(folder.iterdir()) == []

    asyncio.run(main())


def test_a_refusal_and_a_failure_are_told_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with opened(tmp_path):
            with pytest.raises(RefusedError, match="the server says: not today"):
                await asked(tmp_path, {"command": "refuse"})
            with pytest.raises(RefusedError, match="failed unexpectedly"):
                await asked(tmp_path, {"command": "fail"})
            assert (await asked(tmp_path, {}))["ok"] is True

    asyncio.run(main())
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    "line", [b"\n", b"[]\n", b"{\n", b"\xff\xfe\n", b"12\n", b'"x"\n', b"[" * 4000 + b"\n"]
)
def test_what_is_no_question_is_refused(tmp_path: Path, line: bytes) -> None:
    async def main() -> None:
        async with opened(tmp_path):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control"))
            writer.write(line)
            reply = json.loads(await reader.readline())
            assert reply == {"ok": False, "error": "expected one line with a JSON object"}
            writer.close()

    asyncio.run(main())


def test_a_line_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control"))
            writer.write(b"x" * (3 * LINE_BYTES_MAX))
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            assert (await asked(tmp_path, {}))["ok"] is True

    asyncio.run(main())


def test_who_says_nothing_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "LINE_TIMEOUT", 0.05)

    async def main() -> None:
        async with opened(tmp_path):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control"))
            writer.write(b'{"command": "never finished"')
            assert await reader.read() == b""
            writer.close()

    asyncio.run(main())


def test_those_who_are_too_many_are_dropped_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_socket, "LINE_TIMEOUT", 3600.0)

    async def main() -> None:
        async with opened(tmp_path), asyncio.timeout(DEADLINE_S):
            silent = [
                await asyncio.open_unix_connection(str(tmp_path / "control"))
                for _ in range(CONNECTIONS_MAX)
            ]
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control"))
            assert await reader.read() == b""
            for _, one in [*silent, (reader, writer)]:
                one.close()

    asyncio.run(main())


def test_a_socket_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "control"))

    async def main() -> None:
        async with opened(tmp_path):
            assert (await asked(tmp_path, {}))["ok"] is True

    asyncio.run(main())


def test_a_file_of_that_name_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "control").write_text("precious")

    async def main() -> None:
        async with opened(tmp_path):
            with pytest.raises(ControlError, match="does not answer"):
                await asked(tmp_path, {})

    asyncio.run(main())
    assert "there is no control socket" in caplog.text
    assert (tmp_path / "control").read_text() == "precious"


def test_nobody_who_answers_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match="the server does not answer: No such file"):
        ask(tmp_path, {}, DEADLINE_S)
