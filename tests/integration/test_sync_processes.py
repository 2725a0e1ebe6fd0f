"""What a process with blocking clients meets: Ctrl-C, forks, its own end."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import IO

import pytest

from paddock.sync import Client, connect, timeout
from paddock.sync.recipes import Lock
from paddock.testing import FaultProxy, ServerThread

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as server:
        yield server


@pytest.fixture
def client(server: ServerThread) -> Iterator[Client]:
    with timeout(DEADLINE_S), connect(server.hosts) as client:
        for name in client.children("/"):
            if name != "zookeeper":
                client.delete_tree(f"/{name}")
        yield client


@contextlib.contextmanager
def program(body: str, server: ServerThread) -> Iterator[subprocess.Popen[str]]:
    """Run a program with a client that is connected; it ends with the scope at the latest."""
    source = f"""\
        import multiprocessing, os, signal, sys, threading

        # Where the tests run in the background, whatever they start ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        from paddock import ConnectionLostError, UsageError
        from paddock.sync import connect, timeout
        from paddock.sync.recipes import Lock

        hosts = {server.hosts!r}

        def say(*words):
            print(*words, flush=True)

        client = connect(hosts, session_timeout=60)
        client.start()
        """
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(source) + textwrap.dedent(body)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said_by(body: str, server: ServerThread) -> list[str]:
    """Run a program to its end, which has to be a good one; give the lines it said."""
    with program(body, server) as process:
        output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (0, "")
    return output.splitlines()


def wait_for(stream: IO[str] | None, line: str) -> None:
    assert stream is not None
    assert stream.readline() == f"{line}\n"


def test_control_c_ends_a_wait_at_once_and_the_client_stays_usable(
    server: ServerThread, client: Client
) -> None:
    running = program(
        """
        changes = client.watch("/interrupted")
        say(next(changes).data)
        try:
            say("waiting")
            next(changes)
        except KeyboardInterrupt:
            say("interrupted")
        client.create("/interrupted", b"after")
        say(next(changes).data)
        client.close()
        """,
        server,
    )
    with running as process:
        wait_for(process.stdout, "None")
        wait_for(process.stdout, "waiting")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines() == ["interrupted", "b'after'"]


def test_control_c_that_nobody_catches_closes_the_session(
    server: ServerThread, client: Client
) -> None:
    running = program(
        """
        client.create("/mine", ephemeral=True)
        say("waiting")
        for change in client.watch("/mine"):
            pass
        """,
        server,
    )
    with running as process:
        wait_for(process.stdout, "waiting")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == -signal.SIGINT
    assert errors.endswith("KeyboardInterrupt\n")
    assert client.exists("/mine") is None


def test_a_program_that_ends_with_an_open_client_ends_and_closes_its_session(
    server: ServerThread, client: Client
) -> None:
    lines = said_by(
        """
        client.create("/forgotten", ephemeral=True)
        threading.Thread(target=lambda: list(client.watch("/")), daemon=True).start()
        client.get("/", watch=say)
        say("done")
        """,
        server,
    )
    assert lines[0] == "done"
    assert client.exists("/forgotten") is None, "its timeout is a minute, so it was closed"


def test_a_program_ends_also_when_its_server_is_silent(server: ServerThread) -> None:
    with FaultProxy(server.address) as proxy:
        running = program(
            """
            say("ready")
            input()
            """,
            proxy,  # type: ignore[arg-type]
        )
        with running as process:
            wait_for(process.stdout, "ready")
            proxy.blackhole()
            output, errors = process.communicate("\n", timeout=DEADLINE_S)
    assert (process.returncode, output, errors) == (0, "", "")


def test_control_c_while_a_lock_is_waited_for_leaves_the_line(
    server: ServerThread, client: Client
) -> None:
    running = program(
        """
        try:
            say("waiting")
            with Lock(client, "/lock"):
                say("never held")
        except KeyboardInterrupt:
            say("interrupted")
        input()
        with Lock(client, "/lock") as grant:
            say(grant.is_held)
        client.close()
        """,
        server,
    )
    with running as process:
        with Lock(client, "/lock"):
            wait_for(process.stdout, "waiting")
            while len(client.children("/lock")) < 2:
                client.sync()
            process.send_signal(signal.SIGINT)
            wait_for(process.stdout, "interrupted")
            while len(client.children("/lock")) > 1:
                client.sync()
        output, errors = process.communicate("\n", timeout=DEADLINE_S)
    assert (process.returncode, output, errors) == (0, "True\n", "")


@pytest.mark.parametrize("is_caught", [True, False])
def test_control_c_in_the_body_releases_the_lock(
    server: ServerThread, client: Client, is_caught: bool
) -> None:
    running = program(
        f"""
        try:
            with Lock(client, "/lock") as grant:
                say("held")
                threading.Event().wait()
        except {"KeyboardInterrupt" if is_caught else "ZeroDivisionError"}:
            say(grant.is_held)
            client.close()
        """,
        server,
    )
    with running as process:
        wait_for(process.stdout, "held")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=DEADLINE_S)
    if is_caught:
        assert (process.returncode, output, errors) == (0, "False\n", "")
    else:
        assert process.returncode == -signal.SIGINT
        assert errors.endswith("KeyboardInterrupt\n")
    # Its session would have lasted a minute.
    assert Lock(client, "/lock").contenders() == []


def test_a_program_that_ends_with_a_lock_held_in_a_thread_ends_and_releases_it(
    server: ServerThread, client: Client
) -> None:
    lines = said_by(
        """
        is_held = threading.Event()

        def hold():
            with Lock(client, "/lock"):
                is_held.set()
                threading.Event().wait()

        threading.Thread(target=hold, daemon=True).start()
        is_held.wait()
        other = Lock(client, "/lock")
        threading.Thread(target=other.acquire, daemon=True).start()
        while len(client.children("/lock")) < 2:
            client.sync()
        say("done")
        """,
        server,
    )
    assert lines == ["done"]
    assert Lock(client, "/lock").contenders() == []


USES_THE_PARENTS_CLIENT = """
    def use():
        try:
            client.get("/")
        except UsageError as error:
            say("child:", error)
        stream.close()
        client.close()
        with connect(hosts) as own, timeout(30):
            own.create("/child", ephemeral=True)
            say("child:", own.get("/child").stat.ephemeral_owner != parent)

    stream = client.watch("/")
    next(stream)
    parent = client.session_id
    client.create("/parent", ephemeral=True)
"""


@pytest.mark.parametrize(
    "fork",
    [
        """
        child = os.fork()
        if child == 0:
            use()
            {end}
        assert os.waitpid(child, 0)[1] == 0
        """.replace("{end}", end)
        for end in ("os._exit(0)", "sys.exit()")
    ]
    + [
        """
        process = multiprocessing.get_context("fork").Process(target=use)
        process.start()
        process.join()
        assert process.exitcode == 0
        """
    ],
    ids=["os.fork", "os.fork and a full exit", "multiprocessing"],
)
def test_a_forked_child_is_told_and_leaves_its_parent_alone(
    server: ServerThread, client: Client, fork: str
) -> None:
    lines = said_by(
        textwrap.dedent(USES_THE_PARENTS_CLIENT)
        + textwrap.dedent(fork)
        + textwrap.dedent(
            """
            say("parent:", client.get("/parent").stat.ephemeral_owner == parent)
            say("parent:", client.session_id == parent)
            client.set("/parent", b"changed")
            client.close()
            """
        ),
        server,
    )
    assert lines[0].startswith("child: this client was opened before fork()")
    assert lines[1:] == ["child: True", "parent: True", "parent: True"]
    assert client.exists("/parent") is None
