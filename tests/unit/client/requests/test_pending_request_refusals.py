"""Refusals as callers get them: with operation, path and code, also one that nobody knows."""

from __future__ import annotations

import pytest

from paddock import NoNodeError, RequestError, UnknownCodeError, connect, errors
from paddock.testing import run_virtually
from tests.support.scripted import ScriptedServer, Talk


def refusing(code: int) -> ScriptedServer:
    async def lead(talk: Talk) -> None:
        await talk.grant()
        asked = await talk.request()
        talk.answer(asked.xid, code=code)
        await talk.serve()

    return ScriptedServer(lead)


def test_a_code_that_nobody_knows_is_a_plain_refusal_and_the_client_goes_on() -> None:
    async def scenario() -> None:
        async with refusing(-4711) as server, connect(server.hosts) as client:
            with pytest.raises(RequestError) as caught:
                await client.get("/app")
            assert type(caught.value) is UnknownCodeError
            assert str(caught.value) == "get /app: the service refused the request (code -4711)"
            assert (caught.value.code, caught.value.operation) == (-4711, "get")
            assert await client.exists("/app") is not None

    run_virtually(scenario())


def test_a_refusal_names_operation_path_and_code() -> None:
    async def scenario() -> None:
        async with refusing(errors.NO_NODE) as server, connect(server.hosts) as client:
            with pytest.raises(NoNodeError) as caught:
                await client.get("/app")
            assert str(caught.value) == "get /app: no such node"
            error = caught.value
            assert (error.operation, error.path, error.code) == ("get", "/app", -101)

    run_virtually(scenario())
