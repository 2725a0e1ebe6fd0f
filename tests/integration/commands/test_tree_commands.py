"""`paddock tree` and `paddock find` as their users meet them: processes over a whole tree."""

import json

import pytest

import paddock
from paddock.sync import Client
from tests.support.command import ended_here, refusal_here, success, success_here
from tests.support.server import Service


@pytest.fixture
def planted(client: Client, path: str) -> str:
    """A tree with something of every kind."""
    client.create(f"{path}/config/color", b"blue", make_parents=True)
    client.create(f"{path}/config/size", bytes(2048))
    client.create(f"{path}/workers")
    client.create(f"{path}/workers/worker-1", b"\xff\x00", ephemeral=True)
    client.create(f"{path}/workers/worker-2", ephemeral=True)
    return path


@pytest.mark.everywhere
def test_a_tree_is_drawn_in_a_pipe_as_on_a_terminal(service: Service, planted: str) -> None:
    assert success_here("tree", "--server", service.hosts, planted) == (
        f"{planted}\n"
        "├── config\n"
        "│   ├── color\n"
        "│   └── size\n"
        "└── workers\n"
        "    ├── worker-1\n"
        "    └── worker-2\n"
        "\n"
        "7 nodes, 2.0 kB\n"
    )


def test_limits_say_what_they_leave_out(service: Service, planted: str) -> None:
    assert success_here("tree", "--server", service.hosts, planted, "--depth", "1") == (
        f"{planted}\n├── config  (2 children)\n└── workers  (2 children)\n\n3 nodes shown, 0 B\n"
    )
    assert success_here("tree", "--server", service.hosts, planted, "--limit", "1") == (
        f"{planted}\n"
        "├── config\n"
        "│   ├── color\n"
        "│   └── (1 more)\n"
        "└── (1 more)\n"
        "\n"
        "3 nodes shown, 4 B\n"
    )


def test_a_long_tree_has_sizes_versions_and_owners(
    service: Service, client: Client, planted: str
) -> None:
    text = success_here("tree", "-l", "--server", service.hosts, planted)
    assert "size  2.0 kB, version 0\n" in text
    assert f"worker-1  2 B, version 0, of 0x{client.session_id:x}\n" in text


@pytest.mark.everywhere
def test_the_tree_of_programs_is_one_nested_object(
    service: Service, client: Client, planted: str
) -> None:
    tree = json.loads(success("tree", "--json", "--server", service.hosts, planted))
    assert (tree["path"], tree["stat"]["num_children"]) == (planted, 2)
    config, workers = tree["children"]
    assert [(one["name"], one["children"]) for one in config["children"]] == [
        ("color", []),
        ("size", []),
    ]
    owners = [one["stat"]["ephemeral_owner"] for one in workers["children"]]
    assert owners == [f"0x{client.session_id:x}"] * 2
    shallow = json.loads(success("tree", "--json", "-d", "0", "--server", service.hosts, planted))
    assert (shallow["children"], shallow["omitted"]) == ([], 2)


def test_what_may_not_be_read_is_said_where_it_stands(
    service: Service, client: Client, path: str
) -> None:
    client.add_auth("digest", b"alice:secret")
    client.create(f"{path}/a", acl=paddock.CREATOR_ALL_ACL)
    client.create(f"{path}/a/x")
    client.create(f"{path}/b")
    drawn = ended_here("tree", "--server", service.hosts, path)
    assert drawn.output.startswith(f"{path}\n├── a  may not be read\n└── b\n")
    assert (drawn.status, drawn.errors) == (1, "")
    document = ended_here("tree", "--json", "--server", service.hosts, path)
    hidden = json.loads(document.output)["children"][0]
    assert hidden["problem"] == f"{path}/a: the ACL does not permit it"
    found = ended_here("find", "--server", service.hosts, path, "--data", "x")
    assert (found.status, found.output) == (1, "")
    assert found.errors == f"paddock: {path}/a: the ACL does not permit it\n"


@pytest.mark.everywhere
def test_nodes_are_found_by_what_is_asked_for(
    service: Service, client: Client, planted: str
) -> None:
    def found(*arguments: str) -> list[str]:
        lines = success_here("find", "--server", service.hosts, planted, *arguments).splitlines()
        return [line.removeprefix(planted) for line in lines]

    assert found("--name", "worker-*") == ["/workers/worker-1", "/workers/worker-2"]
    assert found("--name", "color", "--name", "size") == ["/config/color", "/config/size"]
    assert found("--path", "*/config/*", "--larger", "1k") == ["/config/size"]
    assert found("--regex", r"-[2-9]$", "--ephemeral") == ["/workers/worker-2"]
    assert found("--owner", f"0x{client.session_id:x}", "-n", "1") == ["/workers/worker-1"]
    assert found("--owner", "0x1") == []
    assert found("--data", "lu") == ["/config/color"]
    assert found("--data-regex", r"\xff") == ["/workers/worker-1"]
    assert found("--smaller", "1", "--no-children") == ["/workers/worker-2"]
    assert found("--older", "1d") == []
    assert found("--newer", "1d", "--depth", "0") == [""]


def test_what_is_found_is_described_as_by_ls(
    service: Service, client: Client, planted: str
) -> None:
    # Without a path it begins at the root, and nobody else has anything in this one.
    root, node = f"{service.hosts}{planted}", "/config/color"
    (line,) = success_here("find", "--json", "--name", "color", "--server", root).splitlines()
    stat = client.get(planted + node).stat
    assert json.loads(line) == {
        "path": node,
        "name": "color",
        "stat": {**stat._asdict(), "ephemeral_owner": None},
    }
    (line,) = success_here("find", "-l", "--name", "color", "--server", root).splitlines()
    assert line.split()[:3] == ["0", "4", "0"]
    assert line.endswith(f"  {node}")


@pytest.mark.parametrize("command", ["tree", "find"])
def test_a_root_that_is_not_there_is_one_line(service: Service, path: str, command: str) -> None:
    line = refusal_here(command, "--server", service.hosts, f"{path}/none", status=1)
    assert line == f"{path}/none: no such node"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["find", "--regex", "["], "Invalid value for '--regex': unterminated character set"),
        (["find", "--data-regex", "(ab)*+"], "Invalid value for '--data-regex': ')*+': not every"),
        (["find", "--data-regex", "("], "Invalid value for '--data-regex': missing )"),
        (["find", "--older", "1y"], "Invalid value for '--older': '1y' is no age"),
        (["find", "--larger", "x"], "Invalid value for '--larger': 'x' is no size"),
        (["find", "--owner", "me"], "Invalid value for '--owner': 'me' is no session"),
        (["find", "--depth", "-1"], "Invalid value for '--depth'"),
        (["tree", "--limit", "0"], "Invalid value for '--limit'"),
        (["tree", "a/b"], "path: 'a/b' does not begin with a slash"),
    ],
)
def test_what_is_given_wrongly_is_one_line(
    service: Service, arguments: list[str], says: str
) -> None:
    assert says in refusal_here(*arguments, "--server", service.hosts, status=2)
