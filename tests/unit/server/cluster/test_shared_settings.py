"""What servers tell each other of their settings."""

import asyncio

import pytest

from paddock.server.cluster.shared_settings import differences, lease_seconds, settings_text
from paddock.server.config.config import ServerConfig
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, staged


def test_equal_settings_have_equal_texts() -> None:
    assert settings_text(ServerConfig(port=1)) == settings_text(ServerConfig(port=2))
    assert differences(settings_text(ServerConfig()), settings_text(ServerConfig())) == []


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        (ServerConfig(enforce_quota=True), ["enforceQuota=yes (no here)"]),
        (ServerConfig(sync_limit=8), ["lease=16 (10 here)"]),
        (ServerConfig(extended_types_enabled=False), ["extendedTypesEnabled=no (yes here)"]),
        (
            ServerConfig(min_session_timeout_ms=5, max_session_timeout_ms=6),
            ["minSessionTimeout=5 (4000 here)", "maxSessionTimeout=6 (40000 here)"],
        ),
        (ServerConfig(super_digest="super:xyz"), ["superDigest=yes (no here)"]),
    ],
    ids=["quota", "lease", "types", "timeouts", "super"],
)
def test_differences_are_named_with_both_values(theirs: ServerConfig, told: list[str]) -> None:
    assert differences(settings_text(ServerConfig()), settings_text(theirs)) == told


def test_a_password_is_not_told() -> None:
    assert "xyz" not in settings_text(ServerConfig(super_digest="super:xyz"))


def test_what_only_one_of_two_versions_tells_is_no_difference() -> None:
    assert differences("a=1 b=2", "a=1 c=3") == []
    assert differences("a=1", "") == []


def test_a_member_is_given_the_time_of_its_own_lease_and_never_less_than_ours() -> None:
    assert lease_seconds(settings_text(ServerConfig(sync_limit=8)), 10.0) == 16.0
    assert lease_seconds(settings_text(ServerConfig(sync_limit=1)), 10.0) == 10.0
    assert lease_seconds("", 10.0) == 10.0
    assert lease_seconds("lease=much", 10.0) == 10.0


@in_virtual_time
async def test_a_member_with_a_longer_lease_is_deposed_later() -> None:
    async with staged() as stage:
        await stage.start("a")
        await stage.start("b", sync_limit=16)
        assert stage.cluster(stage.servers["b"]).lease.seconds == 2 * T
        await stage.settle()
        stage.etcd.link("b").cut()
        await asyncio.sleep(1.7 * T)
        # It may still speak, and its sessions are its own.
        assert stage.members("a") == [1, 2]
        await asyncio.sleep(0.8 * T)
        assert stage.members("a") == [1]
        stage.etcd.link("b").heal()
        await asyncio.sleep(2 * T)
