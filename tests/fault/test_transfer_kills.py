"""Exports and imports that are killed or interrupted in the middle, and then go on; large trees."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import paddock
from paddock.cli.transfer.writing import part_of
from paddock.testing import Fault, FaultProxy, ServerProcess
from tests.support.command import COMMAND, DEADLINE_S, success
from tests.support.trees import make

COUNT = 3000
# Says at its end how much memory it has had at most.
MEASURED = """
import contextlib, re, sys
from paddock.cli.main import main
with contextlib.suppress(SystemExit):
    main(sys.argv[1:])
status = open("/proc/self/status").read()
print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], file=sys.stderr)
"""


async def fill(hosts: str, count: int, data: bytes) -> None:
    """Make /app with so many children."""
    async with paddock.connect(hosts) as client:
        await client.create("/app")
        await make(client, "/app", (f"n{number:06}" for number in range(count)), data)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server with a tree that takes some time."""
    with ServerProcess() as running:
        asyncio.run(fill(running.hosts, COUNT, b"some data that takes a little room"), debug=False)
        yield running


@contextlib.contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the background; kill it at the end of the block."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str], fault: Fault, number: int) -> tuple[int, str]:
    """Send a signal when a request is held; return the status and what stood on stderr."""
    fault.wait(DEADLINE_S)
    process.send_signal(number)
    _, errors = process.communicate(timeout=DEADLINE_S)
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_export_that_was_ended_goes_on_and_is_the_same(
    server: ServerProcess, tmp_path: Path, number: int
) -> None:
    whole, file = tmp_path / "whole.jsonl", tmp_path / "app.jsonl"
    success("export", "--server", server.hosts, "/app", whole)
    with FaultProxy(server.address) as proxy:
        fault = proxy.when(operation="get_acl", nth=COUNT // 2).blackhole()
        with running("export", "--server", proxy.hosts, "/app", file) as process:
            status, errors = end(process, fault, number)
        assert not file.exists()
        written = part_of(file).read_bytes().count(b"\n")
        assert 100 < written < COUNT
        if number == signal.SIGINT:
            assert status == 130
            assert errors == "paddock: interrupted; what was read is kept, and --resume goes on\n"
        proxy.heal()
        before = len(proxy.requests)
        said = success("export", "--server", proxy.hosts, "--resume", "/app", file)
        assert said == f"{file}: {COUNT + 1} nodes\n"
        # What was there was not read again.
        read = sum(one.name == "get" for one in proxy.requests[before:])
        assert read <= COUNT - written + 3
    assert file.read_bytes() == whole.read_bytes()
    assert sorted(tmp_path.iterdir()) == [file, whole]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_import_that_was_ended_goes_on_when_it_is_run_again(
    server: ServerProcess, tmp_path: Path, number: int
) -> None:
    file, copy = tmp_path / "app.jsonl", tmp_path / "copy.jsonl"
    target = f"/copy-{number}"
    success("export", "--server", server.hosts, "/app", file)
    with FaultProxy(server.address) as proxy:
        fault = proxy.when(operation="create", nth=COUNT // 2).blackhole()
        with running("import", "--server", proxy.hosts, file, target) as process:
            status, errors = end(process, fault, number)
        if number == signal.SIGINT:
            assert status == 130
            assert errors == "paddock: interrupted; run it again, and it goes on\n"
    with FaultProxy(server.address) as proxy:
        said = success("import", "--server", proxy.hosts, file, target)
        match = re.fullmatch(r"/.*: (\d+) same, (\d+) created\n", said)
        assert match is not None, said
        same, created = int(match[1]), int(match[2])
        assert same + created == COUNT + 1
        assert same >= COUNT // 2 - 1
        assert sum(one.name == "create" for one in proxy.requests) == created
        # Nodes that were there are looked at once, but for those beside the first that was not.
        looks = sum(one.name == "get_acl" for one in proxy.requests)
        assert looks <= same + 2 * created + 10
    success("export", "--server", server.hosts, target, copy)
    assert copy.read_bytes() == file.read_bytes()


def test_a_service_that_stays_away_ends_an_export_which_then_goes_on(
    server: ServerProcess, tmp_path: Path
) -> None:
    whole, file = tmp_path / "whole.jsonl", tmp_path / "app.jsonl"
    success("export", "--server", server.hosts, "/app", whole)
    with FaultProxy(server.address) as proxy:
        proxy.when(operation="get_acl", nth=COUNT // 2).cut_before(stay_away=True)
        arguments = ("export", "--server", proxy.hosts, "--timeout", "2", "/app", file)
        with running(*arguments) as process:
            _, errors = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 1
        assert errors.endswith("; what was read is kept, and --resume goes on\n")
        assert errors.count("\n") == 1
        proxy.heal()
        success("export", "--server", proxy.hosts, "--resume", "/app", file)
    assert file.read_bytes() == whole.read_bytes()


def peak_kb(*arguments: str | Path) -> int:
    """Run a command that succeeds; return the most memory that it has had."""
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert result.stdout, result
    return int(result.stderr.splitlines()[-1])


def assert_memory_is_bounded(tmp_path: Path, count: int, data: bytes, *, slack_kb: int) -> None:
    """Carry a large tree and a small one, and compare what that takes."""
    with ServerProcess() as server, ServerProcess() as other:
        asyncio.run(fill(server.hosts, count, data), debug=False)
        peaks = {}
        for size, path in (("small", "/app/n000000"), ("large", "/app")):
            file = tmp_path / f"{size}.jsonl"
            at = ("--server", other.hosts)
            peaks[size] = [
                peak_kb("export", "--server", server.hosts, "--overwrite", path, file),
                peak_kb("import", *at, file, f"/{size}"),
                peak_kb("import", *at, "--from", server.hosts, path, f"/straight-{size}"),
            ]
        assert (tmp_path / "large.jsonl").stat().st_size > count * len(data)
        for small, large in zip(*peaks.values(), strict=True):
            assert large < small + slack_kb, peaks


ON_LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


@ON_LINUX
def test_a_large_tree_takes_little_memory(tmp_path: Path) -> None:
    # 40 MB in all.
    assert_memory_is_bounded(tmp_path, 2000, bytes(20_000), slack_kb=30_000)


@pytest.mark.long
@ON_LINUX
def test_a_hundred_thousand_nodes_take_little_memory(tmp_path: Path) -> None:
    # 100 MB in all, and objects for each of them far more.
    assert_memory_is_bounded(tmp_path, 100_000, bytes(1000), slack_kb=60_000)
