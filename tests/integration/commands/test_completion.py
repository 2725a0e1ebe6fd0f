"""Completion of the system shells: options, commands, and the paths of nodes that exist."""

from __future__ import annotations

import os
import subprocess

import pytest

from paddock.protocol.acl import ACL, ADMIN, ANYONE, OPEN
from paddock.sync import Client
from tests.support.command import COMMAND, DEADLINE_S
from tests.support.server import Service


def completed(*words: str, server: str) -> list[str]:
    """Return what bash is offered for the last of these words."""
    result = subprocess.run(
        COMMAND,
        capture_output=True,
        timeout=DEADLINE_S,
        env={
            **os.environ,
            "_PADDOCK_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["paddock", *words]),
            "COMP_CWORD": str(len(words)),
            "PADDOCK_SERVER": server,
        },
    )
    assert result.stderr == b""
    return [line.partition(",")[2] for line in result.stdout.decode().splitlines() if line]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_COMPLETION_SECONDS", "60")


def test_paths_are_those_of_nodes(service: Service, client: Client, path: str) -> None:
    for name in ("blue", "black", "red"):
        client.create(f"{path}/{name}")
    assert completed("ls", f"{path}/", server=service.hosts) == [
        f"{path}/black",
        f"{path}/blue",
        f"{path}/red",
    ]
    assert completed("get", f"{path}/bl", server=service.hosts) == [
        f"{path}/black",
        f"{path}/blue",
    ]
    assert completed("acl", "get", f"{path}/r", server=service.hosts) == [f"{path}/red"]
    assert completed("get", f"{path}/x", server=service.hosts) == []
    assert completed("get", "no-path", server=service.hosts) == []


def test_a_single_node_comes_with_its_children(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/only")
    assert completed("stat", path, server=service.hosts) == [path, f"{path}/only"]
    assert completed("stat", f"{path}/", server=service.hosts) == [f"{path}/only"]


def test_a_node_that_may_not_be_listed_is_offered(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/hers")
    client.create(f"{path}/hers/secret")
    client.set_acl(f"{path}/hers", [ACL(ADMIN, ANYONE)])
    assert completed("get", f"{path}/h", server=service.hosts) == [f"{path}/hers"]
    client.set_acl(f"{path}/hers", OPEN)


def test_without_a_server_there_is_nothing_to_offer_and_no_message() -> None:
    assert completed("ls", "/", server="127.0.0.1:1") == []
    assert completed("ls", "/", server="no host") == []


def test_commands_and_options_need_no_server() -> None:
    assert completed("ac", server="127.0.0.1:1") == ["acl"]
    assert completed("ls", "--rec", server="127.0.0.1:1") == ["--recursive"]
