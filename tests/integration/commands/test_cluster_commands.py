"""`paddock cluster`: what it says of a service in etcd, and what it does to one."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.cli.cluster import log_options
from paddock.log.etcd.calls import UNPACED
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import (
    COMMAND,
    DEADLINE_S,
    Running,
    ended,
    ended_here,
    refusal,
    refusal_here,
    serving,
    success,
)
from tests.support.etcd import Etcd
from tests.support.records import Code
from tests.support.server import ServerMissingError, free_ports

pytestmark = pytest.mark.judge

# A lease that no busy machine loses.
OPTIONS = ("--sync-limit", "10", "--port", "0")


@pytest.fixture(scope="module")
def etcd() -> Iterator[Etcd]:
    try:
        with Etcd() as started:
            yield started
    except ServerMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def log(etcd: Etcd, request: pytest.FixtureRequest) -> str:
    """Return the address of a log of this test's own."""
    return f"etcd://{etcd.endpoint}/{request.node.name.replace('[', '-').replace(']', '')[:90]}"


@contextlib.contextmanager
def member(log: str, *arguments: str) -> Iterator[Running]:
    """Run a server, which leaves the service at the end of the scope."""
    with serving("--log", log, *OPTIONS, *arguments) as running:
        yield running
        if running.process.poll() is None:
            running.stop()


def status_of(log: str, *arguments: str) -> dict[str, object]:
    found = json.loads(success("cluster", "status", "--log", log, "--json", *arguments))
    assert isinstance(found, dict)
    return found


def members_of(log: str) -> list[dict[str, object]]:
    found = status_of(log)["members"]
    assert isinstance(found, list)
    return found


def test_the_status_of_a_service_has_its_members_and_etcd(etcd: Etcd, log: str) -> None:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    asked = ("--port", str(port), "--advertise", address, "--four-letter-words", "mntr")
    with member(log, *asked) as first, member(log):
        with wire.connect(first.address) as client:
            assert client.call(rq.create("/a")).err == Code.OK
            found = status_of(log)
            assert (found["sessions"], found["nodes"], found["addresses"]) == (1, 5, [address])
            one, two = members_of(log)
            assert (one["address"], one["is_on_duty"], one["sessions"]) == (address, True, 1)
            assert (two["address"], two["is_on_duty"], two["sessions"]) == (None, False, 0)
            # Of T, 20 s, 0.8 at the most.
            assert isinstance(one["lease_left_ms"], int)
            assert 0 < one["lease_left_ms"] <= 16_000
            assert two["lease_left_ms"] is None
            text = success("cluster", "status", "--log", log)
    says = rf"^member +1 on duty, {address}, 1 session, lag \d+, lease \d+ ms, version "
    assert re.search(says, text, re.MULTILINE)
    assert re.search(rf"^etcd +{etcd.endpoint}, version 3\.\d", text, re.MULTILINE)
    # All have left, and are known no more.
    assert members_of(log) == []
    quick = status_of(log, "--quick")
    assert "members" not in quick
    assert quick["index"] == status_of(log)["index"]


def test_a_member_of_etcd_that_does_not_answer_is_told_of(etcd: Etcd, log: str) -> None:
    with member(log):
        pass
    # Nobody listens on the first port.
    result = ended("cluster", "status", "--log", log.replace("etcd://", "etcd://127.0.0.1:1,"))
    assert result.status == 1
    silent, well = [line for line in result.output.splitlines() if line.startswith("etcd ")]
    assert re.fullmatch(r"etcd +127\.0\.0\.1:1, .*Connection refused.*", silent)
    assert "version 3." in well


def test_a_status_that_cannot_be_read_has_etcd_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_options, "_ANSWER_ATTEMPTS", 2)
    # Nobody listens there.
    asked = ("cluster", "status", "--log", "etcd://127.0.0.1:1,127.0.0.1:2/shop")
    result = ended_here(*asked)
    assert (result.status, result.errors) == (1, "")
    assert [line.partition("  ")[0] for line in result.output.splitlines()] == [
        *("service", "problem", "etcd", "etcd")
    ]
    assert re.search(
        r"^problem +etcd at .*: Connection refused\netcd +127\.0\.0\.1:1, Connection refused$",
        result.output,
        re.MULTILINE,
    )
    found = json.loads(ended_here(*asked, "--json").output)
    assert (found["name"], [one["endpoint"] for one in found["etcd"]]) == (
        "shop",
        ["127.0.0.1:1", "127.0.0.1:2"],
    )
    assert "Connection refused" in found["problem"]


