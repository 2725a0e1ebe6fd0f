"""All settings: how each is called, how its value is read, and what is said of it.

Every setting is one row of `SETTINGS`: its key in a `zoo.cfg`, and a name from which its option
(`--tick-time-ms`) and its environment variable (`PADDOCK_TICK_TIME_MS`) follow. Its value is
written the same way in all three, and is read by the same function. The options of the command and
the table in the documentation are made from these rows, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from paddock.server import values
from paddock.server.config import DEFAULT_ADMIN_HOST, DEFAULT_ADMIN_PORT, ServerConfig

VARIABLE_PREFIX: Final = "PADDOCK_"

PLACE: Final = "Where it is"
STORAGE: Final = "Storage"
SESSIONS: Final = "Sessions and nodes"
LIMITS: Final = "Limits"
ACCESS: Final = "Access"
TLS: Final = "TLS"
OPERATION: Final = "Operation"
ADMIN: Final = "The admin server"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how it is called, how its value is read, what is said if it cannot be."""

    # The field of ServerConfig.
    field: str
    # The key in a zoo.cfg. Those that upstream does not have begin with `paddock.`.
    key: str
    parse: Callable[[str], Any]
    expected: str
    section: str
    # One sentence for --help and for the documentation.
    help: str
    # The name of its option; "" is the field's.
    name: str = ""
    # How the value is shown in --help: `--port PORT`.
    metavar: str = "TEXT"
    # The default, if the value itself would not say enough.
    default: str = ""
    # A smaller number is raised to this one, with a warning.
    minimum: int | None = None
    # What was written may be a password in the wrong place: an error does not repeat it.
    secret: bool = False

    @property
    def called(self) -> str:
        """What its option and its variable are made of."""
        return (self.name or self.field).replace("-", "_")

    @property
    def option(self) -> str:
        return "--" + self.called.replace("_", "-")

    @property
    def variable(self) -> str:
        return VARIABLE_PREFIX + self.called.upper()

    @property
    def is_switch(self) -> bool:
        return self.parse is values.boolean

    def default_shown(self) -> str:
        """Give the default as --help and the documentation show it; "" if there is none."""
        return self.default or values.shown(getattr(_DEFAULTS, self.field))


_MILLISECONDS: Final = "milliseconds, 1 or more"
_BYTES: Final = "a number of bytes, 1 or more, decimal or as 0x…"
_COUNT: Final = "a number, 0 for no limit"
_SWITCH: Final = "true or false"


def _milliseconds(field: str, key: str, section: str, help: str) -> Setting:
    return Setting(field, key, values.at_least(1), _MILLISECONDS, section, help, metavar="MS")


def _count(field: str, key: str, help: str) -> Setting:
    return Setting(
        field, key, values.at_least_zero_else_zero, _COUNT, LIMITS, help, metavar="COUNT"
    )


def _bytes(field: str, key: str, help: str) -> Setting:
    return Setting(field, key, values.decoded_integer, _BYTES, LIMITS, help, metavar="BYTES")


def _switch(field: str, key: str, section: str, help: str) -> Setting:
    return Setting(field, key, values.boolean, _SWITCH, section, help)


def _file(field: str, key: str, help: str) -> Setting:
    return Setting(field, key, values.some_path, "a file", TLS, help, metavar="FILE")


def _store_type(field: str, key: str) -> Setting:
    return Setting(
        field,
        key,
        values.one_of("PEM", "JKS", "PKCS12", "BCFKS"),
        "PEM (or JKS, PKCS12, BCFKS, which must be converted)",
        TLS,
        "What that is; only PEM can be used, and is recognised without this.",
        metavar="TYPE",
    )


