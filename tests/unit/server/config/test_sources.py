"""Where settings come from: a `zoo.cfg`, the environment, options; what is said of wrong ones."""

from pathlib import Path
from typing import Any

import pytest

from paddock.server.config.config import PROMETHEUS, ConfigError, ServerConfig
from paddock.server.config.settings import SETTINGS
from paddock.server.config.sources import Settings

DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
DOCUMENTATION = Path(__file__).parents[4] / "docs" / "reference" / "configuration.md"


@pytest.fixture
def zoo_cfg(tmp_path: Path) -> Path:
    return tmp_path / "zoo.cfg"


def read(path: Path, text: str) -> Settings:
    path.write_text(text, encoding="utf-8")
    settings = Settings()
    settings.read_file(path)
    return settings


def config_of(path: Path, text: str) -> ServerConfig:
    settings = read(path, text)
    assert settings.warnings == []
    return settings.config()


def warnings_of(path: Path, text: str) -> list[str]:
    return [one.removeprefix(f"{path}:") for one in read(path, text).warnings]


def error_of(path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path, text).config()
    return str(caught.value)


def test_a_line_without_a_separator_is_read_as_java_does_with_a_warning(zoo_cfg: Path) -> None:
    text = "clientPort=2182\ntickTime 3000\nthis is no setting\n"
    settings = read(zoo_cfg, text)
    assert (settings.config().port, settings.config().tick_time_ms) == (2182, 3000)
    assert [one.removeprefix(f"{zoo_cfg}:") for one in settings.warnings] == [
        "2: no = or : in this line; 'tickTime' is taken for a key",
        "3: no = or : in this line; 'this' is taken for a key",
        "3: key 'this' is not known",
    ]


def test_the_file_in_the_documentation_is_understood(zoo_cfg: Path) -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert config_of(zoo_cfg, text.split("```")[1].removeprefix("ini")).port == 2181


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
        ("minSessionTimeout=-1", "min_session_timeout_ms", 4000),
        ("maxSessionTimeout=90000", "max_session_timeout_ms", 90_000),
        ("maxClientCnxns=0", "max_connections_per_address", 0),
        ("maxClientCnxns=-1", "max_connections_per_address", 0),
        ("snapCount=2", "snapshot_every", 2),
        ("snapSizeLimitInKb=4194304", "snapshot_every_kib", 4_194_304),
        ("snapSizeLimitInKb=-1", "snapshot_every_kib", 0),
        ("autopurge.snapRetainCount=3", "purge_retain_count", 3),
        ("autopurge.purgeInterval=24", "purge_interval_hours", 24),
        ("autopurge.purgeInterval=-1", "purge_interval_hours", 0),
        ("paddock.history=7d", "history_seconds", 604_800),
        ("paddock.history=2 W", "history_seconds", 1_209_600),
        ("paddock.history=90m", "history_seconds", 5400),
        ("paddock.history=12h", "history_seconds", 43_200),
        ("paddock.history=30s", "history_seconds", 30),
        ("paddock.history=86400", "history_seconds", 86_400),
        ("paddock.history=OFF", "history_seconds", 0),
        ("paddock.historyBytes=10GB", "history_bytes", 10_000_000_000),
        ("paddock.historyBytes=2 GiB", "history_bytes", 2 << 30),
        ("paddock.historyBytes=500kib", "history_bytes", 500 << 10),
        ("paddock.historyBytes=1tb", "history_bytes", 10**12),
        ("paddock.historyBytes=0x100000", "history_bytes", 1 << 20),
        ("extendedTypesEnabled=false", "extended_types_enabled", False),
        ("extendedTypesEnabled=TRUE", "extended_types_enabled", True),
        ("enforceQuota=true", "enforce_quota", True),
        ("jute.maxbuffer=4194304", "max_frame_bytes", 4_194_304),
        ("jute.maxbuffer=0x3FFFFF", "max_frame_bytes", 0x3FFFFF),
        ("jute.maxbuffer=#ff", "max_frame_bytes", 255),
        ("jute.maxbuffer=0100", "max_frame_bytes", 64),
        ("4lw.commands.whitelist=stat, ruok,", "four_letter_words", {"stat", "ruok"}),
        ("client.portUnification=false", "port_unification", False),
        ("ssl.protocol=TLSv1.3", "tls_protocol", "TLSv1.3"),
        ("ssl.enabledProtocols=TLSv1.3, TLSv1.2", "tls_protocols", {"TLSv1.2", "TLSv1.3"}),
        ("ssl.clientAuth=WANT", "tls_client_auth", "want"),
        ("ssl.keyStore.type=pem", "tls_key_store_type", "PEM"),
        ("ssl.ocsp=false", "tls_ocsp", False),
        ("netty.server.outstandingHandshake.limit=-1", "tls_max_handshakes", 0),
        ("4lw.commands.whitelist=*", "four_letter_words", {"*"}),
        ("4lw.commands.whitelist=", "four_letter_words", set()),
        (f"DigestAuthenticationProvider.superDigest={DIGEST}", "super_digest", DIGEST),
        ("znode.container.checkIntervalMs=100", "container_check_interval_ms", 100),
        ("zookeeper.snapCount=5000", "snapshot_every", 5000),
        ("audit.enable=true", "audit_enabled", True),
        ("zookeeper.fsync.warningthresholdms=20", "slow_sync_ms", 20),
        ("zookeeper.jute.maxbuffer=0xff", "max_frame_bytes", 255),
    ],
)
def test_a_key_sets_its_field(zoo_cfg: Path, line: str, field: str, value: object) -> None:
    assert getattr(config_of(zoo_cfg, line), field) == value


