"""`paddock ls` as its users meet it: a process, its output, its exit status."""

import json
import subprocess
from datetime import UTC, datetime

import pytest

import paddock
from paddock.sync import Client
from tests.support.command import (
    COMMAND,
    DEADLINE_S,
    ended_here,
    refusal_here,
    success,
    success_here,
)
from tests.support.server import Service


@pytest.mark.everywhere
def test_it_lists_names_in_order(service: Service, client: Client, path: str) -> None:
    for name in ("b", "a b", "ä"):
        client.create(f"{path}/{name}")
    assert success("ls", "--server", service.hosts, path) == "a b\nb\nä\n"


def test_it_lists_the_root_unless_told_otherwise(service: Service, path: str) -> None:
    names = success_here("ls", "--server", service.hosts).splitlines()
    assert path[1:] in names
    assert "zookeeper" in names


@pytest.mark.everywhere
def test_a_long_list_says_what_nodes_are(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/inner/leaf", make_parents=True)
    client.set(f"{path}/inner", b"12345")
    client.create(f"{path}/worker", ephemeral=True)
    stat = client.exists(f"{path}/inner")
    assert stat is not None
    inner, worker = success_here("ls", "-l", "--server", service.hosts, path).splitlines()
    written = datetime.fromtimestamp(stat.mtime // 1000, UTC).astimezone()
    day, clock = str(written.replace(tzinfo=None)).split()
    assert inner.split() == ["1", "5", "1", day, clock, "-", "inner"]
    assert worker.split()[:3] == ["0", "0", "0"]
    assert worker.split()[5:] == [f"0x{client.session_id:x}", "worker"]


@pytest.mark.everywhere
def test_a_whole_tree_is_listed_parents_first(service: Service, client: Client, path: str) -> None:
    for below in ("a", "a/x", "a/x/deep", "a-b", "b"):
        client.create(f"{path}/{below}")
    assert success_here("ls", "-R", "--server", service.hosts, path).splitlines() == [
        f"{path}/{below}" for below in ("a", "a/x", "a/x/deep", "a-b", "b")
    ]


@pytest.mark.everywhere
def test_json_is_an_object_a_line(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/worker", b"12", ephemeral=True)
    client.create(f"{path}/box")
    lines = success_here("ls", "--json", "--server", service.hosts, path).splitlines()
    box, worker = (json.loads(line) for line in lines)
    stat = client.exists(f"{path}/worker")
    assert stat is not None
    assert worker == {
        "path": f"{path}/worker",
        "name": "worker",
        # A number of 64 bits would lose its last digits in most readers of JSON.
        "stat": {**stat._asdict(), "ephemeral_owner": f"0x{client.session_id:x}"},
    }
    assert box["stat"]["ephemeral_owner"] is None


def test_a_path_below_the_chroot_is_what_it_names(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/a/b", make_parents=True)
    assert success_here("ls", "-R", "--server", f"{service.hosts}{path}") == "/a\n/a/b\n"


@pytest.mark.parametrize("options", [[], ["-l"], ["-R"], ["--json"]])
def test_a_node_that_is_not_there_is_one_line(
    service: Service, path: str, options: list[str]
) -> None:
    line = refusal_here("ls", "--server", service.hosts, f"{path}/none", *options, status=1)
    assert line == f"{path}/none: no such node"


def test_what_may_not_be_read_is_named_and_the_rest_is_listed(
    service: Service, client: Client, path: str
) -> None:
    secret = [paddock.digest_acl("alice", "secret")]
    client.create(f"{path}/a")
    client.create(f"{path}/b", acl=secret)
    client.add_auth("digest", b"alice:secret")
    client.create(f"{path}/b/hidden")
    client.create(f"{path}/c")
    result = ended_here("ls", "-R", "--server", service.hosts, path)
    assert result.output.splitlines() == [f"{path}/{name}" for name in "abc"]
    assert result.errors == f"paddock: {path}/b: the ACL does not permit it\n"
    assert result.status == 1
    as_alice = success_here(
        "ls", "-R", "--server", service.hosts, "--auth", "digest:alice:secret", path
    )
    assert f"{path}/b/hidden" in as_alice


def test_a_reader_that_has_enough_is_no_failure(
    service: Service, client: Client, path: str
) -> None:
    # More than fits into a pipe, so that writing fails while we are at it.
    for number in range(500):
        client.create(f"{path}/{number:0200}")
    command = [*COMMAND, "ls", "--server", service.hosts, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(DEADLINE_S) == 128 + 13
        assert process.stderr.read() == b""
