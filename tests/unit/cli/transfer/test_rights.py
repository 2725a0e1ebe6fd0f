"""Who may create children, and what stands for an ACL as long as we must."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from paddock.cli.transfer.rights import Rights, rights_of
from paddock.client.client import Client
from paddock.errors import UnimplementedError
from paddock.protocol.acl import (
    ACL,
    ADMIN,
    ALL,
    ANYONE,
    CREATE,
    CREATOR,
    OPEN,
    READ,
    READ_ONLY,
    Identity,
)

ALICE = Identity("digest", "alice:secret")
RIGHTS = Rights({ANYONE, ALICE}, ALICE)


def test_whoever_is_named_with_create_may_create() -> None:
    assert RIGHTS.may_create(OPEN)
    assert RIGHTS.may_create([ACL(CREATE, ALICE)])
    assert not RIGHTS.may_create([ACL(ALL & ~CREATE, ALICE)])
    assert not RIGHTS.may_create([ACL(ALL, Identity("digest", "bob:secret")), *READ_ONLY])


def test_meanwhile_nobody_else_may_do_more() -> None:
    more = set(RIGHTS.meanwhile(READ_ONLY)) - set(READ_ONLY)
    assert more == {ACL(CREATE | ADMIN, ALICE)}


def test_what_an_interrupted_import_has_left_is_known() -> None:
    assert RIGHTS.is_unfinished(RIGHTS.meanwhile(READ_ONLY), READ_ONLY)
    # Servers write down who `auth` was, which may be several.
    bob = ACL(CREATE | ADMIN, Identity("digest", "bob:secret"))
    assert RIGHTS.is_unfinished([*RIGHTS.meanwhile(READ_ONLY), bob], READ_ONLY)


def test_any_other_acl_is_not_taken_for_it() -> None:
    assert not RIGHTS.is_unfinished(READ_ONLY, READ_ONLY)
    assert not RIGHTS.is_unfinished([*READ_ONLY, ACL(READ, ALICE)], READ_ONLY)
    assert not RIGHTS.is_unfinished([ACL(CREATE | ADMIN, ALICE)], READ_ONLY)


class _Old:
    """A server before 3.7, which does not tell who one is."""

    async def who_am_i(self) -> list[tuple[str, str]]:
        raise UnimplementedError("who_am_i")


@pytest.mark.parametrize(("has_sasl", "ourselves"), [(True, CREATOR), (False, ANYONE)])
def test_a_user_of_sasl_lets_nobody_else_in_where_the_server_does_not_tell(
    has_sasl: bool, ourselves: Identity
) -> None:
    found = asyncio.run(rights_of(cast(Client, _Old()), (), has_sasl=has_sasl))
    assert set(found.meanwhile(READ_ONLY)) - set(READ_ONLY) == {ACL(CREATE | ADMIN, ourselves)}