def test_the_sample_file_of_apache_zookeeper_is_understood(zoo_cfg: Path) -> None:
    settings = read(
        zoo_cfg,
        "# The number of milliseconds of each tick\ntickTime=2000\ninitLimit=10\nsyncLimit=5\n"
        "dataDir=/tmp/zookeeper\nclientPort=2181\n#maxClientCnxns=60\n",
    )
    assert settings.config() == ServerConfig(data_directory=Path("/tmp/zookeeper"))
    unused = "is not used by this server: it has no links to other servers"
    assert settings.warnings == [f"{zoo_cfg}:3: key 'initLimit' {unused}"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("server.1=one:2888:3888", "it has no links to other servers"),
        ("ssl.quorum.keyStore.location=/x", "it has no links to other servers"),
        ("forceSync=no", "a write is always on disk before it is acknowledged"),
        ("zookeeper.skipACL=yes", "ACLs always hold, and are checked when a write is applied"),
        ("netty.advancedFlowControl.enabled=true", "it is about the JVM and its libraries"),
        (
            "authProvider.1=X",
            "there are world, auth, ip, digest, x509, and sasl with users or a keytab",
        ),
        ("jaasLoginRenew=3600000", "SASL has the users of paddock.jaasFile"),
        ("zookeeper.sasl.client=true", "it is a setting of clients, or of links between servers"),
        (
            "requireClientAuthScheme=sasl",
            "Apache ZooKeeper does not read it either; see sessionRequireClientSASLAuth",
        ),
        ("maxBatchSize=9", "a batch forms while the one before it is written"),
        (
            "metricsProvider.numWorkerThreads=4",
            "metrics are read when they are asked for, without threads and queues",
        ),
        (
            "metricsProvider.ssl.keyStore.location=/x",
            "/metrics is served with TLS by the admin server, see admin.forceHttps",
        ),
        (
            "metricsProvider.other=1",
            "metrics have the keys className, httpHost, httpPort and exportJvmInfo",
        ),
    ],
)
def test_a_key_that_means_nothing_here_gets_a_warning_that_says_why(
    zoo_cfg: Path, line: str, reason: str
) -> None:
    key = line.partition("=")[0]
    [warning] = warnings_of(zoo_cfg, line)
    assert warning == f"1: key {key!r} is not used by this server: {reason}"


THREE = "dataDir=/d\nserver.1=one:2888:3888\nserver.2=two:2888:3888\nserver.3=three:2888:3888\n"
WHAT_HELPS = (
    "; have them share a log with --log, leave one server in the list, or have this one serve alone"
    " with --standalone (paddock.standalone=true)"
)


