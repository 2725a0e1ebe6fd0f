"""Commands on a terminal, where people look: nothing obeys what a node says, lines stay whole."""

import pytest

from paddock.sync import Client
from tests.support.command import COMMAND, refusal
from tests.support.server import Service
from tests.support.terminal import terminal


def test_data_cannot_command_the_terminal(service: Service, client: Client, path: str) -> None:
    client.set(path, "one\ttab\nzwö \x1b[2J\x07\x9b0mend".encode())
    with terminal([*COMMAND, "get", "--server", service.hosts, path]) as screen:
        assert screen.wait_for_end() == 0
        assert screen.lines[:2] == ["one     tab", r"zwö \x1b[2J\x07\x9b0mend"]
        # The prompt that comes next stands on a line of its own.
        assert screen.cursor == (0, 2)


def test_bytes_that_are_no_text_are_shown_as_such(
    service: Service, client: Client, path: str
) -> None:
    client.set(path, bytes(range(240, 258 - 2)) + b"\x00")
    with terminal([*COMMAND, "get", "--server", service.hosts, path]) as screen:
        assert screen.wait_for_end() == 0
        assert screen.lines[:2] == [
            "00000000  f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 fa fb fc fd fe ff",
            "00000010  00",
        ]


@pytest.mark.parametrize("data", [b"", b"line\n"])
def test_no_line_break_is_added_where_none_is_missing(
    service: Service, client: Client, path: str, data: bytes
) -> None:
    client.set(path, data)
    with terminal([*COMMAND, "get", "--server", service.hosts, path]) as screen:
        assert screen.wait_for_end() == 0
        assert screen.cursor == (0, data.count(b"\n"))


def test_a_tree_keeps_its_shape_where_lines_are_too_long(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/{'long-' * 7}name/child", make_parents=True)
    client.create(f"{path}/worker", ephemeral=True)
    command = [*COMMAND, "tree", "--server", f"{service.hosts}{path}"]
    with terminal(command, columns=30) as screen:
        assert screen.wait_for_end() == 0
        assert screen.text == (
            "/\n"
            "├── long-long-long-long-long-l\n"
            "│   ong-long-name\n"
            "│   └── child\n"
            "└── worker\n"
            "\n"
            "4 nodes, 0 B"
        )
        # Guides, nodes and ephemeral nodes are told apart.
        assert screen.colors_at("worker") == {"cyan"}
        assert screen.colors_at("child") == {"default"}
        assert screen.colors_at("│   └── ") == {"brightblack"}


def test_without_colours_there_are_none(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/worker", ephemeral=True)
    command = [*COMMAND, "tree", "--server", service.hosts, path]
    with terminal(command, environment={"NO_COLOR": "1"}) as screen:
        assert screen.wait_for_end() == 0
        assert screen.colors_at("└── worker") == {"default"}


def test_somebody_who_waits_for_a_server_is_told_so() -> None:
    command = [*COMMAND, "ls", "--server", "127.0.0.1:1", "--timeout", "3"]
    with terminal(command, columns=120) as screen:
        screen.wait_for("paddock: no server answers at 127.0.0.1:1 yet, looking on for 2 s\n")
        assert screen.wait_for_end() == 1
        assert screen.lines[1].startswith(
            "paddock: connect: no server gave us a session within 3 s"
        )


def test_a_script_that_waits_for_a_server_has_one_line_at_the_end() -> None:
    line = refusal("ls", "--server", "127.0.0.1:1", "--timeout", "2.5", status=1)
    assert line.startswith("connect: no server gave us a session within 2.5 s")
