"""A recipe of one API refuses the client of the other, and says so."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import paddock
import paddock.recipes
import paddock.sync
import paddock.sync.recipes
from paddock.errors import InvalidArgumentError
from paddock.testing import ServerThread

ARGUMENTS: dict[str, Any] = {
    "path": "/a",
    "base": "/a",
    "name": "a",
    "kind": dict,
    "handler": lambda task: b"",
    "items": ["a"],
    "leases": 1,
    "seconds": 1.0,
    "size": 2,
}


def recipes() -> list[str]:
    """Return the names of all recipes whose first argument is a client."""
    kinds = {name: getattr(paddock.recipes, name) for name in paddock.recipes.__all__}
    return [
        name
        for name, kind in kinds.items()
        if isinstance(kind, type)
        and name not in ("LogChannel", "MultiGrant")
        and next(iter(inspect.signature(kind).parameters), "") == "client"
    ]


def made(package: Any, name: str, client: object) -> object:
    kind = getattr(package, name)
    _, *rest = inspect.signature(kind).parameters.values()
    needed = [one for one in rest if one.default is one.empty]
    positional = [ARGUMENTS[one.name] for one in needed if one.kind is not one.KEYWORD_ONLY]
    named = {one.name: ARGUMENTS[one.name] for one in needed if one.kind is one.KEYWORD_ONLY}
    return kind(client, *positional, **named)


def test_every_recipe_is_looked_at() -> None:
    assert len(recipes()) >= 20


@pytest.mark.parametrize("name", recipes())
def test_a_client_of_the_other_api_is_refused(name: str) -> None:
    async def scenario(hosts: str, blocking: paddock.sync.Client) -> None:
        async with paddock.connect(hosts) as client:
            with pytest.raises(InvalidArgumentError, match=r"use paddock\.sync\.recipes with it"):
                made(paddock.recipes, name, blocking)
            with pytest.raises(InvalidArgumentError, match=r"paddock\.recipes has the recipes"):
                made(paddock.sync.recipes, name, client)

    with ServerThread() as server, paddock.sync.connect(server.hosts) as blocking:
        asyncio.run(scenario(server.hosts, blocking))


@pytest.mark.parametrize("in_scope", [True, False])
def test_a_timeout_of_blocking_code_names_the_holder(in_scope: bool) -> None:
    with (
        ServerThread() as server,
        paddock.sync.connect(server.hosts) as one,
        paddock.sync.connect(server.hosts) as other,
        paddock.sync.recipes.Lock(one, "/locks/report", data=b"worker 7") as grant,
    ):
        lock = paddock.sync.recipes.Lock(other, "/locks/report")
        with pytest.raises(TimeoutError) as error, paddock.sync.timeout(0.5):
            lock.__enter__() if in_scope else lock.acquire()
        assert f"{grant.path} of session 0x{one.session_id:x}, b'worker 7'" in str(error.value)
