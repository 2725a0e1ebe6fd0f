"""The settings of a server that make sense together."""

from typing import Any

import pytest

from paddock.server.config.config import ConfigError, ServerConfig

DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="


def test_defaults_are_known() -> None:
    config = ServerConfig()
    assert (config.host, config.port, config.data_directory) == ("127.0.0.1", 2181, None)
    assert config.tick_time_ms == 2000
    assert config.min_session_timeout_ms == 4000
    assert config.max_session_timeout_ms == 40_000
    assert config.max_connections_per_address == 60
    assert config.snapshot_every == 100_000
    assert config.purge_retain_count == 3
    assert config.purge_interval_hours == 1
    assert config.extended_types_enabled
    assert config.max_frame_bytes == 1_048_575
    assert config.four_letter_words == {"srvr"}
    assert config.super_digest is None
    assert config.container_check_interval_ms == 60_000


def test_session_timeouts_follow_the_tick() -> None:
    config = ServerConfig(tick_time_ms=500)
    assert (config.min_session_timeout_ms, config.max_session_timeout_ms) == (1000, 10_000)


def test_a_given_session_timeout_stays_as_it_is() -> None:
    config = ServerConfig(tick_time_ms=500, min_session_timeout_ms=7)
    assert (config.min_session_timeout_ms, config.max_session_timeout_ms) == (7, 10_000)


def test_a_smallest_timeout_above_the_largest_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"5000 ms, is larger than the largest, 4000 ms"):
        ServerConfig(min_session_timeout_ms=5000, max_session_timeout_ms=4000)


def test_the_digest_of_the_superuser_is_not_shown() -> None:
    assert DIGEST not in repr(ServerConfig(super_digest=DIGEST))


def test_srvr_is_answered_even_if_the_list_leaves_it_out() -> None:
    config = ServerConfig(four_letter_words=frozenset({"ruok"}))
    assert [word for word in ("srvr", "ruok", "mntr") if config.answers_word(word)] == [
        "srvr",
        "ruok",
    ]


def test_a_star_answers_every_word() -> None:
    assert ServerConfig(four_letter_words=frozenset({"*"})).answers_word("mntr")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, None),
        ({"admin_enabled": True}, ("127.0.0.1", 8080)),
        ({"admin_port": 0}, ("127.0.0.1", 0)),
        ({"admin_host": "::"}, ("::", 8080)),
        ({"admin_enabled": False, "admin_host": "::", "admin_port": 1}, None),
    ],
)
def test_there_is_an_admin_server_if_somebody_asks_for_it(
    given: dict[str, Any], address: tuple[str, int] | None
) -> None:
    assert ServerConfig(**given).admin_address == address