def test_a_file_that_lists_several_servers_is_refused_with_what_helps(zoo_cfg: Path) -> None:
    assert error_of(zoo_cfg, THREE) == (
        f"{zoo_cfg}:2: server.1, server.2, server.3 list 3 servers, which would not know each"
        f" other: each would serve alone, on data of its own{WHAT_HELPS}"
    )


def test_a_long_list_of_servers_is_not_named_whole(zoo_cfg: Path) -> None:
    said = error_of(zoo_cfg, "".join(f"server.{one}=h:1:2\n" for one in range(1, 100)))
    assert "server.5, … list 99 servers" in said


@pytest.mark.parametrize(
    "text",
    ["server.1=one:2888:3888\n", "server.1=one:1:2\nserver.1=one:2888:3888\nserver.principal=x\n"],
)
def test_a_file_that_lists_one_server_is_used_with_a_warning(zoo_cfg: Path, text: str) -> None:
    settings = read(zoo_cfg, text)
    assert settings.config() == ServerConfig()
    assert settings.warnings


@pytest.mark.parametrize("way", ["file", "variable", "option"])
def test_a_list_of_servers_is_passed_over_if_asked_to_serve_alone(zoo_cfg: Path, way: str) -> None:
    settings = read(zoo_cfg, THREE + ("paddock.standalone=true\n" if way == "file" else ""))
    if way == "variable":
        settings.read_environment({"PADDOCK_STANDALONE": "true"})
    if way == "option":
        settings.read_options({"--standalone": "true"})
    assert settings.config().standalone
    assert len(settings.warnings) == 3


@pytest.mark.parametrize("way", ["file", "variable", "option"])
def test_a_list_of_servers_that_share_a_log_is_passed_over(zoo_cfg: Path, way: str) -> None:
    url = "etcd://h:1/name"
    settings = read(zoo_cfg, THREE + (f"log={url}\n" if way == "file" else ""))
    if way == "variable":
        settings.read_environment({"PADDOCK_LOG": url})
    if way == "option":
        settings.read_options({"--log": url})
    assert str(settings.config().shared_log) == url
    assert len(settings.warnings) == 3


def test_what_is_wrong_with_the_address_of_a_log_is_named_with_its_source(zoo_cfg: Path) -> None:
    assert error_of(zoo_cfg, "log=etcd://h:x/name") == (
        f"{zoo_cfg}:1: log = 'etcd://h:x/name': the port 'x' of h cannot be used: 1 to 65535"
    )


def test_a_password_in_the_address_of_a_log_is_not_repeated(zoo_cfg: Path) -> None:
    said = error_of(zoo_cfg, "log=etcd://me:hush@h/name")
    assert said.startswith(f"{zoo_cfg}:1: log = (not shown): no user or password belongs here")
    assert "hush" not in said


def test_the_password_of_etcd_comes_from_the_environment_alone(zoo_cfg: Path) -> None:
    settings = Settings()
    settings.read_environment({"PADDOCK_ETCD_USER": "me", "PADDOCK_ETCD_PASSWORD": "hush"})
    config = settings.config()
    assert (config.etcd_user, config.etcd_password) == ("me", "hush")
    assert "hush" not in repr(config)
    assert warnings_of(zoo_cfg, "paddock.etcdPassword=hush\n=hush") == [
        "1: key 'paddock.etcdPassword' is not known",
        "2: key '' is not known",
    ]


def test_a_list_of_servers_in_a_file_of_its_own_is_read(zoo_cfg: Path, tmp_path: Path) -> None:
    listed = tmp_path / "zoo.cfg.dynamic"
    listed.write_text("server.1=one:1:2;2181\n\nserver.2=two:1:2;2181\n")
    said = error_of(zoo_cfg, f"dynamicConfigFile={listed}\n")
    assert said.startswith(f"{listed}:1: server.1, server.2 list 2 servers")
    listed.write_text("server.1=one:1:2;2181\n")
    assert read(zoo_cfg, f"dynamicConfigFile={listed}\n").config() == ServerConfig()


