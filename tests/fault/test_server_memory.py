"""A record that takes more memory than a server may have: it says so, and the way out is open.

The limit is `ulimit -v`, as an operator sets it. How much Python takes to begin with differs from
one machine to the next, so the lowest limit is looked for under which a server gets as far as the
record.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from paddock.state.entry import Batch, Entry
from tests.fault.stage.process import FaultServer, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import COMMAND, DEADLINE_S
from tests.unit.log.folders import SESSION, FolderBuilder, contents, names

MIB = 1 << 20
STEP_BYTES = 8 * MIB
LIMIT_BYTES_MIN = 48 * MIB
LIMIT_BYTES_MAX = 1024 * MIB
NODES = 5
# The session, the nodes, and then the one that is too much.
TOO_MUCH = NODES + 2
CHILDREN = 50
# An operation that nobody knows: it is refused at once, and costs what it takes to read it.
NO_OPERATION = 9999


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log with one record whose entries take several times as much as they do on the disk."""
    folder = tmp_path / "server" / "data"
    folder.parent.mkdir()
    with FolderBuilder(folder, segment_bytes=64 * MIB) as builder:
        builder.create(*names(NODES))
        entries = [Entry(NO_OPERATION, b"%08d" % number, SESSION, 1) for number in range(300_000)]
        builder.write_batch(Batch(entries, builder.index, builder.machine.digest()))
    return folder


def limited(limit_bytes: int, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command that ends by itself, or is ended once it says something, within a limit."""
    script = f'ulimit -v {limit_bytes >> 10} && exec "$@"'
    command = ["sh", "-c", script, "sh", *COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        if arguments[0] == "serve" and process.stdout.readline():
            process.terminate()
        output, errors = process.communicate(timeout=DEADLINE_S)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def lowest_limit(*arguments: str | Path) -> tuple[int, str]:
    """Look for the lowest limit under which a command comes to the record; return what it says."""
    for limit_bytes in range(LIMIT_BYTES_MIN, LIMIT_BYTES_MAX, STEP_BYTES):
        result = limited(limit_bytes, *arguments)
        assert result.returncode != 0, "it has succeeded within the limit"
        if b"of the log" in result.stderr:
            assert (result.returncode, result.stdout) == (1, b""), result
            (line,) = result.stderr.decode().splitlines()
            return limit_bytes, line
    raise AssertionError("no limit was high enough")


def test_record_that_takes_too_much_memory_is_named_and_the_way_out_that_is_named_works(
    data: Path,
) -> None:
    before = contents(data)
    serve = ("serve", "--data", data, "--port", "0", "--log-level", "error")
    limit_bytes, line = lowest_limit(*serve)
    assert line.startswith(f"paddock: record {TOO_MUCH} of the log takes more memory than")
    assert "Nothing was changed. Start it with more memory" in line
    assert {**contents(data), "lock": before["lock"]} == before

    copied = data.parent.parent / "copied"
    copied.mkdir()
    copy = FaultServer(copied)
    places = {"DATA": str(data), "COPY": str(copy.data)}
    named = line[line.index("paddock fsck ") :].split()
    arguments = [places.get(word, word) for word in named[1:]]
    result = limited(limit_bytes, *arguments)
    assert (result.returncode, result.stderr) == (0, b""), result
    assert f"record {TOO_MUCH - 1}, zxid 0x{TOO_MUCH - 1:x}" in result.stdout.decode()
    with copy, wire.connect(copy.address, last_zxid=TOO_MUCH - 1) as client:
        assert set(read_tree(client)) == set(names(NODES))

    # With more memory the same folder is fine.
    with FaultServer(data.parent) as server, wire.connect(server.address) as client:
        assert set(read_tree(client)) == set(names(NODES))


@pytest.mark.parametrize("command", ["fsck", "backup"])
def test_commands_that_load_the_record_say_the_same(data: Path, command: str) -> None:
    target = [data.parent / "backup.tar"] if command == "backup" else []
    _, line = lowest_limit(command, data, *target)
    assert line.startswith(f"paddock: record {TOO_MUCH} of the log takes more memory than")
    assert line.endswith(f"paddock fsck DATA --repair COPY --before {TOO_MUCH}")
    assert not (data.parent / "backup.tar").exists()


def test_server_that_runs_out_of_memory_ends_unanswered_and_has_lost_nothing(
    tmp_path: Path,
) -> None:
    """Each transaction takes much more memory when it is applied than when it is read."""
    acknowledged: list[str] = []
    with FaultServer(tmp_path) as server:
        server.limit_memory(16 * MIB)
        client: wire.Client | None = None
        for number in range(20_000):
            parent = f"/{number}"
            steps = [rq.create(parent), *(rq.create(f"{parent}/{n}") for n in range(CHILDREN))]
            try:
                if client is None:
                    client = wire.connect(server.address)
                if client.call(rq.multi(*steps)).err == 0:
                    acknowledged.append(parent)
            except (OSError, wire.ConnectionClosedError):
                if client is not None:
                    client.disconnect()
                client = None
                if not server.alive:
                    break
        assert server.wait_ended(DEADLINE_S), "it goes on without memory"
        assert server.stop() == 1
        log = server.log.read_text()
        (line,) = re.findall(r"^.*CRITICAL.*$", log, re.MULTILINE)
        assert "a request that is in the log cannot be applied here" in line
        assert "start it again" in line
        server.start()
        with wire.connect(server.address) as reader:
            found = read_tree(reader)
            assert set(acknowledged) <= set(found)
            counts = dict.fromkeys(acknowledged, 0)
            for path in found:
                above = path.rpartition("/")[0]
                if above in counts:
                    counts[above] += 1
            assert set(counts.values()) <= {CHILDREN}
            reader.close()
    assert acknowledged
