"""The settings of a server that make sense together."""

from pathlib import Path
from typing import Any

import pytest

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.config.log_url import LogUrl

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
    assert (config.history_seconds, config.history_bytes) == (86_400, 1 << 30)
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


@pytest.mark.parametrize(
    ("tick_time_ms", "sync_limit", "seconds"),
    [(2000, 5, 10.0), (2000, 2, 4.0), (500, 5, 4.0), (3000, 2, 6.0), (1, 1, 4.0)],
)
def test_the_lease_follows_the_tick_but_is_never_short(
    tick_time_ms: int, sync_limit: int, seconds: float
) -> None:
    config = ServerConfig(tick_time_ms=tick_time_ms, sync_limit=sync_limit)
    assert config.lease_seconds == seconds


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"shared_log": LogUrl(("h:1",), "n"), "standalone": True}, "does not serve alone"),
        (
            {"shared_log": LogUrl(("h:1",), "n"), "max_frame_bytes": (1 << 20) + 1},
            "jute.maxbuffer is 1048577, and with a log in etcd",
        ),
        ({"etcd_cert_file": Path("c")}, "--etcd-cert-file and --etcd-key-file"),
        ({"etcd_key_file": Path("k")}, "--etcd-cert-file and --etcd-key-file"),
        ({"etcd_user": "me"}, "PADDOCK_ETCD_PASSWORD"),
        ({"etcd_password": "x"}, "PADDOCK_ETCD_PASSWORD"),
        ({"shared_log": LogUrl(("h:1",), "n"), "etcd_ca_file": Path("ca")}, "write etcds://"),
        (
            {"shared_log": LogUrl(("h:1",), "n"), "max_frame_bytes": (1 << 20) + 1},
            "at most 1048576",
        ),
    ],
)
def test_settings_of_a_shared_log_that_contradict_each_other_are_refused(
    given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        ServerConfig(**given)


def test_the_longest_request_of_a_shared_log_is_one_mebibyte_and_of_a_file_any() -> None:
    url = LogUrl(("h:1",), "n")
    assert ServerConfig(shared_log=url, max_frame_bytes=1 << 20).max_frame_bytes == 1 << 20
    assert ServerConfig(max_frame_bytes=1 << 24).max_frame_bytes == 1 << 24


def test_certificates_are_for_a_secured_log_and_for_one_that_is_named_later() -> None:
    files = {"etcd_ca_file": Path("ca"), "etcd_cert_file": Path("c"), "etcd_key_file": Path("k")}
    assert ServerConfig(**files).shared_log is None  # type: ignore[arg-type]
    url = LogUrl(("h:1",), "n", is_secure=True)
    assert ServerConfig(shared_log=url, **files).shared_log == url  # type: ignore[arg-type]


def test_a_server_that_may_be_read_only_says_so_without_being_asked_to() -> None:
    assert not ServerConfig().answers_word("isro")
    assert ServerConfig(read_only_mode_enabled=True).answers_word("isro")