def test_only_whole_keys_are_members_of_an_ensemble(zoo_cfg: Path, tmp_path: Path) -> None:
    others = "server.1=one:1:2\nserver.2.role=x\nserver.2x=y\nserverx3=z\nserver.=\n"
    assert read(zoo_cfg, others).config() == ServerConfig()
    listed = tmp_path / "zoo.cfg.dynamic"
    listed.write_text(others)
    assert read(zoo_cfg, f"dynamicConfigFile={listed}\n").config() == ServerConfig()


def test_a_list_of_its_own_may_hold_any_bytes_but_not_have_any_name(
    zoo_cfg: Path, tmp_path: Path
) -> None:
    listed = tmp_path / "zoo.cfg.dynamic"
    listed.write_bytes(b"# \xff\nserver.1=one:1:2\nserver.2=two:1:2\n")
    assert "list 2 servers" in error_of(zoo_cfg, f"dynamicConfigFile={listed}\n")
    assert "cannot be read: " in error_of(zoo_cfg, "dynamicConfigFile=a\\u0000b\n")


def test_a_list_of_servers_that_cannot_be_read_is_refused(zoo_cfg: Path, tmp_path: Path) -> None:
    assert error_of(zoo_cfg, f"\ndynamicConfigFile={tmp_path / 'none'}\n") == (
        f"{zoo_cfg}:2: dynamicConfigFile = {str(tmp_path / 'none')!r} cannot be read: No such file"
        f" or directory, and may list several servers{WHAT_HELPS}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        "sessionRequireClientSASLAuth=true",
        "zookeeper.sessionRequireClientSASLAuth=true",
        "enforce.auth.enabled=true\nenforce.auth.schemes=sasl",
    ],
)
def test_a_file_that_lets_nobody_in_without_sasl_needs_users(zoo_cfg: Path, lines: str) -> None:
    assert error_of(zoo_cfg, lines).endswith(
        "nobody could authenticate: SASL needs users, by --jaas-file or --sasl-users-file, or"
        " --kerberos-keytab"
    )
    config = config_of(zoo_cfg, f"{lines}\npaddock.jaasFile=/jaas.conf")
    assert config.requires_sasl()
    assert config.enforced_schemes == {"sasl"}


def test_one_of_several_schemes_needs_no_users_of_sasl(zoo_cfg: Path) -> None:
    assert not config_of(zoo_cfg, "enforce.auth.enabled=true").offers_sasl()


def test_superusers_of_sasl_may_have_a_key_each(zoo_cfg: Path) -> None:
    lines = "superUser=ann,bob\nsuperUser.1=zk/host@REALM\nzookeeper.superUser.ops=eve\n"
    names = {"ann", "bob", "zk/host@REALM", "eve"}
    assert config_of(zoo_cfg, lines).sasl_super_users == names
    # In any order; and of a key that is repeated, the last value counts.
    assert config_of(zoo_cfg, "superUser.1=eve\nsuperUser=ann").sasl_super_users == {"ann", "eve"}
    assert config_of(zoo_cfg, "superUser=eve\nsuperUser=ann").sasl_super_users == {"ann"}
    assert config_of(zoo_cfg, "superUser.1=eve").sasl_super_users == {"eve"}
    # Not every key that begins like that is one.
    settings = read(zoo_cfg, "superUsers=eve")
    assert settings.warnings != []
    assert settings.config().sasl_super_users == set()


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("clientport", "; did you mean clientPort?"),
        ("maxClientCnxn", "; did you mean maxClientCnxns?"),
        ("colour", ""),
    ],
)
def test_a_key_that_nobody_knows_gets_a_warning_with_what_was_meant(
    zoo_cfg: Path, key: str, hint: str
) -> None:
    assert warnings_of(zoo_cfg, f"{key}=1") == [f"1: key {key!r} is not known{hint}"]


