"""`paddock watch` as its users meet it: a process that says a line for every change."""

import json
import signal
import time
from typing import Any

import pytest

from paddock.sync import Client, connect
from tests.support.command import DEADLINE_S, Started, refusal, started
from tests.support.paddock_server import PaddockServer
from tests.support.server import Service


def said(watching: Started) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(watching.line())
    return found


def short(watching: Started) -> tuple[str, str, str | None]:
    found = said(watching)
    return found["change"], found["path"], found["data"]


@pytest.mark.everywhere
def test_every_change_of_a_node_is_a_line(service: Service, client: Client, path: str) -> None:
    node = f"{path}/config"
    with started("watch", "--server", service.hosts, "--json", "--initial", node) as watching:
        assert short(watching) == ("absent", node, None)
        client.create(node, b"v1")
        assert short(watching) == ("created", node, "v1")
        written = client.set(node, b"v2")
        found = said(watching)
        assert (found["change"], found["data"], found["encoding"]) == ("changed", "v2", "utf-8")
        assert found["stat"] == {**written._asdict(), "ephemeral_owner": None}
        client.set(node, b"\xff\x00")
        found = said(watching)
        assert (found["data"], found["encoding"]) == ("/wA=", "base64")
        client.delete(node)
        assert short(watching) == ("deleted", node, None)
        ended = watching.end(signal.SIGINT)
        assert (ended.status, ended.output, ended.errors) == (130, "", "")


@pytest.mark.everywhere
def test_a_tree_is_watched_whole(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/old", b"1")
    with started("watch", "-R", "--initial", "--json", "--server", service.hosts, path) as watching:
        assert short(watching) == ("present", path, "")
        assert short(watching) == ("present", f"{path}/old", "1")
        client.create(f"{path}/new", b"2")
        assert short(watching) == ("created", f"{path}/new", "2")
        client.set(f"{path}/old", b"3")
        assert short(watching) == ("changed", f"{path}/old", "3")
        client.delete(f"{path}/old")
        assert short(watching) == ("deleted", f"{path}/old", None)


def test_what_is_there_already_is_no_change(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/old")
    options = ["--count", "1", "--json", "--server", service.hosts]
    with started("watch", "-R", *options, path) as watching:
        # Whether it has begun by now nobody tells; each write is news to it or was before it.
        limit = time.monotonic() + DEADLINE_S
        while watching.process.poll() is None:
            assert time.monotonic() < limit, "it has seen none of them"
            client.set(path, b"news")
        ended = watching.end()
    assert ended.status == 0, ended
    (line,) = ended.output.splitlines()
    assert json.loads(line)["path"] == path
    assert json.loads(line)["change"] == "changed"


def test_a_line_for_people_has_one_line_whatever_the_data_are(
    service: Service, client: Client, path: str
) -> None:
    client.set(path, b"two\nlines \x1b[31m")
    with started("watch", "--initial", "-n", "1", "--server", service.hosts, path) as watching:
        ended = watching.end()
    assert ended.status == 0
    (line,) = ended.output.splitlines()
    assert line.endswith(rf"  present  {path}  version 1  two\nlines \x1b[31m")


def test_it_goes_on_when_the_server_is_back_and_misses_nothing() -> None:
    with PaddockServer() as server:
        with started(
            *("watch", "--initial", "--json", "--timeout", "60", "--server", server.hosts, "/a")
        ) as watching:
            assert short(watching) == ("absent", "/a", None)
            server.kill()
            server.start()
            with connect(server.hosts) as client:
                client.create("/a", b"1")
            assert short(watching) == ("created", "/a", "1")
            assert watching.end(signal.SIGINT).errors.splitlines() == [
                "paddock: the connection was lost; looking for a server",
                "paddock: connected again",
            ]


def test_it_ends_when_nobody_reads_it_any_more_though_nothing_happens(
    service: Service, path: str
) -> None:
    with started("watch", "--initial", "--server", service.hosts, path) as watching:
        watching.line()
        assert watching.process.stdout is not None
        watching.process.stdout.close()
        assert watching.process.wait(DEADLINE_S) == 128 + 13
        assert watching.process.stderr is not None
        assert watching.process.stderr.read() == b""


def test_when_the_session_is_over_it_says_so(service: Service, client: Client, path: str) -> None:
    options = ["--initial", "--json", "--timeout", "3", "--server", service.hosts]
    with started("watch", *options, path) as watching:
        watching.line()
        watching.process.send_signal(signal.SIGSTOP)
        # The server is done with its session when an ephemeral node of the same age has gone.
        with started(
            "create", "--ephemeral", "--timeout", "3", "--server", service.hosts, f"{path}/e"
        ) as other:
            other.line()
            other.process.send_signal(signal.SIGSTOP)
            for change in client.watch(f"{path}/e"):
                if change.stat is None:
                    break
            other.process.kill()
        ended = watching.end(signal.SIGCONT)
    assert ended.status == 1
    assert ended.errors.splitlines()[-1].endswith("the session has expired")


def test_without_a_server_it_is_one_line() -> None:
    line = refusal("watch", "--server", "127.0.0.1:1", "--timeout", "1", "/a", status=1)
    assert "Connection refused" in line


@pytest.mark.parametrize("arguments", [["/a", "--count", "0"], [], ["a"]])
def test_what_cannot_be_watched_is_refused(service: Service, arguments: list[str]) -> None:
    refusal("watch", "--server", service.hosts, *arguments, status=2)
