"""`paddock shell` on a terminal, as a user sees it."""

from __future__ import annotations

import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import paddock.sync
from tests.support.command import COMMAND, DEADLINE_S, Running, serving
from tests.support.shell_terminal import hosts_of, number_of, run_line, shell, wait_for_typed
from tests.support.terminal import (
    CONTROL_C,
    CONTROL_D,
    CONTROL_L,
    CONTROL_R,
    ENTER,
    TAB,
    UP,
    Terminal,
    terminal,
)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving("--port", "0", "--memory") as running:
        with paddock.sync.connect(hosts_of(running)) as client:
            client.create("/colors")
            for name in ("red", "green", "dark green"):
                client.create(f"/colors/{name}", b"")
            client.create("/jobs")
            for number in range(300):
                client.create(f"/jobs/job-{number:04}")
        yield running


@pytest.fixture(scope="module")
def one_for_many(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with shell(hosts_of(server), tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def seen(one_for_many: Terminal) -> Terminal:
    """A shell that others have used before, with an empty line on an empty screen."""
    one_for_many.type(CONTROL_C + CONTROL_L)
    one_for_many.wait_until(lambda: one_for_many.cursor[1] == 0 and number_of(one_for_many) >= 0)
    wait_for_typed(one_for_many, "")
    return one_for_many


# The first look.


def test_the_prompt_has_the_server_the_state_and_a_number_that_counts(
    seen: Terminal, server: Running
) -> None:
    number = number_of(seen)
    seen.wait_for_line(f"[zk: {hosts_of(server)}(CONNECTED) {number}]")
    run_line(seen, "ls /colors")
    assert "\n[dark green, green, red]\n" in seen.text
    seen.wait_for_line(f"[zk: {hosts_of(server)}(CONNECTED) {number + 1}]")
    # An empty line is nothing.
    seen.type(ENTER)
    seen.wait_for(f"CONNECTED) {number + 1}]", times=2)


def test_an_error_is_one_red_line_and_the_shell_goes_on(seen: Terminal) -> None:
    run_line(seen, "get /nowhere")
    assert seen.lines[seen.cursor[1] - 1] == "Node does not exist: /nowhere"
    assert seen.colors_at("Node does not exist") == {"red"}
    run_line(seen, "gte /colors")
    assert seen.lines[seen.cursor[1] - 1] == "Command not found gte: did you mean get?"
    # A lone quote is no command.
    seen.type(f'"{ENTER}')
    run_line(seen, "set -v no /colors x")
    assert seen.lines[seen.cursor[1] - 2].endswith("set -v no /colors x")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("rmr /colors", "Command not found rmr: did you mean deleteall?"),
        ("ls2 /colors", "Command not found ls2: did you mean ls -s?"),
        ("create -x /colors", "Unrecognized option: -x"),
        ("setquota /colors", "Missing required option: "),
    ],
)
def test_a_complaint_is_in_words_that_help(seen: Terminal, line: str, says: str) -> None:
    run_line(seen, line)
    said = seen.lines[1]
    assert said.startswith(says)


def test_a_redo_of_nothing_tells_its_usage(seen: Terminal) -> None:
    seen.type(f"redo{ENTER}")
    seen.wait_for("\nredo cmdno\n")


def test_help_has_the_flags_that_upstreams_usage_leaves_out(seen: Terminal) -> None:
    seen.type(f"help removewatches{ENTER}")
    seen.wait_for("removewatches [-p] [-r] path [-c|-d|-a] [-l]\n")
    seen.wait_for("-r  persistent recursive watcher type\n")


def test_help_tells_of_the_formats_of_data(seen: Terminal) -> None:
    seen.type(f"help get set{ENTER}")
    seen.wait_for("get [-s] [-w] [-b] [-x] path\n")
    seen.wait_for("set path data [-s] [-v version] [-b]\n")


def test_whoever_loses_the_session_by_credentials_is_told_how_to_get_another(
    server: Running, tmp_path: Path
) -> None:
    with shell(hosts_of(server), tmp_path) as seen:
        run_line(seen, "addauth digest")
        seen.wait_for("The session is over; connect begins a new one.")
        run_line(seen, "ls /")
        seen.wait_for("Not connected: connect begins a new session.")
        run_line(seen, "connect")
        seen.wait_for("(CONNECTED) 3]")