def test_variables_beat_the_file_and_options_beat_variables(zoo_cfg: Path) -> None:
    settings = read(zoo_cfg, "clientPort=1\ntickTime=10\nmaxClientCnxns=3\n")
    settings.read_environment({"PADDOCK_PORT": "2", "PADDOCK_TICK_TIME_MS": "20", "HOME": "x"})
    settings.read_options({"--port": "3"})
    config = settings.config()
    assert (config.port, config.tick_time_ms, config.max_connections_per_address) == (3, 20, 3)


@pytest.mark.parametrize(
    "setting",
    # One has a single value, which no test can tell from its default; one is only a variable.
    [one for one in SETTINGS if one.field not in ("tls_ocsp", "etcd_password")],
    ids=lambda one: one.field,
)
def test_a_value_means_the_same_wherever_it_is_written(setting: Any, zoo_cfg: Path) -> None:
    text = {
        "data_directory": "/data",
        "data_log_directory": "/log",
        "host": "::1",
        "super_digest": DIGEST,
        "four_letter_words": "ruok,mntr",
        "enforced_schemes": "ip",
        "log_level": "DEBUG",
        "log_format": "JSON",
        "audit_file": "/audit.log",
        "admin_host": "::1",
        "admin_url": "/admin",
        "max_session_timeout_ms": "11000",
        "tls_key_store_type": "pkcs12",
        "tls_trust_store_type": "JKS",
        "tls_client_auth": "want",
        "tls_protocol": "TLSv1.2",
        "tls_protocols": "TLSv1.3",
        "shared_log": "etcds://h/n",
        "advertise": "h:1",
        "metrics_provider": PROMETHEUS,
    }.get(setting.field, "11")
    if setting.is_switch:
        text = "false" if getattr(ServerConfig(), setting.field) else "true"
    # What no setting about TLS or SASL makes sense without.
    needed = {
        "PADDOCK_SECURE_PORT": "0",
        "PADDOCK_TLS_KEY_STORE": "/key",
        "PADDOCK_TLS_TRUST_STORE": "/trust",
        "PADDOCK_JAAS_FILE": "/jaas",
    }
    # What is given together.
    if setting.field in ("etcd_cert_file", "etcd_key_file"):
        needed |= {"PADDOCK_ETCD_CERT_FILE": "/cert", "PADDOCK_ETCD_KEY_FILE": "/key"}
    if setting.field == "etcd_user":
        needed |= {"PADDOCK_ETCD_PASSWORD": "x"}
    by_file, by_variable, by_option = Settings(), Settings(), Settings()
    zoo_cfg.write_text(f"{setting.key}={text}")
    for one in (by_file, by_variable, by_option):
        one.read_environment({name: needed[name] for name in needed if name != setting.variable})
    by_file.read_file(zoo_cfg)
    by_variable.read_environment({setting.variable: text})
    by_option.read_options({setting.option: text})
    assert by_file.warnings == []
    value = getattr(by_file.config(), setting.field)
    assert value != getattr(ServerConfig(), setting.field)
    assert getattr(by_variable.config(), setting.field) == value
    assert getattr(by_option.config(), setting.field) == value


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings().read_environment({"PADDOCK_PORT": "x"})
    assert str(caught.value) == "PADDOCK_PORT = 'x': expected a port, 0 to 65535"


def test_a_variable_that_nobody_knows_gets_a_warning() -> None:
    settings = Settings()
    settings.read_environment(
        {"PADDOCK_TICKTIME_MS": "1", "PADDOCK_X": "1", "PADDOCK_CONFIG": "f", "OTHER": "1"}
    )
    assert settings.warnings == [
        "variable PADDOCK_TICKTIME_MS is not known; did you mean PADDOCK_TICK_TIME_MS?",
        "variable PADDOCK_X is not known",
    ]


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings().read_options({"--tick-time-ms": "0"})
    assert str(caught.value) == "--tick-time-ms = '0': expected milliseconds, 1 or more"


