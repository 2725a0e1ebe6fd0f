"""What a person may see of changes in the past: what the ACL of that time lets him read."""

import asyncio

import pytest

from paddock.dashboard.changes import Reader
from paddock.dashboard.people import Connection, Names, Service
from paddock.protocol.acl import digest_id

HERS = [f"digest:{digest_id('alice:secret')}:r"]


def reader(credentials: str = "", names: tuple[str, ...] = (), *, is_super: bool = False) -> Reader:
    async def main() -> Reader:
        given = (("digest", credentials.encode()),) if credentials else ()
        connection = Connection(Service("127.0.0.1:1"), given)
        connection.known_names = Names([*names], is_super)
        return Reader(connection)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("who", "acl", "may"),
    [
        (reader(), ["world:anyone:r"], True),
        (reader(), ["world:anyone:cdwa"], False),
        (reader(), HERS, False),
        (reader("alice:secret"), HERS, True),
        (reader("alice:guess"), HERS, False),
        # A name alone proves nothing.
        (reader(names=("digest:alice",)), HERS, False),
        (reader(names=("ip:10.0.0.7",)), ["ip:10.0.0.0/8:r"], True),
        (reader(names=("ip:11.0.0.7",)), ["ip:10.0.0.0/8:r"], False),
        (reader(is_super=True), HERS, True),
        (reader(), [], False),
        (reader(), None, False),
        (reader(), ["nonsense"], False),
    ],
)
def test_the_acl_of_that_time_decides(who: Reader, acl: list[str] | None, may: bool) -> None:
    assert who.may_read(acl) == may


def test_data_that_may_not_be_read_are_not_there() -> None:
    node = {"data": "hers", "encoding": "utf-8", "stat": {"version": 3}, "acl": HERS}
    hidden = reader().image(node)
    assert hidden == {"data": None, "size": None, "is_cut": False, "hidden": True, "version": 3}
    shown = reader("alice:secret").image(node)
    assert shown is not None
    assert (shown["data"], shown["size"], shown["acl"]) == ("aGVycw==", 4, HERS)
    bytes_of = {**node, "data": "/w==", "encoding": "base64", "acl": ["world:anyone:r"]}
    image = reader().image(bytes_of)
    assert image is not None
    assert (image["data"], image["size"]) == ("/w==", 1)
    assert reader().image(None) is None