def test_help_tells_of_all_commands_and_of_one(seen: Terminal) -> None:
    seen.type(f"help{ENTER}")
    seen.wait_for_match(r"^Change +create set delete deleteall$")
    seen.type(f"help setquota{ENTER}")
    seen.wait_for_match(r"^setquota -n\|-b\|-N\|-B val path$")
    seen.wait_for_match(r"^ +-N … +\w+")
    seen.type(f"help nothing{ENTER}")
    seen.wait_for("Command not found nothing: ")


def test_a_tall_terminal_has_a_line_for_each_command(server: Running, tmp_path: Path) -> None:
    with shell(hosts_of(server), tmp_path, rows=60) as seen:
        seen.type(f"help{ENTER}")
        seen.wait_for_match(r"^ +deleteall +Delete a node and everything below it\.$")
        seen.wait_for_match(r"^ +quit +")


# Completion.


def test_commands_flags_and_live_paths_are_completed(seen: Terminal) -> None:
    seen.type(f"wh{TAB}")
    wait_for_typed(seen, "whoami")
    seen.type(f"{CONTROL_C}printwatches of{TAB}")
    wait_for_typed(seen, "printwatches off")
    seen.type(f"{CONTROL_C}create -{TAB}")
    seen.wait_for_match(r"^ +-e +-t|^ +-s")
    seen.type(f"{CONTROL_C}get /c{TAB}")
    wait_for_typed(seen, "get /colors")
    # It is whole: the next Tab goes below it.
    seen.type(TAB)
    seen.wait_for_match(r"^ +dark green$")
    seen.type("/")
    seen.type(f"r{TAB}")
    wait_for_typed(seen, "get /colors/red")
    seen.type(f"{CONTROL_C}get /colors/d{TAB}")
    wait_for_typed(seen, 'get "/colors/dark green')
    run_line(seen, '"')


def test_a_node_that_was_just_created_is_completed(seen: Terminal, server: Running) -> None:
    seen.type(f"get /fr{TAB}")
    wait_for_typed(seen, "get /fr")
    seen.type(CONTROL_C)
    run_line(seen, "create /fresh")
    seen.type(f"get /fr{TAB}")
    wait_for_typed(seen, "get /fresh")
    seen.type(CONTROL_C)
    run_line(seen, "delete /fresh")


def test_paths_below_a_chroot_are_completed_as_they_are_typed(
    server: Running, tmp_path: Path
) -> None:
    with shell(f"{hosts_of(server)}/colors", tmp_path) as seen:
        seen.type(f"get /r{TAB}")
        wait_for_typed(seen, "get /red")
        run_line(seen, "")


def test_of_many_nodes_some_are_shown_and_the_rest_is_counted(seen: Terminal) -> None:
    seen.type(f"ls /jobs/{TAB}")
    wait_for_typed(seen, "ls /jobs/job-0")
    seen.type(TAB)
    seen.wait_for_match(r"^ +job-0000 +job-")
    # Backwards, to the last one.
    seen.type("\x1b[Z")
    seen.wait_for("… and 100 more")
    wait_for_typed(seen, "ls /jobs/job-0")


# History.


def test_the_next_run_remembers_what_was_typed_but_no_credentials(
    server: Running, tmp_path: Path
) -> None:
    with shell(hosts_of(server), tmp_path) as seen:
        run_line(seen, "ls /colors")
        run_line(seen, "get /colors/red")
        run_line(seen, "ls /colors")
        run_line(seen, "addauth digest alice:secret")
        seen.type(UP)
        wait_for_typed(seen, "addauth digest alice:secret")
        seen.type(f"{CONTROL_C}quit{ENTER}")
        assert seen.wait_for_end() == 0
    file = tmp_path / "paddock" / "shell_history"
    assert file.read_text().splitlines()[-2:] == ["ls /colors", "quit"]
    assert "secret" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with shell(hosts_of(server), tmp_path) as seen:
        for line in ("quit", "ls /colors", "get /colors/red"):
            seen.type(UP)
            wait_for_typed(seen, line)
        seen.type(f"{CONTROL_C}{CONTROL_R}olors/")
        seen.wait_for_match("reverse.*olors/")
        seen.type(ENTER)
        seen.wait_for("(CONNECTED) 1]")


