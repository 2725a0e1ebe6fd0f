"""What this server knows of its service, put together when it is asked for."""

from __future__ import annotations

from paddock.log.etcd.figures import LogFigures
from paddock.server.cluster.etcd_watch import EtcdWatch
from paddock.server.cluster.log_meter import LogMeter
from paddock.server.cluster.membership import Membership
from paddock.server.connections.core import Core
from paddock.server.replication.cluster_view import ClusterView, LogView, MemberView
from paddock.server.replication.pacing import LAG_MAX
from paddock.state.roster import Roster


class ServiceView(ClusterView):
    """The view of one server that shares a log in etcd."""

    def __init__(
        self,
        core: Core,
        membership: Membership,
        figures: LogFigures,
        etcd: EtcdWatch,
        meter: LogMeter,
    ) -> None:
        self._core = core
        self._membership = membership
        self._figures = figures
        self._etcd = etcd
        self._meter = meter

    def number(self) -> int:
        return self._membership.number

    def is_on_duty(self) -> bool:
        return self._membership.is_on_duty()

    def duty_seconds(self) -> float:
        return self._membership.duty_seconds()

    def lease_seconds_left(self) -> float:
        lease = self._core.lease
        assert lease is not None
        return lease.left()

    def is_disputed(self) -> bool:
        return self._membership.disputes.is_open()

    def rules(self) -> int:
        return self._roster.rules

    def members(self) -> list[MemberView]:
        membership, lease = self._membership, self._core.lease
        assert lease is not None
        duty = self._roster.duty()
        found = []
        for member in self._roster.members.values():
            silent = membership.silence.seconds(member.boot)
            found.append(
                MemberView(
                    member.number,
                    member.address,
                    member.lag,
                    is_on_duty=member is duty,
                    is_ours=member.number == membership.number,
                    is_synced=member.lag <= LAG_MAX and silent < lease.seconds / 2,
                )
            )
        return found

    def log(self) -> LogView:
        replica, figures, etcd = self._core.replica, self._figures, self._etcd
        manifest, status = etcd.manifest, etcd.status
        trimmed = None if manifest is None else manifest.trimmed
        trimmed_index = 0 if trimmed is None else trimmed.index
        return LogView(
            applied=replica.applied,
            last_index=figures.last_index,
            commit_seconds=figures.commit_s,
            reopenings=figures.reopenings,
            page_reads=figures.page_reads,
            errors=figures.errors,
            records=figures.last_index - trimmed_index,
            bytes=self._meter.bytes_behind(trimmed_index),
            snapshot_index=0 if manifest is None else manifest.index,
            snapshot_bytes=0 if manifest is None else manifest.size,
            snapshot_age_seconds=etcd.snapshot_age_seconds(),
            database_bytes=0 if status is None else status.database_bytes,
            used_bytes=0 if status is None else status.used_bytes,
            quota_bytes=etcd.space.quota_bytes,
            is_tight=etcd.space.is_tight,
            is_full=figures.is_full or (status is not None and status.is_full),
        )

    @property
    def _roster(self) -> Roster:
        roster = self._core.machine.roster
        assert roster is not None
        return roster
