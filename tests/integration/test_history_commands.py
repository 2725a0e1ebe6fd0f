"""`--at`, `paddock history` and `paddock diff` as their users meet them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.protocol.acl import digest_id
from paddock.server.config.config import ServerConfig
from paddock.storage.events import FOLDER, SESSION_ENDED, SESSION_OPENED, event_files, file_name
from paddock.sync import Client, connect
from paddock.testing import ServerThread
from tests.support.command import ended_here, refusal_here, success_here
from tests.support.command import paddock as run
from tests.support.server import free_port


class Lived:
    """A data folder whose server runs, with three writes that are known."""

    def __init__(self, data: Path, client: Client) -> None:
        self.data = str(data)
        self.first = client.create_with_stat("/app", b"one").stat.czxid
        self.child = client.create_with_stat("/app/x", b"1").stat.czxid
        self.second = client.set("/app", b"two").mzxid
        client.delete("/app/x")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    data = tmp_path_factory.mktemp("lived") / "data"
    with ServerThread(data) as server, connect(server.hosts) as client:
        yield Lived(data, client)


def at(lived: Lived, zxid: int) -> tuple[str, ...]:
    return "--at", f"0x{zxid:x}", "--data", lived.data


def test_commands_read_the_state_of_a_moment(lived: Lived) -> None:
    assert success_here("get", "/app", *at(lived, lived.first)) == "one"
    assert success_here("get", "/app", *at(lived, lived.second)) == "two"
    assert success_here("get", "/app", "--at", "now", "--data", lived.data) == "two"
    assert success_here("ls", "/app", *at(lived, lived.child)) == "x\n"
    assert success_here("ls", "/app", *at(lived, lived.first)) == ""
    assert "x" in success_here("tree", "/app", *at(lived, lived.child))
    stat = json.loads(success_here("stat", "/app", "--json", *at(lived, lived.second)))["stat"]
    assert (stat["mzxid"], stat["num_children"]) == (lived.second, 1)
    exported = success_here("export", "/app", "-", *at(lived, lived.child)).splitlines()
    assert [json.loads(line).get("data") for line in exported[1:-1]] == ["one", "1"]


def test_a_subtree_can_be_put_back_as_it_was(lived: Lived, tmp_path: Path) -> None:
    file = tmp_path / "app.jsonl"
    success_here("export", "/app", str(file), *at(lived, lived.child))
    with ServerThread() as server, connect(server.hosts) as client:
        client.create("/app", b"broken")
        options = ("--server", server.hosts)
        told = ended_here("import", str(file), "/app", "--diff", *options)
        assert (told.status, told.output.splitlines()[:2]) == (3, ["~ /app (data)", "+ /app/x"])
        assert client.get("/app").data == b"broken"
        success_here("import", str(file), "/app", "--overwrite", *options)
        assert (client.get("/app").data, client.get("/app/x").data) == (b"one", b"1")


def test_history_prints_every_change(lived: Lived) -> None:
    lines = success_here("history", "/app", "-R", "--data", lived.data).splitlines()
    assert [line.split()[3:5] for line in lines] == [
        ["created", "/app"],
        ["created", "/app/x"],
        ["changed", "/app"],
        ["deleted", "/app/x"],
    ]
    assert "'one' → 'two'  version 1  by session 0x" in lines[2]
    assert "(ip:127.0.0.1)" in lines[2]
    told = [
        json.loads(line)
        for line in success_here("history", "/app", "--json", "--data", lived.data).splitlines()
    ]
    assert [one["kind"] for one in told] == ["created", "changed"]
    assert (told[1]["before"]["data"], told[1]["after"]["data"]) == ("one", "two")
    assert (told[1]["zxid"], told[1]["operation"]) == (lived.second, "set")
    after = ("--from", f"0x{lived.child:x}", "--data", lived.data)
    assert len(success_here("history", "/app", "-R", *after).splitlines()) == 2
    assert len(success_here("history", "/", "-R", "-n", "1", *after).splitlines()) == 1


def test_a_server_is_asked_over_the_network(tmp_path: Path) -> None:
    port = free_port()
    digest = digest_id("super:secret")
    config = ServerConfig(port=0, admin_enabled=True, admin_port=port, super_digest=digest)
    url = f"http://127.0.0.1:{port}"
    asking = ("--admin", url, "--admin-auth", "digest:super:secret")
    with ServerThread(tmp_path / "data", config) as server, connect(server.hosts) as client:
        zxid = client.create_with_stat("/app", b"one").stat.czxid
        client.create("/app/x")
        client.set("/app", b"two")
        moment = ("--at", f"0x{zxid:x}")
        assert run("get", "/app", *moment, *asking).stdout == b"one"
        assert run("ls", "/app", "-l", "--at", "now", *asking).stdout.endswith(b"x\n")
        lines = run("history", "/app", "-R", "-n", "2", *asking).stdout.decode().splitlines()
        assert [line.split()[3:5] for line in lines] == [["created", "/app/x"], ["changed", "/app"]]
        file = tmp_path / "app.jsonl"
        assert run("export", "/app", str(file), *moment, *asking).returncode == 0
        assert len(file.read_text().splitlines()) == 3
        refused = run("export", "/app", str(file), *moment, *asking)
        assert (refused.returncode, b"--overwrite replaces it" in refused.stderr) == (1, True)
        assert run("diff", "/app", "--from", f"0x{zxid:x}", *asking).returncode == 3
        assert run("explain", "node", "/app", *asking).stdout.startswith(b"/app: version 1\n")
        session = f"0x{client.session_id:x}"
        assert b": not over\n" in run("explain", "session", session, *asking).stdout
        missing = run("get", "/none", "--at", "now", *asking)
        assert (missing.returncode, missing.stderr) == (1, b"paddock: /none: no such node\n")
        wrong = run("get", "/app", *moment, "--admin", url, "--admin-auth", "digest:bob:secret")
        assert (wrong.returncode, b"it takes the superuser" in wrong.stderr) == (1, True)
        # Without --at it is the service itself that is asked.
        now = run("get", "/app", "--server", server.hosts, "--admin", url)
        assert now.stdout == b"two"


def test_what_others_have_put_among_the_events_ends_nothing(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "data" / FOLDER
    with ServerThread(data):
        pass
    (newest,) = (path for _, path in event_files(folder))
    newest.write_bytes(newest.read_bytes() + bytes(100) + b"\n" + b"[" * 100_000 + b'\n{"time_ms":')
    (folder / file_name(1)).mkdir()
    os.mkfifo(folder / file_name(2))
    (folder / file_name(10**14)).mkdir()
    # Reading this fails, also for root.
    (folder / file_name(3)).symlink_to("/proc/self/mem")
    with ServerThread(data) as server, connect(server.hosts) as client:
        session = f"0x{client.session_id:x}"
    done = ended_here("explain", "session", session, "--json", "--data", str(data))
    assert done.status == 0
    told = [json.loads(line)["event"] for line in json.loads(done.output)["events"]]
    assert {SESSION_OPENED, SESSION_ENDED} <= set(told)
    assert "some events cannot be read: Input/output error" in done.errors


def test_history_of_nothing_says_so(lived: Lived) -> None:
    done = ended_here("history", "/none", "--data", lived.data)
    assert (done.status, done.errors) == (1, "paddock: /none: nothing became of it\n")


def test_diff_compares_two_moments(lived: Lived) -> None:
    moments = ("--from", f"0x{lived.first:x}", "--to", f"0x{lived.second:x}")
    done = ended_here("diff", "/app", *moments, "--data", lived.data)
    assert (done.status, done.output) == (
        3,
        "~ /app  'one' → 'two'  version 1\n+ /app/x  '1'\n",
    )
    back = ("--from", f"0x{lived.second:x}", "--to", f"0x{lived.first:x}", "--json")
    (changed, gone) = ended_here("diff", *back, "--data", lived.data).output.splitlines()
    assert (json.loads(changed)["kind"], json.loads(gone)["kind"]) == ("changed", "deleted")
    same = ("--from", f"0x{lived.first:x}", "--to", f"0x{lived.first:x}")
    assert ended_here("diff", *same, "--data", lived.data).status == 0


@pytest.mark.parametrize(
    ("given", "says", "status"),
    [
        (("get", "/a", "--at", "03:12"), "--at needs --data or --admin", 2),
        (("get", "/a", "--log-dir", "x"), "--log-dir needs --data", 2),
        (("get", "/a", "--at", "then", "--data", "{}"), "'then' is neither a time", 2),
        (("get", "/none", "--at", "now", "--data", "{}"), "/none: no such node", 1),
        (("get", "/app", "--at", "0x999999", "--data", "{}"), "which ends with zxid", 1),
        (("get", "/a", "--at", "now", "--data", "{}/none"), "there is no such folder", 1),
        (("get", "/a", "--at", "now", "--data", "{}/log"), "is no data folder", 1),
        (("diff", "/app", "--data", "{}"), "Missing option '--from'", 2),
        (("history", "/app"), "--data or --admin says where the history is", 2),
        (("history", "/app", "--admin", "xyz"), "'xyz' is no address of an admin server", 2),
        (("history", "/app", "--admin", "http://127.0.0.1:1"), "no answer: ", 1),
    ],
)
def test_what_cannot_be_is_one_line(
    lived: Lived, given: tuple[str, ...], says: str, status: int
) -> None:
    arguments = [one.format(lived.data) for one in given]
    assert says in refusal_here(*arguments, status=status)
