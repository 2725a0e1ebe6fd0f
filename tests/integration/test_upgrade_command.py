"""`paddock upgrade` as a command: what it says, what it refuses, and its page of the docs."""

import json
import random
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from paddock.errors import PaddockError
from paddock.upgrade.source import read_service
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import Ended, ended, refusal
from tests.support.documents import DEADLINE_S, Page, assert_shown, environment
from tests.support.paddock_server import PaddockServer
from tests.unit.upgrade import files
from tests.unit.upgrade.files import ApacheFolder, Node, transaction


@pytest.fixture
def apache(tmp_path: Path) -> ApacheFolder:
    """A folder with a snapshot and two transactions behind it."""
    folder = ApacheFolder(tmp_path / "apache")
    folder.snapshot(0x10, files.snapshot({"/app": Node(b"old")}, {77: 4_000}))
    folder.log(
        transaction(0x11, files.set_data("/app", b"new", 1)),
        transaction(0x12, files.create("/mine", 2, ephemeral=True), session=77),
    )
    return folder


def upgrade(*arguments: str | Path) -> Ended:
    return ended("upgrade", *arguments)


def refused(status: int, *arguments: str | Path) -> str:
    """Run a command that must fail with one line; give the line."""
    result = upgrade(*arguments)
    assert result.status == status, result
    assert result.output == ""
    lines = result.errors.splitlines()
    assert lines[-1].startswith("paddock: ")
    assert all(line.startswith("paddock: warning: ") for line in lines[:-1])
    return lines[-1]


