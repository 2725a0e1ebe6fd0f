"""What a server offers, by its settings."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.sasl.offer import make_offer
from tests.support.sasl import JAAS


def offered(config: ServerConfig) -> list[str]:
    offer = make_offer(config, bytes)
    return [] if offer is None else [one.name for one in offer.mechanisms]


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    file = tmp_path / "jaas.conf"
    file.write_text(JAAS)
    file.chmod(0o600)
    return file


def test_without_users_there_is_no_sasl(jaas: Path) -> None:
    assert make_offer(ServerConfig(), bytes) is None
    with pytest.raises(ConfigError, match="the section 'Client' has no user of SASL"):
        make_offer(ServerConfig(jaas_file=jaas, jaas_section="Client"), bytes)
    with pytest.raises(ConfigError, match="there is no section 'Other'"):
        make_offer(ServerConfig(jaas_file=jaas, jaas_section="Other"), bytes)


def test_users_are_offered_digest_md5(jaas: Path, tmp_path: Path) -> None:
    assert offered(ServerConfig(jaas_file=jaas)) == ["DIGEST-MD5"]
    users = tmp_path / "users"
    users.write_text(f"eve:zk-sasl-md5:{'0' * 32}\n")
    users.chmod(0o600)
    assert offered(ServerConfig(sasl_users_file=users)) == ["DIGEST-MD5"]
    assert offered(ServerConfig(sasl_users_file=users, jaas_file=jaas)) == ["DIGEST-MD5"]


def test_a_mechanism_that_does_not_block_has_no_threads(jaas: Path) -> None:
    offer = make_offer(ServerConfig(jaas_file=jaas), bytes)
    assert offer is not None
    assert offer.executor is None
    offer.close()


@pytest.mark.parametrize(
    ("settings", "allows"),
    [
        ({}, False),
        ({"allow_failed_sasl": True}, True),
        ({"allow_failed_sasl": True, "require_sasl": True}, False),
        ({"allow_failed_sasl": True, "enforce_authentication": True}, False),
        (
            {
                "allow_failed_sasl": True,
                "enforce_authentication": True,
                "enforced_schemes": frozenset({"digest"}),
            },
            True,
        ),
    ],
)
def test_who_fails_may_stay_unless_sasl_is_required(
    jaas: Path, settings: dict[str, bool], allows: bool
) -> None:
    offer = make_offer(ServerConfig(jaas_file=jaas, **settings), bytes)  # type: ignore[arg-type]
    assert offer is not None
    assert offer.allows_failed == allows


def test_a_file_that_everybody_can_read_is_warned_of(
    jaas: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    make_offer(ServerConfig(jaas_file=jaas), bytes)
    assert caplog.messages == []
    jaas.chmod(0o644)
    make_offer(ServerConfig(jaas_file=jaas), bytes)
    assert caplog.messages == [f"{jaas} holds the secrets of users, and everybody here can read it"]
