"""The id of a service: created once, whoever comes first and whatever is lost."""

import asyncio
from collections.abc import Sequence

import pytest

from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.service import Service, find_or_create_service, find_service
from paddock.log.interface import LogCorruptError, LogError
from tests.support.memory_store import Fault, MemoryEtcd, MemoryStore

KEYS = Keys("shop")


async def no_sleep(seconds: float) -> None:
    pass


CALLS = Calls(sleep=no_sleep)


def create(etcd: MemoryEtcd, seed: int, *faults: Fault) -> Service:
    store = MemoryStore(etcd)
    store.faults = iter(faults)
    return asyncio.run(find_or_create_service(store, KEYS, lambda n: bytes([seed]) * n, CALLS))


def find(etcd: MemoryEtcd) -> Service | None:
    return asyncio.run(find_service(MemoryStore(etcd), KEYS, CALLS))


def test_a_service_is_created_once_and_found_from_then_on() -> None:
    etcd = MemoryEtcd(KEYS)
    assert find(etcd) is None
    assert create(etcd, 1) == Service(b"\x01" * 16)
    assert find(etcd) == Service(b"\x01" * 16)
    assert create(etcd, 2) == Service(b"\x01" * 16)


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.AFTER],
        [Fault.NONE, Fault.BEFORE],
        [Fault.NONE, Fault.AFTER],
        [Fault.NONE, Fault.AFTER, Fault.BEFORE, Fault.AFTER],
    ],
)
def test_a_lost_answer_does_not_make_another_service(faults: Sequence[Fault]) -> None:
    etcd = MemoryEtcd(KEYS)
    assert create(etcd, 1, *faults) == find(etcd) == Service(b"\x01" * 16)


def test_who_loses_the_race_takes_the_service_of_the_winner() -> None:
    etcd = MemoryEtcd(KEYS)

    async def contend(seed: int) -> Service:
        def random_bytes(count: int) -> bytes:
            return bytes([seed]) * count

        return await find_or_create_service(MemoryStore(etcd), KEYS, random_bytes, CALLS)

    async def race() -> list[Service]:
        return await asyncio.gather(*map(contend, (1, 2, 3)))

    assert asyncio.run(race()) == [Service(b"\x01" * 16)] * 3


def test_a_service_that_is_being_imported_is_not_taken_for_an_empty_one() -> None:
    etcd = MemoryEtcd(KEYS)
    etcd.put((KEYS.manifest, b"whatever"))
    with pytest.raises(LogError, match="/paddock/shop has a snapshot and no id: an import"):
        create(etcd, 1)
    assert KEYS.id not in etcd.items


def test_an_unknown_format_is_named() -> None:
    etcd = MemoryEtcd(KEYS)
    etcd.put((KEYS.id, b'{"format": 7, "name": "new"}'))
    with pytest.raises(LogError, match="/paddock/shop/id: the service has the format 7") as raised:
        create(etcd, 1)
    assert not isinstance(raised.value, LogCorruptError)


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"\xff", b'{"format": 1}', b'{"format": 1, "id": "00"}', b'{"id": "00"}']
)
def test_what_is_not_an_id_is_shown(value: bytes) -> None:
    etcd = MemoryEtcd(KEYS)
    etcd.put((KEYS.id, value))
    with pytest.raises(LogCorruptError, match="/paddock/shop/id: not the id of a service"):
        create(etcd, 1)
