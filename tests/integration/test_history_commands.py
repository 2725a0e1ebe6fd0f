"""`--at`, `paddock history` and `paddock diff` as their users meet them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.sync import Client, connect
from paddock.testing import ServerThread
from tests.support.command import ended_here, refusal_here, success_here


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
        (("get", "/a", "--at", "03:12"), "--at needs --data", 2),
        (("get", "/a", "--log-dir", "x"), "--log-dir needs --data", 2),
        (("get", "/a", "--at", "then", "--data", "{}"), "'then' is neither a time", 2),
        (("get", "/none", "--at", "now", "--data", "{}"), "/none: no such node", 1),
        (("get", "/app", "--at", "0x999999", "--data", "{}"), "which ends with zxid", 1),
        (("get", "/a", "--at", "now", "--data", "{}/none"), "there is no such folder", 1),
        (("get", "/a", "--at", "now", "--data", "{}/log"), "is no data folder", 1),
        (("diff", "/app", "--data", "{}"), "Missing option '--from'", 2),
        (("history", "/app"), "Missing option '--data'", 2),
    ],
)
def test_what_cannot_be_is_one_line(
    lived: Lived, given: tuple[str, ...], says: str, status: int
) -> None:
    arguments = [one.format(lived.data) for one in given]
    assert says in refusal_here(*arguments, status=status)
