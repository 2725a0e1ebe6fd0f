"""The settings of a server: their defaults, and what a `zoo.cfg` makes of them."""

import dataclasses
from pathlib import Path

import pytest

from paddock.server.config import KEYS, ConfigError, ServerConfig, Settings, parse_zoo_cfg

DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="


@pytest.fixture
def zoo_cfg(tmp_path: Path) -> Path:
    return tmp_path / "zoo.cfg"


def settings_of(path: Path, text: str) -> Settings:
    path.write_text(text, encoding="utf-8")
    settings, warnings = parse_zoo_cfg(path)
    assert warnings == []
    return settings


def error_of(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        parse_zoo_cfg(path)
    return str(caught.value)


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


def test_every_key_sets_a_field_that_exists() -> None:
    fields = {field.name for field in dataclasses.fields(ServerConfig)}
    assert {key.field for key in KEYS} == fields
    assert len({key.name for key in KEYS}) == len(KEYS)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("dataDir=/var/lib/zookeeper", "data_directory", Path("/var/lib/zookeeper")),
        ("dataDir=here", "data_directory", Path("here")),
        ("dataDir=/with space", "data_directory", Path("/with space")),
        ("clientPort=2182", "port", 2182),
        ("clientPort=0", "port", 0),
        ("clientPort=65535", "port", 65535),
        ("clientPortAddress=0.0.0.0", "host", "0.0.0.0"),
        ("clientPortAddress=::1", "host", "::1"),
        ("tickTime=+500", "tick_time_ms", 500),
        ("minSessionTimeout=1000", "min_session_timeout_ms", 1000),
        ("minSessionTimeout=-1", "min_session_timeout_ms", -1),
        ("maxSessionTimeout=90000", "max_session_timeout_ms", 90_000),
        ("maxClientCnxns=0", "max_connections_per_address", 0),
        ("maxClientCnxns=-1", "max_connections_per_address", 0),
        ("snapCount=2", "snapshot_every", 2),
        ("autopurge.snapRetainCount=3", "purge_retain_count", 3),
        ("autopurge.purgeInterval=24", "purge_interval_hours", 24),
        ("autopurge.purgeInterval=-1", "purge_interval_hours", 0),
        ("extendedTypesEnabled=false", "extended_types_enabled", False),
        ("extendedTypesEnabled=TRUE", "extended_types_enabled", True),
        ("jute.maxbuffer=4194304", "max_frame_bytes", 4_194_304),
        ("jute.maxbuffer=0x3FFFFF", "max_frame_bytes", 0x3FFFFF),
        ("jute.maxbuffer=#ff", "max_frame_bytes", 255),
        ("jute.maxbuffer=0100", "max_frame_bytes", 64),
        ("4lw.commands.whitelist=stat, ruok,", "four_letter_words", {"stat", "ruok"}),
        ("4lw.commands.whitelist=*", "four_letter_words", {"*"}),
        ("4lw.commands.whitelist=", "four_letter_words", set()),
        (f"DigestAuthenticationProvider.superDigest={DIGEST}", "super_digest", DIGEST),
        ("znode.container.checkIntervalMs=100", "container_check_interval_ms", 100),
        ("zookeeper.snapCount=5000", "snapshot_every", 5000),
        ("zookeeper.jute.maxbuffer=0xff", "max_frame_bytes", 255),
    ],
)
def test_a_key_sets_its_field(zoo_cfg: Path, line: str, field: str, value: object) -> None:
    settings = settings_of(zoo_cfg, line)
    assert settings == {field: value}
    ServerConfig(**settings)


def test_the_sample_file_of_apache_zookeeper_is_understood(zoo_cfg: Path) -> None:
    zoo_cfg.write_text(
        "# The number of milliseconds of each tick\ntickTime=2000\ninitLimit=10\nsyncLimit=5\n"
        "dataDir=/tmp/zookeeper\nclientPort=2181\n#maxClientCnxns=60\n"
    )
    settings, warnings = parse_zoo_cfg(zoo_cfg)
    assert settings == {
        "tick_time_ms": 2000,
        "data_directory": Path("/tmp/zookeeper"),
        "port": 2181,
    }
    assert warnings == [
        f"{zoo_cfg}:3: key 'initLimit' is not used by this server",
        f"{zoo_cfg}:4: key 'syncLimit' is not used by this server",
    ]


def test_members_of_an_ensemble_get_a_warning_that_says_why(zoo_cfg: Path) -> None:
    zoo_cfg.write_text("server.1=one:2888:3888\n")
    _, [warning] = parse_zoo_cfg(zoo_cfg)
    assert warning == (
        f"{zoo_cfg}:1: key 'server.1' is not used by this server: "
        "it runs alone, ensembles are not run here"
    )


