"""Configuration: pushed when it changes, and never a bad one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest

from paddock.errors import (
    InvalidArgumentError,
    InvalidValueError,
    NoNodeError,
    PaddockError,
    RecipeClosedError,
    SessionExpiredError,
    UsageError,
)
from paddock.recipes import Configuration
from tests.support.apis import asyncio_only, recipe
from tests.support.recipes import clients, run, until
from tests.support.server import Service


@dataclass(frozen=True)
class Limits:
    size: int
    color: str = "blue"


def positive(limits: Limits) -> str | None:
    return None if limits.size > 0 else f"{limits.size} is no size"


@pytest.mark.everywhere
def test_a_change_is_pushed_to_everybody(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with (
            clients(service, 2) as [one, two],
            recipe(Configuration)(one, path, Limits, default=Limits(1)) as here,
            recipe(Configuration)(two, path, Limits, default=Limits(1)) as there,
        ):
            heard: list[Limits] = []
            there.add_listener(heard.append)
            assert here.value == there.value == Limits(1)
            await here.set(Limits(2, "red"))
            await until(lambda: _is(there, Limits(2, "red")))
            assert await there.update(lambda old: replace(old, size=old.size + 1)) == (
                Limits(3, "red")
            )
            await until(lambda: _is(here, Limits(3, "red")))
            await until(lambda: _are(heard, [Limits(2, "red"), Limits(3, "red")]))
            there.remove_listener(heard.append)
            assert there.error is None

    run(scenario)


async def _is(configuration: Configuration[Any], value: Any) -> bool:
    return bool(configuration.value == value)


async def _are(heard: list[Any], expected: list[Any]) -> bool:
    return heard == expected


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{", "it is no JSON"),
        (b'{"size": "large"}', "size: expected int, not 'large'"),
        (b'{"size": 5, "shape": 1}', "shape: there is no such field"),
        (b"{}", "size: it is missing"),
        (b'{"size": 0}', "0 is no size"),
    ],
)
def test_after_a_bad_change_the_last_good_value_stays(
    service: Service, path: str, bad: bytes, why: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b'{"size": 7}')
            async with recipe(Configuration)(client, path, Limits, validate=positive) as limits:
                errors: list[PaddockError] = []
                limits.add_error_listener(errors.append)
                await client.set(path, bad)
                await until(lambda: _has_error(limits))
                assert limits.value == Limits(7)
                assert why in str(limits.error)
                await until(lambda: _are([str(one) for one in errors], [str(limits.error)]))
                limits.remove_error_listener(errors.append)
                with pytest.raises(InvalidValueError, match=path):
                    await limits.update(lambda old: old)
                await limits.set(Limits(8))
                await until(lambda: _is(limits, Limits(8)))
                assert limits.error is None

    run(scenario)


async def _has_error(configuration: Configuration[Any]) -> bool:
    return configuration.error is not None


def test_what_is_not_good_is_not_written(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with (
            clients(service, 1) as [client],
            recipe(Configuration)(
                client, path, Limits, default=Limits(1), validate=positive
            ) as limits,
        ):
            with pytest.raises(InvalidValueError, match="-1 is no size"):
                await limits.set(Limits(-1))
            with pytest.raises(InvalidValueError, match="0 is no size"):
                await limits.update(lambda old: Limits(0))
            with pytest.raises(InvalidValueError, match="size: expected int"):
                await limits.set(Limits(1.5))  # type: ignore[arg-type]
            assert await client.exists(path) is None

    run(scenario)


def test_the_default_stands_in_for_what_is_missing_or_bad(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(NoNodeError, match=path):
                await recipe(Configuration)(client, path, Limits).start()
            await client.create(path, b"bad")
            with pytest.raises(InvalidValueError, match="no JSON"):
                await recipe(Configuration)(client, path, Limits).start()
            async with recipe(Configuration)(client, path, Limits, default=Limits(5)) as limits:
                assert limits.value == Limits(5)
                assert isinstance(limits.error, InvalidValueError)
                await client.set(path, b'{"size": 6}')
                await until(lambda: _is(limits, Limits(6)))
                await client.delete(path)
                await until(lambda: _is(limits, Limits(5)))

    run(scenario)


def test_without_a_default_a_deleted_configuration_stays_as_it_was(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b'{"size": 6}')
            async with recipe(Configuration)(client, path, Limits) as limits:
                await client.delete(path)
                await until(lambda: _has_error(limits))
                assert isinstance(limits.error, NoNodeError)
                assert limits.value == Limits(6)

    run(scenario)


def test_a_stream_gives_the_present_value_and_every_newer_one(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            limits = recipe(Configuration)(client, path, Limits, default=Limits(1))
            async with limits:
                seen = []
                async for value in limits.changes():
                    seen.append(value)
                    if value.size == 3:
                        break
                    await limits.set(Limits(value.size + 1))
                assert seen == [Limits(1), Limits(2), Limits(3)]
            with pytest.raises(RecipeClosedError, match="was closed"):
                await _all(limits)
            assert limits.value == Limits(3)
            await limits.close()
            with pytest.raises(UsageError, match="started once"):
                await limits.start()

    run(scenario)


def test_the_end_of_the_session_is_told_and_the_value_stays(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            limits = recipe(Configuration)(client, path, Limits, default=Limits(1))
            await limits.start()
            reading = asyncio.ensure_future(_all(limits))
        with pytest.raises(SessionExpiredError):
            await reading
        assert limits.value == Limits(1)
        assert isinstance(limits.error, SessionExpiredError)

    run(scenario)


async def _all(configuration: Configuration[Any]) -> None:
    async for _ in configuration.changes():
        pass


def test_any_type_will_do_with_functions_of_ones_own(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            level = recipe(Configuration)(
                client, path, int, default=0, parse=int, serialize=lambda value: b"%d" % value
            )
            with pytest.raises(UsageError, match="start the configuration first"):
                _ = level.value
            async with level:
                assert await level.update(lambda old: old + 1) == 1
                assert (await client.get(path)).data == b"1"
                await client.set(path, b"high")
                await until(lambda: _has_error(level))
                assert "invalid literal" in str(level.error)

    run(scenario)


@asyncio_only
def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def later(value: object) -> None:
        """Judge nothing: nobody awaits it."""

    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(Configuration)(client, "no slash", int)
            for name in ("parse", "serialize", "validate"):
                for bad in (7, later):
                    with pytest.raises(InvalidArgumentError, match=f"{name}: "):
                        recipe(Configuration)(client, path, int, **{name: bad})

    run(scenario)


def test_an_update_that_is_dropped_and_the_default_are_logged(
    service: Service, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b"secret, and no JSON")
            default = Limits(1)
            async with recipe(Configuration)(client, path, Limits, default=default) as limits:
                assert (limits.value, limits.is_default) == (default, True)
                assert [one.getMessage() for one in caplog.records] == [
                    f"{path}: not valid; the default is used"
                ]
                await limits.set(Limits(2))
                await until(lambda: _is(limits, Limits(2)))
                assert not limits.is_default
                await client.set(path, b"secret, and no JSON")
                await until(lambda: _has_error(limits))
                await client.delete(path)
                await until(lambda: _is(limits, default))
                assert limits.is_default

    with caplog.at_level(logging.WARNING, "paddock.recipes"):
        run(scenario)
    assert [(one.levelname, one.getMessage()) for one in caplog.records[1:]] == [
        ("WARNING", f"{path}: update dropped, not valid; the last value stays"),
        ("WARNING", f"{path}: no such node; the default is used"),
    ]
    assert "secret" not in caplog.text
