"""`paddock watch --exec`: a command for every change."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from paddock.sync import Client
from tests.support.command import success
from tests.support.holding import is_alive, wait_dead, wait_until, wrappers_in
from tests.support.server import Service

# Says what it got, in one line.
SAY = 'echo "$PADDOCK_CHANGE $PADDOCK_PATH ${PADDOCK_VERSION-none} $(cat)"'


@pytest.mark.everywhere
def test_the_command_gets_the_change_and_the_data(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    node = f"{path}/config"
    with wrappers_in(tmp_path) as wrappers:
        watching = wrappers.start(
            "watch", service.hosts, node, "--initial", "--count", "4", "--exec", SAY
        )
        watching.wait_line(f"absent {node} none")
        client.create(node, b"v1")
        watching.wait_line(f"created {node} 0 v1")
        client.set(node, b"v2")
        watching.wait_line(f"changed {node} 1 v2")
        client.delete(node)
        assert watching.wait_end() == 0
    assert watching.lines[3:] == [f"deleted {node} none "]


def test_with_json_the_command_gets_the_object(service: Service, client: Client, path: str) -> None:
    client.set(path, b"\xff")
    options = ("--initial", "--count", "1", "--json", "--exec", "cat")
    found = json.loads(success("watch", "--server", service.hosts, path, *options))
    assert (found["change"], found["path"], found["encoding"]) == ("present", path, "base64")


def test_what_changes_while_a_command_runs_comes_once_as_it_is_then(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"{SAY}; until [ -e {go} ]; do sleep 0.01; done"
    with wrappers_in(tmp_path) as wrappers:
        watching = wrappers.start(
            "watch", service.hosts, path, "--initial", "--count", "2", "--exec", script
        )
        watching.wait_line("present")
        for number in range(50):
            client.set(path, b"%d" % number)
        go.touch()
        assert watching.wait_end() == 0
    assert watching.lines[1:] == [f"changed {path} 50 49"]


def test_a_command_that_fails_is_named_and_watching_goes_on(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    script = 'echo "$PADDOCK_CHANGE"; exit 3'
    with wrappers_in(tmp_path) as wrappers:
        watching = wrappers.start(
            "watch", service.hosts, path, "--initial", "--count", "2", "--exec", script
        )
        watching.wait_line("present")
        client.set(path, b"next")
        assert watching.wait_end() == 3
    assert watching.errors == [
        f"paddock: {path}: {change}: the command ended with status 3"
        for change in ("present", "changed")
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_and_the_watching(
    service: Service, path: str, tmp_path: Path, number: int
) -> None:
    script = "trap 'echo told; exit' TERM INT; echo ready; while :; do sleep 0.01; done"
    with wrappers_in(tmp_path) as wrappers:
        watching = wrappers.start("watch", service.hosts, path, "--initial", "--exec", script)
        watching.wait_line("ready")
        watching.send(number)
        assert watching.wait_end() == 128 + number
    assert watching.lines == ["ready", "told"]


def test_a_signal_ends_the_watching_when_no_command_runs(
    service: Service, path: str, tmp_path: Path
) -> None:
    with wrappers_in(tmp_path) as wrappers:
        watching = wrappers.start("watch", service.hosts, path, "--initial", "--exec", "echo $$")
        wait_until(lambda: bool(watching.lines), "command")
        wait_dead([int(watching.lines[0])])
        watching.send(signal.SIGTERM)
        assert watching.wait_end() == 128 + signal.SIGTERM
    assert watching.errors == []


def test_a_command_dies_with_the_watching(service: Service, path: str, tmp_path: Path) -> None:
    script = "echo $$; while :; do sleep 0.01; done"
    with wrappers_in(tmp_path) as wrappers:
        watching = wrappers.start("watch", service.hosts, path, "--initial", "--exec", script)
        wait_until(lambda: bool(watching.lines), "command")
        pid = int(watching.lines[0])
        assert is_alive(pid)
        watching.kill()
        wait_dead([pid])
