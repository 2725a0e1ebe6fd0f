"""`--guard`: what is written only while something is held."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from paddock.sync import Client
from paddock.sync.recipes import Lock
from tests.support.command import ended_here, refusal_here, success, success_here
from tests.support.server import Service


@pytest.fixture
def server(service: Service) -> tuple[str, str]:
    return ("--server", service.hosts)


@pytest.fixture
def lock(client: Client, path: str) -> Iterator[str]:
    yield f"{path}-lock"
    client.delete_tree(f"{path}-lock")


@pytest.mark.everywhere
def test_a_guarded_write_succeeds_while_the_lock_is_held_and_not_after(
    server: tuple[str, str], client: Client, path: str, lock: str
) -> None:
    with Lock(client, lock) as grant:
        guard = ("--guard", grant.path, *server)
        success_here("set", path, "held", *guard)
        assert success_here("create", f"{path}/made", *guard) == f"{path}/made\n"
        success_here("create", f"{path}/kept", *guard)
        success_here("delete", f"{path}/made", *guard)
    lost = f"{grant.path}: held no more, so nothing was written"
    assert refusal_here("set", path, "late", *guard, status=76) == lost
    assert refusal_here("create", f"{path}/late", *guard, status=76) == lost
    assert refusal_here("delete", f"{path}/kept", *guard, status=76) == lost
    assert client.get(path).data == b"held"
    assert client.children(path) == ["kept"]


def test_what_else_is_wrong_with_a_guarded_write_is_said_as_ever(
    server: tuple[str, str], client: Client, path: str, lock: str
) -> None:
    with Lock(client, lock) as grant:
        guard = ("--guard", grant.path, *server)
        missing = refusal_here("set", f"{path}/no", "data", *guard, status=1)
        assert missing == refusal_here("set", f"{path}/no", "data", *server, status=1)
        wrong = refusal_here("set", path, "data", "--version", "7", *guard, status=1)
        assert wrong == refusal_here("set", path, "data", "--version", "7", *server, status=1)
        assert ended_here("delete", f"{path}/no", *guard).status == 1
        success_here("delete", f"{path}/no", "--missing-ok", *guard)


def test_a_guarded_write_says_the_same_as_one_without(
    server: tuple[str, str], client: Client, path: str, lock: str
) -> None:
    with Lock(client, lock) as grant:
        guard = ("--guard", grant.path, *server)
        written = json.loads(success_here("set", path, "data", "--json", *guard))
        assert written["stat"]["version"] == 1
        created = json.loads(success_here("create", f"{path}/n-", "--sequential", "--json", *guard))
        assert created["path"] == f"{path}/n-0000000000"
        assert created["stat"]["data_length"] == 0


def test_a_guard_is_for_one_write(server: tuple[str, str], path: str) -> None:
    assert "--parents" in refusal_here("create", f"{path}/a/b", "-p", "--guard", "/g", status=2)
    assert "--recursive" in refusal_here("delete", path, "-r", "--guard", "/g", status=2)


def test_an_empty_guard_is_no_guard_at_all_and_refused(server: tuple[str, str], path: str) -> None:
    assert "slash" in refusal_here("set", path, "data", "--guard", "", *server, status=2)


@pytest.mark.everywhere
@pytest.mark.parametrize("command", ["lock", "elect"])
def test_a_script_under_a_lock_has_its_guard(
    server: tuple[str, str], client: Client, path: str, lock: str, command: str
) -> None:
    script = f'"$0" -m paddock set {path} "$PADDOCK_TOKEN" --guard "$PADDOCK_GUARD"'
    success(command, *server, lock, "--", "sh", "-c", script, sys.executable)
    assert int(client.get(path).data or b"0") > 0
