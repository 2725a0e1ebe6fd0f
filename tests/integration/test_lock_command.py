"""`paddock lock` and `paddock elect` as their users meet them, when nothing goes wrong."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.sync import connect
from paddock.sync.recipes import Lock
from paddock.testing import ServerProcess
from tests.support.command import COMMAND, DEADLINE_S, ended, refusal, success
from tests.support.holding import Wrappers, is_alive, wait_until
from tests.support.terminal import CONTROL_C, CONTROL_D, ENTER, terminal

CONTROL_Z = "\x1a"


@pytest.fixture(scope="module")
def hosts() -> Iterator[str]:
    with ServerProcess() as server:
        yield server.hosts


def run(hosts: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "lock", "--server", hosts, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_the_command_gets_its_token_its_guard_and_the_service(hosts: str) -> None:
    code = (
        "import os; from paddock.sync import connect\n"
        "with connect(os.environ['PADDOCK_SERVER']) as client:\n"
        "    stat = client.exists(os.environ['PADDOCK_GUARD'])\n"
        "    print(stat.czxid == int(os.environ['PADDOCK_TOKEN']), os.environ['PADDOCK_LOCK_PATH'])"
    )
    result = run(f"{hosts}/there", "/env", "--", sys.executable, "-c", code)
    assert (result.returncode, result.stdout) == (0, "True /env\n"), result


def test_a_leader_gets_the_same_with_the_path_of_the_election(hosts: str) -> None:
    script = 'echo "$PADDOCK_ELECTION_PATH $PADDOCK_GUARD"'
    path, guard = success("elect", "--server", hosts, "/led", "--", "sh", "-c", script).split()
    assert path == "/led"
    assert guard.startswith("/led/")


@pytest.mark.parametrize("command", ["lock", "elect"])
def test_the_status_is_that_of_the_command(hosts: str, command: str) -> None:
    assert ended(command, "--server", hosts, "/status", "--", "sh", "-c", "exit 3").status == 3
    assert (
        ended(command, "--server", hosts, "/status", "--", "sh", "-c", "kill -USR1 $$").status
        == 138
    )


def test_the_lock_is_free_when_the_command_has_ended(hosts: str) -> None:
    for _ in range(2):
        success("lock", "--server", hosts, "/again", "--no-wait", "--", "true")


def test_a_command_that_is_not_there_is_refused_before_anybody_waits(tmp_path: Path) -> None:
    nowhere = ("--server", "127.0.0.1:1", "/x", "--")
    assert refusal("lock", *nowhere, "no-such-thing", status=127) == (
        "no-such-thing: there is no such command"
    )
    plain = tmp_path / "plain"
    plain.touch()
    assert refusal("lock", *nowhere, plain, status=126) == f"{plain}: cannot be run"


def test_a_command_that_cannot_be_begun_says_so_as_in_a_shell(hosts: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"#!/no/such/interpreter\n")
    broken.chmod(0o755)
    assert "No such file" in refusal("lock", "--server", hosts, "/x", "--", broken, status=127)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x", "--", "true"), "'x' does not begin with a slash"),
        (("/x",), "Missing argument 'COMMAND...'"),
        (("/x", "--grace", "4", "--", "true"), "more than a third of the session timeout"),
        (("/x", "--wait", "1", "--no-wait", "--", "true"), "exclude each other"),
        (("/x", "--wait", "nan", "--", "true"), "is not a number"),
        (("/x", "--grace", "nan", "--", "true"), "is not a number"),
    ],
)
def test_what_is_given_wrongly_is_refused_in_one_line(
    arguments: tuple[str, ...], said: str
) -> None:
    assert said in refusal("lock", *arguments, status=2)


def test_without_a_server_it_fails_in_one_line() -> None:
    said = refusal(
        "lock", "--server", "127.0.0.1:1", "--timeout", "1", "/x", "--", "true", status=1
    )
    assert "127.0.0.1:1" in said


def test_a_lock_that_somebody_has_is_not_obtained(hosts: str) -> None:
    with connect(hosts) as client, Lock(client, "/taken"):
        at_once = ended("lock", "--server", hosts, "/taken", "--no-wait", "--", "echo", "never")
        in_time = ended("lock", "--server", hosts, "/taken", "--wait", "0.3", "--", "echo", "never")
        with connect(hosts) as other:
            # Nobody is left in the line.
            assert len(Lock(other, "/taken").contenders()) == 1
    assert (at_once.status, at_once.output) == (75, "")
    assert at_once.errors == "paddock: /taken: another contender has the lock\n"
    assert (in_time.status, in_time.output) == (75, "")
    assert in_time.errors == "paddock: /taken: the lock was not obtained within 0.3 s\n"


def test_others_see_who_waits(hosts: str, wrappers: Wrappers) -> None:
    with connect(hosts) as client, Lock(client, "/seen") as grant:
        lock = Lock(client, "/seen")
        # Any bytes will do, also those that are no text.
        name = os.fsdecode(b"some\xffbody")
        wrappers.start("lock", hosts, "/seen", "--name", name, "--", "true")
        wait_until(lambda: len(lock.contenders()) == 2, "waiter")
        assert [one.data for one in lock.contenders()] == [b"", b"some\xffbody"]
        grant.release()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_who_waits_and_it_leaves_the_line(
    hosts: str, wrappers: Wrappers, number: int
) -> None:
    with connect(hosts) as client, Lock(client, "/waiting"):
        lock = Lock(client, "/waiting")
        waiting = wrappers.start("lock", hosts, "/waiting", "--", "true")
        wait_until(lambda: len(lock.contenders()) == 2, "waiter")
        waiting.send(number)
        assert waiting.wait_end() == 128 + number
        # At once, not when its session has expired.
        assert len(lock.contenders()) == 1
        assert waiting.errors == []


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
)
def test_a_signal_goes_to_the_command_whose_status_counts(
    hosts: str, wrappers: Wrappers, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.01; done"
    wrapper = wrappers.start("lock", hosts, f"/to-{name}", "--", "bash", "-c", script)
    wrapper.wait_line("ready")
    wrapper.send(number)
    assert wrapper.wait_end() == 7
    assert wrapper.lines == ["ready", f"got {name}"]


def test_what_is_ignored_stays_ignored_and_nothing_else_is(hosts: str) -> None:
    script = "grep SigIgn /proc/self/status"
    command = [*COMMAND, "lock", "--server", hosts, "/nohup", "--", "sh", "-c", script]
    result = subprocess.run(["nohup", *command], capture_output=True, text=True, timeout=DEADLINE_S)
    _, ignored = result.stdout.split()
    # Those above are the system library's own, and it is not for us to say what they are.
    assert int(ignored, 16) & 0x7FFF_FFFF == 1 << (signal.SIGHUP - 1)


def test_input_and_open_files_are_the_commands(hosts: str, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        file.write("from the file")
        file.flush()
        os.set_inheritable(file.fileno(), True)
        script = f"cat; cat /proc/self/fd/{file.fileno()}"
        result = subprocess.run(
            [*COMMAND, "lock", "--server", hosts, "/input", "--", "sh", "-c", script],
            input=b"from the pipe, ",
            capture_output=True,
            timeout=DEADLINE_S,
            close_fds=False,
        )
    assert result.stdout == b"from the pipe, from the file", result


def test_what_the_command_leaves_behind_ends_with_it(hosts: str) -> None:
    # One in its group, one that has left it, and one whose parent is gone.
    script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; (setsid sleep 1000 & echo $!)"
    result = run(hosts, "/left", "--", "bash", "-c", script)
    assert result.returncode == 0, result
    pids = [int(line) for line in result.stdout.split()]
    assert len(pids) == 3
    assert not any(is_alive(pid) for pid in pids)


def test_what_is_left_behind_is_asked_once_and_then_killed(hosts: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = (
        f"(trap 'echo asked' TERM; touch {begun}; while :; do sleep 0.01; done) &"
        f" until [ -e {begun} ]; do sleep 0.01; done; exit 5"
    )
    result = run(hosts, "/stubborn", "--grace", "0.2", "--", "bash", "-c", script)
    assert (result.returncode, result.stdout) == (5, "asked\n"), result


def test_a_leader_whose_command_ends_may_stand_again(
    hosts: str, wrappers: Wrappers, tmp_path: Path
) -> None:
    script = 'echo "token $PADDOCK_TOKEN"; read -r < go'
    go = tmp_path / "go"
    os.mkfifo(go)
    one = wrappers.start(
        *(
            "elect",
            hosts,
            "/restart",
            "--restart",
            "--",
            "bash",
            "-c",
            script.replace("go", str(go)),
        )
    )
    first = one.wait_line("token ")
    go.write_text("on\n")
    second = one.wait_line("token ", 2)
    assert int(first[1]) < int(second[1])
    # Then it is to end, and not to stand once more.
    one.send(signal.SIGTERM)
    assert one.wait_end() == 128 + signal.SIGTERM


# On a terminal.


def test_a_shell_on_a_terminal_works_under_a_lock(hosts: str) -> None:
    command = [*COMMAND, "lock", "--server", hosts, "/tty", "--", "bash", "--norc", "-i"]
    with terminal(command, environment={"PS1": "under> "}) as shell:
        shell.wait_for("under>")
        shell.type("sh -c 'echo slee\"\"ping; exec sleep 1000'" + ENTER)
        shell.wait_for("sleeping")
        shell.type(CONTROL_Z)
        shell.wait_for("Stopped")
        shell.type("kill %1; echo be''gun; cat" + ENTER)
        shell.wait_for("begun")
        shell.type("typed" + ENTER)
        shell.wait_for("typed", times=2)
        shell.type(CONTROL_C)
        shell.wait_for("under>", times=3)
        shell.type("exit 4" + ENTER)
        assert shell.wait_for_end() == 4


def test_control_c_reaches_the_command_once(hosts: str) -> None:
    # Not by `print`: the signal may come inside of another one, which raises an error.
    script = (
        "import os, signal, sys, time; times = []\n"
        "def count(*_): times.append(1); os.write(1, b'caught\\n')\n"
        "def leave(*_): sys.exit(len(times))\n"
        "signal.signal(signal.SIGINT, count); signal.signal(signal.SIGUSR1, leave)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.01)"
    )
    command = [*COMMAND, "lock", "--server", hosts, "/tty-c", "--", sys.executable, "-c", script]
    with terminal(command) as shell:
        shell.wait_for("ready")
        shell.type(CONTROL_C)
        shell.wait_for("caught")
        # The terminal sends it to us as well. If we passed it on, it would come before this.
        shell.process.send_signal(signal.SIGUSR1)
        assert shell.wait_for_end() == 1


def test_control_z_stops_the_job_and_fg_goes_on(hosts: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo ready; while read -r line; do echo got $line; done; echo over")
    lock = f"{' '.join(COMMAND)} lock --server {hosts} --timeout 30 /tty-z -- bash {script}"
    # Wide enough for whatever paths the tests have.
    with terminal(["bash", "--norc", "-i"], environment={"PS1": "outer> "}, columns=500) as shell:
        shell.wait_for("outer>")
        shell.type(lock + ENTER)
        shell.wait_for("ready")
        shell.type(CONTROL_Z)
        shell.wait_for("Stopped")
        shell.type("fg" + ENTER)
        shell.wait_for(str(script), times=3)
        shell.type("something" + ENTER)
        shell.wait_for("got something")
        shell.type(CONTROL_D)
        shell.wait_for("over")
        shell.wait_for("outer>", times=3)


def test_a_terminal_is_as_before_when_its_command_was_killed(hosts: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    # As an interactive shell does, it takes the terminal for a group of its own.
    script.write_text(
        "import os, signal, time, tty\n"
        "os.setpgid(0, 0); signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
        "os.tcsetpgrp(0, os.getpid()); tty.setraw(0)\n"
        "print('guard', os.environ['PADDOCK_GUARD'], flush=True)\n"
        "while True: time.sleep(1)"
    )
    outer = tmp_path / "outer"
    outer.write_text(
        f"{' '.join(COMMAND)} lock --server {hosts} /tty-k -- {sys.executable} {script}\n"
        "stty -a | grep -o ' .\\?echo '; read -r line; echo got $line"
    )
    with terminal(["bash", outer], columns=200) as shell:
        guard = shell.wait_for_match(r"guard (\S+)")[1]
        with connect(hosts) as client:
            client.delete(guard)
        shell.wait_for_match(r"the lock was lost, so the command was ended$")
        shell.wait_for_match(r"^ +echo$")
        shell.type("something" + ENTER)
        shell.wait_for("got something")
