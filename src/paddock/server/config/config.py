"""The configuration of a server: `ServerConfig`, one field for each setting.

A field declares its key, parser and text; `paddock.server.config.settings` collects them, and
`paddock.server.config.sources` reads their values. Contradictory values raise ConfigError.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paddock.errors import PaddockError
from paddock.server.config.log_url import ADVERTISED, LOG_URL, LogUrl
from paddock.server.config.parsers import (
    BYTES,
    COUNT,
    DURATION_OR_OFF,
    FILE,
    FOLDER,
    HOST,
    MANY_BYTES,
    MILLISECONDS,
    ONLY_FALSE,
    PORT,
    SIZE,
    SWITCH,
    USER_AND_DIGEST,
    count,
    number,
    one_of,
    positive_or,
    setting,
    text,
    words,
)

DEFAULT_PORT: Final = 2181
_DEFAULT_ADMIN_HOST: Final = "127.0.0.1"
_DEFAULT_ADMIN_PORT: Final = 8080
_DEFAULT_METRICS_PORT: Final = 7000
PROMETHEUS: Final = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
# Upstream's other classes: metrics by four-letter words and the admin server, or none at all.
_OTHER_PROVIDERS: Final = (
    "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider",
    "org.apache.zookeeper.metrics.impl.NullMetricsProvider",
)
_LISTEN_BACKLOG: Final = 1024
# A shorter lease would end while etcd elects a leader.
LEASE_SECONDS_MIN: Final = 4.0
# etcd takes requests of 1.5 MiB: one of ours, with identities and what was gathered before it.
SHARED_FRAME_BYTES_MAX: Final = 1 << 20
# A session timeout that follows from the tick time.
_FROM_TICK: Final = -1
_STORE_TYPE: Final = one_of(
    *("TYPE", "PEM", "JKS", "PKCS12", "BCFKS"),
    expected="PEM (or JKS, PKCS12, BCFKS, which must be converted)",
)
_STORE_TYPE_HELP: Final = "Its type; only PEM can be used, and is recognised without this."


class ConfigError(PaddockError):
    """A setting cannot be used. The message is one line that names the setting and the reason."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        # The fields that contradict each other, if that is the reason.
        self.fields = fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything that a single server needs to know before it starts.

    Defaults are upstream's, except where a comment gives the reason. A limit of 0 is no limit.
    The order of the fields is the order of the documentation.
    """

    # Upstream listens on every interface by default.
    host: str = setting(
        "127.0.0.1",
        "clientPortAddress",
        HOST,
        "Where to listen; 0.0.0.0 is every interface.",
        section="Addresses and ports",
    )
    # None, after __post_init__, is no plain port.
    port: int | None = setting(
        None,
        "clientPort",
        PORT,
        "The port; 0 lets the system choose.",
        default_text="2181, or none if there is a secure port",
    )
    # "" is `host`.
    secure_host: str = setting(
        "", "secureClientPortAddress", HOST, "Where to listen with TLS.", default_text="the host"
    )
    secure_port: int | None = setting(
        None,
        "secureClientPort",
        PORT,
        "The port with TLS; 0 lets the system choose.",
        default_text="none",
    )
    port_unification: bool = setting(
        False, "client.portUnification", SWITCH, "Accept TLS on the plain port, too."
    )
    # Upstream's default is Java's, 50.
    listen_backlog: int = setting(
        _LISTEN_BACKLOG,
        "clientPortListenBacklog",
        positive_or(_LISTEN_BACKLOG, "a number of connections, 1 or more", "COUNT"),
        "Connections that the system queues until they are accepted.",
    )
    standalone: bool = setting(
        False,
        "paddock.standalone",
        SWITCH,
        "Serve alone although the zoo.cfg lists several servers.",
    )

    # None keeps all data in memory.
    data_directory: Path | None = setting(
        None,
        "dataDir",
        FOLDER,
        "The data folder; created if it is missing.",
        section="Storage",
        name="data",
        default_text="./data",
    )
    data_log_directory: Path | None = setting(
        None,
        "dataLogDir",
        FOLDER,
        "The folder of the log, if the log has its own disk.",
        name="data_log",
        default_text="in the data folder",
    )
    # Upstream, too, raises a smaller number to 2.
    snapshot_every: int = setting(
        100_000,
        "snapCount",
        number("a number of entries, 2 or more", "COUNT"),
        "Log entries between two snapshots; above 50,000 nodes more, in proportion.",
        minimum=2,
    )
    # Upstream has 4 GiB, which a start would have to replay, and a disk to hold several times.
    snapshot_every_kib: int = setting(
        65_536,
        "snapSizeLimitInKb",
        count("a number of KiB, 0 for any number", "KIB"),
        "KiB of log between two snapshots, or 3/4 of the tree if that is more; 0 for any number.",
    )
    # Upstream, too, raises a smaller number to 3.
    purge_retain_count: int = setting(
        3,
        "autopurge.snapRetainCount",
        number("a number of snapshots, 3 or more", "COUNT"),
        "Snapshots that a purge keeps, with the log that they need.",
        minimum=3,
    )
    # Upstream purges nothing by default; here a disk does not fill up by default.
    purge_interval_hours: int = setting(
        1,
        "autopurge.purgeInterval",
        count("hours, 0 for never", "HOURS"),
        "0 never purges; any other number purges after each snapshot.",
    )
    # 0 is off. Upstream has no history.
    history_seconds: int = setting(
        86_400,
        "paddock.history",
        DURATION_OR_OFF,
        "How far back the state can be rebuilt: a purge leaves the snapshots and the log that this"
        " takes. off: what a start needs, and no more.",
        name="history",
        default_text="1d",
    )
    history_bytes: int = setting(
        1 << 30,
        "paddock.historyBytes",
        SIZE,
        "How large that may become beside what a start needs; the oldest goes first.",
        default_text="1GiB",
    )

    # None is a log of this server's own.
    shared_log: LogUrl | None = setting(
        None,
        "log",
        LOG_URL,
        "The log in etcd that several servers share: etcd://host:port,…/name, or etcds:// for TLS."
        " The data folder is then a cache.",
        section="Several servers",
        name="log",
        default_text="one of its own",
    )
    # "" is none.
    advertise: str = setting(
        "",
        "paddock.advertise",
        ADVERTISED,
        "Where clients reach this server; listed in /zookeeper/config.",
        default_text="none",
    )
    # Upstream has no default; 5 is that of its sample file.
    sync_limit: int = setting(
        5,
        "syncLimit",
        number("a number of ticks, 1 or more", "TICKS", 1),
        "The lease, in ticks, but at least 4 s: how long a server that is cut off may serve, and"
        " the others wait before they take its sessions over.",
    )
    etcd_ca_file: Path | None = setting(
        None,
        "paddock.etcdCaFile",
        FILE,
        "The certificates of the authorities that sign etcd's certificate (PEM).",
        default_text="the system's",
    )
    etcd_cert_file: Path | None = setting(
        None,
        "paddock.etcdCertFile",
        FILE,
        "The certificate that this server shows to etcd (PEM).",
        default_text="none",
    )
    etcd_key_file: Path | None = setting(
        None, "paddock.etcdKeyFile", FILE, "Its key (PEM).", default_text="none"
    )
    etcd_user: str = setting(
        "",
        "paddock.etcdUser",
        text("the name of a user", "NAME"),
        "The user of etcd, if it asks for one. The password is in PADDOCK_ETCD_PASSWORD alone.",
        default_text="none",
    )
    # Not an option: others see the arguments of a process.
    etcd_password: str = setting(
        "",
        "",
        text("a password", "TEXT"),
        "The password of that user.",
        default_text="none",
        secret=True,
    )
    etcd_quota_bytes: int = setting(
        8 << 30,
        "paddock.etcdQuotaBytes",
        MANY_BYTES,
        "etcd's --quota-backend-bytes: clients' writes are refused before the database is full.",
    )

    tick_time_ms: int = setting(
        2000,
        "tickTime",
        MILLISECONDS,
        "The unit of session timeouts.",
        section="Sessions and nodes",
    )
    # Invariant after __post_init__: 0 < min_session_timeout_ms <= max_session_timeout_ms.
    min_session_timeout_ms: int = setting(
        _FROM_TICK,
        "minSessionTimeout",
        positive_or(_FROM_TICK, "milliseconds, 1 or more, or -1 for 2 ticks", "MS"),
        "The smallest timeout that a session gets.",
        default_text="2 ticks",
    )
    max_session_timeout_ms: int = setting(
        _FROM_TICK,
        "maxSessionTimeout",
        positive_or(_FROM_TICK, "milliseconds, 1 or more, or -1 for 20 ticks", "MS"),
        "The largest timeout that a session gets.",
        default_text="20 ticks",
    )
    # Off upstream, since old servers of an ensemble may not know them.
    extended_types_enabled: bool = setting(True, "extendedTypesEnabled", SWITCH, "Allow TTL nodes.")
    enforce_quota: bool = setting(
        False, "enforceQuota", SWITCH, "Refuse a write that exceeds the hard limit of a quota."
    )
    container_check_interval_ms: int = setting(
        60_000,
        "znode.container.checkIntervalMs",
        MILLISECONDS,
        "How often to look for empty containers and expired TTL nodes.",
    )
    max_containers_per_minute: int = setting(
        10_000,
        "znode.container.maxPerMinute",
        number("a number, 1 or more", "COUNT", 1),
        "How many of them are deleted per minute at most.",
    )
    max_unused_container_ms: int = setting(
        0,
        "znode.container.maxNeverUsedIntervalMs",
        count("milliseconds, 0 for ever", "MS"),
        "How long to keep a container that never had a child; 0 is for ever.",
    )
    read_only_mode_enabled: bool = setting(
        False,
        "readonlymode.enabled",
        SWITCH,
        "While the log fails, serve reads to clients that ask for a read-only session.",
    )

    max_connections_per_address: int = setting(
        60, "maxClientCnxns", COUNT, "Connections from one address.", section="Limits"
    )
    # Upstream has no limit; here there is one in any case, the process's file descriptors.
    max_connections: int = setting(50_000, "maxCnxns", COUNT, "Connections in total.")
    handshake_timeout_ms: int = setting(
        10_000,
        "paddock.handshakeTimeoutMs",
        MILLISECONDS,
        "Handshake timeout: the time in which a connection must ask for a session.",
    )
    max_frame_bytes: int = setting(
        0xFFFFF, "jute.maxbuffer", BYTES, "The longest request; a longer one disconnects."
    )
    max_requests_per_connection: int = setting(
        10_000,
        "paddock.maxRequestsPerConnection",
        COUNT,
        "Backpressure: with more requests in flight, the connection is not read.",
    )
    max_request_bytes_per_connection: int = setting(
        16 << 20, "paddock.maxRequestBytesPerConnection", BYTES, "The same in bytes."
    )
    # Upstream's 1000 are too few to keep a disk busy with small batches.
    max_requests: int = setting(
        20_000,
        "globalOutstandingLimit",
        COUNT,
        "Backpressure: with more writes in flight in total, connections that write are not read.",
    )
    max_request_bytes: int = setting(
        128 << 20, "paddock.maxRequestBytes", BYTES, "The same in bytes."
    )
    max_reply_bytes_per_connection: int = setting(
        64 << 20,
        "paddock.maxReplyBytesPerConnection",
        BYTES,
        "A client that does not read is disconnected when more replies wait for it.",
    )
    max_reply_bytes: int = setting(
        256 << 20, "paddock.maxReplyBytes", BYTES, "The same for all such clients together."
    )
    max_watches_per_session: int = setting(
        100_000,
        "paddock.maxWatchesPerSession",
        COUNT,
        "Watches of a session; more are refused with QuotaExceeded.",
    )
    max_watch_bytes_per_session: int = setting(
        32 << 20,
        "paddock.maxWatchBytesPerSession",
        BYTES,
        "The bytes of the paths that a session watches.",
    )
    max_watches: int = setting(
        2_000_000,
        "paddock.maxWatches",
        COUNT,
        "Watches of all sessions together; more are refused with QuotaExceeded.",
    )

    super_digest: str | None = setting(
        None,
        "DigestAuthenticationProvider.superDigest",
        USER_AND_DIGEST,
        "The superuser, as user:digest.",
        section="Access",
        default_text="none",
        secret=True,
    )
    enforce_authentication: bool = setting(
        False, "enforce.auth.enabled", SWITCH, "Serve only clients that have authenticated."
    )
    # Upstream has no default; these are the schemes that prove something.
    enforced_schemes: frozenset[str] = setting(
        frozenset({"digest", "sasl", "x509"}),
        "enforce.auth.schemes",
        words(
            "digest, ip, sasl or x509, with commas between them",
            "SCHEMES",
            "digest|ip|sasl|x509",
        ),
        "The schemes of which a client then needs one, with commas.",
    )
    x509_super_user: str | None = setting(
        None,
        "X509AuthenticationProvider.superUser",
        text("the subject of a certificate, as CN=…,O=…", "NAME"),
        "The superuser, as the subject of its certificate.",
        default_text="none",
    )
    # Upstream's is named by a property of Java alone, `java.security.auth.login.config`.
    jaas_file: Path | None = setting(
        None,
        "paddock.jaasFile",
        FILE,
        "The JAAS file with the users of SASL, or the key of Kerberos, as Apache ZooKeeper's.",
        default_text="none",
    )
    jaas_section: str = setting(
        "Server",
        "sasl.serverconfig",
        text("the name of a section", "NAME"),
        "Its section with them.",
    )
    # Upstream has nothing like it.
    sasl_users_file: Path | None = setting(
        None,
        "paddock.saslUsersFile",
        FILE,
        "A file with users of SASL, as `htdigest FILE zk-sasl-md5 NAME` writes it.",
        default_text="none",
    )
    # Upstream's is in the JAAS file alone.
    kerberos_keytab: Path | None = setting(
        None,
        "paddock.kerberosKeytab",
        FILE,
        "The keytab with this server's key of Kerberos, where no JAAS file names it.",
        default_text="none, or that of the system for a principal",
    )
    kerberos_principal: str | None = setting(
        None,
        "paddock.kerberosPrincipal",
        text("a principal, as zookeeper/host@REALM", "PRINCIPAL"),
        "This server's principal, whose key is there.",
        default_text="any one that is there",
    )
    kerberos_rules: str = setting(
        "DEFAULT",
        "security.auth_to_local",
        text("rules, as DEFAULT or RULE:[1:$1]", "RULES"),
        "How a principal of Kerberos becomes the name that stands in ACLs.",
    )
    kerberos_removes_host: bool = setting(
        False,
        "kerberos.removeHostFromPrincipal",
        SWITCH,
        "Leave the host out of that name.",
    )
    kerberos_removes_realm: bool = setting(
        False,
        "kerberos.removeRealmFromPrincipal",
        SWITCH,
        "Leave the realm out of that name.",
    )
    sasl_super_users: frozenset[str] = setting(
        frozenset(),
        "superUser",
        words("names of users, with commas between them", "NAMES", r"\S+"),
        "The superusers among the users of SASL, with commas; superUser.1 and so on add to them.",
        default_text="none",
        is_family=True,
    )
    require_sasl: bool = setting(
        False,
        "sessionRequireClientSASLAuth",
        SWITCH,
        "Serve only clients that have authenticated by SASL.",
    )
    allow_failed_sasl: bool = setting(
        False,
        "allowSaslFailedClients",
        SWITCH,
        "Serve clients whose SASL failed, without an identity; not if they must authenticate.",
    )

    tls_key_store: Path | None = setting(
        None,
        "ssl.keyStore.location",
        FILE,
        "The server's certificate, its chain, and its key, in one PEM file.",
        section="TLS",
    )
    tls_key_store_password: str | None = setting(
        None,
        "ssl.keyStore.password",
        text("a password", "TEXT"),
        "The password of the key.",
        secret=True,
    )
    tls_key_store_password_path: Path | None = setting(
        None,
        "ssl.keyStore.passwordPath",
        FILE,
        "A file that holds the password; overrides the setting above.",
    )
    tls_key_store_type: str = setting("", "ssl.keyStore.type", _STORE_TYPE, _STORE_TYPE_HELP)
    tls_trust_store: Path | None = setting(
        None,
        "ssl.trustStore.location",
        FILE,
        "The certificates of the authorities that sign clients' certificates, in a PEM file.",
    )
    tls_trust_store_type: str = setting("", "ssl.trustStore.type", _STORE_TYPE, _STORE_TYPE_HELP)
    tls_client_auth: str = setting(
        "need",
        "ssl.clientAuth",
        one_of("WHETHER", "need", "want", "none"),
        "Whether clients must show a certificate, may, or are not asked.",
    )
    # On upstream since 3.9.4; off here, since clients come from anywhere.
    tls_client_hostname_verification: bool = setting(
        False,
        "ssl.clientHostnameVerification",
        SWITCH,
        "Require that a client's certificate names the host that the client connects from.",
    )
    tls_protocol: str = setting(
        "",
        "ssl.protocol",
        text("TLSv1.2 or TLSv1.3; older versions are not secure", "VERSION", r"TLSv1\.[23]"),
        "The only version of TLS to accept.",
    )
    tls_protocols: frozenset[str] = setting(
        frozenset(),
        "ssl.enabledProtocols",
        words(
            "TLSv1.2 and TLSv1.3, with a comma; older versions are not secure",
            "VERSIONS",
            r"TLSv1\.[23]",
        ),
        "The versions of TLS to accept; overrides the setting above.",
        default_text="TLSv1.2,TLSv1.3",
    )
    tls_cipher_suites: str = setting(
        "",
        "ssl.ciphersuites",
        text("names of cipher suites, with commas", "NAMES"),
        "The cipher suites of TLS 1.2, with commas, by their Java or OpenSSL names.",
        default_text="OpenSSL's",
    )
    tls_crl: bool = setting(
        False,
        "ssl.crl",
        SWITCH,
        "Refuse revoked certificates; the trust store must hold the revocation lists (CRL).",
    )
    tls_ocsp: bool = setting(
        False,
        "ssl.ocsp",
        ONLY_FALSE,
        "Only false is accepted: revoked certificates are found by lists.",
    )
    # Upstream reads the files once by default.
    tls_reload: bool = setting(
        True, "client.certReload", SWITCH, "Use changed files for new connections at once."
    )
    tls_handshake_timeout_ms: int = setting(
        5_000, "ssl.handshakeDetectionTimeoutMillis", MILLISECONDS, "Timeout of the TLS handshake."
    )
    tls_max_handshakes: int = setting(
        1_000,
        "netty.server.outstandingHandshake.limit",
        COUNT,
        "TLS handshakes in flight; one more replaces the oldest.",
    )

    # "*" stands for all of them.
    four_letter_words: frozenset[str] = setting(
        frozenset({"srvr"}),
        "4lw.commands.whitelist",
        words(
            "four-letter words with commas between them, or *",
            "WORDS",
            r"[a-z]{4}|\*",
            may_be_empty=True,
        ),
        "The four-letter words to answer, with commas, or *; srvr is always answered.",
        section="Operation",
    )
    log_level: str = setting(
        "info",
        "paddock.logLevel",
        one_of("LEVEL", "debug", "info", "warning", "error"),
        "How much to log on stderr: debug, info, warning or error.",
    )
    log_format: str = setting(
        "text",
        "paddock.logFormat",
        one_of("FORMAT", "text", "json"),
        "The format of the log: text, or one JSON object per line.",
    )
    slow_sync_ms: int = setting(
        1000, "fsync.warningthresholdms", MILLISECONDS, "Warn about a log sync that takes longer."
    )
    audit_enabled: bool = setting(
        False, "audit.enable", SWITCH, "Write an audit log: who did what."
    )
    # None is `audit.log` in the data folder, or stderr without one.
    audit_file: Path | None = setting(
        None,
        "paddock.auditFile",
        FILE,
        "The file of the audit log.",
        default_text="audit.log in the data folder",
    )

    # Upstream has an admin server on every interface by default.
    admin_enabled: bool | None = setting(
        None,
        "admin.enableServer",
        SWITCH,
        "Whether to run an admin server.",
        section="Admin server",
        default_text="true, if one of the next two is given",
    )
    admin_host: str | None = setting(
        None,
        "admin.serverAddress",
        HOST,
        "Where the admin server listens; 0.0.0.0 is every interface.",
        default_text=_DEFAULT_ADMIN_HOST,
    )
    admin_port: int | None = setting(
        None,
        "admin.serverPort",
        PORT,
        "The port of the admin server; 0 lets the system choose.",
        default_text=str(_DEFAULT_ADMIN_PORT),
    )
    admin_url: str = setting(
        "/commands",
        "admin.commandURL",
        text("a path that begins with a slash", "PATH", r"/[A-Za-z0-9_.~/-]*"),
        "The path of the commands.",
    )
    admin_allowed_hosts: frozenset[str] = setting(
        frozenset(),
        "paddock.adminAllowedHosts",
        words("names of hosts with commas between them, or *", "NAMES", r"[\w.:-]+|\*"),
        "Names that a request's Host may have, with commas, or *; addresses, localhost and this"
        " host's name always work.",
    )
    admin_idle_timeout_ms: int = setting(
        30_000, "admin.idleTimeout", MILLISECONDS, "The time in which an HTTP request must arrive."
    )
    admin_snapshot_enabled: bool = setting(
        True,
        "admin.snapshot.enabled",
        SWITCH,
        "Whether to offer the admin command snapshot, which sends all data.",
    )
    admin_restore_enabled: bool = setting(
        True,
        "admin.restore.enabled",
        SWITCH,
        "Whether to offer the admin command restore, which replaces all data.",
    )
    admin_rate_limit_interval_ms: int = setting(
        300_000,
        "admin.rateLimiterIntervalInMS",
        number("milliseconds, 0 for no limit", "MS", 0),
        "Rate limit: each of the two is allowed once in this time.",
    )
    # Upstream takes the stores of its links to other servers, which do not exist here.
    admin_port_unification: bool = setting(
        False,
        "admin.portUnification",
        SWITCH,
        "Accept TLS on the port of the admin server, too, with the server's certificate.",
    )
    admin_force_https: bool = setting(
        False, "admin.forceHttps", SWITCH, "Accept nothing but TLS there."
    )
    admin_need_client_auth: bool = setting(
        False,
        "admin.needClientAuth",
        SWITCH,
        "Require a certificate of the admin server's clients, if they use TLS.",
    )
    admin_password_file: Path | None = setting(
        None,
        "paddock.adminPasswordFile",
        FILE,
        "A file with one line, name:password, which the admin server then asks for (HTTP Basic).",
        default_text="none",
    )
    admin_health_open: bool = setting(
        True,
        "paddock.adminHealthOpen",
        SWITCH,
        "Answer /livez and /readyz without the password, and by any name.",
    )

    metrics_provider: str = setting(
        "",
        "metricsProvider.className",
        one_of(
            *("CLASS", PROMETHEUS, *_OTHER_PROVIDERS),
            expected=f"{PROMETHEUS}, or DefaultMetricsProvider or NullMetricsProvider of"
            " org.apache.zookeeper.metrics.impl",
        ),
        "Apache's class for metrics: with PrometheusMetricsProvider they have a port of their own,"
        " with the others they do not.",
        section="Metrics",
        default_text="the first, if one of the next two is given",
    )
    # Upstream listens on every interface by default.
    metrics_host: str | None = setting(
        None,
        "metricsProvider.httpHost",
        HOST,
        "Where /metrics is served; 0.0.0.0 is every interface.",
        default_text=_DEFAULT_ADMIN_HOST,
    )
    metrics_port: int | None = setting(
        None,
        "metricsProvider.httpPort",
        PORT,
        "The port of /metrics; 0 lets the system choose. The admin server has /metrics as well.",
        default_text=str(_DEFAULT_METRICS_PORT),
    )
    metrics_process: bool = setting(
        True,
        "metricsProvider.exportJvmInfo",
        SWITCH,
        "Whether /metrics has those of the process and of Python, here in place of a JVM.",
    )

    def __post_init__(self) -> None:
        if self.port is None and self.secure_port is None:
            object.__setattr__(self, "port", DEFAULT_PORT)
        self._check_tls()
        self._check_sasl()
        self._check_shared_log()
        if self.shared_log is not None:
            # There is no other log. A zoo.cfg of an ensemble may name the folder of Apache's.
            object.__setattr__(self, "data_log_directory", None)
        if self.min_session_timeout_ms == _FROM_TICK:
            object.__setattr__(self, "min_session_timeout_ms", 2 * self.tick_time_ms)
        if self.max_session_timeout_ms == _FROM_TICK:
            object.__setattr__(self, "max_session_timeout_ms", 20 * self.tick_time_ms)
        if self.min_session_timeout_ms > self.max_session_timeout_ms:
            raise ConfigError(
                f"the smallest session timeout, {self.min_session_timeout_ms} ms, "
                f"is larger than the largest, {self.max_session_timeout_ms} ms",
                ("min_session_timeout_ms", "max_session_timeout_ms", "tick_time_ms"),
            )

    @property
    def lease_seconds(self) -> float:
        """How long a server of several may serve without the log; called T in the design."""
        return max(LEASE_SECONDS_MIN, self.sync_limit * self.tick_time_ms / 1000)

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Where the admin server listens; None if there is none."""
        enabled = self.admin_enabled
        if enabled is None:
            enabled = self.admin_host is not None or self.admin_port is not None
        if not enabled:
            return None
        port = _DEFAULT_ADMIN_PORT if self.admin_port is None else self.admin_port
        return self.admin_host or _DEFAULT_ADMIN_HOST, port

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Where /metrics has a port of its own; None if it has none."""
        host, port = self.metrics_host, self.metrics_port
        is_asked_for = self.metrics_provider == PROMETHEUS or (
            not self.metrics_provider and (host is not None or port is not None)
        )
        if not is_asked_for:
            return None
        return host or _DEFAULT_ADMIN_HOST, _DEFAULT_METRICS_PORT if port is None else port

    def admin_speaks_tls(self) -> bool:
        """Return whether the admin server accepts TLS."""
        return self.admin_address is not None and (
            self.admin_port_unification or self.admin_force_https
        )

    def speaks_tls(self) -> bool:
        """Return whether any port accepts TLS."""
        return self.secure_port is not None or (self.port is not None and self.port_unification)

    def offers_sasl(self) -> bool:
        """Return whether clients may authenticate by SASL."""
        users = (self.jaas_file, self.sasl_users_file)
        return any(source is not None for source in users) or self.has_kerberos_key()

    def has_kerberos_key(self) -> bool:
        """Return whether a key of Kerberos is named, besides that of a JAAS file."""
        return self.kerberos_keytab is not None or self.kerberos_principal is not None

    def requires_sasl(self) -> bool:
        """Return whether a client that fails to authenticate by SASL is told that it must."""
        return self.enforce_authentication and "sasl" in self.enforced_schemes

    def _check_sasl(self) -> None:
        if self.require_sasl:
            # As upstream, this overrules the others.
            object.__setattr__(self, "enforce_authentication", True)
            object.__setattr__(self, "enforced_schemes", frozenset({"sasl"}))
        is_only_way = self.enforce_authentication and self.enforced_schemes == {"sasl"}
        if is_only_way and not self.offers_sasl():
            raise ConfigError(
                "nobody could authenticate: SASL needs users, by --jaas-file or --sasl-users-file,"
                " or --kerberos-keytab",
                ("require_sasl", "enforced_schemes"),
            )

    def _check_tls(self) -> None:
        if self.secure_host and self.secure_port is None:
            raise ConfigError("there is a secure host, but no secure port", ("secure_host",))
        if self.admin_speaks_tls():
            self._check_admin_tls()
        if not self.speaks_tls():
            return
        ports = ("secure_port", "port_unification")
        if self.tls_key_store is None:
            raise ConfigError(
                "TLS needs the server's certificate and key: --tls-key-store,"
                " ssl.keyStore.location",
                ports,
            )
        if self.tls_client_auth != "none" and self.tls_trust_store is None:
            raise ConfigError(
                "clients' certificates cannot be checked without a trust store:"
                " --tls-trust-store, ssl.trustStore.location (or ssl.clientAuth=none for clients"
                " without certificates)",
                (*ports, "tls_client_auth"),
            )

    def _check_admin_tls(self) -> None:
        if self.tls_key_store is None:
            raise ConfigError(
                "TLS on the admin server needs the server's certificate and key:"
                " --tls-key-store, ssl.keyStore.location",
                ("admin_force_https", "admin_port_unification"),
            )
        if self.admin_need_client_auth and self.tls_trust_store is None:
            raise ConfigError(
                "the certificates of the admin server's clients cannot be checked without a trust"
                " store: --tls-trust-store, ssl.trustStore.location",
                ("admin_need_client_auth",),
            )

    def _check_shared_log(self) -> None:
        if self.shared_log is not None and self.standalone:
            raise ConfigError(
                "a server that shares a log does not serve alone", ("shared_log", "standalone")
            )
        if self.shared_log is not None and self.max_frame_bytes > SHARED_FRAME_BYTES_MAX:
            raise ConfigError(
                f"jute.maxbuffer is {self.max_frame_bytes}, and with a log in etcd it is at most"
                f" {SHARED_FRAME_BYTES_MAX}: etcd takes no request of more than 1.5 MiB",
                ("shared_log", "max_frame_bytes"),
            )
        if (self.etcd_cert_file is None) != (self.etcd_key_file is None):
            raise ConfigError(
                "etcd's client certificate and its key are given together:"
                " --etcd-cert-file and --etcd-key-file",
                ("etcd_cert_file", "etcd_key_file"),
            )
        if bool(self.etcd_user) != bool(self.etcd_password):
            raise ConfigError(
                "etcd's user and password are given together: --etcd-user and, in the environment"
                " alone, PADDOCK_ETCD_PASSWORD",
                ("etcd_user", "etcd_password"),
            )
        files = self.etcd_ca_file or self.etcd_cert_file
        if files is not None and self.shared_log is not None and not self.shared_log.is_secure:
            raise ConfigError(
                "etcd:// is not secured, and no certificates are used: write etcds://",
                ("shared_log", "etcd_ca_file", "etcd_cert_file"),
            )

    def answers_word(self, word: str) -> bool:
        """Return whether this four-letter word may be answered."""
        if word == "srvr" or (word == "isro" and self.read_only_mode_enabled):
            # Clients of Apache ZooKeeper's need them: the latter to leave a read-only server.
            return True
        return word in self.four_letter_words or "*" in self.four_letter_words