def test_it_says_what_it_read_and_a_server_serves_it(apache: ApacheFolder, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    result = upgrade(apache.path, home / "data")
    assert (result.status, result.errors) == (0, "")
    assert result.output.splitlines() == [
        f"snapshot      {apache.files / 'snapshot.10'}",
        f"log           {apache.files / 'log.11'}: 2",
        "transactions  2 replayed",
        "zxid          0x12",
        "nodes         6, of them 1 ephemeral, 0 containers, 0 with a TTL",
        "quotas        0",
        "sessions      1",
        "digest        none to compare with",
        f"data          {home / 'data'}",
    ]
    with PaddockServer(folder=home) as server, wire.connect(server.address) as client:
        reply = client.call(rq.get_data("/app"))
        assert (reply.data, reply.stat.version, reply.stat.mzxid) == (b"new", 1, 0x11)
        # The next zxid is the next one here too.
        assert client.call(rq.create("/next")).zxid > 0x12
        client.close()


def test_what_a_server_says_of_such_a_folder_takes_it_over(
    apache: ApacheFolder, tmp_path: Path
) -> None:
    line = refusal("serve", "--port", "0", "--data", apache.path, status=1)
    advice = line.partition("run: paddock ")[2].replace("NEW_FOLDER", str(tmp_path / "data"))
    assert ended(*shlex.split(advice)).status == 0
    with PaddockServer(folder=tmp_path) as server, wire.connect(server.address) as client:
        assert client.call(rq.get_data("/app")).data == b"new"


def test_it_says_it_as_json(apache: ApacheFolder, tmp_path: Path) -> None:
    result = upgrade("--json", apache.path, tmp_path / "data")
    assert json.loads(result.output) == {
        "snapshot": str(apache.files / "snapshot.10"),
        "logs": [{"file": str(apache.files / "log.11"), "transactions": 2}],
        "transactions": 2,
        "zxid": 0x12,
        "nodes": 6,
        "ephemerals": 1,
        "containers": 0,
        "ttls": 0,
        "quotas": 0,
        "sessions": 1,
        "digest_fits": None,
        "warnings": [],
        "data": str(tmp_path / "data"),
    }


def test_a_dry_run_writes_nothing(apache: ApacheFolder, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = upgrade("--dry-run", apache.path, tmp_path / "data")
    assert result.status == 0
    assert result.output.splitlines()[-1] == "data          nothing was written"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folders_may_come_from_apaches_zoo_cfg(apache: ApacheFolder, tmp_path: Path) -> None:
    log = ApacheFolder(tmp_path / "log")
    (apache.files / "log.11").rename(log.files / "log.11")
    config = tmp_path / "zoo.cfg"
    config.write_text(f"tickTime=2000\ndataDir={apache.path}\n dataLogDir = {log.path}\n")
    result = upgrade("--json", "--config", config, tmp_path / "data")
    assert json.loads(result.output)["transactions"] == 2
    # Said by hand it is the same.
    result = upgrade("--json", "--log-dir", log.path, apache.path, tmp_path / "again")
    assert json.loads(result.output)["transactions"] == 2
    # Without a dataLogDir the log is beside the snapshots; here is none.
    config.write_text(f"dataDir={apache.path}\n")
    result = upgrade("--json", "--config", config, tmp_path / "third")
    assert json.loads(result.output)["transactions"] == 0


def test_what_is_passed_over_is_told(apache: ApacheFolder, tmp_path: Path) -> None:
    damaged = apache.snapshot(0x11, b"ZKSN")
    result = upgrade(apache.path, tmp_path / "data")
    assert result.status == 0
    assert result.errors == (
        f"paddock: warning: {damaged}: offset 4: the file ends before its contents do;"
        " the snapshot before it is taken\n"
    )


def test_what_was_given_wrongly_ends_with_status_2(apache: ApacheFolder, tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    for folders in ((), (apache.path,), ("a", "b", "c")):
        assert "expected two folders: APACHE_DATA, which is read, and DATA" in refused(2, *folders)
    assert "cannot be read: No such file" in refused(2, "--config", config, "data")
    config.write_text("tickTime=2000\n")
    assert "has no dataDir" in refused(2, "--config", config, "data")
    assert "with --config, only DATA" in refused(2, "--config", config, apache.path, "data")


def test_what_cannot_be_done_ends_with_status_1(apache: ApacheFolder, tmp_path: Path) -> None:
    target = tmp_path / "data"
    assert "nothing: there is no such folder" in refused(1, tmp_path / "nothing", target)
    (tmp_path / "empty").mkdir()
    assert "has no folder 'version-2'" in refused(1, tmp_path / "empty", target)
    assert "is not an empty folder" in refused(1, apache.path, tmp_path)
    assert "is not an empty folder" in refused(1, apache.path, apache.path)
    assert "is in the folder that is taken over" in refused(1, apache.path, apache.path / "x")
    apache.log(transaction(0x20, files.error()))
    assert "log.20: offset 16: the transactions between 0x12 and 0x20 are missing" in refused(
        1, apache.path, target
    )
    assert not target.exists()


def test_damage_of_any_kind_ends_with_one_line(apache: ApacheFolder) -> None:
    # In this process, since hundreds of processes would take long.
    rng = random.Random(5)
    whole = {path: path.read_bytes() for path in apache.files.iterdir()}
    outcomes = set()
    for _ in range(300):
        path = rng.choice(sorted(whole))
        data = bytearray(whole[path])
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(3):
                case 0:
                    data[at : at + 1] = rng.randbytes(1)
                case 1:
                    data[at : at + rng.randrange(8)] = rng.choice([b"", b"\xff" * 4, bytes(8)])
                case 2:
                    del data[at:]
        path.write_bytes(data)
        try:
            machine, _ = read_service(apache.path, None)
        except PaddockError as error:
            outcomes.add("refused" if "\n" not in str(error) else str(error))
        else:
            # At most what was at the end of the log is missing.
            assert 0x10 <= machine.zxid <= 0x12
            outcomes.add("taken")
        path.write_bytes(whole[path])
    assert outcomes == {"refused", "taken"}


# The page of the docs keeps its word: every block of it runs, one after the other.

PAGE = Page("docs/how-to/take-over-apache-data.md")


def test_every_block_of_the_page_is_of_a_kind_that_is_run() -> None:
    assert PAGE.languages() == {"console"}


def run_until_it_serves(command: str, folder: Path) -> str:
    """Run a command of the page; one that serves is stopped once it does."""
    serves = command.startswith("paddock serve")
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}{' --port 0' if serves else ''}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        output = ""
        for line in process.stdout:
            output += line
            if serves and "listens on" in line:
                process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, output
    return output


def test_the_page_shows_what_the_commands_say(apache: ApacheFolder, tmp_path: Path) -> None:
    apache.snapshot(0x11, files.snapshot()[:-20])
    commands = [command for block in PAGE.blocks("console") for command in block.commands()]
    assert len(commands) == 3
    for command, expected in commands:
        moved = command.replace("/var/lib/zookeeper", str(apache.path))
        output = run_until_it_serves(moved, tmp_path)
        assert_shown(expected, output.replace(str(apache.path), "/var/lib/zookeeper"))
