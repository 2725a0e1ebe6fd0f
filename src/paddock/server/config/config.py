"""The settings of a server.

`ServerConfig` holds settings that make sense together; it refuses to be made otherwise. Where they
come from (a `zoo.cfg`, the environment, the command line) is a matter of `sources`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from paddock.errors import PaddockError
from paddock.server.config.parsers import FROM_TICK, LISTEN_BACKLOG

DEFAULT_PORT: Final = 2181
DEFAULT_ADMIN_HOST: Final = "127.0.0.1"
DEFAULT_ADMIN_PORT: Final = 8080


class ConfigError(PaddockError):
    """A setting cannot be used. The message is one line that says which one and why."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        # The settings that contradict each other, if it is that.
        self.fields = fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything that a single server needs to know before it starts.

    Defaults are upstream's, except where a comment says why not. A limit of 0 is no limit.
    """

    # Upstream listens on every interface unless told otherwise; we do that only when asked to.
    host: str = "127.0.0.1"
    # 0 lets the system choose. None, once made, is none at all: so it is if a secure port is given
    # and nothing is said of a plain one.
    port: int | None = None
    # Where TLS is spoken; "" is the same host, None no port.
    secure_host: str = ""
    secure_port: int | None = None
    # Whether the plain port takes TLS, too, told by the first byte.
    port_unification: bool = False
    # Whether to serve alone although the zoo.cfg lists several servers.
    standalone: bool = False
    # Connections that the system holds for us; upstream leaves it at the 50 of Java.
    listen_backlog: int = LISTEN_BACKLOG
    # None keeps everything in memory: nothing survives the process.
    data_directory: Path | None = None
    # Where the log is, if not in the data folder.
    data_log_directory: Path | None = None
    tick_time_ms: int = 2000
    # Invariant once made: 0 < min_session_timeout_ms <= max_session_timeout_ms. The defaults are 2
    # and 20 ticks.
    min_session_timeout_ms: int = FROM_TICK
    max_session_timeout_ms: int = FROM_TICK
    max_connections_per_address: int = 60
    # Upstream has no limit; here the descriptors that the system gives are one in any case.
    max_connections: int = 50_000
    # What somebody has to say who it is, before it is disconnected.
    handshake_timeout_ms: int = 10_000
    # The longest request that is read; a longer one closes its connection.
    max_frame_bytes: int = 0xFFFFF
    # Requests under way, over which nothing more is read: of one connection, and of all of them.
    # Upstream's limit for all is 1000, which is too few to keep a disk busy with small batches.
    max_requests_per_connection: int = 10_000
    max_request_bytes_per_connection: int = 16 << 20
    max_requests: int = 20_000
    max_request_bytes: int = 128 << 20
    # What may wait for a client that does not read; if it is more, the client is disconnected.
    max_reply_bytes_per_connection: int = 64 << 20
    max_reply_bytes: int = 256 << 20
    # What a session may watch; more is refused with QuotaExceeded.
    max_watches_per_session: int = 100_000
    max_watch_bytes_per_session: int = 32 << 20
    max_watches: int = 2_000_000
    # Entries of the log between two snapshots.
    snapshot_every: int = 100_000
    # KiB of the log between two snapshots; 0 for any number. Upstream has 4 GiB, which a start
    # would have to replay, and a disk to hold several times.
    snapshot_every_kib: int = 65_536
    # How many snapshots a purge leaves, with the log that they need.
    purge_retain_count: int = 3
    # 0 never purges. Any other number purges whenever a snapshot has been taken: unlike upstream,
    # where nothing is purged unless asked for, a disk does not fill up by default.
    purge_interval_hours: int = 1
    # TTL nodes. Off upstream, where old servers of an ensemble might not know them; a single server
    # has no such neighbours, so here they work at once.
    extended_types_enabled: bool = True
    # Whether a write that goes over the hard limit of a quota is refused.
    enforce_quota: bool = False
    container_check_interval_ms: int = 60_000
    max_containers_per_minute: int = 10_000
    max_unused_container_ms: int = 0
    # Whether a client must prove who it is before it may do anything, and by which schemes. These
    # must be given upstream; here they are those that prove something.
    enforce_authentication: bool = False
    enforced_schemes: frozenset[str] = frozenset({"digest", "x509"})
    # Whether those who ask for no more may read while the log does not work.
    read_only_mode_enabled: bool = False
    # The four-letter words that are answered; "*" stands for all of them. `srvr` always is.
    four_letter_words: frozenset[str] = frozenset({"srvr"})
    # `user:digest` of the one who may do everything; None if there is nobody.
    super_digest: str | None = field(default=None, repr=False)
    # The subject of the certificate of the one who may do everything.
    x509_super_user: str | None = None
    # Our certificate, those above it, and its key, in one PEM file.
    tls_key_store: Path | None = None
    tls_key_store_password: str | None = field(default=None, repr=False)
    tls_key_store_password_path: Path | None = None
    # What the stores are said to be; what they really are counts.
    tls_key_store_type: str = ""
    # The certificates that those of clients must come from, in a PEM file.
    tls_trust_store: Path | None = None
    tls_trust_store_type: str = ""
    # Whether a client must show a certificate (need), may (want), or is not asked (none).
    tls_client_auth: str = "need"
    # Off, since clients come from anywhere; upstream has it since 3.9.4.
    tls_client_hostname_verification: bool = False
    # The versions that are spoken, and upstream's way to name a single one, which counts only
    # without them. Without either it is 1.2 and 1.3.
    tls_protocols: frozenset[str] = frozenset()
    tls_protocol: str = ""
    # OpenSSL's names; "" is OpenSSL's own choice.
    tls_cipher_suites: str = ""
    # Whether clients' certificates are looked up in the lists of revoked ones in the trust store.
    tls_crl: bool = False
    # Always false: there is a setting only so that nobody believes that it is true.
    tls_ocsp: bool = False
    # Upstream reads the stores once, unless told otherwise.
    tls_reload: bool = True
    tls_handshake_timeout_ms: int = 5_000
    # Connections whose TLS is being agreed on; one more takes the place of the oldest.
    tls_max_handshakes: int = 1_000
    # The admin server. Upstream has one on every interface unless told otherwise; here somebody
    # has to ask for it, by saying so or by saying where.
    admin_enabled: bool | None = None
    admin_host: str | None = None
    admin_port: int | None = None
    admin_url: str = "/commands"
    # Names by which it may be asked, beside addresses, localhost and this machine's name.
    admin_allowed_hosts: frozenset[str] = frozenset()
    admin_idle_timeout_ms: int = 30_000
    # Whether all data may be taken out and exchanged over HTTP, and how often each; 0 is no limit.
    admin_snapshot_enabled: bool = True
    admin_restore_enabled: bool = True
    admin_rate_limit_interval_ms: int = 300_000
    log_level: str = "info"
    # "text" or "json".
    log_format: str = "text"
    # A sync of the log that takes longer than this is worth a line.
    slow_sync_ms: int = 1000
    # Who did what, with which result: a log of its own, for those who have to keep one.
    audit_enabled: bool = False
    # None is `audit.log` in the data folder, or stderr without one.
    audit_file: Path | None = None

    def __post_init__(self) -> None:
        if self.port is None and self.secure_port is None:
            object.__setattr__(self, "port", DEFAULT_PORT)
        self._check_tls()
        if self.min_session_timeout_ms == FROM_TICK:
            object.__setattr__(self, "min_session_timeout_ms", 2 * self.tick_time_ms)
        if self.max_session_timeout_ms == FROM_TICK:
            object.__setattr__(self, "max_session_timeout_ms", 20 * self.tick_time_ms)
        if self.min_session_timeout_ms > self.max_session_timeout_ms:
            raise ConfigError(
                f"the smallest session timeout, {self.min_session_timeout_ms} ms, "
                f"is larger than the largest, {self.max_session_timeout_ms} ms",
                ("min_session_timeout_ms", "max_session_timeout_ms", "tick_time_ms"),
            )

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Where the admin server listens; None if there is none."""
        enabled = self.admin_enabled
        if enabled is None:
            enabled = self.admin_host is not None or self.admin_port is not None
        if not enabled:
            return None
        port = DEFAULT_ADMIN_PORT if self.admin_port is None else self.admin_port
        return self.admin_host or DEFAULT_ADMIN_HOST, port

    def speaks_tls(self) -> bool:
        """Tell whether any port takes TLS."""
        return self.secure_port is not None or (self.port is not None and self.port_unification)

    def _check_tls(self) -> None:
        if self.secure_host and self.secure_port is None:
            raise ConfigError("there is a secure host, but no secure port", ("secure_host",))
        if not self.speaks_tls():
            return
        ports = ("secure_port", "port_unification")
        if self.tls_key_store is None:
            raise ConfigError(
                "TLS needs our certificate and its key: --tls-key-store, ssl.keyStore.location",
                ports,
            )
        if self.tls_client_auth != "none" and self.tls_trust_store is None:
            raise ConfigError(
                "the certificates of clients cannot be checked without those that they come from: "
                "--tls-trust-store, ssl.trustStore.location (or ssl.clientAuth=none for clients "
                "without)",
                (*ports, "tls_client_auth"),
            )

    def answers_word(self, word: str) -> bool:
        """Tell whether this four-letter word may be answered."""
        return word == "srvr" or word in self.four_letter_words or "*" in self.four_letter_words