SETTINGS: Final = (
    Setting(
        "host",
        "clientPortAddress",
        values.some_text,
        "a name or an address",
        PLACE,
        "Where to listen; 0.0.0.0 is every interface.",
        metavar="HOST",
    ),
    Setting(
        "port",
        "clientPort",
        values.at_least(0, 65535),
        "a port, 0 to 65535",
        PLACE,
        "The port; 0 lets the system choose.",
        metavar="PORT",
        default="2181, or none if there is a secure port",
    ),
    Setting(
        "secure_host",
        "secureClientPortAddress",
        values.some_text,
        "a name or an address",
        PLACE,
        "Where to listen with TLS.",
        metavar="HOST",
        default="the host",
    ),
    Setting(
        "secure_port",
        "secureClientPort",
        values.at_least(0, 65535),
        "a port, 0 to 65535",
        PLACE,
        "The port with TLS; 0 lets the system choose.",
        metavar="PORT",
        default="none",
    ),
    _switch(
        "port_unification", "client.portUnification", PLACE, "Take TLS on the plain port, too."
    ),
    Setting(
        "listen_backlog",
        "clientPortListenBacklog",
        values.listen_backlog,
        "a number of connections, 1 or more",
        PLACE,
        "Connections that the system keeps until they are accepted.",
        metavar="COUNT",
    ),
    Setting(
        "data_directory",
        "dataDir",
        values.some_path,
        "a folder",
        STORAGE,
        "Where the data is, made if need be.",
        name="data",
        metavar="DIR",
        default="./data",
    ),
    Setting(
        "data_log_directory",
        "dataLogDir",
        values.some_path,
        "a folder",
        STORAGE,
        "Where the log is, if it has a disk of its own.",
        name="data-log",
        metavar="DIR",
        default="in the data folder",
    ),
    Setting(
        "snapshot_every",
        "snapCount",
        values.decimal,
        "a number of entries, 2 or more",
        STORAGE,
        "Entries of the log between two snapshots.",
        metavar="COUNT",
        # Upstream resets a smaller one to this.
        minimum=2,
    ),
    Setting(
        "purge_retain_count",
        "autopurge.snapRetainCount",
        values.decimal,
        "a number of snapshots, 3 or more",
        STORAGE,
        "Snapshots that a purge leaves, with the log that they need.",
        metavar="COUNT",
        # Upstream would purge nothing with fewer, so it raises them.
        minimum=3,
    ),
    Setting(
        "purge_interval_hours",
        "autopurge.purgeInterval",
        values.at_least_zero_else_zero,
        "hours, 0 for never",
        STORAGE,
        "0 never purges; any other number purges after each snapshot.",
        metavar="HOURS",
    ),
    _milliseconds("tick_time_ms", "tickTime", SESSIONS, "The unit of session timeouts."),
    Setting(
        "min_session_timeout_ms",
        "minSessionTimeout",
        values.timeout_ms,
        "milliseconds, 1 or more, or -1 for 2 ticks",
        SESSIONS,
        "The smallest timeout that a session gets.",
        metavar="MS",
        default="2 ticks",
    ),
    Setting(
        "max_session_timeout_ms",
        "maxSessionTimeout",
        values.timeout_ms,
        "milliseconds, 1 or more, or -1 for 20 ticks",
        SESSIONS,
        "The largest timeout that a session gets.",
        metavar="MS",
        default="20 ticks",
    ),
    _switch("extended_types_enabled", "extendedTypesEnabled", SESSIONS, "Allow TTL nodes."),
    _switch(
        "enforce_quota",
        "enforceQuota",
        SESSIONS,
        "Refuse what goes over the hard limit of a quota.",
    ),
    _milliseconds(
        "container_check_interval_ms",
        "znode.container.checkIntervalMs",
        SESSIONS,
        "How often containers and TTL nodes that are over are looked for.",
    ),
    Setting(
        "max_containers_per_minute",
        "znode.container.maxPerMinute",
        values.at_least(1),
        "a number, 1 or more",
        SESSIONS,
        "How many of them are deleted in a minute at most.",
        metavar="COUNT",
    ),
    Setting(
        "max_unused_container_ms",
        "znode.container.maxNeverUsedIntervalMs",
        values.at_least_zero_else_zero,
        "milliseconds, 0 for ever",
        SESSIONS,
        "How long a container stays that never had a child; 0 is for ever.",
        metavar="MS",
    ),
    _switch(
        "read_only_mode_enabled",
        "readonlymode.enabled",
        SESSIONS,
        "While the log does not work, serve reads to clients that ask for a read-only session.",
    ),
    _count("max_connections_per_address", "maxClientCnxns", "Connections from one address."),
    _count("max_connections", "maxCnxns", "Connections in all."),
    _milliseconds(
        "handshake_timeout_ms",
        "paddock.handshakeTimeoutMs",
        LIMITS,
        "The time in which a connection must ask for a session.",
    ),
    _bytes("max_frame_bytes", "jute.maxbuffer", "The longest request; a longer one disconnects."),
    _count(
        "max_requests_per_connection",
        "paddock.maxRequestsPerConnection",
        "Requests under way over which a connection is not read from.",
    ),
    _bytes(
        "max_request_bytes_per_connection",
        "paddock.maxRequestBytesPerConnection",
        "The same in bytes.",
    ),
    _count(
        "max_requests",
        "globalOutstandingLimit",
        "Writes that wait, of all connections, over which those that write are not read from.",
    ),
    _bytes("max_request_bytes", "paddock.maxRequestBytes", "The same in bytes."),
    _bytes(
        "max_reply_bytes_per_connection",
        "paddock.maxReplyBytesPerConnection",
        "What may wait for a client that does not read before it is disconnected.",
    ),
    _bytes(
        "max_reply_bytes",
        "paddock.maxReplyBytes",
        "The same for all such clients together.",
    ),
    _count(
        "max_watches_per_session",
        "paddock.maxWatchesPerSession",
        "Watches of a session; more are refused with QuotaExceeded.",
    ),
    _bytes(
        "max_watch_bytes_per_session",
        "paddock.maxWatchBytesPerSession",
        "The bytes of the paths that a session watches.",
    ),
    Setting(
        "super_digest",
        "DigestAuthenticationProvider.superDigest",
        values.user_and_digest,
        "user:digest, where digest is the SHA-1 of user:password in base 64",
        ACCESS,
        "Who may do everything, as user:digest.",
        metavar="DIGEST",
        default="nobody",
        secret=True,
    ),
    _switch(
        "enforce_authentication",
        "enforce.auth.enabled",
        ACCESS,
        "Serve nobody who has not authenticated.",
    ),
    Setting(
        "enforced_schemes",
        "enforce.auth.schemes",
        values.words_of("digest", "ip", "x509"),
        "digest, ip or x509, with commas between them",
        ACCESS,
        "The schemes one of which is needed then, with commas.",
        metavar="SCHEMES",
    ),
    Setting(
        "x509_super_user",
        "X509AuthenticationProvider.superUser",
        values.some_text,
        "the subject of a certificate, as CN=…,O=…",
        ACCESS,
        "Who may do everything, by the subject of its certificate.",
        metavar="NAME",
        default="nobody",
    ),
    _file(
        "tls_key_store",
        "ssl.keyStore.location",
        "Our certificate, those above it, and its key, in one PEM file.",
    ),
    Setting(
        "tls_key_store_password",
        "ssl.keyStore.password",
        values.some_text,
        "a password",
        TLS,
        "The password of its key.",
        metavar="TEXT",
        secret=True,
    ),
    _file(
        "tls_key_store_password_path",
        "ssl.keyStore.passwordPath",
        "A file that holds that password; beats the one above.",
    ),
    _store_type("tls_key_store_type", "ssl.keyStore.type"),
    _file(
        "tls_trust_store",
        "ssl.trustStore.location",
        "The certificates that those of clients must come from, in a PEM file.",
    ),
    _store_type("tls_trust_store_type", "ssl.trustStore.type"),
    Setting(
        "tls_client_auth",
        "ssl.clientAuth",
        values.one_of("need", "want", "none"),
        "need, want or none",
        TLS,
        "Whether clients must show a certificate, may, or are not asked.",
        metavar="WHETHER",
    ),
    _switch(
        "tls_client_hostname_verification",
        "ssl.clientHostnameVerification",
        TLS,
        "Require that the certificate of a client names the host that it comes from.",
    ),
    Setting(
        "tls_protocol",
        "ssl.protocol",
        values.one_of_exactly("TLSv1.2", "TLSv1.3"),
        "TLSv1.2 or TLSv1.3; what is older is not secure",
        TLS,
        "The only version of TLS that is spoken.",
        metavar="VERSION",
    ),
    Setting(
        "tls_protocols",
        "ssl.enabledProtocols",
        values.words_of("TLSv1.2", "TLSv1.3"),
        "TLSv1.2 and TLSv1.3, with a comma; what is older is not secure",
        TLS,
        "The versions of TLS that are spoken; beats the one above.",
        metavar="VERSIONS",
        default="TLSv1.2,TLSv1.3",
    ),
    Setting(
        "tls_cipher_suites",
        "ssl.ciphersuites",
        values.some_text,
        "names of cipher suites, with commas",
        TLS,
        "The cipher suites of TLS 1.2, with commas, by their Java or OpenSSL names.",
        metavar="NAMES",
        default="OpenSSL's",
    ),
    _switch(
        "tls_crl",
        "ssl.crl",
        TLS,
        "Refuse revoked certificates, by the lists (CRL) that the trust store must hold.",
    ),
    Setting(
        "tls_ocsp",
        "ssl.ocsp",
        values.only_false,
        "false: nobody is asked about certificates here, lists are looked at (ssl.crl)",
        TLS,
        "Only false is taken: revoked certificates are found by lists.",
        metavar="false",
    ),
    _switch(
        "tls_reload",
        "client.certReload",
        TLS,
        "Use new files for new connections as soon as they are there.",
    ),
    Setting(
        "tls_handshake_timeout_ms",
        "ssl.handshakeDetectionTimeoutMillis",
        values.at_least(1),
        _MILLISECONDS,
        TLS,
        "The time in which TLS must be agreed on.",
        metavar="MS",
    ),
    Setting(
        "tls_max_handshakes",
        "netty.server.outstandingHandshake.limit",
        values.at_least_zero_else_zero,
        _COUNT,
        TLS,
        "Connections whose TLS is being agreed on; one more takes the place of the oldest.",
        metavar="COUNT",
    ),
    Setting(
        "four_letter_words",
        "4lw.commands.whitelist",
        values.four_letter_words,
        "four-letter words with commas between them, or *",
        OPERATION,
        "The four-letter words that are answered, with commas, or *; srvr always is.",
        metavar="WORDS",
    ),
    Setting(
        "log_level",
        "paddock.logLevel",
        values.one_of("debug", "info", "warning", "error"),
        "debug, info, warning or error",
        OPERATION,
        "How much is logged on stderr: debug, info, warning or error.",
        metavar="LEVEL",
    ),
    Setting(
        "log_format",
        "paddock.logFormat",
        values.one_of("text", "json"),
        "text or json",
        OPERATION,
        "How it is logged: as text, or as one JSON object in each line.",
        metavar="FORMAT",
    ),
    _milliseconds(
        "slow_sync_ms",
        "fsync.warningthresholdms",
        OPERATION,
        "A sync of the log that takes longer gets a warning.",
    ),
    _switch("audit_enabled", "audit.enable", OPERATION, "Keep an audit log: who did what."),
    Setting(
        "audit_file",
        "paddock.auditFile",
        values.some_path,
        "a file",
        OPERATION,
        "Where the audit log is.",
        metavar="FILE",
        default="audit.log in the data folder",
    ),
    Setting(
        "admin_enabled",
        "admin.enableServer",
        values.boolean,
        _SWITCH,
        ADMIN,
        "Whether there is an admin server.",
        default="true, if one of the next two is given",
    ),
    Setting(
        "admin_host",
        "admin.serverAddress",
        values.some_text,
        "a name or an address",
        ADMIN,
        "Where the admin server listens; 0.0.0.0 is every interface.",
        metavar="HOST",
        default=DEFAULT_ADMIN_HOST,
    ),
    Setting(
        "admin_port",
        "admin.serverPort",
        values.at_least(0, 65535),
        "a port, 0 to 65535",
        ADMIN,
        "The port of the admin server; 0 lets the system choose.",
        metavar="PORT",
        default=str(DEFAULT_ADMIN_PORT),
    ),
    Setting(
        "admin_url",
        "admin.commandURL",
        values.url_path,
        "a path that begins with a slash",
        ADMIN,
        "Below which path the commands are.",
        metavar="PATH",
    ),
    _milliseconds(
        "admin_idle_timeout_ms",
        "admin.idleTimeout",
        ADMIN,
        "The time in which an HTTP request must have come.",
    ),
)