@pytest.mark.parametrize("command", [["forget", "h:1"], ["finalize"], ["epoch"], ["skip", "1"]])
def test_an_etcd_that_does_not_answer_is_one_line_and_soon(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without this a command would repeat its first call for a minute. More than once: a machine
    # that is busy may need longer than the first deadline to learn that a port is closed.
    monkeypatch.setattr(log_options, "_ANSWER_ATTEMPTS", 3)
    monkeypatch.setattr(UNPACED, "repeat", None)
    said = refusal_here("cluster", *command, "--log", "etcd://127.0.0.1:1/shop", status=1)
    assert said == "etcd at 127.0.0.1:1: Connection refused"


def test_an_etcd_that_is_silent_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_options, "_ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = "{}:{}".format(*silent.getsockname())
        said = refusal_here("cluster", "finalize", "--log", f"etcd://{host}/shop", status=1)
        assert said == f"etcd at {host}: no answer within 0.2 s"


def test_a_name_without_a_service_is_one_line(log: str) -> None:
    says = "there is no service with this name"
    for command in (["status"], ["forget", "h:1"], ["finalize"], ["epoch"], ["skip", "1"]):
        assert refusal("cluster", *command, "--log", log, status=1).endswith(says)


@pytest.mark.parametrize(
    ("address", "says"),
    [("two", "'two' has no port"), ("", "'' has no host"), ("two:no", "the port 'no' of two")],
)
def test_an_address_that_is_none_is_not_looked_for(address: str, says: str) -> None:
    said = refusal_here("cluster", "forget", address, "--log", "etcd://127.0.0.1:1/s", status=2)
    assert said.startswith(says)


def test_which_log_has_to_be_said() -> None:
    assert refusal("cluster", "status", status=2) == (
        "which log? --log etcd://host:port,…/name, or the variable PADDOCK_LOG"
    )
    assert refusal("cluster", "status", "--log", "etcd://h", status=2).startswith(
        "--log = 'etcd://h': there is no name of the service"
    )


def test_an_address_is_forgotten_when_its_server_is_gone(log: str) -> None:
    with member(log, "--advertise", "one:2181"):
        with member(log, "--advertise", "two:2181"):
            pass
        assert refusal("cluster", "forget", "two:1", "--log", log, status=1) == (
            "two:1: no member ever had this address"
        )
        assert refusal("cluster", "forget", "one:2181", "--log", log, status=1) == (
            "one:2181: a member has this address: stop it first"
        )
        assert success("cluster", "forget", "two:2181", "--log", log) == "two:2181 is forgotten\n"
        # Only the server is left: the command has left each time, also when it was refused.
        assert [one["address"] for one in members_of(log)] == ["one:2181"]
        assert status_of(log)["addresses"] == ["one:2181"]


def test_there_is_nothing_to_finalize_without_an_upgrade(log: str) -> None:
    with member(log):
        assert re.fullmatch(
            r"rules \d+: nothing to finalize\n", success("cluster", "finalize", "--log", log)
        )


def test_the_largest_request_that_a_server_may_take_fits_into_etcd(log: str) -> None:
    largest = 1 << 20
    with member(log, "--max-frame-bytes", str(largest)) as server:
        with wire.connect(server.address) as client:
            # Beside the data a frame has the header, and the rest of the request.
            spare = len(rq.create("/large").body) + 8
            assert client.call(rq.create("/large", bytes(largest - spare))).err == Code.OK
    said = refusal("serve", "--log", log, "--max-frame-bytes", str(largest + 1), status=2)
    assert "with a log in etcd it is at most 1048576" in said


def test_an_epoch_begins_only_when_no_server_runs(log: str) -> None:
    with member(log) as server:
        with wire.connect(server.address) as client:
            assert client.call(rq.create("/a", flags=1)).err == Code.OK
            before = status_of(log)["zxid"]
            assert isinstance(before, int)
            said = refusal("cluster", "epoch", "--log", log, status=1)
            assert re.fullmatch(r"member 1 \([0-9a-f]{16}\) is alive: stop all servers first", said)
            server.process.kill()
            server.process.wait()
            # It has not left, and is deposed; its session and node stay.
            text = success("cluster", "epoch", "--log", log, "--wait", "1")
            assert text == f"the service goes on at zxid 0x{(before >> 32) + 1 << 32:x}\n"
            found = status_of(log)
            assert (found["members"], found["sessions"]) == ([], 1)
            with member(log) as again, wire.reattach(again.address, client, before) as moved:
                assert moved.session_id == client.session_id
                assert moved.call(rq.exists("/a")).err == Code.OK


def test_a_batch_is_skipped_unless_a_server_has_applied_it(etcd: Etcd, log: str) -> None:
    with member(log):
        pass
    last = status_of(log)["index"]
    assert isinstance(last, int)
    assert refusal("cluster", "skip", str(last + 1), "--log", log, status=1) == (
        f"there is no batch {last + 1} yet: the last one is {last}"
    )
    said = refusal("cluster", "skip", "1", "--log", log, status=1)
    assert said.startswith("a server has applied batch 1: ")
    # The last one is known to nobody.
    text = success("cluster", "skip", str(last), "--log", log)
    assert text == f"batch {last} is skipped; start the servers again\n"
    assert status_of(log)["skipped"] == [last]
    # It was the LEAVE, so the server is a member again.
    assert len(members_of(log)) == 1
    # A server passes over it, too: otherwise nobody but itself was a member.
    with member(log):
        assert [one["number"] for one in members_of(log)] == [1, 2]
    assert refusal("cluster", "skip", str(last), "--log", log, status=1) == (
        f"batch {last} is skipped already"
    )


def test_a_data_folder_becomes_a_service_with_its_sessions(tmp_path: Path, log: str) -> None:
    data = tmp_path / "data"
    with serving("--data", data, *OPTIONS) as single, wire.connect(single.address) as client:
        assert client.call(rq.create("/kept", b"data")).err == Code.OK
        assert client.call(rq.create("/mine", flags=1)).err == Code.OK
        zxid = client.call(rq.exists("/mine")).zxid
        assert "a server runs on it" in refusal("cluster", "import", data, "--log", log, status=1)
        single.stop()
        told = json.loads(success("cluster", "import", data, "--log", log, "--json"))
        assert (told["nodes"], told["sessions"], told["zxid"]) == (6, 1, zxid)
        with member(log) as server, wire.reattach(server.address, client, zxid) as moved:
            assert moved.session_id == client.session_id
            assert moved.call(rq.get_data("/kept")).data == b"data"
            assert moved.call(rq.exists("/mine")).err == Code.OK
    said = refusal("cluster", "import", data, "--log", log, status=1)
    assert "this name is in use" in said


def test_a_folder_that_cannot_be_imported_is_one_line(tmp_path: Path, log: str) -> None:
    none = tmp_path / "none"
    assert refusal("cluster", "import", none, "--log", log, status=2) == (
        f"{none}: there is no such folder"
    )
    assert "version-2" in refusal("cluster", "import", tmp_path, "--log", log, status=1)
    with member(log, "--data", str(tmp_path / "cache")):
        pass
    assert refusal("cluster", "import", tmp_path / "cache", "--log", log, status=1) == (
        f"{tmp_path / 'cache'}: is the cache of a server that shares a log; name the log: etcd://…"
    )


def test_a_service_is_backed_up_while_it_runs_and_restored_under_a_new_name(
    tmp_path: Path, log: str
) -> None:
    file = tmp_path / "backup.tar"
    with member(log) as server, wire.connect(server.address) as client:
        assert client.call(rq.create("/kept", b"data")).err == Code.OK
        assert client.call(rq.create("/mine", flags=1)).err == Code.OK
        zxid = client.call(rq.exists("/mine")).zxid
        said = success("backup", log, file)
        assert f"zxid 0x{zxid:x}, 6 nodes, 1 session\n" in said
        client.call(rq.create("/later"))
        assert "this name is in use" in refusal("restore", file, log, status=1)
        assert "--replace" in refusal("restore", file, log, "--replace", status=2)
        said = success("restore", file, f"{log}-new")
        assert said.startswith(f"{log}-new: restored the backup of ")
        with member(f"{log}-new") as new, wire.reattach(new.address, client, zxid) as moved:
            assert moved.session_id == client.session_id
            assert moved.call(rq.get_data("/kept")).data == b"data"
            assert moved.call(rq.exists("/mine")).err == Code.OK
            assert moved.call(rq.exists("/later")).err == Code.NO_NODE
    # And into the folder of a single server, with the same backup.
    success("restore", file, tmp_path / "data")
    with (
        serving("--data", tmp_path / "data", *OPTIONS) as single,
        wire.connect(single.address) as one,
    ):
        assert one.call(rq.get_data("/kept")).data == b"data"


def test_a_cache_is_no_data_to_back_up_to_repair_or_to_replace(tmp_path: Path, log: str) -> None:
    cache, file = tmp_path / "cache", tmp_path / "file.tar"
    with member(log, "--data", str(cache)):
        pass
    success("backup", log, file)
    commands: list[list[str | Path]] = [
        ["backup", cache, tmp_path / "other"],
        ["restore", file, cache, "--replace"],
    ]
    says = f"{cache}: is the cache of a server that shares a log; "
    for command in commands:
        assert refusal(*command, status=1) == f"{says}name the log: etcd://…"
    # That takes no log.
    said = refusal("fsck", cache, "--repair", tmp_path / "copy", status=1)
    assert said.startswith(f"{says}paddock backup reads and checks")
    # But history is checked.
    first, *lines = success("fsck", cache).splitlines()
    assert first == f"data folder {cache}, of a server that shares a log"
    assert [line.split()[0] for line in lines] == ["snapshots", "recorded", "history", "fine"]
    found = json.loads(success("fsck", cache, "--json"))
    assert found["history"]["end"]["index"] == found["segments"][-1]["last_index"]
    assert found["history"]["gaps"] == found["findings"] == []
    # And goes into a backup, from the folder of one server.
    past = tmp_path / "past.tar"
    assert success("backup", log, past, "--history-from", cache).endswith(", and history\n")
    assert "--history-from" in refusal("backup", log, past, "--history", "--overwrite", status=2)
    assert "is not the data folder" in refusal(
        *("backup", log, past, "--overwrite", "--history-from", tmp_path), status=1
    )


class Up:
    """A cluster that `paddock cluster up` runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._pids: dict[str, int] = {}
        servers = []
        assert process.stdout is not None
        while b"Ctrl-C" not in (line := process.stdout.readline()):
            assert line, process.communicate()
            row = re.fullmatch(r"(\S+) +127\.0\.0\.1:(\d+)  process (\d+)\n", line.decode())
            if row is not None:
                self._pids[row[1]] = int(row[3])
                servers += [("127.0.0.1", int(row[2]))] if row[1].startswith("server-") else []
        self.servers = tuple(servers)

    def kill(self, name: str) -> str:
        """Kill a process; return what is said of it."""
        os.kill(self._pids[name], signal.SIGKILL)
        assert self.process.stderr is not None
        return self.process.stderr.readline().decode()

    def stop(self) -> tuple[int, bytes]:
        """Press Ctrl-C; return the status and what stood on stderr since."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors


@contextlib.contextmanager
def up(*arguments: str | Path) -> Iterator[Up]:
    command = [*COMMAND, "cluster", "up", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, bufsize=0) as process:
        try:
            yield Up(process)
        finally:
            if process.poll() is None:
                # What it has started ends with it.
                process.kill()


def test_a_cluster_on_one_machine_survives_its_members_and_a_restart(tmp_path: Path) -> None:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is missing")
    folder = tmp_path / "cluster"
    with up(folder) as running:
        one, two, three = running.servers
        with wire.connect(one) as client:
            assert client.call(rq.create("/a", b"x")).err == Code.OK
        with wire.connect(three) as client:
            client.call(rq.sync("/a"))
            assert client.call(rq.get_data("/a")).data == b"x"
        assert "a cluster runs in it already" in refusal("cluster", "up", folder, status=1)
        for name in ("server-2", "etcd-1"):
            said = running.kill(name)
            assert said.startswith(f"paddock: {name} has ended with SIGKILL; its log is ")
            assert " start it again: " in said
        with wire.connect(three) as client:
            assert client.call(rq.create("/b")).err == Code.OK
        assert running.stop() == (0, b"")
    with up(folder) as again:
        assert again.servers == (one, two, three)
        with wire.connect(two) as client:
            client.call(rq.sync("/b"))
            assert client.call(rq.exists("/b")).err == Code.OK
        assert again.stop() == (0, b"")


def test_a_cluster_needs_etcd_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refusal("cluster", "up", tmp_path / "cluster", status=1)
    assert said.startswith("there is no etcd on the PATH: apt install etcd-server, ")
    assert not (tmp_path / "cluster").exists()


def test_a_server_that_cannot_start_ends_the_cluster_with_its_reason(tmp_path: Path) -> None:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is missing")
    config = tmp_path / "zoo.cfg"
    config.write_text("tickTime=no\n")
    said = refusal("cluster", "up", tmp_path / "c", "--config", config, status=1)
    assert re.match(r"server-\d has ended with status 2: paddock: .*tickTime = 'no'", said)


def test_etcd_is_found_elsewhere_after_a_hangup(etcd: Etcd, log: str, tmp_path: Path) -> None:
    file = tmp_path / "zoo.cfg"
    # Nobody listens on the first port.
    file.write_text(f"log={log.replace('etcd://', 'etcd://127.0.0.1:1,')}\nclientPort=0\n")
    with serving("--config", file, "--sync-limit", "10") as server:
        file.write_text(f"log={log}\n")
        server.process.send_signal(signal.SIGHUP)
        # Signals of one kind that come together are one.
        until_logged(server, f"and is {log} now")
        file.write_text("log=etcd://127.0.0.1:1/other\n")
        server.process.send_signal(signal.SIGHUP)
        until_logged(server, "SIGHUP: nothing is changed: the log is")
        file.write_text("tickTime=soon\n")
        server.process.send_signal(signal.SIGHUP)
        until_logged(server, "SIGHUP: nothing is changed: ")
        with wire.connect(server.address) as client:
            assert client.call(rq.create("/a")).err == Code.OK
        assert server.stop()[0] == 0


def until_logged(server: Running, text: str) -> None:
    """Wait until the log has a line with a text."""
    assert server.process.stderr is not None
    line = ""
    while text not in line:
        line = server.process.stderr.readline()
        assert line, f"it has ended without {text!r}"