def test_an_option_that_contradicts_the_file_is_named(zoo_cfg: Path) -> None:
    settings = read(zoo_cfg, "minSessionTimeout=5000\n")
    settings.read_options({"--max-session-timeout-ms": "4000"})
    with pytest.raises(ConfigError, match=r"^--max-session-timeout-ms = '4000': the smallest"):
        settings.config()


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
    settings = read(zoo_cfg, line)
    assert getattr(settings.config(), field) == used
    assert settings.warnings == [f"{zoo_cfg}:1: {line} is too small, {used} is used"]


def test_of_a_key_given_twice_the_last_one_counts(zoo_cfg: Path) -> None:
    assert config_of(zoo_cfg, "clientPort=1\nclientPort=2\n").port == 2


def test_a_file_name_that_is_no_utf8_survives(zoo_cfg: Path) -> None:
    zoo_cfg.write_bytes(b"dataDir=/caf\xe9")
    settings = Settings()
    settings.read_file(zoo_cfg)
    assert bytes(settings.config().data_directory or Path()) == b"/caf\xe9"


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
        ("maxClientCnxns=many", "a number, 0 for no limit"),
        ("snapCount=1e5", "a number of entries, 2 or more"),
        ("autopurge.snapRetainCount=x", "a number of snapshots, 3 or more"),
        ("autopurge.purgeInterval=1h", "hours, 0 for never"),
        ("paddock.history=on", "a duration, such as 90m, 12h or 7d, or off"),
        ("paddock.history=", "a duration, such as 90m, 12h or 7d, or off"),
        ("paddock.history=-1d", "a duration, such as 90m, 12h or 7d, or off"),
        ("paddock.history=1y", "a duration, such as 90m, 12h or 7d, or off"),
        ("paddock.history=9999w", "a duration, such as 90m, 12h or 7d, or off"),
        ("paddock.historyBytes=0GB", "a number of bytes, 1 or more, such as 500MB or 10GiB"),
        ("paddock.historyBytes=1.5GB", "a number of bytes, 1 or more, such as 500MB or 10GiB"),
        ("paddock.historyBytes=1d", "a number of bytes, 1 or more, such as 500MB or 10GiB"),
        ("paddock.historyBytes=off", "a number of bytes, 1 or more, such as 500MB or 10GiB"),
        ("extendedTypesEnabled=yes", "true or false"),
        ("jute.maxbuffer=4M", "a number of bytes, 1 or more, decimal or as 0x…"),
        ("jute.maxbuffer=0", "a number of bytes, 1 or more, decimal or as 0x…"),
        ("jute.maxbuffer=0x80000000", "a number of bytes, 1 or more, decimal or as 0x…"),
        ("4lw.commands.whitelist=stats", "four-letter words with commas between them, or *"),
        ("ssl.protocol=TLSv1.1", "TLSv1.2 or TLSv1.3; older versions are not secure"),
        (
            "ssl.enabledProtocols=TLSv1.2,TLSv1",
            "TLSv1.2 and TLSv1.3, with a comma; older versions are not secure",
        ),
        ("ssl.clientAuth=yes", "need, want or none"),
        (
            "ssl.keyStore.type=WINDOWS",
            "PEM (or JKS, PKCS12, BCFKS, which must be converted)",
        ),
        (
            "ssl.ocsp=true",
            "false: OCSP is not supported; revocation lists are (ssl.crl)",
        ),
        ("ssl.handshakeDetectionTimeoutMillis=0", "milliseconds, 1 or more"),
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


STORES = "ssl.keyStore.location=/key\nssl.trustStore.location=/trust\n"


