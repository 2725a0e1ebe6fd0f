"""`paddock get`, `set`, `create`, `delete` and `stat` as their users meet them: processes."""

import json
import signal
from pathlib import Path

import pytest

from paddock.sync import Client
from tests.support.command import ended_here, refusal, refusal_here, started, success, success_here
from tests.support.command import paddock as run
from tests.support.server import Service, digest

# All bytes, with line breaks of every kind at the end.
ANY_BYTES = bytes(range(256)) + b"\r\n\n"


@pytest.mark.everywhere
def test_any_bytes_go_through_pipes_as_they_are(
    service: Service, client: Client, path: str
) -> None:
    result = run("set", "--server", service.hosts, path, "-", input=ANY_BYTES)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert client.get(path).data == ANY_BYTES
    assert run("get", "--server", service.hosts, path).stdout == ANY_BYTES


@pytest.mark.everywhere
def test_create_set_get_stat_and_delete_tell_programs_what_they_did(
    service: Service, client: Client, path: str
) -> None:
    node = f"{path}/config"
    created = json.loads(success("create", "--server", service.hosts, node, "v1", "--json"))
    stat = client.get(node).stat._asdict() | {"ephemeral_owner": None}
    assert created == {"path": node, "stat": stat}
    written = json.loads(success("set", "--server", service.hosts, node, "v2", "--json"))
    stat = client.get(node).stat._asdict() | {"ephemeral_owner": None}
    assert written == {"path": node, "stat": stat}
    read = json.loads(success("get", "--server", service.hosts, node, "--json"))
    assert read == {"path": node, "data": "v2", "encoding": "utf-8", "stat": stat}
    looked_at = json.loads(success("stat", "--server", service.hosts, node, "--acl", "--json"))
    assert looked_at == {"path": node, "stat": stat, "acl": ["world:anyone:cdrwa"]}
    deleted = json.loads(success("delete", "--server", service.hosts, node, "--json"))
    assert deleted == {"path": node, "deleted": 1}
    assert client.exists(node) is None


def test_json_says_when_data_are_no_text(service: Service, client: Client, path: str) -> None:
    client.set(path, b"\xff\x00")
    found = json.loads(success_here("get", "--server", service.hosts, path, "--json"))
    assert (found["data"], found["encoding"]) == ("/wA=", "base64")
    # What would be the same text is told apart.
    client.set(path, b"/wA=")
    found = json.loads(success_here("get", "--server", service.hosts, path, "--json"))
    assert (found["data"], found["encoding"]) == ("/wA=", "utf-8")


def test_data_come_from_a_file_or_from_the_argument(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    file = tmp_path / "data"
    file.write_bytes(ANY_BYTES)
    success_here("set", "--server", service.hosts, path, "--file", file)
    assert client.get(path).data == ANY_BYTES
    success_here("set", "--server", service.hosts, path, "--", "-5 ä")
    assert client.get(path).data == "-5 ä".encode()
    success_here("set", "--server", service.hosts, path, "")
    assert client.get(path).data == b""


def test_with_the_stat_the_data_stand_on_lines_of_their_own(
    service: Service, client: Client, path: str
) -> None:
    stat = client.set(path, b"blue")
    first, *lines = success_here("get", "--stat", "--server", service.hosts, path).splitlines()
    assert first == "blue"
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert set(shown) == set(stat._fields)
    assert (shown["mzxid"], shown["version"]) == (f"0x{stat.mzxid:x}", "1")
    assert success_here("stat", "--server", service.hosts, path).splitlines() == lines


def test_a_version_guards_writes_and_deletes(service: Service, client: Client, path: str) -> None:
    node = client.create(f"{path}/a", b"1")
    for arguments in (["set", node, "2"], ["delete", node]):
        line = refusal_here(*arguments, "--version", "7", "--server", service.hosts, status=1)
        assert line == f"{node}: the version does not match"
    assert client.get(node).data == b"1"
    success_here("set", "--server", service.hosts, "--version", "0", node, "2")
    success_here("delete", "--server", service.hosts, "--version", "1", node)
    assert client.exists(node) is None


@pytest.mark.everywhere
def test_create_makes_every_kind_of_node_and_says_its_path(
    service: Service, client: Client, path: str
) -> None:
    deep = f"{path}/x/y/job-"
    assert (
        success_here("create", "-p", "--sequential", "--server", service.hosts, deep)
        == f"{deep}0000000000\n"
    )
    assert (
        success_here("create", "--ttl", "0.5", "--server", service.hosts, f"{path}/t")
        == f"{path}/t\n"
    )
    assert (
        success_here("create", "--container", "--server", service.hosts, f"{path}/c")
        == f"{path}/c\n"
    )
    success_here("create", "--server", service.hosts, f"{path}/c/last")
    success_here("delete", "--server", service.hosts, f"{path}/c/last")
    # Both go by themselves, and nothing else does.
    for found in client.watch(path, recursive=True):
        if client.children(path) == ["x"]:
            break
        del found


def test_an_acl_says_who_may(service: Service, client: Client, path: str) -> None:
    node = f"{path}/private"
    alice = ["--auth", "digest:alice:secret", "--server", service.hosts]
    success_here("create", node, "mine", "--acl", "auth::cdrwa", "--acl", "world:anyone:c", *alice)
    assert refusal_here("get", node, "--server", service.hosts, status=1) == (
        f"{node}: the ACL does not permit it"
    )
    assert success_here("get", node, *alice) == "mine"
    lines = success_here("stat", "--acl", node, *alice).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("acl")] == [
        f"digest:{digest(b'alice:secret')}:cdrwa",
        "world:anyone:c",
    ]