@pytest.mark.parametrize(
    ("line", "field", "used"),
    [
        ("autopurge.snapRetainCount = 1", "purge_retain_count", 3),
        ("snapCount = -5", "snapshot_every", 2),
    ],
)
def test_a_number_that_upstream_raises_is_raised_with_a_warning(
    zoo_cfg: Path, line: str, field: str, used: int
) -> None:
    zoo_cfg.write_text(line)
    settings, warnings = parse_zoo_cfg(zoo_cfg)
    assert settings == {field: used}
    assert warnings == [f"{zoo_cfg}:1: {line} is too small, {used} is used"]


def test_of_a_key_given_twice_the_last_one_counts(zoo_cfg: Path) -> None:
    assert settings_of(zoo_cfg, "clientPort=1\nclientPort=2\n") == {"port": 2}


def test_a_file_name_that_is_no_utf8_survives(zoo_cfg: Path) -> None:
    zoo_cfg.write_bytes(b"dataDir=/caf\xe9")
    settings, _ = parse_zoo_cfg(zoo_cfg)
    assert bytes(settings["data_directory"]) == b"/caf\xe9"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dataDir=", "a folder"),
        ("clientPort=65536", "a port, 0 to 65535"),
        ("clientPort=-1", "a port, 0 to 65535"),
        ("clientPort=", "a port, 0 to 65535"),
        ("clientPort=0x10", "a port, 0 to 65535"),
        ("clientPort=2_181", "a port, 0 to 65535"),
        ("clientPortAddress=", "a name or an address"),
        ("tickTime=two", "milliseconds, 1 or more"),
        ("tickTime=0", "milliseconds, 1 or more"),
        ("tickTime=2147483648", "milliseconds, 1 or more"),
        ("minSessionTimeout=0", "milliseconds, 1 or more, or -1 for 2 ticks"),
        ("maxSessionTimeout=-2", "milliseconds, 1 or more, or -1 for 20 ticks"),
        ("maxClientCnxns=many", "a number of connections, 0 for no limit"),
        ("snapCount=1e5", "a number of entries, 2 or more"),
        ("autopurge.snapRetainCount=x", "a number of snapshots, 3 or more"),
        ("autopurge.purgeInterval=1h", "hours, 0 for never"),
        ("extendedTypesEnabled=yes", "true or false"),
        ("jute.maxbuffer=4M", "a number of bytes, 1 or more, decimal or as 0x…"),
        ("jute.maxbuffer=0", "a number of bytes, 1 or more, decimal or as 0x…"),
        ("jute.maxbuffer=0x80000000", "a number of bytes, 1 or more, decimal or as 0x…"),
        ("4lw.commands.whitelist=stats", "four-letter words with commas between them, or *"),
        ("znode.container.checkIntervalMs=0", "milliseconds, 1 or more"),
        ("zookeeper.tickTime=x", "milliseconds, 1 or more"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_and_key(
    zoo_cfg: Path, line: str, expected: str
) -> None:
    key, _, value = line.partition("=")
    message = error_of(zoo_cfg, f"# first\n\n{line}\n")
    assert message == f"{zoo_cfg}:3: {key} = {value!r}: expected {expected}"


def test_a_line_break_in_a_value_does_not_break_the_message(zoo_cfg: Path) -> None:
    assert "\n" not in error_of(zoo_cfg, r"clientPort=21\n81")


@pytest.mark.parametrize("value", ["secret", "super:secret", "super:c2VjcmV0", f":{DIGEST[6:]}"])
def test_a_wrong_digest_of_the_superuser_is_not_repeated(zoo_cfg: Path, value: str) -> None:
    message = error_of(zoo_cfg, f"DigestAuthenticationProvider.superDigest={value}")
    assert message == (
        f"{zoo_cfg}:1: DigestAuthenticationProvider.superDigest = (not shown): "
        "expected user:digest, where digest is the SHA-1 of user:password in base 64"
    )


def test_contradictory_timeouts_are_named_by_the_later_of_them(zoo_cfg: Path) -> None:
    message = error_of(zoo_cfg, "maxSessionTimeout=4000\nminSessionTimeout=5000\n")
    assert message == (
        f"{zoo_cfg}:2: minSessionTimeout = '5000': "
        "the smallest session timeout, 5000 ms, is larger than the largest, 4000 ms"
    )


def test_a_timeout_that_contradicts_the_tick_is_refused(zoo_cfg: Path) -> None:
    message = error_of(zoo_cfg, "maxSessionTimeout=1000\n\ntickTime=2000\n")
    assert message.startswith(f"{zoo_cfg}:3: tickTime = '2000': the smallest session timeout, 4000")


def test_a_timeout_that_contradicts_the_default_tick_is_refused(zoo_cfg: Path) -> None:
    message = error_of(zoo_cfg, "minSessionTimeout=60000\n")
    assert message.startswith(f"{zoo_cfg}:1: minSessionTimeout = '60000': the smallest")


def test_a_missing_file_is_one_line(zoo_cfg: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_zoo_cfg(zoo_cfg)
    assert str(caught.value) == f"{zoo_cfg}: cannot be read: No such file or directory"