_DEFAULTS: Final = ServerConfig()


def differing(config: ServerConfig) -> dict[str, str]:
    """Give the settings that are not the default ones, by their options' names, no secrets."""
    return {
        setting.called: "(not shown)" if setting.secret else values.shown(value) or "none"
        for setting, value in _not_default(config)
    }


def as_file(config: ServerConfig) -> str:
    """Give the settings that are not the default ones as a `zoo.cfg`, without secrets."""
    return "".join(
        f"{setting.key}={values.shown(value)}\n"
        for setting, value in _not_default(config)
        if not setting.secret
    )


def settings_table() -> str:
    """Give the table of all settings for the documentation."""
    lines: list[str] = []
    for section in dict.fromkeys(setting.section for setting in SETTINGS):
        lines += ["", f"### {section}", ""]
        lines += ["| option | variable | key in zoo.cfg | default | |", "|---|---|---|---|---|"]
        for one in SETTINGS:
            if one.section == section:
                option = f"{one.option}`, `--no-{one.option[2:]}" if one.is_switch else one.option
                cells = (
                    f"`{option}`",
                    f"`{one.variable}`",
                    f"`{one.key}`",
                    one.default_shown(),
                    one.help,
                )
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).strip() + "\n"


def _not_default(config: ServerConfig) -> Iterator[tuple[Setting, object]]:
    for setting in SETTINGS:
        value = getattr(config, setting.field)
        if value != getattr(_DEFAULTS, setting.field):
            yield setting, value
