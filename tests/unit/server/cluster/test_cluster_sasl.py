"""SASL on several servers: identities travel with entries, once all servers know of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import paddock
from paddock import ACL, AuthenticationError, Identity, NoAuthError, Permission, SaslCredentials
from paddock.state.entry import NEVER_SASL
from paddock.testing.virtual import in_virtual_time
from tests.support.sasl import ALICE, BOB, JAAS
from tests.unit.server.cluster.stage import Stage, staged

HIS = [ACL(Permission.ALL, Identity("sasl", "bob"))]


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    file = tmp_path / "jaas.conf"
    file.write_text(JAAS)
    file.chmod(0o600)
    return file


def connect(stage: Stage, name: str, user: tuple[str, str]) -> paddock.Client:
    return paddock.connect(stage.hosts(name), sasl=SaslCredentials(*user), random=Random(1))


@in_virtual_time
async def test_an_acl_holds_on_every_server(jaas: Path) -> None:
    async with staged("a", "b", jaas_file=jaas) as stage:
        async with connect(stage, "a", BOB) as here:
            await here.create("/his", b"1", acl=[ACL(Permission.ALL, Identity("auth", ""))])
        async with connect(stage, "b", BOB) as there, connect(stage, "b", ALICE) as alice:
            await there.sync("/")
            assert (await there.get_acl("/his"))[0] == HIS
            # A write is decided upon where it is applied, on every server alike.
            await there.set("/his", b"2")
            with pytest.raises(NoAuthError):
                await alice.set("/his", b"3")
        await stage.settle()


@pytest.mark.parametrize("rules", [NEVER_SASL, NEVER_SASL + 1])
@in_virtual_time
async def test_nobody_has_an_identity_before_all_servers_know_of_it(rules: int, jaas: Path) -> None:
    async with staged("a", jaas_file=jaas) as stage:
        roster = stage.core(stage.servers["a"]).machine.roster
        assert roster is not None
        roster.rules = rules
        if rules > NEVER_SASL:
            async with connect(stage, "a", BOB) as client:
                assert ("sasl", "bob") in await client.who_am_i()
                await client.create("/his", acl=HIS)
            return
        with pytest.raises(AuthenticationError, match="the server does not offer SASL"):
            await connect(stage, "a", BOB).start()
        async with paddock.connect(stage.hosts("a"), random=Random(1)) as client:
            with pytest.raises(paddock.InvalidACLError):
                await client.create("/his", acl=HIS)