@pytest.mark.everywhere
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_ephemeral_node_is_held_until_the_command_ends(
    service: Service, client: Client, path: str, number: int
) -> None:
    node = f"{path}/worker"
    with started("create", "--ephemeral", "--server", service.hosts, node, "here") as holding:
        assert holding.line() == node
        stat = client.get(node).stat
        assert stat.ephemeral_owner != 0
        result = holding.end(number)
        assert (result.status, result.errors) == (130 if number == signal.SIGINT else 0, "")
    # The session was closed, and not left to its timeout.
    client.sync()
    assert client.exists(node) is None


def test_what_is_held_is_lost_with_the_session(service: Service, client: Client, path: str) -> None:
    node = f"{path}/worker"
    options = ["--ephemeral", "--json", "--timeout", "3", "--server", service.hosts]
    with started("create", *options, node) as holding:
        session = int(json.loads(holding.line())["stat"]["ephemeral_owner"], 16)
        assert client.get(node).stat.ephemeral_owner == session
        holding.process.send_signal(signal.SIGSTOP)
        for change in client.watch(node):
            if change.stat is None:
                break
        result = holding.end(signal.SIGCONT)
    assert result.status == 1
    assert result.errors.splitlines()[-1] == f"paddock: hold {node}: the session has expired"
    assert all(line.startswith("paddock: ") for line in result.errors.splitlines())


