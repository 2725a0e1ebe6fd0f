"""Services register and are found; who watches sees them come and go; one of them is chosen."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from paddock.errors import (
    InvalidArgumentError,
    RecipeClosedError,
    SessionExpiredError,
    UsageError,
)
from paddock.recipes import (
    Choice,
    ServiceCache,
    ServiceInstance,
    ServiceProvider,
    ServiceRegistry,
)
from tests.support.apis import recipe
from tests.support.recipes import clients, expire, run, stand_in_line, until
from tests.support.server import Service

ONE = ServiceInstance("search", "1", "10.0.0.1", 8080, payload={"zone": "a"})
TWO = ServiceInstance("search", "2", "10.0.0.2", 8080, weight=3)


async def finds(registry: ServiceRegistry, *expected: ServiceInstance) -> bool:
    return await registry.instances("search") == list(expected)


@pytest.mark.everywhere
def test_what_is_registered_is_found_and_what_is_unregistered_is_not(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            async with (
                recipe(ServiceRegistry)(client, path) as registry,
                recipe(ServiceRegistry)(other, path) as another,
            ):
                assert await another.services() == []
                assert await another.instances("search") == []
                await registry.register(TWO)
                await registry.register(ONE)
                await registry.register(ONE)
                assert await another.instances("search") == [ONE, TWO]
                assert await another.services() == ["search"]
                changed = ServiceInstance("search", "1", "10.0.0.1", 8081)
                await registry.register(changed)
                assert await another.instances("search") == [changed, TWO]
                await registry.unregister("search", "1")
                await registry.unregister("search", "1")
                assert await another.instances("search") == [TWO]
                await registry.register(ONE)
                assert await another.instances("search") == [ONE, TWO]
                assert registry.base == path
                await registry.close()
                assert await another.instances("search") == []
                assert await another.services() == []

    run(scenario)


@pytest.mark.everywhere
def test_three_services_a_fourth_joins_one_is_unregistered_by_another_client_all_stop(
    service: Service, path: str
) -> None:
    """What each of them is told, in the order of events; with times it is played elsewhere."""

    async def scenario() -> None:
        told: dict[int, list[Any]] = {number: [] for number in range(4)}
        async with clients(service, 5, session_timeout=2.0) as all_of_them:
            registries = [recipe(ServiceRegistry)(client, path) for client in all_of_them]

            def follow(number: int) -> asyncio.Future[None]:
                return asyncio.ensure_future(
                    registries[number].follow(
                        "job",
                        started=lambda found: told[number].append(("started", ids(found))),
                        changed=lambda found: told[number].append(("changed", ids(found))),
                        stopped=lambda: told[number].append("stopped"),
                    )
                )

            for number in range(3):
                await registries[number].register(service_number(number))
            following = [follow(number) for number in range(3)]
            for number in range(3):
                await until(partial(is_told, told[number], 1))
            await registries[3].register(service_number(3))
            following.append(follow(3))
            for number in range(4):
                await until(partial(is_told, told[number], 1 if number == 3 else 2))
            await registries[4].unregister("job", "10.0.0.1")
            for number in range(4):
                await until(partial(is_told, told[number], 2 if number == 3 else 3))
            # It stays gone, although its owner lives.
            await all_of_them[1].sync()
            assert ids(await registries[4].instances("job")) == {
                "10.0.0.0",
                "10.0.0.2",
                "10.0.0.3",
            }
            for one in following:
                one.cancel()
            await asyncio.wait(following)
            for number in range(4):
                await until(partial(is_told, told[number], 3 if number == 3 else 4))
        assert told == EXPECTED

    run(scenario)


ALL = {f"10.0.0.{number}" for number in range(4)}
FIRST_THREE = [
    ("started", ALL - {"10.0.0.3"}),
    ("changed", ALL),
    ("changed", ALL - {"10.0.0.1"}),
    "stopped",
]
# By the number of the service.
EXPECTED = {
    0: FIRST_THREE,
    1: FIRST_THREE,
    2: FIRST_THREE,
    3: [("started", ALL), ("changed", ALL - {"10.0.0.1"}), "stopped"],
}


def service_number(number: int) -> ServiceInstance:
    return ServiceInstance("job", f"10.0.0.{number}", f"10.0.0.{number}")


def ids(instances: Sequence[ServiceInstance]) -> set[str]:
    assert len({one.id for one in instances}) == len(instances)
    return {one.id for one in instances}


async def is_told(told: list[Any], count: int) -> bool:
    return len(told) >= count


@pytest.mark.everywhere
def test_a_registration_is_restored_after_an_expired_session(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            async with (
                recipe(ServiceRegistry)(client, path) as registry,
                recipe(ServiceRegistry)(other, path) as another,
            ):
                await registry.register(ONE)
                await registry.register(TWO)
                await expire(service, client)
                await until(partial(finds, another, ONE, TWO))
                # Both in one session, and everything goes on in it.
                owners = {
                    (await other.get(f"{path}/search/{one.id}")).stat.ephemeral_owner
                    for one in (ONE, TWO)
                }
                assert len(owners - {client.session_id}) == 1
                assert await registry.instances("search") == [ONE, TWO]
                await registry.unregister("search", "1")
                assert await another.instances("search") == [TWO]
            # Where nobody is, there may be nothing: the node above them is a container.
            assert await stand_in_line(other, f"{path}/search", 0)

    run(scenario)


def test_what_was_unregistered_by_anybody_stays_gone(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            async with (
                recipe(ServiceRegistry)(client, path) as registry,
                recipe(ServiceRegistry)(other, path) as another,
            ):
                await registry.register(ONE)
                await registry.register(TWO)
                await another.unregister("search", "1")
                # Its owner has heard of that, and goes on with the other one in another session.
                await until(partial(finds, registry, TWO))
                await expire(service, client)
                await until(partial(finds, another, TWO))
                assert await registry.instances("search") == [TWO]
                # Unless its owner wants it again.
                await registry.register(ONE)
                assert await another.instances("search") == [ONE, TWO]

    run(scenario)


def test_a_stream_has_every_state_and_ends_with_the_registry(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            registry = recipe(ServiceRegistry)(client, path)
            another = recipe(ServiceRegistry)(other, path)
            states = another.watch("search")
            assert await anext(states) == []
            await registry.register(ONE)
            assert await anext(states) == [ONE]
            await registry.register(TWO)
            assert await anext(states) == [ONE, TWO]
            await registry.unregister("search", "1")
            assert await anext(states) == [TWO]
            # What was watched is watched in the next session, too.
            await expire(service, other)
            await registry.register(ONE)
            assert await anext(states) == [ONE, TWO]
            await another.close()
            with pytest.raises(StopAsyncIteration):
                await anext(states)
            await another.close()
            for attempt in (
                another.register(ONE),
                another.unregister("search", "1"),
                another.services(),
                another.instances("search"),
            ):
                with pytest.raises(RecipeClosedError, match=f"the registry of {path} was closed"):
                    await attempt
            await registry.close()

    run(scenario)


def test_strange_nodes_are_skipped_and_reported(
    service: Service, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    strange = {
        "not-json": b"\xff",
        "list": b"[]",
        "nothing": b"{}",
        "bad-port": b'{"name": "search", "id": "x", "port": "http"}',
        "bad-weight": b'{"name": "search", "id": "x", "weight": 0}',
        "empty": b"",
    }

    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            async with recipe(ServiceRegistry)(client, path) as registry:
                await registry.register(ONE)
                for name, data in strange.items():
                    await client.create(f"{path}/search/{name}", data)
                with caplog.at_level(logging.WARNING):
                    assert await registry.instances("search") == [ONE]
                said = [one.getMessage() for one in caplog.records]
                for name in strange:
                    assert any(f"{path}/search/{name} is skipped" in one for one in said)
                assert await anext(registry.watch("search")) == [ONE]

    run(scenario)


def test_what_curator_writes_is_understood_and_ours_has_its_names(
    service: Service, path: str
) -> None:
    foreign = {
        "name": "search",
        "id": "7",
        "address": "10.0.0.7",
        "port": 80,
        "sslPort": None,
        "payload": {"@class": "com.example.Detail", "zone": "b"},
        "registrationTimeUTC": 1325129459728,
        "serviceType": "DYNAMIC",
        "uriSpec": None,
        "enabled": True,
    }

    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            async with recipe(ServiceRegistry)(client, path) as registry:
                await registry.register(TWO)
                await client.create(f"{path}/search/7", json.dumps(foreign).encode())
                assert await registry.instances("search") == [
                    TWO,
                    ServiceInstance("search", "7", "10.0.0.7", 80, payload=foreign["payload"]),
                ]
                assert json.loads((await client.get(f"{path}/search/2")).data) == {
                    "name": "search",
                    "id": "2",
                    "address": "10.0.0.2",
                    "port": 8080,
                    "payload": None,
                    "serviceType": "DYNAMIC",
                    "weight": 3,
                }

    run(scenario)


async def has(cache: ServiceCache, *expected: ServiceInstance) -> bool:
    return cache.instances == expected


def test_a_cache_has_all_instances_at_hand(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            registry = recipe(ServiceRegistry)(client, path)
            another = recipe(ServiceRegistry)(other, path)
            await registry.register(ONE)
            cache = recipe(ServiceCache)(another, "search")
            with pytest.raises(UsageError, match="was not started"):
                await cache.wait_ready()
            async with cache:
                assert await has(cache, ONE)
                assert cache.name == "search"
                stale = [cache.is_stale]
                with pytest.raises(UsageError, match="was started before"):
                    cache.start()
                states = cache.watch()
                assert await anext(states) == (ONE,)
                await registry.register(TWO)
                assert await anext(states) == (ONE, TWO)
                assert await has(cache, ONE, TWO)
                await expire(service, other)
                await registry.unregister("search", "1")
                await until(partial(has, cache, TWO))
                assert await anext(states) == (TWO,)
            with pytest.raises(StopAsyncIteration):
                await anext(states)
            assert [*stale, cache.is_stale] == [False, True]
            assert cache.instances == (TWO,)
            with pytest.raises(RecipeClosedError, match="was closed"):
                cache.start()
            unused = recipe(ServiceCache)(another, "search")
            await another.close()
            unused.start()
            with pytest.raises(RecipeClosedError):
                await unused.wait_ready()
            await registry.close()

    run(scenario)


@pytest.mark.parametrize("choice", Choice)
def test_an_instance_is_chosen(service: Service, path: str, choice: Choice) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            async with recipe(ServiceRegistry)(client, path) as registry:
                provider = recipe(ServiceProvider)(registry, "search", choice)
                async with provider:
                    assert provider.choose() is None
                    await registry.register(ONE)
                    await registry.register(TWO)
                    await until(partial(has, provider, ONE, TWO))
                    chosen = [provider.choose() for _ in range(40)]
                    assert set(chosen) <= {ONE, TWO}
                    counted = Counter(one.id for one in chosen if one is not None)
                    if choice is Choice.ROUND_ROBIN:
                        assert chosen[:4] in ([ONE, TWO, ONE, TWO], [TWO, ONE, TWO, ONE])
                        assert counted == {"1": 20, "2": 20}
                    elif choice is Choice.STICKY:
                        assert len(set(chosen)) == 1
                        first = chosen[0]
                        assert first is not None
                        await registry.unregister("search", first.id)
                        rest = TWO if first == ONE else ONE
                        await until(partial(has, provider, rest))
                        assert provider.choose() == rest
                    elif choice is Choice.RANDOM:
                        assert all(count >= 8 for count in counted.values())
                    else:
                        assert counted["2"] > counted["1"] > 0

    run(scenario)


def test_an_instance_with_errors_is_marked_down(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            async with recipe(ServiceRegistry)(client, path) as registry:
                await registry.register(ONE)
                await registry.register(TWO)
                provider = recipe(ServiceProvider)(registry, "search", errors_max=2)
                async with provider:
                    provider.report_error(ONE)
                    assert not provider.is_down(ONE)
                    provider.report_error(ONE)
                    assert provider.is_down(ONE)
                    assert {provider.choose() for _ in range(20)} == {TWO}
                    provider.report_error(TWO)
                    provider.report_error(TWO)
                    assert provider.choose() is None

    run(scenario)


def test_a_closed_client_is_told_of(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            registry = recipe(ServiceRegistry)(client, path)
            await registry.register(ONE)
            await client.close()
            with pytest.raises(SessionExpiredError):
                await registry.instances("search")

    run(scenario)


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"name": "a/b"}, "name: 'a/b' cannot be the name of a node"),
        ({"name": ""}, "name: "),
        ({"id": ".."}, "id: "),
        ({"id": None}, "id: "),
        ({"address": b"bytes"}, "address: "),
        ({"port": 65536}, "port: 65536 is no port"),
        ({"port": True}, "port: "),
        ({"payload": {1, 2}}, "payload: it cannot be written as JSON"),
        ({"payload": float("nan")}, "payload: "),
        ({"weight": 0}, "weight: 0 is not 1 or more"),
    ],
)
def test_bad_instances_are_named(named: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        ServiceInstance(**{"name": "search", "id": "1", **named})


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(ServiceRegistry)(client, "no slash")
            with pytest.raises(InvalidArgumentError, match="acl: "):
                recipe(ServiceRegistry)(client, path, acl=[])
            registry = recipe(ServiceRegistry)(client, path)
            with pytest.raises(InvalidArgumentError, match="name: "):
                await registry.instances("a/b")
            with pytest.raises(InvalidArgumentError, match="id: "):
                await registry.unregister("a", "b/c")
            for named, text in (
                ({"name": "a/b"}, "name: "),
                ({"name": "a", "choice": "random"}, "choice: "),
                ({"name": "a", "errors_max": 0}, "errors_max: "),
                ({"name": "a", "down_seconds": "long"}, "down_seconds: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(ServiceProvider)(registry, **named)
            await registry.close()

    run(scenario)