@pytest.mark.parametrize(
    ("lines", "port", "secure_port"),
    [
        ("", 2181, None),
        ("secureClientPort=2281\n", None, 2281),
        ("secureClientPort=2281\nclientPort=2182\n", 2182, 2281),
        ("client.portUnification=true\n", 2181, None),
    ],
)
def test_a_secure_port_alone_is_the_only_port(
    zoo_cfg: Path, lines: str, port: int | None, secure_port: int | None
) -> None:
    config = config_of(zoo_cfg, STORES + lines)
    assert (config.port, config.secure_port) == (port, secure_port)
    assert config.speaks_tls() is bool(lines)


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("secureClientPort=1", 1, "TLS needs the server's certificate and key"),
        ("client.portUnification=true", 1, "TLS needs the server's certificate and key"),
        (
            "ssl.keyStore.location=/key\nsecureClientPort=1",
            2,
            "clients' certificates cannot be checked without a trust store",
        ),
        ("secureClientPortAddress=::1", 1, "there is a secure host, but no secure port"),
        (
            "admin.serverPort=1\nadmin.forceHttps=true",
            2,
            "TLS on the admin server needs the server's certificate and key",
        ),
        (
            (
                "admin.serverPort=1\nadmin.portUnification=true\nssl.keyStore.location=/key"
                "\nadmin.needClientAuth=true"
            ),
            4,
            "the certificates of the admin server's clients cannot be checked without a trust",
        ),
    ],
)
def test_tls_without_what_it_needs_is_refused(
    zoo_cfg: Path, lines: str, line: int, message: str
) -> None:
    error = error_of(zoo_cfg, lines)
    assert error.startswith(f"{zoo_cfg}:{line}: {lines.splitlines()[-1].partition('=')[0]} = ")
    assert message in error


def test_a_password_is_neither_repeated_nor_shown(zoo_cfg: Path) -> None:
    config = config_of(zoo_cfg, "ssl.keyStore.password=secret")
    assert config.tls_key_store_password == "secret"
    assert "secret" not in repr(config)


def test_a_missing_file_is_one_line(zoo_cfg: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings().read_file(zoo_cfg)
    assert str(caught.value) == f"{zoo_cfg}: cannot be read: No such file or directory"


def test_what_is_for_several_servers_alone_is_warned_of(zoo_cfg: Path) -> None:
    zoo_cfg.write_text("paddock.advertise=h1:2181\nsyncLimit=5\n")
    settings = Settings()
    settings.read_file(zoo_cfg)
    settings.read_environment({"PADDOCK_ETCD_USER": "shop", "PADDOCK_ETCD_PASSWORD": "hush"})
    settings.config()
    reason = "is not used: there is no log in etcd (--log)"
    assert settings.warnings == [
        f"{zoo_cfg}:1: paddock.advertise = 'h1:2181' {reason}",
        f"PADDOCK_ETCD_USER = 'shop' {reason}",
        f"PADDOCK_ETCD_PASSWORD = (not shown) {reason}",
    ]


def test_the_folder_of_a_log_is_not_used_where_that_is_in_etcd(zoo_cfg: Path) -> None:
    zoo_cfg.write_text("dataLogDir=/var/lib/zookeeper-log\nlog=etcd://h1/shop\n")
    settings = Settings()
    settings.read_file(zoo_cfg)
    assert settings.config().data_log_directory is None
    assert settings.warnings == [
        f"{zoo_cfg}:1: dataLogDir = '/var/lib/zookeeper-log' is not used: the log is in etcd"
    ]


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        ("", None),
        ("metricsProvider.httpPort=7001", ("127.0.0.1", 7001)),
        ("metricsProvider.httpHost=::1", ("::1", 7000)),
        (f"metricsProvider.className={PROMETHEUS}", ("127.0.0.1", 7000)),
        (
            (
                f"metricsProvider.className={PROMETHEUS}\nmetricsProvider.httpHost=0.0.0.0"
                "\nmetricsProvider.httpPort=0"
            ),
            ("0.0.0.0", 0),
        ),
        (
            (
                "metricsProvider.className=org.apache.zookeeper.metrics.impl.DefaultMetricsProvider"
                "\nmetricsProvider.httpPort=7001"
            ),
            None,
        ),
    ],
)
def test_metrics_have_a_port_if_they_are_asked_for(
    zoo_cfg: Path, lines: str, address: tuple[str, int] | None
) -> None:
    assert config_of(zoo_cfg, lines).metrics_address == address


def test_an_unknown_provider_of_metrics_is_refused(zoo_cfg: Path) -> None:
    error = error_of(zoo_cfg, "metricsProvider.className=com.example.Metrics")
    assert error.startswith(
        f"{zoo_cfg}:1: metricsProvider.className = 'com.example.Metrics': expected {PROMETHEUS}, or"
    )
