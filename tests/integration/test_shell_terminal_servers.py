"""`paddock shell` on a terminal while its server does not answer, comes and goes."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from tests.support.command import COMMAND, serving
from tests.support.shell_terminal import hosts_of, run_line, shell, wait_for_typed
from tests.support.terminal import CONTROL_C, ENTER, TAB, terminal


def test_typing_goes_on_while_the_server_does_not_answer(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory") as server, shell(hosts_of(server), tmp_path) as seen:
        server.process.send_signal(signal.SIGSTOP)
        try:
            seen.type(f"get /zoo{TAB}")
            wait_for_typed(seen, "get /zoo")
            seen.type("logy")
            wait_for_typed(seen, "get /zoology")
        finally:
            server.process.send_signal(signal.SIGCONT)


def test_control_c_stops_a_command_and_the_shell_goes_on(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory") as server, shell(hosts_of(server), tmp_path) as seen:
        server.process.send_signal(signal.SIGSTOP)
        try:
            seen.type(f"get /zookeeper{ENTER}")
            seen.wait_until_keys_are_signals()
            seen.type(CONTROL_C)
            seen.wait_for("Interrupted")
            seen.wait_until(lambda: "(CONNECTED)" in seen.line)
        finally:
            server.process.send_signal(signal.SIGCONT)
        run_line(seen, "ls /")
        assert "\n[zookeeper]\n" in seen.text


def test_what_is_typed_while_a_command_runs_is_shown_in_the_next_line(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory") as server, shell(hosts_of(server), tmp_path) as seen:
        server.process.send_signal(signal.SIGSTOP)
        try:
            seen.type(f"ls /{ENTER}")
            seen.wait_until_keys_are_signals()
            seen.type("whoa")
        finally:
            server.process.send_signal(signal.SIGCONT)
        wait_for_typed(seen, "whoa")
        assert seen.text.count("whoa") == 1
        run_line(seen, "mi")


def test_the_session_outlives_its_server(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        data = tmp_path / "data"
        first = stack.enter_context(serving("--port", "0", "--data", data))
        port = str(first.address[1])
        seen = stack.enter_context(shell(hosts_of(first), tmp_path))
        run_line(seen, "create -e /mine")
        run_line(seen, "printwatches off")
        seen.type("get /mi")
        wait_for_typed(seen, "get /mi")
        first.stop(signal.SIGKILL)
        # Nobody has pressed a key, nothing is printed, and the line is as it was.
        seen.wait_until(lambda: "(CONNECTING) 2]" in seen.line)
        wait_for_typed(seen, "get /mi")
        seen.type(f"ne{ENTER}")
        seen.wait_for("KeeperErrorCode = ConnectionLoss: no server answers\n")
        seen.wait_until(lambda: "(CONNECTING) 3]" in seen.line)
        stack.enter_context(serving("--port", port, "--data", data))
        seen.wait_until(lambda: "(CONNECTED) 3]" in seen.line)
        run_line(seen, "getEphemerals /")
        assert "\n[/mine]\n" in seen.text


def test_a_session_that_expired_is_followed_by_a_new_one_when_asked_for(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(serving("--port", "0", "--memory"))
        port = str(first.address[1])
        seen = stack.enter_context(shell(hosts_of(first), tmp_path))
        first.stop(signal.SIGKILL)
        seen.wait_until(lambda: "(CONNECTING) 0]" in seen.line)
        # It has never heard of the session.
        stack.enter_context(serving("--port", port, "--memory"))
        seen.wait_until(lambda: "(CLOSED) 0]" in seen.line)
        assert "state:Expired" in seen.text
        assert "connect begins a new one" in seen.text
        run_line(seen, "ls /")
        assert "\nNot connected: connect begins a new session.\n" in seen.text
        run_line(seen, "connect")
        seen.wait_until(lambda: "(CONNECTED) 2]" in seen.line)
        run_line(seen, "ls /")
        assert "\n[zookeeper]\n" in seen.text


def test_it_starts_without_a_server_and_finds_it_when_it_is_there(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory") as server:
        hosts = hosts_of(server)
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    # The command takes longer than the first search for a server, which has to be followed by more.
    command = [*COMMAND, "shell", "-server", hosts, "-timeout", "1000"]
    with terminal(command, environment=variables) as seen:
        run_line(seen, "ls /")
        assert "KeeperErrorCode = ConnectionLoss: no server answers" in seen.text
        seen.wait_until(lambda: "(CONNECTING) 1]" in seen.line)
        seen.type("ls")
        with serving("--port", hosts.rpartition(":")[2], "--memory"):
            seen.wait_until(lambda: "(CONNECTED) 1]" in seen.line)
            seen.type(f" /{ENTER}")
            seen.wait_for("\n[zookeeper]\n")