# Events.


def test_an_event_is_printed_above_the_line_that_is_being_typed(
    seen: Terminal, server: Running
) -> None:
    run_line(seen, "addWatch /colors")
    seen.type("get /colors/gre")
    wait_for_typed(seen, "get /colors/gre")
    with paddock.sync.connect(hosts_of(server)) as client:
        for _ in range(3):
            client.set("/colors/red", b"#f00")
    says = "WATCHER:: WatchedEvent state:SyncConnected type:NodeDataChanged path:/colors/red"
    seen.wait_for(f"{says}\n", times=3)
    wait_for_typed(seen, "get /colors/gre")
    run_line(seen, "en")
    assert "] get /colors/green\n" in seen.text
    # Of the line as it was before there is nothing left.
    assert seen.text.count("get /colors/gre") == 1
    run_line(seen, "removewatches /colors")


def test_events_during_a_long_line_leave_no_scraps_of_it(server: Running, tmp_path: Path) -> None:
    with shell(hosts_of(server), tmp_path, columns=40, rows=12) as seen:
        seen.type("addWatch /colors\r")
        seen.wait_for("(CONNECTED) 1]")
        long = "".join(f"{number:03}," for number in range(25))
        seen.type(f"set /colors/red {long}end")
        seen.wait_until(lambda: seen.line.endswith("end"))
        with paddock.sync.connect(hosts_of(server)) as client:
            client.set("/colors/green", b"#0f0")
        seen.wait_until(lambda: "colors/green" in seen.text.replace("\n", ""))
        seen.wait_until(lambda: seen.line.endswith("end"))
        assert seen.text.replace("\n", "").count(long) == 1
        seen.type(ENTER)
        seen.wait_for("(CONNECTED) 2]")
        with paddock.sync.connect(hosts_of(server)) as client:
            assert client.get("/colors/red").data == f"{long}end".encode()


def test_a_flood_of_events_is_all_there_and_the_line_with_it(
    seen: Terminal, server: Running
) -> None:
    run_line(seen, "addWatch /colors")
    seen.type("whoa")
    wait_for_typed(seen, "whoa")
    with paddock.sync.connect(hosts_of(server)) as client:
        for number in range(200):
            client.create(f"/colors/new-{number}")
            client.delete(f"/colors/new-{number}")
    seen.wait_for("NodeDeleted path:/colors/new-199")
    wait_for_typed(seen, "whoa")
    assert seen.written.count(b"type:NodeCreated path:/colors/new-") == 200
    run_line(seen, "mi")
    assert "Auth scheme: User" in seen.text
    run_line(seen, "removewatches /colors")


# Ctrl-C, and the end.


def test_control_c_drops_the_line(seen: Terminal) -> None:
    seen.type("delete /colors/red")
    wait_for_typed(seen, "delete /colors/red")
    seen.type(CONTROL_C)
    wait_for_typed(seen, "")
    run_line(seen, "ls /colors")
    assert "[dark green, green, red]" in seen.text


@pytest.mark.parametrize("leave", [CONTROL_D, f"quit{ENTER}"])
def test_whoever_leaves_gets_the_terminal_back_as_it_was(
    server: Running, tmp_path: Path, leave: str
) -> None:
    script = f'{" ".join(COMMAND)} shell -server {hosts_of(server)}; echo "[$?]"; stty -a; read'
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    with terminal(["bash", "-c", script], environment=variables) as seen:
        seen.wait_for("(CONNECTED) 0]")
        run_line(seen, "create -e /guest")
        seen.type(leave)
        seen.wait_for("[0]")
        seen.wait_for_match(r" icanon ")
        seen.wait_for_match(r" echo ")
        with paddock.sync.connect(hosts_of(server)) as client:
            assert client.exists("/guest") is None


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_shell_that_is_told_to_end_ends_its_session(
    server: Running, tmp_path: Path, number: signal.Signals
) -> None:
    with shell(hosts_of(server), tmp_path) as seen:
        run_line(seen, "create -e /guest")
        seen.process.send_signal(number)
        assert seen.wait_for_end() == 128 + number
        assert "Traceback" not in seen.text
    with paddock.sync.connect(hosts_of(server)) as client:
        assert client.exists("/guest") is None