@pytest.mark.everywhere
def test_a_tree_goes_only_if_that_is_said(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/a/b/c", make_parents=True)
    client.create(f"{path}/d")
    line = refusal_here("delete", "--server", service.hosts, f"{path}/a", status=1)
    assert line == f"{path}/a: the node has children; --recursive deletes them as well"
    would_go = success_here(
        "delete", "-r", "--dry-run", "--server", service.hosts, f"{path}/a", f"{path}/d"
    )
    assert would_go.split() == [f"{path}/a", f"{path}/a/b", f"{path}/a/b/c", f"{path}/d"]
    lines = success_here(
        "delete", "-r", "--json", "--server", service.hosts, f"{path}/a", f"{path}/d"
    )
    assert [json.loads(line)["deleted"] for line in lines.splitlines()] == [3, 1]
    assert client.children(path) == []


def test_of_several_nodes_those_go_that_can(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/full/x", make_parents=True)
    # Children before their parents, as they are given.
    nodes = [client.create(f"{path}/a"), client.create(f"{path}/a/b")]
    given = [f"{path}/full", f"{path}/none", *reversed(nodes)]
    result = ended_here("delete", "--server", service.hosts, *given)
    assert result.errors.splitlines() == [
        f"paddock: {path}/full: the node has children; --recursive deletes them as well",
        f"paddock: {path}/none: no such node",
    ]
    assert result.status == 1
    assert client.children(path) == ["full"]
    success_here("delete", "--missing-ok", "--server", service.hosts, f"{path}/none")
    success_here("delete", "--missing-ok", "-r", "--server", service.hosts, f"{path}/none")


@pytest.mark.parametrize("node", ["/", "/zookeeper"])
@pytest.mark.parametrize("options", [[], ["-r"]])
def test_neither_everything_nor_the_services_own_is_deleted(
    service: Service, client: Client, path: str, node: str, options: list[str]
) -> None:
    line = refusal_here("delete", *options, "--server", service.hosts, path, node, status=2)
    assert line == f"{node} is not deleted; name what is below it"
    assert client.exists(path) is not None


def test_below_a_chroot_a_node_may_have_any_name(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/zookeeper/x", make_parents=True)
    success_here("delete", "-r", "--server", f"{service.hosts}{path}", "/zookeeper")
    assert client.children(path) == []
    refusal_here("delete", "-r", "--server", f"{service.hosts}{path}", "/", status=2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get", "{}/none"], "{}/none: no such node"),
        (["set", "{}/none", "x"], "{}/none: no such node"),
        (["stat", "{}/none"], "{}/none: no such node"),
        (["stat", "{}/none", "--acl"], "{}/none: no such node"),
        (["delete", "{}/none"], "{}/none: no such node"),
        (["delete", "-r", "{}/none"], "{}/none: no such node"),
        (["create", "{}"], "{}: the node exists already"),
        (["create", "{}/x/y"], "{}/x/y: its parent does not exist; --parents creates it"),
        (
            ["create", "{}/x", "--acl", "nobody:x:r"],
            "{}/x: the ACL is not valid; this server may not have the scheme of nobody:x:r",
        ),
        (["set", "{}", "--file", "/none/at/all"], "/none/at/all: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    service: Service, path: str, arguments: list[str], says: str
) -> None:
    given = [one.format(path) for one in arguments]
    assert refusal_here(*given, "--server", service.hosts, status=1) == says.format(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get"], "Missing argument 'PATH'."),
        (["get", "a"], "path: 'a' does not begin with a slash"),
        (["get", "/a/"], "path: '/a/' ends with a slash"),
        (["set", "/a"], 'expected DATA, "-" for stdin, or --file'),
        (["set", "/a", "x", "--file", "-"], "DATA and --file were both given"),
        (["set", "/a", "x", "--version", "-2"], "Invalid value for '--version'"),
        (["create", "/a", "--ttl", "0"], "Invalid value for '--ttl'"),
        (["create", "/a", "--acl", "anyone:r"], "'anyone:r' is not scheme:id:permissions"),
        (["create", "/a", "--acl", "world:anyone:x"], "permissions are of c, d, r, w, a"),
        (["create", "/a", "--container", "--ephemeral"], "--ephemeral, --container and --ttl ex"),
        (["create", "/a", "--container", "--sequential"], "--container excludes --sequential"),
        (["create", "/a", "--guard", "b"], "--guard: 'b' does not begin with a slash"),
        (["create", "/a", "--ttl", "inf"], "'inf' is not a number from 0.001 to 1099511627"),
        (["ls", "--timeout", "inf"], "'inf' is not a number from 0.001 to 2147483"),
        (["create", "/a", "--acl", "world:bob:r"], "'world:bob:r': world is for anyone alone"),
        (["create", "/a", "--acl", "ip:999.1.1.1:r"], "'999.1.1.1' is no IP address"),
        (["create", "/a", "--acl", "digest:alice:r"], "'digest:alice:r': digest needs user:pass"),
        (["create", "/a", "--acl", "auth::r"], "'auth::r': auth stands for who asks, and needs"),
        (["create", "/a", "-5"], "Put -- before DATA that begins with a hyphen."),
        (["set", "/a", "-5"], "Put -- before DATA that begins with a hyphen."),
        (["lock", "/a", "ls", "-la"], "Put -- before a command that has options."),
        (["elect", "/a", "ls", "--all"], "Put -- before a command that has options."),
        (["delete"], "Missing argument 'PATH...'."),
        (["create", "/a", "--ttl", "x"], "'--ttl': 'x' is not a number from 0.001 to 1"),
        (["watch", "/a", "--count", "x"], "'x' is not a whole number, 1 or more"),
        (["set", "/a", "x", "--version", "y"], "'y' is not a whole number from -1 to 2147483647"),
        (["create", "-s", "/a"], "zkCli's -s is --sequential here."),
        (["create", "-e", "/a"], "zkCli's -e is --ephemeral here."),
        (["get", "-s", "/a"], "zkCli's -s is --stat here."),
        (["tree", "-s", "/a"], "No such option"),
        (["delete", "-r", "/a", "--version", "1"], "--version is of one node"),
    ],
)
def test_what_is_given_wrongly_is_one_line(
    service: Service, arguments: list[str], says: str
) -> None:
    assert says in refusal_here(*arguments, "--server", service.hosts, status=2)


def test_data_that_no_server_takes_are_refused_before_they_are_read_whole(
    service: Service, client: Client, path: str
) -> None:
    with Path("/dev/zero").open("rb") as endless:
        line = refusal("set", "--server", service.hosts, path, "--file", endless.name, status=2)
    assert line == "/dev/zero: servers take 1048575 bytes, and this is more"
    line = refusal("set", "--server", service.hosts, path, "-", input=bytes(1_048_570), status=2)
    assert "and servers take 1048575" in line
    assert client.get(path).stat.version == 0


def test_a_server_that_is_not_there_is_one_line() -> None:
    line = refusal("get", "--server", "127.0.0.1:1", "--timeout", "1", "/a", status=1)
    assert line.startswith("connect: no server gave us a session within 1 s: 127.0.0.1:1")


@pytest.mark.parametrize(
    "arguments",
    [
        *(("ls",), ("get",), ("stat",), ("tree",), ("find",), ("watch",), ("delete",)),
        *(("acl", "get"), ("set", "--file", "-"), ("create",)),
    ],
)
def test_a_bad_path_is_refused_before_a_server_is_looked_for(arguments: tuple[str, ...]) -> None:
    line = refusal_here(*arguments, "x//y", "--server", "127.0.0.1:1", status=2)
    assert line == "path: 'x//y' does not begin with a slash"
