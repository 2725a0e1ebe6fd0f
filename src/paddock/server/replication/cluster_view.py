"""What a server knows of the servers that it shares a log with, for those who report it.

A server of its own has no such view. What is reported is in `paddock.server.admin`; where it comes
from is in `paddock.server.cluster`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member of the service, as this server sees it."""

    # Its join number.
    number: int
    # Where clients reach it; empty if it does not say so.
    address: str
    # How many records its state was behind when its last batch arrived.
    lag: int
    is_on_duty: bool
    # Whether it is this server.
    is_ours: bool
    # Whether it is heard of, and not far behind.
    is_synced: bool


@dataclass(frozen=True, slots=True)
class LogView:
    """How the shared log is doing."""

    # The last record that is applied here, and the last one that is known to be in the log.
    applied: int
    last_index: int
    # From the first attempt of our last batch until it came out of the log.
    commit_seconds: float
    # How often the watch was opened again, and how often records were read in pages.
    reopenings: int
    page_reads: int
    # Calls of etcd that failed.
    errors: int
    # Records and, roughly, bytes that etcd holds of the log.
    records: int
    bytes: int
    # The snapshot in etcd: where it stands (0 without one), its bytes, and its age in seconds; -1
    # if that is unknown.
    snapshot_index: int
    snapshot_bytes: int
    snapshot_age_seconds: float
    # The database of the etcd member that is used; 0 if it has not been asked yet.
    database_bytes: int
    used_bytes: int
    quota_bytes: int
    # Whether clients' writes are refused for want of space, and whether etcd itself refuses them.
    is_tight: bool
    is_full: bool

    @property
    def lag(self) -> int:
        """How many records are known to be in the log that are not applied here."""
        return max(self.last_index - self.applied, 0)


class ClusterView:
    """The service of this server; implemented by `paddock.server.cluster.view`."""

    def number(self) -> int:
        """Return our join number; 0 while we are no member."""
        raise NotImplementedError

    def is_on_duty(self) -> bool:
        """Return whether this server does what one server does for all."""
        raise NotImplementedError

    def duty_seconds(self) -> float:
        """Return for how long this server has been on duty; 0 if it is not."""
        raise NotImplementedError

    def lease_seconds_left(self) -> float:
        """Return for how long we may speak, if nothing renews the lease."""
        raise NotImplementedError

    def is_disputed(self) -> bool:
        """Return whether members have different states, and it is not decided who is right."""
        raise NotImplementedError

    def rules(self) -> int:
        """Return the rules that entries are written under."""
        raise NotImplementedError

    def members(self) -> list[MemberView]:
        """Return all members, in the order of their join numbers."""
        raise NotImplementedError

    def log(self) -> LogView:
        """Return how the log is doing."""
        raise NotImplementedError