def test_a_window_that_is_closed_ends_the_session(server: Running, tmp_path: Path) -> None:
    with shell(hosts_of(server), tmp_path) as seen:
        run_line(seen, "create -e /guest")
        seen.hang_up()
        seen.process.wait(DEADLINE_S)
    # Its session would live for half a minute.
    with paddock.sync.connect(hosts_of(server)) as client:
        assert client.exists("/guest") is None


def test_what_is_typed_during_a_command_is_run_after_it(seen: Terminal) -> None:
    number = number_of(seen)
    seen.type(f"create /one{ENTER}create /two{ENTER}deleteall /one{ENTER}deleteall /two{ENTER}")
    seen.wait_until(lambda: number_of(seen) == number + 4)
    # Nothing of it was shown before its time.
    assert seen.text.count("create /two") == 1


def test_several_pasted_lines_are_run_one_by_one(seen: Terminal) -> None:
    seen.type("\x1b[200~create /one\ncreate /two\ndeleteall /one\ndeleteall /two\n\x1b[201~")
    number = number_of(seen)
    seen.type(ENTER)
    seen.wait_until(lambda: number_of(seen) == number + 4)
    assert "Created /one" in seen.text
    assert "Created /two" in seen.text


# Terminals of all kinds.


def test_no_color_is_respected(server: Running, tmp_path: Path) -> None:
    with shell(hosts_of(server), tmp_path, NO_COLOR="1") as seen:
        run_line(seen, "get /nowhere")
        assert seen.colors_at("Node does not exist") == {"default"}
        assert seen.colors_at("(CONNECTED) 1") == {"default"}
        # What is chosen is seen nevertheless.
        seen.type(f"get -{TAB}")
        seen.wait_for("hexdump")
        assert not seen.is_reversed_at(" -x ")
        seen.type(TAB * 4)
        wait_for_typed(seen, "get -x")
        assert seen.is_reversed_at(" -x ")


def test_a_terminal_that_can_do_little_gets_plain_text(server: Running, tmp_path: Path) -> None:
    with shell(hosts_of(server), tmp_path, TERM="dumb") as seen:
        seen.type(f"addWatch /colors{ENTER}")
        seen.wait_for("(CONNECTED) 1]")
        seen.type("ls /col")
        seen.wait_for("(CONNECTED) 1] ls /col")
        with paddock.sync.connect(hosts_of(server)) as client:
            client.set("/colors/green", b"#0f0")
        seen.wait_for("(CONNECTED) 1] ls /col", times=2)
        assert "NodeDataChanged path:/colors" in seen.text
        seen.type(f"ors{ENTER}")
        seen.wait_for("\n[dark green, green, red]\n")
        seen.type(f"quit{ENTER}")
        assert seen.wait_for_end() == 0
        assert b"\x1b" not in seen.written


def test_what_is_in_a_node_cannot_command_the_terminal(seen: Terminal, server: Running) -> None:
    with paddock.sync.connect(hosts_of(server)) as client:
        client.set("/colors/red", b"\x1b[2Jgone\x07 \xff\x9b \xc2\x9b31m\ttab\nline")
    before = len(seen.written)
    run_line(seen, "get /colors/red")
    assert "^[[2Jgone^G " in seen.text
    assert "\nline\n" in seen.text
    assert b"\x1b[2J" not in seen.written[before:]
    assert "] get /colors/red\n" in seen.text


def test_another_size_leaves_what_is_typed_as_it_is(seen: Terminal) -> None:
    seen.type("set /colors/red 'a value of some length'")
    wait_for_typed(seen, "set /colors/red 'a value of some length'")
    seen.resize(44, 12)
    seen.wait_until(lambda: seen.line.endswith("length'"))
    seen.resize(100, 30)
    wait_for_typed(seen, "set /colors/red 'a value of some length'")
    seen.resize(80, 24)
    run_line(seen, "")
